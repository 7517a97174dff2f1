"""Every client takes the target's part in turn, on one set of coins and noise.

One play of a plan, in which everybody holds what the others hold, serves for as many pairs of runs as there are
clients: in the pair of client j only j's reports are exchanged for those it makes of the first or the second value with
the same coins and noise. The runs depend on each other, so a play counts once, with the *mean* degree of the event over
them; it varies far less than what one target shows. For reports that are symbols: exchanging one is an addition to
counts, and scores come from whole counts in one order of operations, a function of what is released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcheckin.audit.simulated import CoinByCoin, Simulated
from dpcheckin.audit.systems import FloatArray, IntArray, Neighbours
from dpcheckin.errors import DpCheckinError
from dpcheckin.protocols import Reveals
from dpcheckin.randomizers import DaryResponse
from dpcheckin.randomizers.base import Value

NAME = "log likelihood ratio, every client in turn"


@dataclass(frozen=True, slots=True)
class Turns:
    """Scores of many plays on one neighbour: each play has several runs, which have weights."""

    plays: int
    values: FloatArray
    weights: FloatArray
    owners: IntArray

    def mean(self, degrees: FloatArray) -> FloatArray:
        """Each play's weighted mean of one number per run."""
        return np.asarray(np.bincount(self.owners, self.weights * degrees, self.plays))

    def head(self, plays: int) -> Turns:
        """The first plays only."""
        kept = self.owners < plays
        return Turns(min(plays, self.plays), self.values[kept], self.weights[kept], self.owners[kept])

    def coarse(self) -> Turns:
        """Runs of a play with nearly the same score as one: much less to keep, for a pilot.

        Scores lie close together beside how much they differ from play to play. Weights and mean scores are kept, so
        that what is lost is of second order; a bet must not use it all the same, as its event is to be a function of
        each run.
        """
        base = self.values[: self.plays]  # of the runs in which nothing was exchanged
        width = 0.05 * float(np.std(base)) or 1.0
        bins = np.rint((self.values - base[self.owners]) / width).astype(np.int64)
        bins -= bins.min()
        many = int(bins.max()) + 1
        if many * self.plays > self.values.size:
            return self
        place = self.owners * many + bins
        weights = np.asarray(np.bincount(place, self.weights, many * self.plays), np.float64)
        sums = np.bincount(place, self.weights * self.values, many * self.plays)
        kept = np.flatnonzero(weights)
        return Turns(self.plays, sums[kept] / weights[kept], weights[kept], kept // many)

    @staticmethod
    def joined(parts: Sequence[Turns]) -> Turns:
        starts = np.cumsum([0, *(part.plays for part in parts)])
        return Turns(
            int(starts[-1]),
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.weights for part in parts]),
            np.concatenate([p.owners + s for p, s in zip(parts, starts[:-1], strict=True)]),
        )


def can_take_turns(system: object) -> bool:
    """Symbols, and a system that changes nothing about how the package plays a plan."""
    if type(system) not in (Simulated, CoinByCoin):
        return False
    assert isinstance(system, Simulated)
    shuffled = system.plan.reveals is Reveals.REPORTS
    return shuffled and isinstance(system.randomizer, DaryResponse)


def play_in_turns(system: Simulated, data: Neighbours, seed: tuple[int, ...], plays: int) -> tuple[Turns, Turns]:
    """So many plays of a system that `can_take_turns`, chance from `seed`: scores on the first and second of `data`."""
    randomizer, n = system.randomizer, system.plan.population
    assert isinstance(randomizer, DaryResponse) and isinstance(data.others, int)
    scoring = _Scoring(randomizer, data, n)
    total = np.zeros(plays)
    sides = [_Side(value, plays, n) for value in (data.first, data.second)]
    drawn = system.drawn(seed, plays)
    for t in range(system.plan.rounds):
        clients, sizes = next(drawn)
        owners = np.repeat(np.arange(plays), sizes)
        _refuse_twice(owners * n + clients)
        reports = system.randomized(np.full(clients.size, data.others), system.noise(seed, t))
        released = reports[system.order(sizes, seed, t)]
        counts = _table(owners, released, plays, randomizer.symbols)
        score = scoring.of(counts, sizes)
        total += score
        for side in sides:
            if side.value != data.others:
                values = np.full(clients.size, side.value)
                own = system.randomized(values, system.noise(seed, t))
                change = scoring.changes(counts, sizes) - score[:, None, None]
                side.add(owners, clients, reports, own, change, last=t == system.plan.rounds - 1)
    first, second = (side.turns(total) for side in sides)
    return first, second


