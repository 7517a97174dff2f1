"""Which event to bet on: learned from a pilot, before the runs that count.

The pilot's runs are scored by one or several statistics. An event is "the score of this statistic
is at least (or at most) that threshold", in favour of one of the two neighbours. We take the one
that promises the largest lower bound from the runs still to come, judged a standard error
pessimistically so that luck in the pilot is not mistaken for signal. The choice can be as clever or
as wrong as it likes: it decides how large the bound gets, never whether it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcheckin.audit.evidence import (
    LARGEST_EPSILON,
    Counts,
    FloatArray,
    Stakes,
    log_growth,
    needed_capital,
)
from dpcheckin.errors import InvalidParameter

Scores = Mapping[str, tuple[FloatArray, FloatArray]]
"""For each statistic its scores on the first and on the second neighbour, pair by pair."""

_SIZES = np.geomspace(1e-8, 0.45, 64)
_TAILS = 48


@dataclass(frozen=True, slots=True)
class Event:
    """The score of a statistic beyond a threshold, which speaks for one neighbour."""

    statistic: str
    threshold: float
    above: bool

    def count(self, first: FloatArray, second: FloatArray) -> Counts:
        """Happenings in pairs of runs; an event below a threshold speaks for the second."""
        if self.above:
            return Counts.of(first >= self.threshold, second >= self.threshold)
        return Counts.of(second <= self.threshold, first <= self.threshold)

    def __str__(self) -> str:
        return f"{self.statistic} {'≥' if self.above else '≤'} {self.threshold:.4g}"


@dataclass(frozen=True, slots=True)
class Choice:
    """An event, the stakes to bet on it, and the lower bound it promises."""

    event: Event
    stakes: Stakes
    promised: float


def choose(scores: Scores, pairs: int, delta: float, confidence: float) -> Choice:
    """The best event for `pairs` pairs still to come."""
    events: list[Event] = []
    counts: list[Counts] = []
    for name, (first, second) in scores.items():
        if first.size == 0 or first.shape != second.shape:
            raise InvalidParameter("scores", first.shape, "as many for both neighbours, at least 1")
        for threshold in _thresholds(first, second):
            for above in (True, False):
                event = Event(name, float(threshold), above)
                events.append(event)
                counts.append(event.count(first, second))
    table = _pessimistic(np.array([c.as_tuple() for c in counts], dtype=np.float64), pairs)
    promised = _promised(table, delta, confidence)
    best, stake = np.unravel_index(int(np.argmax(promised)), promised.shape)
    return Choice(
        events[int(best)], Stakes.around(float(_SIZES[stake])), float(promised[best, stake])
    )


def _thresholds(first: FloatArray, second: FloatArray) -> NDArray[np.float64]:
    """Quantiles that are dense in both tails, where small deltas are decided."""
    pooled = np.concatenate([first, second])
    tails = np.geomspace(0.5, 2.0 / pooled.size, _TAILS)
    return np.unique(np.quantile(pooled, np.concatenate([tails, 1 - tails]), method="nearest"))


def _pessimistic(table: FloatArray, pairs: int) -> FloatArray:
    """Scale a pilot's counts to the runs to come, a standard error on the careful side."""
    both, first, second = table.T[:3]
    total = table.sum(axis=1)
    first = np.maximum(first - np.sqrt(first), 0.0)
    second = second + np.sqrt(second) + 0.5 * total / max(pairs, 1)
    careful = np.stack([both, first, second, np.maximum(total - both - first - second, 0)], axis=1)
    return np.asarray(careful * (pairs / total)[:, None], dtype=np.float64)


def _promised(table: FloatArray, delta: float, confidence: float) -> FloatArray:
    """Largest refuted epsilon for every (event, stake); -1 where none is."""
    wanted, shape = needed_capital(confidence) + 0.25, (table.shape[0], _SIZES.size)
    counts = table[:, None, :]
    low, high = np.zeros(shape), np.full(shape, LARGEST_EPSILON)
    start = log_growth(np.zeros(shape), delta, _SIZES[None, :], counts)
    for _ in range(32):
        middle = 0.5 * (low + high)
        good = log_growth(middle, delta, _SIZES[None, :], counts) >= wanted
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    # where nothing is refuted yet, the bet that grows most is the one to go on with
    hope = np.minimum(start, 0.0) - 1.0 + np.clip(start, 0.0, 30.0) / 31.0
    return np.where(start >= wanted, low, hope)
