"""LOWER bound: three-valued response, everybody else on the third value.

The target tells a from b; all others hold z.  A report is a, b or z; the two outputs have weights
(e0, 1), (1, e0) and (1/e0, 1/e0) on them, and (1, 1) on an empty seat: a seat pair in the sense of
:mod:`dpcheckin.accounting.seats`, exact for this pair of datasets, so no guarantee for all pure
randomizers can lie below it.
"""

from __future__ import annotations

import math
from dataclasses import replace

from dpcheckin.accounting import loss, seats
from dpcheckin.accounting.seats import SeatModel
from dpcheckin.errors import InvalidParameter

_POINTS_PER_SPREAD = 150


def three_valued_lower(
    population: int, rate: float, local_epsilon: float, rounds: int, delta: float
) -> float:
    """Lower bound on epsilon of shuffled check-in with some pure randomizer.

    >>> 0.068 < three_valued_lower(10_000, 1e-2, 2.0, 100, 1e-4) < 0.0736
    True
    """
    if not 0.0 < rate <= 1.0:
        raise InvalidParameter("rate", rate, "above 0 and at most 1")
    return _lower(_model(population, population, rate, local_epsilon), rounds, delta)


def three_valued_subsample_lower(
    population: int, cohort: int, local_epsilon: float, rounds: int, delta: float
) -> float:
    """The same for a fixed cohort."""
    if not 1 <= cohort <= population:
        raise InvalidParameter("cohort", cohort, f"between 1 and the population {population}")
    return _lower(_model(population, cohort, 1.0, local_epsilon), rounds, delta)


def _model(population: int, steps: int, take: float, local_epsilon: float) -> SeatModel:
    if not (local_epsilon > 0.0 and math.isfinite(local_epsilon)):
        raise InvalidParameter("local_epsilon", local_epsilon, "a positive, finite number")
    e0 = math.exp(local_epsilon)
    return SeatModel(
        steps=steps,
        offset=float(population - steps),
        scale=float(population),
        log_ratio=local_epsilon,
        hits=2.0 * take / (e0 + 2.0),
        ones=1.0 - take,
        rest_weight=1.0 / e0,
    )


def _lower(model: SeatModel, rounds: int, delta: float) -> float:
    _, atoms = seats.atoms(model)
    kept = (atoms.p > 1e-290) & (atoms.q > 1e-290)  # dropping outcomes can only lower the curve
    below = replace(atoms, p=atoms.p[kept], q=atoms.q[kept])
    spread = seats.spread(below)
    reach = seats.largest_loss(below, 1e-6 * delta / rounds)
    if spread == 0.0 or reach == 0.0:
        return 0.0
    step = max(spread / _POINTS_PER_SPREAD, reach / 24_000)
    points = 2 * math.ceil((reach / step + 3) / 2) + 1
    lower = seats.curve_on_grid(below, step, points) * (1.0 - 1e-10)
    one = loss.dominated(2 * step, lower)
    return loss.compose([(one, rounds)], delta=delta).epsilon(delta, upper=False)
