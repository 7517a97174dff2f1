"""What is trained and judged: losses of one record each, the score on held-out records, and built-in models.

Any `torch.nn.Module` that treats its records independently can be trained, with any loss that gives a number for each;
these are only the ones the commands know by name. They are top-level names, so that worker processes can receive them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules import activation

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.data.datasets import Dataset
from dpcheckin.learning.options import MODELS
from dpcheckin.numerals import at_least, written
from dpcheckin.options import listed

Loss = Callable[[Tensor, Tensor], Tensor]
"""Maps a batch of model outputs and targets to one loss per record (no reduction)."""

_BLOCK = 1000  # records evaluated at once


def usable_device(name: str) -> torch.device:
    """The device of this name, if torch finds it on this machine."""
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InvalidParameter("device", name, "cpu, cuda, cuda:1 or mps") from None
    found = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if (device.index or 0) >= found.get(device.type, 0):
        here = listed([kind for kind, count in found.items() if count])
        raise InvalidParameter("device", name, f"one that torch finds on this machine: {here}")
    return device


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of each record, from outputs, the logits (records, classes), and targets, the classes."""
    return functional.cross_entropy(outputs, targets, reduction="none")


def squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Mean squared error of each record: outputs and targets have one row a record."""
    return ((outputs - targets) ** 2).flatten(1).mean(dim=1)


@dataclass(frozen=True)
class PerRecord:
    """Any loss without reduction, as one number for each record."""

    loss: Loss

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        values = self.loss(outputs, targets)
        if values.ndim == 0 or len(values) != len(outputs):
            raise InvalidParameter(
                "loss",
                f"a result of shape {tuple(values.shape)} for {len(outputs):,} records",
                "one number for each record (torch's losses: reduction='none')",
            )
        return values if values.ndim == 1 else values.flatten(1).mean(dim=1)


def named_loss(loss: Loss) -> str:
    """A loss by the name of its function or class, the same in every process."""
    if isinstance(loss, PerRecord):
        return named_loss(loss.loss)
    return str(getattr(loss, "__qualname__", type(loss).__qualname__))


@dataclass(frozen=True)
class Score:
    """A figure of merit on held-out records: the mean of a number for each (`of_records`).

    `name` is its key in the log, `label` its name in sentences; `better` is the better of several values, and `percent`
    says whether it is a share.
    """

    name: str
    label: str
    better: Callable[[Iterable[float]], float]
    of_records: Loss
    percent: bool = False

    def of(self, module: nn.Module, inputs: Tensor, targets: Tensor) -> float:
        """The score of a model (module) on records: their inputs and targets."""
        total, device = 0.0, next(module.parameters()).device
        with torch.no_grad():
            for start in range(0, len(targets), _BLOCK):
                some = slice(start, start + _BLOCK)
                reached = self.of_records(module(inputs[some].to(device)), targets[some].to(device))
                total += float(reached.cpu().double().sum())
        return total / len(targets)

    def text(self, value: float, digits: int = 2) -> str:
        """A value as sentences show it; a percentage with so many digits."""
        return f"{100 * value:.{digits}f}%" if self.percent else written(value, 4)


def _rightly(outputs: Tensor, targets: Tensor) -> Tensor:
    return outputs.argmax(dim=1) == targets


ACCURACY = Score("accuracy", "test accuracy", max, _rightly, percent=True)


def accuracy(module: nn.Module, inputs: Tensor, targets: Tensor) -> float:
    """Share of records (inputs, with their classes as targets) that a model (module) classifies rightly."""
    return ACCURACY.of(module, inputs, targets)


def mean_loss(loss: Loss) -> Score:
    """The mean of a loss over the held-out records, for targets that are no classes."""
    name = named_loss(loss).rpartition(".")[2].replace("_", " ")
    label = "test loss" if "<" in name else f"test loss ({name})"  # a lambda has no name
    return Score("test_loss", label, min, loss)


_ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}
FEATURES = 64
_BATCH, _LEARNING_RATE, _MOMENTUM = 100, 0.05, 0.9


def papers_cnn(activation: str = "tanh", classes: int = 10, channels: int = 1) -> nn.Module:
    """P1 Table 3: 16 filters 8×8/2, pool, 32 filters 4×4/2, pool, 32 units, softmax.

    The table leaves padding, pooling stride and activation open. Padding 3 and pooling stride 1 give the 26,010
    parameters of the usual form of this network (for 28×28 images of one channel); bounded activations keep the
    gradients of private training small (Papernot et al., arXiv 2007.14191), so tanh is the default activation, and
    'relu' the other. Images have so many channels, the network an output for each of the classes.
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
    """One hidden layer of tanh units (hidden), between the inputs of a record and an output for each of the classes."""
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, classes))


class FrozenFeatures(nn.Module):
    """Public, pre-trained features and a private last layer: only `head` has parameters to train.

    The body is kept as a buffer-free callable outside the module tree, so that optimisers, gradients and checkpoints
    see the head alone.
    """

    def __init__(self, body: nn.Module, features: int, classes: int) -> None:
        super().__init__()
        self._body = [body.eval().requires_grad_(False)]  # a list hides it from the module tree
        self.head = nn.Linear(features, classes)

    def _apply(self, *how: Any, **more: Any) -> Any:
        self._body[0]._apply(*how, **more)  # type: ignore[no-untyped-call]  # the list hides it from moves as well
        return super()._apply(*how, **more)  # type: ignore[no-untyped-call]

    def digest(self) -> str:
        """A fingerprint of the frozen body, which no list of parameters shows."""
        parts = [p.cpu().contiguous().numpy().tobytes() for p in self._body[0].state_dict().values()]
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
    """A network from images to `FEATURES` numbers, trained from a seed for some epochs to tell the public classes."""
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
    """The model of a private run: `public_features` (public, epochs, seed), and a last layer for private classes.

    The papers' CIFAR-10 runs pre-train on CIFAR-100, taken to be public, and fine-tune the last layer privately. The
    first half looks at no private record; the second is an ordinary run.
    """
    if public.shape != private.shape:
        raise InvalidParameter("public", f"records of shape {public.shape}", f"the private records' {private.shape}")
    return FrozenFeatures(public_features(public, epochs, seed), FEATURES, private.classes)


def build_model(name: str, shape: tuple[int, ...], classes: int) -> nn.Module:
    """A model by name, one of `options.MODELS`, for records of this shape, with an output for each of the classes."""
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
