"""The search: random data sets, then small changes that are kept where truth / promise grows.

Every comparison of one data set with the promise at one alpha (both orders) is an attack. Data
sets with equal figures count once; so do those whose promise says nothing (1 or more).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from oracles.attacks.arenas import Arena, Shuffled
from oracles.attacks.crowds import Genes, Random, joined
from oracles.attacks.guarantees import Promise
from oracles.seat_types import views
from oracles.seat_types.laws import Array

# Rounding of the oracle: sums of some thousand products of doubles.
RELATIVE, ABSOLUTE = 1e-9, 2e-14
# Below this a quotient of deltas is rounding.
SMALL = 1e-8
# With fewer check-ins, or close to the largest loss, little is hidden and bounds are exact.
CROWDED, DEEP = 1.5, 0.5


@dataclass
class Tally:
    """What came of the attacks of one kind."""

    sampled: int = 0
    climbed: int = 0
    twice: int = 0  # attacks on two rounds
    cohorts: int = 0  # attacks on cohorts of fixed size
    idle: int = 0  # comparisons with a promise that says nothing, not counted
    data_sets: int = 0
    campaigns: int = 0
    curves: int = 0
    closest: tuple[float, str] = (0.0, "")
    crowded: tuple[float, str] = (0.0, "")
    closest_twice: tuple[float, str] = (0.0, "")
    crossings: list[str] = field(default_factory=list)
    refusals: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    warnings: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    seconds: float = 0.0

    @property
    def attacks(self) -> int:
        """All of them."""
        return self.sampled + self.climbed + self.twice


@dataclass
class _Best:
    """The best data set so far at each alpha."""

    ratio: Array
    genes: list[Genes]

    def parents(self, rng: Random, m: int) -> Genes:
        """m of them, those with a large quotient more often."""
        order = np.argsort(-self.ratio)
        rank = rng.integers(0, len(order), m) * rng.random(m)
        return joined([self.genes[order[int(r)]] for r in rank])


@dataclass
class Fight:
    """One arena at some epsilons: its promise, and the attacks on it."""

    arena: Arena
    epsilons: Array
    promise: Array
    tally: Tally
    best: _Best | None = None
    _seen: set[bytes] = field(default_factory=set)

    def attack(self, genes: Genes, climbed: bool) -> None:
        """Hold every data set against the promise at every alpha."""
        truth = self.arena.truths(genes, np.exp(self.epsilons))
        fresh = []
        for i in range(len(genes)):
            key = np.round(truth[:, i], 13).tobytes()
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(i)
        self._count(truth[:, fresh], climbed)
        self._crossings(truth, genes)
        ratio = np.where(self.promise[:, None] > SMALL, truth / self._divisor, 0.0)
        self._keep(ratio, genes)

    @property
    def _divisor(self) -> Array:
        return np.maximum(self.promise, 1e-300)[:, None]

    def _count(self, truth: Array, climbed: bool) -> None:
        telling = (self.promise[:, None] < 1.0) & (truth > 0.0)
        count = int(telling.sum())
        self.tally.idle += truth.size - count
        self.tally.data_sets += truth.shape[1]
        if climbed:
            self.tally.climbed += count
        else:
            self.tally.sampled += count
        if getattr(self.arena, "cohort", 0):
            self.tally.cohorts += count

    def _crossings(self, truth: Array, genes: Genes) -> None:
        slack = RELATIVE + self.arena.error
        allowed = self.promise * (1.0 + slack) + ABSOLUTE + 1e-6 * self.arena.error
        for i, j in np.argwhere(~(truth <= allowed[:, None]))[:20]:
            self.tally.crossings.append(
                f"promised {self.promise[i]:.15g} at epsilon {float(self.epsilons[i])!r}, true "
                f"{truth[i, j]:.15g}\n    {self.arena.text}\n    arena = {self.arena!r}\n"
                f"    arena.truths({genes.text(int(j))}, np.exp([{float(self.epsilons[i])!r}]))"
            )

    def _keep(self, ratio: Array, genes: Genes) -> None:
        winners = ratio.argmax(axis=1)
        top = ratio[np.arange(len(ratio)), winners]
        if self.best is None:
            self.best = _Best(top, [genes.take(np.array([w])) for w in winners])
        for i in np.flatnonzero(top > self.best.ratio):
            self.best.ratio[i] = top[i]
            self.best.genes[i] = genes.take(winners[i : i + 1])
        deep = self.epsilons <= DEEP * self.arena.crowd.level
        self.tally.closest = max(self.tally.closest, self._named(top))
        if self.arena.expected >= CROWDED:
            self.tally.crowded = max(self.tally.crowded, self._named(np.where(deep, top, 0.0)))

    def _named(self, top: Array) -> tuple[float, str]:
        i = int(np.argmax(top))
        return float(top[i]), f"epsilon {self.epsilons[i]:.6g} of {self.arena.text}"


def begin(arena: Arena, epsilons: Array, promise: Promise, tally: Tally) -> Fight:
    """Ask the package for its promise."""
    tally.curves += 1
    return Fight(arena, epsilons, promise(f"[({arena.text}, 1)]", epsilons), tally)


def epsilons(rng: Random, arena: Arena, count: int) -> Array:
    """Places on the curve, denser towards zero."""
    return np.unique(arena.scale * rng.random(count) ** 1.5 * (rng.random(count) > 0.07))


def campaign(
    rng: Random, arena: Arena, promise: Promise, tally: Tally,
    alphas: int = 8, batch: int = 12, generations: int = 3, moves: int = 3,
) -> None:  # fmt: skip
    """Sample, climb by changing the data, then by changing rate, local epsilon and alpha as well.

    The number of check-ins is not allowed to fall to where nothing is hidden.
    """
    fight = begin(arena, epsilons(rng, arena, alphas), promise, tally)
    fight.attack(arena.crowd.draw(rng, batch), climbed=False)
    _climb(rng, fight, batch, generations)
    fewest = min(arena.expected, rng.choice([0.2, CROWDED, 3.0]))
    for _ in range(moves):
        there = fight.arena.near(rng)
        if there.expected < fewest:
            continue
        tried = begin(there, _around(rng, fight, there, alphas), promise, tally)
        assert fight.best is not None
        tried.attack(joined([*fight.best.genes, fight.best.parents(rng, batch // 2)]), True)
        assert tried.best is not None
        _climb(rng, tried, batch, max(generations // 2, 1))
        if tried.best.ratio.max() > fight.best.ratio.max() or rng.random() < 0.1:
            fight = tried
    if isinstance(arena, Shuffled) and rng.random() < 0.3:
        two_rounds(rng, fight, promise)


def _around(rng: Random, fight: Fight, there: Arena, count: int) -> Array:
    """Epsilons close to where the quotient was largest, and some anywhere."""
    assert fight.best is not None
    best = fight.epsilons[int(np.argmax(fight.best.ratio))] / fight.arena.scale * there.scale
    close = best * np.exp(rng.normal(0.0, 0.15, count // 2))
    return np.unique(np.concatenate([close, epsilons(rng, there, count - count // 2)]))


def _climb(rng: Random, fight: Fight, batch: int, generations: int) -> None:
    for _ in range(generations):
        assert fight.best is not None
        parents = fight.best.parents(rng, batch)
        children = fight.arena.crowd.change(rng, parents)
        again = rng.random(batch) < 0.3
        twice = fight.arena.crowd.change(rng, children)
        fight.attack(joined([children.take(np.flatnonzero(~again)),
                             twice.take(np.flatnonzero(again))]), climbed=True)  # fmt: skip


def two_rounds(rng: Random, fight: Fight, promise: Promise, most: int = 700) -> None:
    """Two rounds of the arena; after the first the adversary picks the second, of the best found.

    One attack: one first data set, the second ones chosen best for it, at one alpha.
    """
    arena, best = fight.arena, fight.best
    assert isinstance(arena, Shuffled) and best is not None
    pairs = arena.pairs(joined(best.genes))
    if pairs.p.shape[0] > most:
        return
    epsilons = 1.5 * fight.epsilons
    promised = promise(f"[({arena.text}, 2)]", epsilons)
    firsts = {np.round(pairs.p[:, i] - pairs.q[:, i], 13).tobytes(): i
              for i in range(len(best.genes))}  # fmt: skip
    each = [[pairs.one(i), pairs.one(i).swapped] for i in firsts.values()]
    seconds = [pair for both in each for pair in both]
    for epsilon, bound in zip(epsilons, promised, strict=True):
        for i, both in zip(firsts.values(), each, strict=True):
            true = views.two_rounds(both, seconds, float(np.exp(epsilon)))
            if bound >= 1.0 or true <= 0.0:
                fight.tally.idle += 1
                continue
            fight.tally.twice += 1
            if not true <= bound * (1.0 + RELATIVE + arena.error) + ABSOLUTE:
                fight.tally.crossings.append(
                    f"two rounds: promised {bound:.15g} at epsilon {float(epsilon)!r}, "
                    f"true {true:.15g}\n"
                    f"    first: arena = {arena!r}\n    {joined(best.genes).text(i)}\n"
                    f"    second: the best of {[g.text(0) for g in best.genes]}"
                )
            elif bound > SMALL:
                found = (true / bound, f"two rounds, epsilon {epsilon:.6g} of {arena.text}")
                fight.tally.closest_twice = max(fight.tally.closest_twice, found)