def _refuse_twice(clients: IntArray) -> None:
    """Exchanging a client's only report is an addition; exchanging two would not be."""
    if np.any(np.diff(np.sort(clients)) == 0):
        raise DpCheckinError("a cohort of the plan names a client twice in one round")


class _Scoring:
    """Log likelihood ratio of one round's batches, from how often they hold each symbol."""

    def __init__(self, randomizer: DaryResponse, data: Neighbours, population: int) -> None:
        symbols = np.arange(randomizer.symbols)
        self._population = population
        self._ratios = [
            np.exp(randomizer.log_ratio(symbols, value, data.others))  # type: ignore[arg-type]
            for value in (data.first, data.second)
        ]

    def of(self, counts: IntArray, sizes: IntArray) -> FloatArray:
        """Counts have a row for each play and a column for each symbol."""
        densities = []
        for ratios in self._ratios:
            weight = (self._population - sizes).astype(np.float64)
            for symbol, ratio in enumerate(ratios):
                weight = weight + ratio * counts[:, symbol]
            densities.append(np.log(weight / self._population))
        return np.asarray(densities[0] - densities[1])

    def changes(self, counts: IntArray, sizes: IntArray) -> FloatArray:
        """Score of each play if one report of `old` were a report of `new`: [play, old, new]."""
        symbols = counts.shape[1]
        scores = np.empty((counts.shape[0], symbols, symbols))
        for old in range(symbols):
            for new in range(symbols):
                moved = counts.copy()
                moved[:, old] -= 1
                moved[:, new] += 1
                # where no such report exists the figure is never used
                moved[:, old] = np.maximum(moved[:, old], 0)
                scores[:, old, new] = self.of(moved, sizes)
        return scores


class _Side:
    """What one neighbour's runs score, client by client, relative to the play without a target."""

    def __init__(self, value: Value | Sequence[Value], plays: int, population: int) -> None:
        assert isinstance(value, int)
        self.value, self._plays, self._population = value, plays, population
        self._change: FloatArray | None = None
        self._one_round: tuple[FloatArray, IntArray] | None = None

    def add(
        self,
        owners: IntArray,
        clients: IntArray,
        reports: NDArray[np.int64],
        own: NDArray[np.int64],
        change: FloatArray,
        *,
        last: bool,
    ) -> None:
        """One more round: what clients reported, and what they report as the target."""
        symbols = change.shape[1]
        if last and self._change is None:  # a single round: exchanges of a kind are all alike
            kinds = (owners * symbols + reports) * symbols + own
            often = np.bincount(kinds, minlength=self._plays * symbols**2)
            self._one_round = change.reshape(self._plays, -1), often.reshape(self._plays, -1)
            return
        if self._change is None:
            self._change = np.zeros(self._plays * self._population)
        self._change[owners * self._population + clients] += change[owners, reports, own]

    def turns(self, total: FloatArray) -> Turns:
        plays, n = np.arange(self._plays), self._population
        if self._one_round is not None:
            change, often = self._one_round
            where, kind = np.nonzero(often * (change != 0.0))
            moved, many = change[where, kind], often[where, kind]
        else:
            place = np.empty(0, np.int64) if self._change is None else np.flatnonzero(self._change)
            where, many = place // n, np.ones(place.size, dtype=np.int64)
            moved = np.empty(0) if self._change is None else self._change[place]
        left = n - np.bincount(where, many, self._plays)
        return Turns(
            self._plays,
            np.concatenate([total, total[where] + moved]),
            np.concatenate([left, many]) / n,
            np.concatenate([plays, where]),
        )


def _table(owners: IntArray, reports: IntArray, plays: int, symbols: int) -> IntArray:
    seen = np.bincount(owners * symbols + reports, minlength=plays * symbols)
    return seen.reshape(plays, symbols)
