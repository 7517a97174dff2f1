"""Curves of reports that follow a local profile, and what bounds them where a lattice is coarse.

Reports with heavy tails do not fit on a lattice of bounded length. Counted as the worst ones of an epsilon that holds
but for a tiny delta they have at most three likelihood ratios, and a short sum.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.curves import UPPER_SLACK, Curve, Unshuffled, fewer
from dpcheckin.accounting.engine.lattice import UpperLattice, contracted, likely_loss, spread_of
from dpcheckin.accounting.engine.lower.lattice import HomogeneousCurve
from dpcheckin.accounting.engine.seats import WHOLE, Law, Mixture, Seats, Shares
from dpcheckin.accounting.engine.seen import no_loss
from dpcheckin.accounting.engine.three_atoms import ThreeAtomCurve
from dpcheckin.errors import NumericalFailure
from dpcheckin.special import UNIT
from dpcheckin.special.roots import whole_switch

_PATIENCE = 3  # points at which a lattice may be of no use
# points that are passed over first, and by what part a chord may lie above the one in its middle
_LEAP, _STRAIGHT = 8, 3e-3


def even_shares(seats: Seats, chance: float) -> tuple[Seats, float]:
    """The `seats` with one share for all, and the probability, at most `chance`, that some share is larger.

    One share w contracts every report alike, which is the same as 1/w times the clients.
    """
    if seats.shares == WHOLE:
        return seats, 0.0
    largest, larger = 1.0, 0.0  # the share, and the probability that some seat has a larger one
    for share, probability in sorted(seats.shares, reverse=True):
        largest = share
        if larger + seats.count * probability > chance:
            break
        larger += seats.count * probability
    return contracted(seats, largest), larger


def lattice_curve(law: Law, parts: Mixture, rate: float, smallest: float, unprotected: float = 0.0) -> Curve:
    """The empty-seat bound for seats taken by reports of any law.

    `law`: what a report gives away. `parts`: the round as a mixture of seats. `rate`: a bound on the probability that
    the target's report is there at all. `smallest`: a delta that is negligible. `unprotected`: probability that no seat
    is empty.
    """
    whole = float(law.profile(np.ones(1))[0])
    if whole - law.local_delta <= 16 * UNIT:
        # nothing is lost but the local delta; the rounding of their sum is charged with it
        lost = max(whole, law.local_delta) * UPPER_SLACK
        return no_loss(Unshuffled(law.profile, unprotected, rate, lost))
    local = Unshuffled(law.profile, unprotected, rate, law.local_delta)
    return LatticeCurve(parts, local, smallest)


_OVERFLOW = 700.0
"""Losses beyond have exponentials that overflow: nothing is asked there."""


class LatticeCurve(Curve):
    """A mixture of rounds whose reports follow a local profile: an inversion for each point.

    The curve of the simpler seats lies above the truth as well. It is the lower one where reports have tails so heavy,
    or crowds are so large, that a lattice is too coarse.
    """

    resolution = finest = 24

    def __init__(self, parts: Mixture, local: Unshuffled, smallest: float, unmerged: Mixture | None = None) -> None:
        """`unmerged` are the seats of which `parts` are a coarser version."""
        coarse = unmerged is not None
        self._law, self._unmerged = parts[0][1].law, unmerged or parts
        self._local, self._largest, self._coarse = local, self._law.local_epsilon, coarse
        self._smallest = smallest
        self._lattices = [(w, UpperLattice(seats, coarse=coarse)) for w, seats in parts]
        self._parts = parts
        self._known: dict[float, float] = {}  # what the lattice gave
        self._too_far = math.inf  # where it gives up
        self._useless = 0
        self.spread = likely_loss(parts, self._law)

    @cached_property
    def _simple(self) -> ThreeAtomCurve | None:
        """The curve of simpler seats, or None where it cannot be the lower one.

        Reports are counted as the worst ones of an epsilon that holds but for a part of `smallest`, all shares as one
        that none exceeds but for another part. Where the lattice holds the whole law, as fine as it should be, a bound
        whose loss varies more is the larger one.
        """
        if any(seats.empty < 0.0 for _, seats in self._unmerged):  # ratios below zero have no logarithm
            return None
        law = self._law.simplified(self._smallest / 4)
        even = [(weight, *even_shares(s, self._smallest / 4)) for weight, s in self._unmerged]
        seats = [(weight, s) for weight, s, _ in even]
        fine = not self._coarse and all(lattice.fine for _, lattice in self._lattices)
        if fine and spread_of(seats, law) > 1.02 * self.spread:
            return None
        unlucky = math.fsum(weight * chance for weight, _, chance in even)
        local = Unshuffled(law.profile, self._local.unprotected + unlucky, self._local.rate, law.local_delta)
        return ThreeAtomCurve(seats, law.hits, local).coarser()

    def coarser(self) -> LatticeCurve:
        parts = [(w, replace(s, shares=_fewer_shares(s.shares))) for w, s in fewer(self._parts)]
        return LatticeCurve(parts, self._local, self._smallest, self._unmerged)

    def _upper(self, epsilon: float) -> float:
        if epsilon in self._known:
            return self._known[epsilon]
        if epsilon < self._too_far:
            try:
                value = sum(w * curve.upper(epsilon) for w, curve in self._lattices)
            except NumericalFailure:
                self._too_far = epsilon
            else:
                self._known[epsilon] = value
                self._judge(epsilon, value)
                return value
        # Tails too heavy for a lattice. The curve does not rise, so what was found further left
        # holds here too, and so does what holds without shuffling.
        return min((v for e, v in self._known.items() if e <= epsilon), default=1.0)

    def _judge(self, epsilon: float, value: float) -> None:
        """Give up from here on if the lattice is as good as no shuffling, again and again.

        It is then too coarse for these tails, and further out it only gets worse, and slower.
        """
        unshuffled = self._local.rate * float(self._local.profile(np.exp([epsilon]))[0])
        self._useless = self._useless + 1 if value >= unshuffled else 0
        if self._useless == _PATIENCE:
            self._too_far, self._useless = epsilon, 0

    def reach(self, tolerance: float) -> float:
        # a loss as small as the tolerance moves the curve by no more than that
        loss = max(3 * self.spread, tolerance)
        # what is cut off is charged; twice the tolerance leaves room for the chances that a round
        # spends in parts of it (bad luck with the others, a report beyond its epsilon), and the
        # slack on what no epsilon covers does not fall however far one goes
        slack = 2 * (UPPER_SLACK - 1.0) * self._local.rate * self._local.local_delta
        growth = 1.7 if self._coarse else 1.2

        def enough(steps: int) -> bool:
            here = loss * growth**steps
            if here >= min(self._largest, _OVERFLOW):
                return True
            return self._at(here) <= 2 * tolerance + slack

        short, steps = -1, 0
        while not enough(steps):
            short, steps = steps, 2 * steps + 1
        end = min(loss * growth ** whole_switch(enough, steps, short), self._largest)
        if _OVERFLOW < end < self._largest:
            raise NumericalFailure("losses this large have exponentials that overflow")
        return end

    def _at(self, epsilon: float) -> float:
        """The upper bound without what no epsilon covers."""
        upper = np.array([self._upper(epsilon) * UPPER_SLACK])
        completed = float(self._local.complete(upper, np.array([math.exp(epsilon)]))[0])
        if self._simple is not None:
            completed = min(completed, self._simple.upper_at(epsilon))
        return completed - self._local.rate * self._local.local_delta

    def upper_at(self, epsilon: float) -> float:
        return self._at(epsilon) + self._local.rate * self._local.local_delta

    def lower_at(self, epsilon: float) -> float:
        return min(super().lower_at(epsilon), self.upper_at(epsilon))

    def upper(self, step: float, points: int) -> Array:
        deviation = self.spread / step
        chosen = _few(points, deviation) if self._coarse else _sparse(points, deviation)
        epsilons = np.arange(points) * step
        rises = np.expm1(epsilons)  # alphas - 1 with all digits
        # chords of a convex function lie above it: sparse points are enough
        known = self._bent(chosen, step, rises)
        above = np.array(list(known.values())) * UPPER_SLACK
        whole = self._local.complete(np.interp(rises, rises[[*known]], above), np.exp(epsilons))
        return whole if self._simple is None else np.minimum(whole, self._simple.upper(step, points))

    def _bent(self, chosen: list[int], step: float, rises: Array) -> dict[int, float]:
        """The curve at those of the `chosen` points between which it bends: few where it is nearly straight."""
        known = {i: self._upper(i * step) for i in (*chosen[:: 1 if self._coarse else _LEAP], chosen[-1])}

        def fill(between: list[int]) -> None:
            if len(between) < 3:
                return
            left, here, right = between[0], between[len(between) // 2], between[-1]
            share = (rises[right] - rises[here]) / (rises[right] - rises[left])
            chord = share * known[left] + (1.0 - share) * known[right]
            known[here] = self._upper(here * step)
            if chord > (1.0 + _STRAIGHT) * known[here]:
                fill(between[: len(between) // 2 + 1])
                fill(between[len(between) // 2 :])

        for first in range(0, len(chosen) - 1, _LEAP):
            if not self._coarse:
                fill(chosen[first : first + _LEAP + 1])
        return dict(sorted(known.items()))

    def lower(self, step: float, points: int) -> tuple[Array, Array | None]:
        alphas = np.exp(np.arange(points) * step)
        forward, backward = (self._local.capped(side, alphas) for side in self._bad_case.curves(step, points))
        return forward, backward

    @cached_property
    def _bad_case(self) -> HomogeneousCurve:
        weight, seats = max(self._parts, key=lambda part: part[0])
        return HomogeneousCurve(seats, self._law.directions[0], self._smallest, min(weight, 1.0))


def _fewer_shares(shares: Shares, alike: float = 0.8) -> Shares:
    """Shares of nearly one size counted as the largest of them: the curve grows with each."""
    merged: list[tuple[float, float]] = []
    for share, probability in sorted(shares, reverse=True):
        if merged and share >= alike * merged[-1][0]:
            merged[-1] = merged[-1][0], merged[-1][1] + probability
        else:
            merged.append((share, probability))
    return tuple(merged)


def _few(points: int, deviation: float) -> list[int]:
    """As many as are worth computing for a picture: dense to three deviations, then sparse."""
    wanted = np.concatenate([np.linspace(0.0, 3.2, 11), 3.2 * np.geomspace(1.2, 600.0, 16)])
    chosen = {min(round(x * deviation), points - 1) for x in wanted}
    return sorted(chosen | {points - 1})


def _sparse(points: int, deviation: float) -> list[int]:
    """Forty-eight to a deviation near the middle, ever fewer in the tail; first and last always.

    A grid finer than that is asked for by others, who share it: chords are within 1e-4 there.
    """
    chosen, i = [0], 0
    while i < points - 1:
        if i < 3.5 * deviation:
            stride = max(1, int(deviation / 48))
        elif i < 6 * deviation:
            stride = max(1, int(deviation / 10))
        else:
            stride = max(1, int(i / 20))
        i = min(i + stride, points - 1)
        chosen.append(i)
    return chosen
