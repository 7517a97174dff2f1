"""Linear and small models with NumPy alone: what a client computes where torch is not installed.

The models are the built-in `linear` and `small` of `dpcheckin.learning`, with their parameters in the same order, so a
client without torch and an analyzer with it agree about every byte.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter, NumericalFailure

Floats = NDArray[np.float64]
HIDDEN = 32
"""Units of the hidden layer of `small`."""


def parameters_of(model: bytes, size: int) -> NDArray[np.float32]:
    """The parameters of a `model` as they arrive; one of another `size` or with NaN is refused."""
    if len(model) != 4 * size:
        raise InvalidParameter("model", f"{len(model):,} bytes", f"{size:,} parameters")
    values = np.frombuffer(model, dtype="<f4")
    if not np.isfinite(values).all():
        raise NumericalFailure("the model holds parameters that are not finite")
    return values


def is_small(model: str, shape: tuple[int, ...]) -> bool:
    """Whether a built-in `model`, for records of this `shape`, can be trained here; all others need torch."""
    return model in ("linear", "small") or (model == "auto" and bool(shape) and shape[-1] < 28)


class NumpyClientTask:
    """One owner's records: the mean gradient of the cross-entropy at the model it is sent. The `model` is 'linear', or
    'small' (also as 'auto'): one hidden layer of 32 tanh units."""

    def __init__(self, model: str, inputs: NDArray[np.floating], targets: NDArray[np.integer], classes: int) -> None:
        if not len(targets) or len(inputs) != len(targets):
            raise InvalidParameter("records", len(targets), "at least one, with its target")
        if not is_small(model, inputs.shape[1:]):
            raise InvalidParameter("model", model, "'linear' or 'small' without torch")
        self._inputs = np.asarray(inputs, np.float64).reshape(len(inputs), -1)
        self._targets = np.asarray(targets, np.int64)
        if self._targets.min() < 0 or self._targets.max() >= classes:
            raise InvalidParameter("targets", int(self._targets.max()), f"from 0 to {classes - 1}")
        wide = self._inputs.shape[1]
        self._shapes = [(classes, wide)] if model == "linear" else [(HIDDEN, wide), (classes, HIDDEN)]

    @property
    def dimension(self) -> int:
        """Parameters of the model: coordinates of a report."""
        return sum(math.prod(shape) + shape[0] for shape in self._shapes)

    def value(self, model: bytes) -> Floats:
        """The gradient, not yet clipped. `model`: float32 parameters in little-endian order."""
        layers = self._layers(model)
        above = [self._inputs]
        for weight, bias in layers[:-1]:
            above.append(np.tanh(above[-1] @ weight.T + bias))
        weight, bias = layers[-1]
        slope = _softmax(above[-1] @ weight.T + bias)
        slope[np.arange(len(slope)), self._targets] -= 1.0
        slope /= len(slope)
        gradients: list[Floats] = []
        for place in reversed(range(len(layers))):
            gradients = [(slope.T @ above[place]).ravel(), slope.sum(axis=0), *gradients]
            if place:
                slope = (slope @ layers[place][0]) * (1.0 - above[place] ** 2)
        return np.concatenate(gradients)

    def _layers(self, model: bytes) -> list[tuple[Floats, Floats]]:
        values = parameters_of(model, self.dimension).astype(np.float64)
        layers, start = [], 0
        for shape in self._shapes:
            middle, end = start + math.prod(shape), start + math.prod(shape) + shape[0]
            layers.append((values[start:middle].reshape(shape), values[middle:end]))
            start = end
        return layers


def _softmax(logits: Floats) -> Floats:
    """Rows of probabilities."""
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    found: Floats = raised / raised.sum(axis=1, keepdims=True)
    return found
