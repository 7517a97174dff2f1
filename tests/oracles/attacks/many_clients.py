"""Seats of many clients with few possible reports: every histogram that is not very unlikely."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from oracles.attacks.seats import Seated, merged_rows
from oracles.seat_types.laws import Array

_MOST = 400_000  # histograms; where there are more, 0 is below the truth too
_UNLIKELY = 1e-18


@dataclass(frozen=True)
class _Sums:
    """Sums of some seats, how many of them are empty, and masses."""

    values: Array
    empty: Array
    masses: Array

    def plus(self, other: _Sums) -> _Sums:
        """Of these and those, independent of each other."""
        if len(self.values) * len(other.values) > 4 * _MOST:
            return _NOTHING
        masses = np.multiply.outer(self.masses, other.masses).ravel()
        kept = masses > _UNLIKELY
        return _Sums(
            np.add.outer(self.values, other.values).ravel()[kept],
            np.add.outer(self.empty, other.empty).ravel()[kept],
            masses[kept],
        )


_NOTHING = _Sums(np.zeros(1), np.zeros(1), np.zeros(1))


def likely_sums(values: Array, chances: Array, count: int, deviations: float = 9.0) -> _Sums:
    """So many draws of these values, the last of which is an empty seat."""
    sums, logs, left, empty = np.zeros(1), np.zeros(1), np.array([count]), np.zeros(1)
    order, rest = np.argsort(chances), 1.0
    for j in order:
        share = 1.0 if j == order[-1] else min(chances[j] / rest, 1.0)
        usual, width = left * share, deviations * np.sqrt(left * share * (1.0 - share)) + 12.0
        low = np.maximum(np.floor(usual - width), 0).astype(np.int64)
        if j == order[-1]:
            low = left
        repeat = np.minimum(np.ceil(usual + width), left).astype(np.int64) - low + 1
        if repeat.sum() > _MOST:
            return _NOTHING
        row = np.repeat(np.arange(len(left)), repeat)
        drawn = np.arange(len(row)) - np.repeat(np.cumsum(repeat) - repeat, repeat) + low[row]
        sums, empty = sums[row] + drawn * values[j], empty[row] + drawn * (j == len(values) - 1)
        logs = logs[row] + special.xlogy(drawn, chances[j]) - special.gammaln(drawn + 1.0)
        left, rest = left[row] - drawn, max(rest - chances[j], 0.0)
        likely = logs - special.gammaln(left + 1.0) + special.xlogy(left, rest) > (
            np.log(_UNLIKELY) - special.gammaln(count + 1.0)
        )
        sums, logs, left, empty = sums[likely], logs[likely], left[likely], empty[likely]
    return _Sums(sums, empty, np.exp(logs + special.gammaln(count + 1.0)))


class _Many(Seated):
    def _draws(self, a: Array, b: Array, x: Array, alpha: float, count: int) -> _Sums:
        """So many seats of clients at x, in excess of what an empty one is worth."""
        rows = merged_rows(a, b, x)
        values = (rows[0] - alpha * rows[1]) / rows[2] - (1.0 - alpha)
        rate = 1.0 if self.cohort else self.rate
        return likely_sums(np.append(values, 0.0), np.append(rate * rows[2], 1.0 - rate), count)


class Alike(_Many):
    """All others at one value (that of most): the truth, everybody reporting included."""

    def labelled(self, a: Array, b: Array, laws: Array, counts: Array, alpha: float) -> float:
        n = self.crowd.n
        total = self._draws(a, b, laws[int(np.argmax(counts))], alpha, self.cohort or n)
        return float(total.masses @ np.maximum(total.values + n * (1.0 - alpha), 0.0)) / n


class Groups(_Many):
    """Check-in of groups of clients, each at a value of its own, everybody's seat labelled.

    The chance of k given seats and the target's one in n - k empty ones, relative to coins of
    the others alone, is (1 - rate) / (1 + empty seats of the others).
    """

    def labelled(self, a: Array, b: Array, laws: Array, counts: Array, alpha: float) -> float:
        total = _Sums(np.zeros(1), np.zeros(1), np.ones(1))
        for x, count in zip(laws, counts, strict=True):
            if count:
                total = total.plus(self._draws(a, b, x, alpha, int(count)))
        excess = np.maximum(total.values + self.crowd.n * (1.0 - alpha), 0.0)
        return (1.0 - self.rate) * float(total.masses @ (excess / (1.0 + total.empty)))
