"""Losses of one record each, as top-level names so that worker processes can receive them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional

from dpcheckin.errors import InvalidParameter


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of each record.

    Args:
        outputs: logits, (records, classes).
        targets: classes, (records,).
    """
    return functional.cross_entropy(outputs, targets, reduction="none")


def squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Mean squared error of each record.

    Args:
        outputs: one row a record.
        targets: of the same shape.
    """
    return ((outputs - targets) ** 2).flatten(1).mean(dim=1)


@dataclass(frozen=True)
class PerRecord:
    """Any loss without reduction, as one number for each record.

    Args:
        loss: maps outputs and targets to one number, or one row of numbers, for each record.
    """

    loss: Callable[[Tensor, Tensor], Tensor]

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        found = self.loss(outputs, targets)
        if found.ndim == 0 or len(found) != len(outputs):
            raise InvalidParameter(
                "loss",
                f"a result of shape {tuple(found.shape)} for {len(outputs):,} records",
                "one number for each record (torch's losses: reduction='none')",
            )
        return found if found.ndim == 1 else found.flatten(1).mean(dim=1)


def named_loss(loss: Callable[[Tensor, Tensor], Tensor]) -> str:
    """A loss by the name of its function or class, the same in every process."""
    if isinstance(loss, PerRecord):
        return named_loss(loss.loss)
    return str(getattr(loss, "__qualname__", type(loss).__qualname__))
