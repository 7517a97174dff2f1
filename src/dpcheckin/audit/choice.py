"""Which event to bet on: learned from a pilot, before the runs that count.

An event is "the score of this statistic is at least (or at most) that threshold", for one of the neighbours. The one
that promises the largest lower bound is taken, judged a standard error pessimistically. The choice decides how large
the bound gets, never whether it holds. When every client takes its turn candidates are ranked by mean and variance of
the degrees, and the best are weighed by what their capital would have been. Slopes only: a cliff could see by a score's
last bits how it was added up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpcheckin.audit.evidence import (
    LARGEST_EPSILON,
    Counts,
    FloatArray,
    Stakes,
    degrees,
    gain_variance,
    log_growth,
    log_growth_by_play,
    needed_capital,
)
from dpcheckin.audit.turns import NAME, Turns
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import written
from dpcheckin.special.roots import switch

Scores = Mapping[str, tuple[FloatArray, FloatArray]]
"""For each statistic its scores on the first and on the second neighbour, pair by pair."""

_SIZES = np.geomspace(1e-6, 0.45, 48)
_TAILS = 40
_STEPS = 6


@dataclass(frozen=True, slots=True)
class Event:
    """The score of a statistic beyond a threshold, which speaks for one neighbour.

    With a width it happens by degrees: not at all half a width before the threshold, fully half a width after it. When
    both runs of a pair have the same noise their scores differ little, and a gentle slope makes what they win or lose
    vary far less than a cliff.
    """

    statistic: str
    threshold: float
    above: bool
    for_first: bool
    width: float = 0.0

    def count(self, first: FloatArray, second: FloatArray) -> Counts:
        """Degrees in pairs of runs with these scores on the first and second neighbour, the one it speaks for first."""
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
    """The best event for `pairs` runs still to come, by the pilot's scores, at this `delta` and `confidence`."""
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
    return [replace(event, threshold=event.threshold + move, width=width) for width in widths for move in moves]


def _best(events: list[Event], scores: Scores, pairs: int, delta: float, confidence: float) -> Choice:
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

    The pilot's excess is taken a standard error smaller than it was, and half a pair more is taken to have shown the
    event on the wrong neighbour.
    """
    first, other = degrees(seen.shape[1])
    total = seen.sum(axis=1, keepdims=True)
    gain = first - other
    mean = (seen * gain).sum(axis=1, keepdims=True) / total
    spread = np.sqrt((seen * (gain - mean) ** 2).sum(axis=1, keepdims=True) / total)
    careful = delta + spread / np.sqrt(total)
    seen = seen * (pairs / total)
    seen[:, (first == 0) & (other == 1)] += 0.5
    wanted, shape = needed_capital(confidence) + 0.25, (seen.shape[0], _SIZES.size)
    counts = seen[:, None, :]
    start = log_growth(np.zeros(shape), careful, _SIZES[None, :], counts)
    rows, sizes = np.nonzero(start >= wanted)  # only these refute anything: the rest need no search
    low = _largest_refuted(
        lambda epsilons: log_growth(epsilons, careful[rows, 0], _SIZES[sizes], seen[rows]) >= wanted, rows.size
    )
    # where nothing is refuted yet, the bet that grows most is the one to go on with
    hope = np.minimum(start, 0.0) - 1.0 + np.clip(start, 0.0, 30.0) / 31.0
    hope[rows, sizes] = low
    return np.asarray(hope)


_TIMES = np.geomspace(0.3, 3.0, 6)  # stakes that are weighed, relative to the one by moments
_MOST = 150_000, 3_000_000  # plays and runs of the pilot by which finalists are weighed
_RANKING = 20_000, 600_000  # and by which finalists are found
_FINALISTS = 5
_TURN_TAILS = np.geomspace(0.5, 1e-4, 14)


def choose_turns(first: Turns, second: Turns, pairs: int, delta: float, confidence: float) -> Choice:
    """The best event for `pairs` plays to come, by the first and second pilot's; delta, confidence as in `choose`."""
    search = _Search(first, second, pairs, delta, confidence)
    first, second = search.ranking
    pooled = np.concatenate([first.values, second.values])
    deviation = float(np.std(second.values)) or 1e-9
    places = np.unique(np.quantile(pooled, np.concatenate([_TURN_TAILS, 1 - _TURN_TAILS])))
    places = np.unique(np.concatenate([places, places.mean() + deviation * np.arange(-4, 5)]))
    best = search.best([(p, w * deviation) for p in places for w in (0.1, 0.4, 1.0, 2.0)])
    middle, width = best.event.threshold, best.event.width
    finer = [
        (middle + move * max(width, 0.2 * deviation), width * factor)
        for move in (-0.7, -0.4, -0.2, 0.0, 0.2, 0.4, 0.7)
        for factor in (0.3, 0.5, 0.7, 1.0, 1.4, 2.0)
    ]
    return max(best, search.best(finer), key=lambda choice: choice.promised)


