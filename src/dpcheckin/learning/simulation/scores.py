"""How well a model does on the records that were held out: accuracy, or the mean of its loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dpcheckin.learning.gradients.engine import Loss
from dpcheckin.learning.losses import named_loss
from dpcheckin.numerals import written

_BLOCK = 1000  # records evaluated at once


def accuracy(module: nn.Module, inputs: Tensor, targets: Tensor) -> float:
    """Share of records classified rightly.

    Args:
        module: the model.
        inputs: records.
        targets: their classes.
    """
    return _mean(_rightly, module, inputs, targets)


def _rightly(outputs: Tensor, targets: Tensor) -> Tensor:
    return outputs.argmax(dim=1) == targets


def _mean(of_records: Loss, module: nn.Module, inputs: Tensor, targets: Tensor) -> float:
    total = 0.0
    with torch.no_grad():
        for start in range(0, len(targets), _BLOCK):
            some = slice(start, start + _BLOCK)
            total += float(of_records(module(inputs[some]), targets[some]).double().sum())
    return total / len(targets)


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
        return _mean(self.of_records, module, inputs, targets)

    def text(self, value: float, digits: int = 2) -> str:
        """A value as sentences show it."""
        return f"{100 * value:.{digits}f}%" if self.percent else written(value, 4)


ACCURACY = Score("accuracy", "test accuracy", max, _rightly, percent=True)


def mean_loss(loss: Loss) -> Score:
    """The mean of a loss over the held-out records, for targets that are no classes."""
    name = named_loss(loss).rpartition(".")[2].replace("_", " ")
    label = "test loss" if "<" in name else f"test loss ({name})"  # a lambda has no name
    return Score("test_loss", label, min, loss)
