"""Losses of one record each, as top-level functions so that worker processes can receive them."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


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
