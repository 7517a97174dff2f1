"""The closed form of a linear head is the gradient, and nothing else is taken for a linear head."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning import OneRecordEach, VmapGradients, client_gradients
from dpcheckin.learning.gradients.layerwise import LinearHeadGradients, head_of
from dpcheckin.learning.models import cross_entropy, squared_error
from dpcheckin.learning.simulation.client_work import ClientWork
from dpcheckin.randomizers import Gaussian


def records(count: int = 9) -> tuple[torch.Tensor, torch.Tensor]:
    chance = torch.Generator().manual_seed(0)
    inputs = torch.randn(count, 2, 3, generator=chance)
    return inputs, torch.randint(0, 4, (count,), generator=chance)


@pytest.mark.parametrize("bias", [True, False])
def test_norms_rows_and_sums_are_those_of_one_backward_pass_per_client(bias: bool) -> None:
    torch.manual_seed(1)
    module = nn.Sequential(nn.Flatten(), nn.Linear(6, 4, bias=bias))
    inputs, targets = records()
    true = []
    for x, y in zip(inputs, targets, strict=True):
        loss = functional.cross_entropy(module(x[None]), y[None])
        parts = torch.autograd.grad(loss, list(module.parameters()))
        true.append(torch.cat([p.flatten() for p in parts]))
    rows = torch.stack(true)
    chunk = LinearHeadGradients(module).chunk(inputs, targets, None)
    weights = torch.rand(9, 2 if bias else 1)
    sizes = torch.tensor([24, 4] if bias else [24])
    spread = weights.repeat_interleave(sizes, dim=1)
    assert torch.allclose(chunk.squared_norms.sum(1), rows.square().sum(1), atol=1e-5)
    assert torch.allclose(chunk.matrix(weights, 2, 7), (spread * rows)[2:7], atol=1e-6)
    assert torch.allclose(chunk.weighted_sum(weights), (spread * rows).sum(0), atol=1e-5)
    assert torch.allclose(chunk.losses, cross_entropy(module(inputs), targets), atol=1e-6)


def test_it_serves_linear_heads_under_cross_entropy_only() -> None:
    inputs, targets = records()
    head = nn.Sequential(nn.Flatten(), nn.Linear(6, 4))
    assert isinstance(client_gradients(head, cross_entropy, inputs, targets), LinearHeadGradients)
    many = client_gradients(head, cross_entropy, inputs, targets, many_records=True)
    assert isinstance(many, VmapGradients)
    assert not LinearHeadGradients.supports(head, squared_error)
    deep = nn.Sequential(nn.Flatten(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 4))
    bent = nn.Sequential(nn.Flatten(), nn.Linear(6, 4), nn.Tanh())
    for other in (deep, bent, nn.Sequential(), nn.Conv2d(1, 1, 1)):
        assert head_of(other) is None
    with pytest.raises(InvalidParameter, match="a linear head"):
        LinearHeadGradients(deep)
    with pytest.raises(InvalidParameter, match="mask"):
        LinearHeadGradients(head).chunk(inputs, targets, torch.ones(9, 1))


def test_chunks_of_a_head_hold_the_cohort_once_whatever_its_order() -> None:
    cohort = torch.randperm(5000)[:4500].numpy()
    for width, count in ((6, 1), (600, 3)):  # small records come in larger chunks
        fleet = OneRecordEach(torch.zeros(5000, width), torch.randint(0, 4, (5000,)))
        work = ClientWork(nn.Linear(width, 4), cross_entropy, fleet, Gaussian(1.0, 0.5))
        chunks = work.chunks(cohort, (1, 2))
        found = [client for chunk in chunks for client in chunk.clients]
        assert sorted(cohort.tolist()) == found
        assert len({chunk.seed for chunk in chunks}) == len(chunks) == count


def test_the_noise_of_a_sum_of_gaussian_reports_is_that_of_all_of_them() -> None:
    """The sum less the clipped gradients is normal, with the variance of one report times clients.

    160,040 draws: the mean square strays from its expectation by 3% with probability below 1e-15
    (its standard deviation is 0.35%).
    """
    torch.manual_seed(0)
    clients, size = 3000, 40010
    inputs, targets = torch.zeros(clients, 4000), torch.randint(0, 10, (clients,))
    fleet, noisy = OneRecordEach(inputs, targets), Gaussian(3.0, 0.5)
    noises = []
    for seed in range(4):
        drawn = []
        for randomizer in (noisy, Gaussian(1e-6, 0.5)):  # next to no noise: the clipped gradients
            module = nn.Linear(4000, 10)
            nn.init.zeros_(module.weight)
            nn.init.zeros_(module.bias)
            work = ClientWork(module, cross_entropy, fleet, randomizer)
            parts = work.chunks(torch.arange(clients).numpy(), (5, seed))
            drawn.append(sum(work.chunk(part).estimate_sum.double() for part in parts))
        noises.append(drawn[0] - drawn[1])
    noise = torch.cat(noises)
    assert noise.numel() == 4 * size
    expected = clients * (3.0 * 0.5) ** 2
    assert float(noise.square().mean()) == pytest.approx(expected, rel=0.03)
    # kurtosis of a normal law; its standard deviation here is 0.012
    kurtosis = float((noise**4).mean() / noise.square().mean() ** 2)
    assert kurtosis == pytest.approx(3.0, abs=0.12)
