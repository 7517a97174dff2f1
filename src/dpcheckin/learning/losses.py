"""Losses of one record each, and the score of a model on the records that were held out.

Losses are top-level names so that worker processes can receive them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import written

Loss = Callable[[Tensor, Tensor], Tensor]
"""Maps a batch of model outputs and targets to one loss per record (no reduction)."""

_BLOCK = 1000  # records evaluated at once


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of each record, from logits (records, classes)."""
    return functional.cross_entropy(outputs, targets, reduction="none")


def squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Mean squared error of each record, one row a record."""
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
    """A figure of merit on held-out records.

    Args:
        name: its key in the log.
        label: its name in sentences.
        better: the better of several values.
        of_records: a number for each record, whose mean is the score.
        percent: whether it is a share.
    """

    name: str
    label: str
    better: Callable[[Iterable[float]], float]
    of_records: Loss
    percent: bool = False

    def of(self, module: nn.Module, inputs: Tensor, targets: Tensor) -> float:
        """The score of a model on these records."""
        total = 0.0
        with torch.no_grad():
            for start in range(0, len(targets), _BLOCK):
                some = slice(start, start + _BLOCK)
                total += float(self.of_records(module(inputs[some]), targets[some]).double().sum())
        return total / len(targets)

    def text(self, value: float, digits: int = 2) -> str:
        """A value as sentences show it."""
        return f"{100 * value:.{digits}f}%" if self.percent else written(value, 4)


def _rightly(outputs: Tensor, targets: Tensor) -> Tensor:
    return outputs.argmax(dim=1) == targets


ACCURACY = Score("accuracy", "test accuracy", max, _rightly, percent=True)


def accuracy(module: nn.Module, inputs: Tensor, targets: Tensor) -> float:
    """Share of records classified rightly.

    Args:
        module: the model.
        inputs: records.
        targets: their classes.
    """
    return ACCURACY.of(module, inputs, targets)


def mean_loss(loss: Loss) -> Score:
    """The mean of a loss over the held-out records, for targets that are no classes."""
    name = named_loss(loss).rpartition(".")[2].replace("_", " ")
    label = "test loss" if "<" in name else f"test loss ({name})"  # a lambda has no name
    return Score("test_loss", label, min, loss)
