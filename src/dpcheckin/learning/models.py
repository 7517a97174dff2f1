"""Built-in models: the papers' CNN, a small one for 8×8 digits, a head on frozen features.

Any `torch.nn.Module` that treats its records independently can be trained; these are only the
ones the commands know by name. The papers' CIFAR-10 runs pre-train on CIFAR-100, taken to be
public, and fine-tune the last layer privately: `public_features` does the first half for any image
dataset, and looks at no private record; the second half is an ordinary run of a `private_head`.
"""

from __future__ import annotations

import hashlib
import math

import torch
from torch import Tensor, nn
from torch.nn.modules import activation

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.data.datasets import Dataset
from dpcheckin.learning.losses import cross_entropy
from dpcheckin.learning.names import MODELS
from dpcheckin.options import listed
from dpcheckin.randomizers.base import at_least

_ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}
FEATURES = 64
_BATCH, _LEARNING_RATE, _MOMENTUM = 100, 0.05, 0.9


def papers_cnn(activation: str = "tanh", classes: int = 10, channels: int = 1) -> nn.Module:
    """P1 Table 3: 16 filters 8×8/2, pool, 32 filters 4×4/2, pool, 32 units, softmax.

    The table leaves padding, pooling stride and activation open. Padding 3 and pooling stride 1
    give the 26,010 parameters of the usual form of this network (for 28×28 images of one
    channel); bounded activations keep the gradients of private training small (Papernot et al.,
    arXiv 2007.14191), so tanh is the default.

    Args:
        activation: 'tanh' or 'relu'.
        classes: number of outputs.
        channels: of an image.
    """
    if activation not in _ACTIVATIONS:
        raise InvalidParameter("activation", activation, "'tanh' or 'relu'")
    act = _ACTIVATIONS[activation]
    return nn.Sequential(
        nn.Conv2d(channels, 16, 8, 2, padding=3),
        act(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        act(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.LazyLinear(32) if channels != 1 else nn.Linear(512, 32),
        act(),
        nn.Linear(32, classes),
    )


def small_network(inputs: int, classes: int = 10, hidden: int = 32) -> nn.Module:
    """One hidden layer of tanh units.

    Args:
        inputs: numbers in a record.
        classes: number of outputs.
        hidden: units of the hidden layer.
    """
    return nn.Sequential(
        nn.Flatten(), nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, classes)
    )


class FrozenFeatures(nn.Module):
    """Public, pre-trained features and a private last layer: only `head` has parameters to train.

    The body is kept as a buffer-free callable outside the module tree, so that optimisers,
    gradients and checkpoints see the head alone.
    """

    def __init__(self, body: nn.Module, features: int, classes: int) -> None:
        super().__init__()
        self._body = [body.eval().requires_grad_(False)]  # a list hides it from the module tree
        self.head = nn.Linear(features, classes)

    def digest(self) -> str:
        """A fingerprint of the frozen body, which no list of parameters shows."""
        parts = [p.contiguous().numpy().tobytes() for p in self._body[0].state_dict().values()]
        return hashlib.sha256(b"".join(parts)).hexdigest()

    def forward(self, inputs: Tensor) -> Tensor:
        with torch.no_grad():
            features = self._body[0](inputs)
        logits: Tensor = self.head(features.flatten(1))
        return logits


def _body(channels: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(1024, FEATURES),
        nn.Tanh(),  # bounded features keep the head's gradients small
    )


def public_features(public: Dataset, epochs: int, seed: int) -> nn.Module:
    """A network that turns an image into `FEATURES` numbers, trained to tell the public classes."""
    at_least("public_epochs", epochs, 0)
    if len(public.shape) != 3 or min(public.shape[1:]) < 8:
        raise InvalidParameter("public", public.shape, "images of at least 8×8")
    torch.manual_seed(seed)
    body = _body(public.shape[0])
    whole = nn.Sequential(body, nn.Linear(FEATURES, public.classes))
    optimizer = torch.optim.SGD(whole.parameters(), _LEARNING_RATE, _MOMENTUM)
    order = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        shuffled = torch.randperm(len(public.train_targets), generator=order)
        for batch in torch.split(shuffled, _BATCH):
            optimizer.zero_grad()
            outputs = whole(public.train_inputs[batch])
            cross_entropy(outputs, public.train_targets[batch]).mean().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return body


def private_head(public: Dataset, private: Dataset, epochs: int, seed: int) -> FrozenFeatures:
    """The model of a private run: public features, and a last layer for the private classes."""
    if public.shape != private.shape:
        raise InvalidParameter(
            "public", f"records of shape {public.shape}", f"the private records' {private.shape}"
        )
    return FrozenFeatures(public_features(public, epochs, seed), FEATURES, private.classes)


def build_model(name: str, shape: tuple[int, ...], classes: int) -> nn.Module:
    """A built-in model by name, for records of this shape (channels, height, width).

    Args:
        name: one of `names.MODELS`.
        shape: of a record: channels, height, width.
        classes: number of outputs.
    """
    if name not in MODELS:
        raise InvalidParameter("model", name, listed(MODELS))
    large, inputs = len(shape) == 3 and min(shape[1:]) >= 28, math.prod(shape)
    if name == "auto":
        name = "papers-cnn" if len(shape) == 3 and shape[-1] >= 28 else "small"
    if name == "small":
        return small_network(inputs, classes)
    if name == "linear":
        return nn.Sequential(nn.Flatten(), nn.Linear(inputs, classes))
    if not large:
        raise InvalidParameter("model", name, f"images of at least 28×28, not {shape}")
    model = papers_cnn("relu" if name.endswith("relu") else "tanh", classes, shape[0])
    if shape != (1, 28, 28):
        model[7] = nn.LazyLinear(32)  # type: ignore[operator]
        model(torch.zeros(1, *shape))
    return model


def described(module: nn.Module) -> str:
    """A model in words: the layers of a chain, the name of any other.

    >>> described(small_network(64))
    'linear 64→32, tanh, linear 32→10'
    """
    if not isinstance(module, nn.Sequential):
        return type(module).__name__
    layers = []
    for layer in module:
        sizes = [getattr(layer, f"{side}_features", getattr(layer, f"{side}_channels", None))
                 for side in ("in", "out")]  # fmt: skip
        if None not in sizes:
            layers.append(f"{type(layer).__name__.lower()} {sizes[0]:,}→{sizes[1]:,}")
        elif any(True for _ in layer.parameters()):
            layers.append(type(layer).__name__)
        elif type(layer).__module__ == activation.__name__:
            layers.append(type(layer).__name__.lower())
    return ", ".join(layers) or type(module).__name__


def count_parameters(module: nn.Module) -> int:
    """Number of trainable numbers: the dimension that vector randomizers must know."""
    return sum(p.numel() for p in module.parameters())