class _Search:
    def __init__(self, first: Turns, second: Turns, pairs: int, delta: float, confidence: float) -> None:
        self._turns, self.ranking = (_limited(first, second, *most) for most in (_MOST, _RANKING))
        self._pairs, self._delta = pairs, delta
        self._wanted = needed_capital(confidence) + 0.25

    def best(self, slopes: list[tuple[float, float]]) -> Choice:
        """The threshold and width, both sides and both directions, that promise most."""
        events, moments = [], []
        for place, width in slopes:
            rising = Event(NAME, float(place), True, True, float(width))
            a, b = _means(rising, self.ranking)
            for above in (True, False):
                one, other = (a, b) if above else (1.0 - a, 1.0 - b)
                for for_first in (True, False):
                    events.append(Event(NAME, rising.threshold, above, for_first, rising.width))
                    moments.append(_moments(*((one, other) if for_first else (other, one))))
        seen = np.array(moments)
        promised = self._by_moments(seen)
        stakes = self._stake(np.maximum(promised, 0.0), seen)[0]
        order = np.argsort(promised)[::-1][:_FINALISTS]
        weighed = [self._weighed(events[i], float(stakes[i])) for i in order]
        return max(weighed, key=lambda choice: choice.promised)

    def _by_moments(self, moments: FloatArray) -> FloatArray:
        """Largest epsilon that is likely refuted, by mean and variance alone."""
        start = self._growth(np.zeros(len(moments)), moments)
        low = _largest_refuted(lambda epsilons: self._growth(epsilons, moments) >= self._wanted, len(moments))
        return np.where(start >= self._wanted, low, start - self._wanted - 1.0)

    def _growth(self, epsilon: FloatArray, moments: FloatArray) -> FloatArray:
        """The best stake's log capital to second order."""
        stake, mean, square = self._stake(epsilon, moments)
        return np.asarray(self._pairs * (stake * mean - stake**2 * square / 2))

    def _stake(self, epsilon: FloatArray, moments: FloatArray) -> tuple[FloatArray, ...]:
        """The best stake, and mean (a standard error smaller than it was) and square of what a pair wins."""
        a, b = moments.T[:2]
        e = np.exp(epsilon)
        variance = gain_variance(e, moments)
        mean = a - e * b - self._delta - np.sqrt(variance / moments.T[5])
        square = np.maximum(variance + mean**2, 1e-300)
        return np.clip(mean / square, 1e-9, 0.9 / (e + self._delta)), mean, square

    def _weighed(self, event: Event, stake: float) -> Choice:
        """What this event would have won on the pilot, scaled to the pairs still to come, pessimistically."""
        a, b = _means(event, self._turns)
        one, other = (a, b) if event.for_first else (b, a)
        seen = np.array([_moments(one, other)])

        def capital(epsilon: float, size: float) -> float:
            power = np.exp(epsilon)
            if size * (power + self._delta) >= 1.0 - 1e-9:
                return -np.inf
            careful = self._delta + float(np.sqrt(gain_variance(power, seen)[0] / one.size))
            won = float(log_growth_by_play(np.array([epsilon]), careful, size, one, other)[0])
            wrong = float(np.log1p(-size * (power + self._delta)))
            return won * self._pairs / one.size + 0.5 * wrong

        sizes = np.minimum(stake * _TIMES, 0.95)
        promises = [self._promise(capital, float(size)) for size in sizes]
        best = int(np.argmax(promises))
        return Choice(event, Stakes.around(float(sizes[best])), float(promises[best]))

    def _promise(self, capital: Callable[[float, float], float], size: float) -> float:
        """Largest epsilon that is likely refuted; negative, and the more so, where none is."""
        start = capital(0.0, size)
        if start < self._wanted:
            return min(max(start, -1e9), 0.0) - 1.0 + min(max(start, 0.0), 30.0) / 31.0
        low, high = 0.0, 1.0
        while high < LARGEST_EPSILON and capital(high, size) >= self._wanted:
            low, high = high, 2 * high
        return switch(lambda epsilon: capital(epsilon, size) >= self._wanted, low, high, relative=4e-3)[0]


def _largest_refuted(refuted: Callable[[FloatArray], NDArray[np.bool_]], count: int) -> FloatArray:
    """The largest of each of so many epsilons that is refuted, supposed that 0 is."""
    low, high = np.zeros(count), np.full(count, LARGEST_EPSILON)
    for _ in range(24):
        middle = 0.5 * (low + high)
        good = refuted(middle)
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return low


def _limited(first: Turns, second: Turns, plays: int, runs: int) -> tuple[Turns, Turns]:
    """Not more than so many plays, or runs in them."""
    each = (first.values.size + second.values.size) / first.plays
    kept = min(first.plays, plays, max(200, int(runs / each)))
    return first.head(kept), second.head(kept)


def _means(event: Event, both: tuple[Turns, Turns]) -> tuple[FloatArray, FloatArray]:
    one, other = (turns.mean(event.slope(turns.values)) for turns in both)
    return one, other


def _moments(one: FloatArray, other: FloatArray) -> tuple[float, ...]:
    """Means of first, second, first², first · second and second², and of how many."""
    # not by @: BLAS would start threads that wait for each other when the machine is busy
    products = (one, other, one * one, one * other, other * other)
    return (*(float(p.mean()) for p in products), float(one.size))
