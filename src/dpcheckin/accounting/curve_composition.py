"""Epsilon of many rounds, each given by bounds on its privacy curve.

A round is described by functions of alpha >= 1: an upper (and, for the other end of the bracket, a
lower) bound on the hockey-stick divergence H_alpha, forward and backward.  They are put on a grid
and composed by :mod:`dpcheckin.accounting.loss`; the grid is refined until the bracket is narrow.
Which curves are right for which protocol is decided by the callers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting import loss
from dpcheckin.accounting.bracket import Bracket
from dpcheckin.accounting.safe_side import left_of, right_of
from dpcheckin.errors import InvalidParameter, NumericalFailure

FloatArray = NDArray[np.float64]
Curve = Callable[[FloatArray], FloatArray]

LARGEST_GRID = 400_000
SLACK = 1e-10  # the curves' own arithmetic is far better


@dataclass(frozen=True, slots=True)
class CurveRound:
    """Bounds on one round's curve on alpha >= 1; ``backward`` is None for a symmetric pair."""

    upper: Curve
    lower: Curve
    largest_loss: float
    """Loss beyond which the upper curve is constant (its value there is charged to delta)."""
    backward_upper: Curve | None = None
    backward_lower: Curve | None = None


def epsilon(
    rounds: Sequence[tuple[CurveRound, int]],
    delta: float,
    *,
    accuracy: float = 2e-3,
    infinite_allowed: bool = False,
) -> Bracket:
    """Bracket on the composed epsilon: ``upper`` is certified as a bound for the given curves.

    Callers who only want the lower end may allow an infinite upper one.
    """
    if not 0.0 < delta < 1.0:
        raise InvalidParameter("delta", delta, "a number strictly between 0 and 1")
    rounds = [(r, count) for r, count in rounds if count > 0 and r.largest_loss > 0.0]
    if not rounds:
        return Bracket(0.0, 0.0)
    reach = max(r.largest_loss for r, _ in rounds)
    step = _first_step(rounds, reach)
    best = _at_step(rounds, delta, step, reach)
    for _ in range(5):
        gap = best.upper - best.lower
        if gap <= accuracy * max(best.upper, 1e-4) or reach / (step / 2) > LARGEST_GRID:
            break
        step /= 2
        result = _at_step(rounds, delta, step, reach)
        best = Bracket(max(best.lower, result.lower), min(best.upper, result.upper))
        if best.upper - best.lower > 0.7 * gap:
            break  # the curves themselves, not the grid, leave the rest of the gap
    if math.isinf(best.upper) and not infinite_allowed:
        raise NumericalFailure(
            f"delta = {delta:g} is below the mass of unbounded loss of these rounds; "
            "no finite epsilon can be stated"
        )
    return best


def _first_step(rounds: Sequence[tuple[CurveRound, int]], reach: float) -> float:
    """A step that resolves both one round and the composed standard deviation."""
    points = np.expm1(np.geomspace(reach * 1e-6, reach, 400)) + 1.0
    variance = 0.0
    for r, count in rounds:
        curve = r.upper(points)
        # E_Q[(W - 1)_+^2] = 2 * integral of H_alpha; twice that for a symmetric pair.
        variance += 4.0 * count * float(np.trapezoid(curve, points))
    deviation = math.sqrt(max(variance, 1e-24))
    return float(np.clip(deviation / 800.0, reach / (LARGEST_GRID / 8), reach / 60.0))


def _at_step(
    rounds: Sequence[tuple[CurveRound, int]], delta: float, step: float, reach: float
) -> Bracket:
    size = math.ceil(reach / step) + 2
    coarse = np.exp(np.arange(size) * step)
    fine = np.exp(np.arange(2 * size - 1) * (step / 2))
    above, below = [], []
    alone = sum(count for _, count in rounds) == 1  # then only the forward curve counts
    for r, count in rounds:
        points = math.ceil(r.largest_loss / step) + 2
        a, f = coarse[:points], fine[: 2 * points - 1]
        backward = None if r.backward_upper is None else _raised(r.backward_upper, a)
        above.append((loss.dominating(step, _raised(r.upper, a), backward), count))
        reverse = None if alone else r.backward_lower
        backward = None if reverse is None else _lowered(reverse, f)
        below.append((loss.dominated(step, _lowered(r.lower, f), backward), count))
    upper = loss.compose(above, delta=delta).epsilon(delta, upper=True)
    lower = loss.compose(below, delta=delta).epsilon(delta, upper=False)
    return Bracket(min(lower, upper), upper)


def _raised(curve: Curve, alpha: FloatArray) -> FloatArray:
    return (1.0 + SLACK) * curve(left_of(alpha))


def _lowered(curve: Curve, alpha: FloatArray) -> FloatArray:
    return (1.0 - SLACK) * curve(right_of(alpha))
