"""The two neighbours of each randomizer that are easiest to tell apart, and what one report says.

`worst_neighbours` are the values that are hardest to hide; `log_ratio` is the log density of a
value's report relative to that of the value everybody else holds. All of it only chooses what to
look at: a wrong density here weakens an attack, never its validity.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.audit.systems.batches import FloatArray, Neighbours, Value
from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import (
    DaryResponse,
    Gaussian,
    Laplace,
    LdpSgd,
    PrivUnit,
    Randomizer,
)

_AUDITED = "binary or k-ary response, Gaussian, Laplace, PrivUnit or LDP-SGD reports"


@singledispatch
def worst_neighbours(randomizer: Randomizer) -> Neighbours:
    """The values that are hardest to hide (docs/theory.md, lower bounds)."""
    raise InvalidParameter("randomizer", randomizer.describe(), _AUDITED)


@worst_neighbours.register
def _(randomizer: DaryResponse) -> Neighbours:
    if randomizer.symbols == 2:
        return Neighbours(others=1, first=0, second=1)
    return Neighbours(others=2, first=0, second=1)


@worst_neighbours.register
def _(randomizer: Gaussian) -> Neighbours:
    return Neighbours((-randomizer.clip,), (randomizer.clip,), (-randomizer.clip,))


@worst_neighbours.register
def _(randomizer: Laplace) -> Neighbours:
    rest = (0.0,) * (randomizer.dimension - 1)
    ends = ((randomizer.clip, *rest), (-randomizer.clip, *rest))
    return Neighbours(ends[1], ends[0], ends[1])


@worst_neighbours.register
def _(randomizer: LdpSgd) -> Neighbours:
    rest = (0.0,) * (randomizer.dimension - 1)
    return Neighbours((-1.0, *rest), (1.0, *rest), (-1.0, *rest))


@worst_neighbours.register
def _(randomizer: PrivUnit) -> Neighbours:
    # a small cap is seldom hit by chance: as with k-ary response a third value hides least
    rest = (0.0,) * (randomizer.dimension - 2)
    return Neighbours((0.0, 1.0, *rest), (1.0, 0.0, *rest), (-1.0, 0.0, *rest))


@singledispatch
def log_ratio(
    randomizer: Randomizer, reports: NDArray[Any], value: Value, others: Value
) -> FloatArray:
    """log dR(value)/dR(others) at each report.

    Args:
        randomizer: what made the reports.
        reports: one row (or entry) each.
        value: what the target may hold.
        others: what everybody else holds.
    """
    raise InvalidParameter("randomizer", randomizer.describe(), _AUDITED)


@log_ratio.register
def _(randomizer: DaryResponse, reports: NDArray[Any], value: Value, others: Value) -> FloatArray:
    if value == others:
        return np.zeros(len(reports))
    sign = (reports == value).astype(np.float64) - (reports == others)
    return np.asarray(randomizer.local_epsilon * sign)


@log_ratio.register
def _(randomizer: Gaussian, reports: NDArray[Any], value: Value, others: Value) -> FloatArray:
    a, b = clipped(value, randomizer.clip), clipped(others, randomizer.clip)
    along = reports @ (a - b) - (a @ a - b @ b) / 2
    return np.asarray(along / randomizer.deviation**2)


@log_ratio.register
def _(randomizer: Laplace, reports: NDArray[Any], value: Value, others: Value) -> FloatArray:
    far = [np.abs(reports - np.asarray(x, float)).sum(axis=1) for x in (value, others)]
    return np.asarray((far[1] - far[0]) / randomizer.scale)


@log_ratio.register(LdpSgd)
@log_ratio.register(PrivUnit)
def _(
    randomizer: LdpSgd | PrivUnit, reports: NDArray[Any], value: Value, others: Value
) -> FloatArray:
    near = [reports @ np.asarray(x, float) >= randomizer.height for x in (value, others)]
    return np.asarray(randomizer.local_epsilon * (near[0].astype(np.float64) - near[1]))


def clipped(value: Value, clip: float) -> FloatArray:
    """A value as a vector, scaled down to l2 norm `clip` if it is longer."""
    vector = np.asarray(value, dtype=np.float64)
    return np.asarray(vector * min(1.0, clip / max(float(np.linalg.norm(vector)), 1e-300)))
