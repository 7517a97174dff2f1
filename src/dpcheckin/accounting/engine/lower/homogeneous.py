"""The pair when all other clients hold one value: both directions, on a lattice and far out.

Also what seats look like with one share for all, and how far a round's loss scatters.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.curves import LOWER_SLACK
from dpcheckin.accounting.engine.loss import NO_ATOMS, Atoms
from dpcheckin.accounting.engine.lower.lattice import LowerLattice
from dpcheckin.accounting.engine.seats import WHOLE, Law, Mixture, RealPair, Seats
from dpcheckin.errors import NumericalFailure


class HomogeneousCurve:
    """Both directions of the pair when all other clients hold one value: lower bounds only.

    Args:
        seats: Who sits where.
        pair: What a report gives away, as a pair of laws.
        smallest: A delta that is negligible.
        weight: Probability of these seats.
    """

    def __init__(
        self, seats: Seats[Law], pair: RealPair, smallest: float, weight: float = 1.0
    ) -> None:
        self._seats, self._pair = seats, pair
        self._weight, self._negligible = weight, 100 * smallest
        law = seats.law
        self.spread = min(spread_of([(1.0, seats)], law), finite_or_one(law.local_epsilon))

    @cached_property
    def _atoms(self) -> tuple[Atoms, Atoms]:
        try:
            lattice = LowerLattice(_mean_shares(self._seats), self._pair)
            return lattice.atoms(forward=True), lattice.atoms(forward=False)
        except NumericalFailure:
            return NO_ATOMS, NO_ATOMS  # what cannot be computed is bounded below by nothing

    def curves(self, step: float, points: int) -> tuple[Array, Array]:
        """Lower bounds at 0, step, 2 step, …, forward and backward."""
        scale = self._weight * LOWER_SLACK
        forward, backward = (scale * side.curve(step, points) for side in self._atoms)
        alone = scale * self._one_large(np.arange(points) * step)
        return np.maximum(forward, alone), backward

    @property
    def reach(self) -> float:
        """A loss beyond which nothing is worth computing."""
        reports = self._seats.count * self._seats.participation
        loss = 12 * self.spread if reports > 50 else 30 * self.spread + 1.0
        while (
            loss < 40.0 and self._weight * self._one_large(np.array([loss]))[0] > self._negligible
        ):
            loss *= 1.3
        return loss

    def _one_large(self, epsilons: Array) -> Array:
        """The forward curve's part with one report above a threshold and all others below.

        Given that, the others have a mean slightly below zero, and by Jensen's inequality count as
        that mean. Where tails are heavy this is what is lost far out, and no lattice holds it.
        """
        seats = _mean_shares(self._seats)
        reports, above = seats.count * seats.participation, self._pair.above
        beyond = np.maximum(np.expm1(epsilons) * seats.population, 1e-9)

        def chance(x: Array) -> Array:  # P(X > x), from above
            return (above(1 + 0.9 * x) - above(1 + x)) / (0.1 * x)

        often = np.minimum(chance(beyond), 1.0)
        mean = reports * (above(1 + beyond) + beyond * often)
        mean = mean / np.maximum(1.0 - seats.participation * often, 1e-3)
        nobody = np.maximum(1.0 - reports * chance(beyond + mean), 0.0)
        return np.asarray(reports * above(1 + beyond + mean) * nobody / seats.population)


def _mean_shares(seats: Seats[Law]) -> Seats[Law]:
    """The same seats when every share is the mean one: no larger, by Jensen's inequality."""
    if seats.shares == WHOLE:
        return seats
    return contracted(seats, sum(w * p for w, p in seats.shares))


def contracted(seats: Seats[Law], share: float) -> Seats[Law]:
    """The same seats with this share for every report."""
    population = seats.population / share
    return replace(seats, population=population, empty=population - seats.count, shares=WHOLE)


def spread_of(parts: Mixture[Law], law: Law) -> float:
    """Standard deviation of one round's loss among many such reports (a guide)."""
    variance, moment = 0.0, law.second_moment
    for weight, s in parts:
        shared = moment * sum(p * w * w for w, p in s.shares)
        part = weight * s.count * s.participation * 2 * min(shared, s.population**2)
        variance += part / s.population**2
    return math.sqrt(variance)


def finite_or_one(loss: float) -> float:
    return loss if math.isfinite(loss) else 1.0
