import pytest
import torch
from torch import nn
from torch.nn import functional

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning import LayerwiseGradients, VmapGradients, client_gradients, papers_cnn
from dpcheckin.learning.models import cross_entropy


def by_hand(module, inputs, targets):
    """One backward pass per record: slow and beyond doubt."""
    rows = []
    for x, y in zip(inputs, targets, strict=True):
        loss = functional.cross_entropy(module(x[None]), y[None])
        rows.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, module.parameters())]))
    return torch.stack(rows)


def images(count=5, channels=1, side=28):
    torch.manual_seed(0)
    return torch.randn(count, channels, side, side), torch.randint(0, 10, (count,))


class TiedTwice(nn.Module):
    """A layer called twice: the layerwise engine must not be used."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 10)

    def forward(self, x):
        return self.last(torch.tanh(self.first(torch.tanh(self.first(x)))))


class WeightOutsideItsLayer(nn.Module):
    """A weight used without its layer's call: only a trial can find out."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 10), nn.Linear(6, 10)

    def forward(self, x):
        return self.last(x) + functional.linear(x, self.first.weight) + self.first(x)


@pytest.mark.parametrize("engine", [LayerwiseGradients, VmapGradients])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_engines_agree_with_one_backward_pass_per_client(engine, activation):
    """Rows, norms per tensor and weighted sums are those of the slow way."""
    torch.manual_seed(1)
    module, (inputs, targets) = papers_cnn(activation), images()
    true = by_hand(module, inputs, targets)
    chunk = engine(module, cross_entropy).chunk(inputs, targets, None)
    tensors = len(list(module.parameters()))
    assert torch.allclose(chunk.matrix(torch.ones(5, tensors)), true, atol=1e-5)
    assert torch.allclose(chunk.squared_norms.sum(1), (true**2).sum(1), rtol=1e-4)
    sizes = [p.numel() for p in module.parameters()]
    parts = torch.stack([(part**2).sum(1) for part in true.split(sizes, dim=1)], dim=1)
    assert torch.allclose(chunk.squared_norms, parts, rtol=1e-3, atol=1e-9)
    weights = torch.rand(5, tensors)
    spread = torch.cat([weights[:, i : i + 1].expand(-1, s) for i, s in enumerate(sizes)], dim=1)
    assert torch.allclose(chunk.weighted_sum(weights), (spread * true).sum(0), atol=1e-4)
    assert torch.allclose(chunk.matrix(weights), spread * true, atol=1e-5)


def test_parameters_keep_their_gradient_flags():
    """The fast engine freezes parameters for its pass only."""
    module, (inputs, targets) = papers_cnn(), images()
    LayerwiseGradients(module, cross_entropy).chunk(inputs, targets, None)
    assert all(p.requires_grad for p in module.parameters())


@pytest.mark.parametrize("module", [TiedTwice(), WeightOutsideItsLayer()])
def test_models_the_fast_engine_would_get_wrong_use_the_general_one(module):
    """Both look eligible by their layers; the trial on two records catches them."""
    inputs, targets = torch.randn(4, 6), torch.randint(0, 10, (4,))
    assert LayerwiseGradients.supports(module)
    engine = client_gradients(module, cross_entropy, inputs, targets)
    assert isinstance(engine, VmapGradients)
    chunk = engine.chunk(inputs, targets, None)
    rows = chunk.matrix(torch.ones_like(chunk.squared_norms))
    assert torch.allclose(rows, by_hand(module, inputs, targets), atol=1e-5)


def test_the_papers_cnn_gets_the_fast_engine_and_other_layers_the_general_one():
    inputs, targets = images()
    assert isinstance(client_gradients(papers_cnn(), cross_entropy, inputs, targets), LayerwiseGradients)
    other = nn.Sequential(nn.Flatten(), nn.LayerNorm(784), nn.Linear(784, 10))
    assert isinstance(client_gradients(other, cross_entropy, inputs, targets), VmapGradients)


def test_batch_normalisation_is_refused():
    """A layer that mixes clients has no per-client gradient."""
    with pytest.raises(InvalidParameter, match="BatchNorm1d"):
        VmapGradients(nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2)), cross_entropy)


def test_a_client_with_many_records_reports_its_mean_gradient():
    """Padding does not count: masked records leave no trace."""
    torch.manual_seed(2)
    module = nn.Linear(4, 10)
    inputs, targets = torch.randn(2, 3, 4), torch.randint(0, 10, (2, 3))
    mask = torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    chunk = VmapGradients(module, cross_entropy).chunk(inputs, targets, mask)
    rows = chunk.matrix(torch.ones(2, 2))
    first = by_hand(module, inputs[0, :2], targets[0, :2]).mean(0)
    second = by_hand(module, inputs[1, :1], targets[1, :1])[0]
    assert torch.allclose(rows, torch.stack([first, second]), atol=1e-6)
