"""Which event to bet on: learned from a pilot, before the runs that count.

The pilot's runs are scored by one or several statistics. An event is "the score of this statistic
is at least (or at most) that threshold", in favour of one of the two neighbours. We take the one
that promises the largest lower bound from the runs still to come, judged a standard error
pessimistically so that luck in the pilot is not mistaken for signal. The choice can be as clever or
as wrong as it likes: it decides how large the bound gets, never whether it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpcheckin.audit.betting.evidence import (
    LARGEST_EPSILON,
    Counts,
    FloatArray,
    Stakes,
    degrees,
    log_growth,
    needed_capital,
)
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import written

Scores = Mapping[str, tuple[FloatArray, FloatArray]]
"""For each statistic its scores on the first and on the second neighbour, pair by pair."""

_SIZES = np.geomspace(1e-6, 0.45, 48)
_TAILS = 40
_STEPS = 6


@dataclass(frozen=True, slots=True)
class Event:
    """The score of a statistic beyond a threshold, which speaks for one neighbour.

    With a width it happens by degrees: not at all half a width before the threshold, fully half a
    width after it. When both runs of a pair have the same noise their scores differ little, and a
    gentle slope makes what they win or lose vary far less than a cliff.
    """

    statistic: str
    threshold: float
    above: bool
    for_first: bool
    width: float = 0.0

    def count(self, first: FloatArray, second: FloatArray) -> Counts:
        """Degrees in pairs of runs, those on the neighbour it speaks for first."""
        one, other = (first, second) if self.for_first else (second, first)
        return Counts.of(self._degrees(one), self._degrees(other), _STEPS if self.width else 1)

    def slope(self, scores: FloatArray) -> FloatArray:
        """Degrees from 0 to 1 of scores."""
        beyond = scores - self.threshold if self.above else self.threshold - scores
        if not self.width:
            return (beyond >= 0).astype(np.float64)
        return np.clip(beyond / self.width + 0.5, 0.0, 1.0)

    def _degrees(self, scores: FloatArray) -> NDArray[np.int64]:
        return np.rint((_STEPS if self.width else 1) * self.slope(scores)).astype(np.int64)

    def __str__(self) -> str:
        near = f" ± {self.width / 2:.2g}" if self.width else ""
        return f"{self.statistic} {'≥' if self.above else '≤'} {written(self.threshold, 4)}{near}"


@dataclass(frozen=True, slots=True)
class Choice:
    """An event, the stakes to bet on it, and the lower bound it promises."""

    event: Event
    stakes: Stakes
    promised: float


def choose(scores: Scores, pairs: int, delta: float, confidence: float) -> Choice:
    """The best event for `pairs` pairs still to come.

    Args:
        scores: of the pilot, by statistic.
        pairs: pairs of runs still to come.
        delta: the delta of claim and audit, strictly between 0 and 1.
        confidence: of the lower bound, in [0.5, 1).
    """
    sharp: list[Event] = []
    for name, (first, second) in scores.items():
        if first.size == 0 or first.shape != second.shape:
            raise InvalidParameter("scores", first.shape, "as many for both neighbours, at least 1")
        for threshold in _thresholds(first, second):
            sides = product((True, False), repeat=2)
            sharp += [Event(name, float(threshold), *side) for side in sides]
    best = _best(sharp, scores, pairs, delta, confidence)
    sloped = _sloped(best.event, *scores[best.event.statistic])
    return max(best, _best(sloped, scores, pairs, delta, confidence), key=lambda c: c.promised)


def _sloped(event: Event, first: FloatArray, second: FloatArray) -> list[Event]:
    """The same event with slopes of several widths, its threshold moved a little."""
    deviation = float(np.std(np.concatenate([first, second])))
    if not deviation > 0.0:
        return [event]
    widths = [deviation * share for share in (0.1, 0.2, 0.4, 0.7, 1.0, 1.5)]
    moves = [deviation * share for share in (-0.6, -0.4, -0.2, 0.0, 0.2, 0.4)]
    return [
        replace(event, threshold=event.threshold + move, width=width)
        for width in widths
        for move in moves
    ]


def _best(
    events: list[Event], scores: Scores, pairs: int, delta: float, confidence: float
) -> Choice:
    """The event and stake that promise most."""
    counts = np.array([e.count(*scores[e.statistic]).flat for e in events])
    promised = _promised(counts, pairs, delta, confidence)
    best, stake = np.unravel_index(int(np.argmax(promised)), promised.shape)
    stakes = Stakes.around(float(_SIZES[stake]))
    return Choice(events[int(best)], stakes, float(promised[best, stake]))


def _thresholds(first: FloatArray, second: FloatArray) -> NDArray[np.float64]:
    """Quantiles that are dense in both tails, where small deltas are decided."""
    pooled = np.concatenate([first, second])
    tails = np.geomspace(0.5, 2.0 / pooled.size, _TAILS)
    return np.unique(np.quantile(pooled, np.concatenate([tails, 1 - tails]), method="nearest"))


def _promised(seen: FloatArray, pairs: int, delta: float, confidence: float) -> FloatArray:
    """Largest epsilon that is likely refuted for every (event, stake); negative where none is.

    The pilot's excess is taken a standard error smaller than it was, and half a pair more is
    taken to have shown the event on the wrong neighbour.
    """
    one, other = degrees(seen.shape[1])
    total = seen.sum(axis=1, keepdims=True)
    gain = one - other
    mean = (seen * gain).sum(axis=1, keepdims=True) / total
    spread = np.sqrt((seen * (gain - mean) ** 2).sum(axis=1, keepdims=True) / total)
    careful = delta + spread / np.sqrt(total)
    seen = seen * (pairs / total)
    seen[:, (one == 0) & (other == 1)] += 0.5
    wanted, shape = needed_capital(confidence) + 0.25, (seen.shape[0], _SIZES.size)
    counts = seen[:, None, :]
    start = log_growth(np.zeros(shape), careful, _SIZES[None, :], counts)
    rows, sizes = np.nonzero(start >= wanted)  # only these refute anything: the rest need no search
    low, high = np.zeros(rows.size), np.full(rows.size, LARGEST_EPSILON)
    for _ in range(24):
        middle = 0.5 * (low + high)
        grown = log_growth(middle, careful[rows, 0], _SIZES[sizes], seen[rows])
        low, high = np.where(grown >= wanted, middle, low), np.where(grown >= wanted, high, middle)
    # where nothing is refuted yet, the bet that grows most is the one to go on with
    hope = np.minimum(start, 0.0) - 1.0 + np.clip(start, 0.0, 30.0) / 31.0
    hope[rows, sizes] = low
    return np.asarray(hope)
