"""What the package promises, asked at its front door and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dpcheckin as dp
from dpcheckin.errors import InvalidParameter, OutsideTheorem, Unreachable
from oracles.seat_types.laws import Array

Promise = Callable[[str, Array], Array]
REFUSALS = (InvalidParameter, OutsideTheorem, Unreachable)


class _FrontDoor(dict[str, Any]):
    """The package's public names, each looked up when it is needed."""

    def __missing__(self, name: str) -> Any:
        return getattr(dp, name)


def _named(text: str) -> Any:
    return eval(text, {"__builtins__": {}}, _FrontDoor())  # our own text


def pair(text: str) -> Any:
    """The local pair that this text names."""
    return _named(text)


def deltas(text: str, epsilons: Array) -> Array:
    """The promised delta at each epsilon for a list of (round, times)."""
    found = dp.compose(_named(text)).delta(np.asarray(epsilons)).upper
    dp.clear_cache()  # no question is asked twice
    return np.asarray(found)
