"""Which slope to bet on when every client takes its turn: learned from a pilot, as in `choice`.

Mean degrees are numbers of any size, so there is no table of a few kinds of pairs: candidates are
ranked by mean and variance, and the best of them are weighed by what their capital would really
have been. Slopes only: the score of a run is added up in floating point, and a cliff could see by
its last bits how it was added up, where a slope sees nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpcheckin.audit.attacks.turns import NAME, Turns
from dpcheckin.audit.betting.capital import log_growth
from dpcheckin.audit.betting.choice import Choice, Event
from dpcheckin.audit.betting.evidence import LARGEST_EPSILON, FloatArray, Stakes, needed_capital

_TIMES = np.geomspace(0.3, 3.0, 6)  # stakes that are weighed, relative to the one by moments
_MOST = 150_000, 3_000_000  # plays and runs of the pilot by which finalists are weighed
_RANKING = 20_000, 600_000  # and by which finalists are found
_FINALISTS = 5
_TAILS = np.geomspace(0.5, 1e-4, 14)


def choose_turns(
    first: Turns, second: Turns, pairs: int, delta: float, confidence: float
) -> Choice:
    """The best event for `pairs` plays still to come.

    Args:
        first: scores of the pilot's plays on the first neighbour.
        second: on the second.
        pairs: plays still to come.
        delta: the delta of claim and audit, strictly between 0 and 1.
        confidence: of the lower bound, in [0.5, 1).
    """
    search = _Search(first, second, pairs, delta, confidence)
    first, second = search.ranking
    pooled = np.concatenate([first.values, second.values])
    deviation = float(np.std(second.values)) or 1e-9
    places = np.unique(np.quantile(pooled, np.concatenate([_TAILS, 1 - _TAILS])))
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
    def __init__(
        self, first: Turns, second: Turns, pairs: int, delta: float, confidence: float
    ) -> None:
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
        low, high = np.zeros(len(moments)), np.full(len(moments), LARGEST_EPSILON)
        start = self._growth(low, moments)
        for _ in range(24):
            middle = 0.5 * (low + high)
            good = self._growth(middle, moments) >= self._wanted
            low, high = np.where(good, middle, low), np.where(good, high, middle)
        return np.where(start >= self._wanted, low, start - self._wanted - 1.0)

    def _growth(self, epsilon: FloatArray, moments: FloatArray) -> FloatArray:
        """The best stake's log capital to second order."""
        stake, mean, square = self._stake(epsilon, moments)
        return np.asarray(self._pairs * (stake * mean - stake**2 * square / 2))

    def _stake(self, epsilon: FloatArray, moments: FloatArray) -> tuple[FloatArray, ...]:
        """The best stake, and mean and square of what a pair wins.

        The mean is taken a standard error smaller than it was.
        """
        a, b = moments.T[:2]
        e = np.exp(epsilon)
        variance = _variance(e, moments)
        mean = a - e * b - self._delta - np.sqrt(variance / moments.T[5])
        square = np.maximum(variance + mean**2, 1e-300)
        return np.clip(mean / square, 1e-9, 0.9 / (e + self._delta)), mean, square

    def _weighed(self, event: Event, stake: float) -> Choice:
        """What this event would have won on the pilot, scaled to the pairs still to come.

        The excess is taken a standard error smaller than it was, and half a pair more is taken to
        have shown the event on the wrong neighbour.
        """
        a, b = _means(event, self._turns)
        one, other = (a, b) if event.for_first else (b, a)
        seen = np.array([_moments(one, other)])

        def capital(epsilon: float, size: float) -> float:
            power = np.exp(epsilon)
            if size * (power + self._delta) >= 1.0 - 1e-9:
                return -np.inf
            careful = self._delta + float(np.sqrt(_variance(power, seen)[0] / one.size))
            won = float(log_growth(np.array([epsilon]), careful, size, one, other)[0])
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
        while high - low > 4e-3 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if capital(middle, size) >= self._wanted else (low, middle)
        return low


def _limited(first: Turns, second: Turns, plays: int, runs: int) -> tuple[Turns, Turns]:
    """Not more than so many plays, or runs in them."""
    each = (first.values.size + second.values.size) / first.plays
    kept = min(first.plays, plays, max(200, int(runs / each)))
    return first.head(kept), second.head(kept)


def _means(event: Event, both: tuple[Turns, Turns]) -> tuple[FloatArray, FloatArray]:
    one, other = (turns.mean(event.slope(turns.values)) for turns in both)
    return one, other


def _variance(power: FloatArray | float, moments: FloatArray) -> FloatArray:
    """Of first - e^ε second over pairs; power is e^ε."""
    a, b, aa, ab, bb = moments.T[:5]
    return np.asarray(np.maximum(aa - 2 * power * ab + power**2 * bb - (a - power * b) ** 2, 0.0))


def _moments(one: FloatArray, other: FloatArray) -> tuple[float, ...]:
    """Means of first, second, first², first · second and second², and of how many."""
    # not by @: BLAS would start threads that wait for each other when the machine is busy
    products = (one, other, one * one, one * other, other * other)
    return (*(float(p.mean()) for p in products), float(one.size))
