"""One-round curves delta(eps) on a grid, upper and lower, whatever engine computes them.

A round is a mixture of a few models (one, unless colluders make the honest cohort random). Its
curve adds what happens when no seat is empty (a multiple of the local profile) and mass without
counterpart (the local delta), and is capped by what holds without any shuffling.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from dpcheckin.accounting import seats
from dpcheckin.accounting.bracket import Bracket
from dpcheckin.accounting.homogeneous import HomogeneousCurve
from dpcheckin.accounting.lattice import WHOLE, LatticeCurve, LatticeModel, Profile, Shares
from dpcheckin.accounting.loss import Array
from dpcheckin.accounting.safe_side import left_of, right_of
from dpcheckin.accounting.seats import FULL, QUICK, Atoms, Effort, SeatModel
from dpcheckin.errors import NumericalFailure

# Curves are widened by this relative amount, far more than the rounding of sums and differences.
UPPER_SLACK, LOWER_SLACK = 1 + 1e-11, 1 - 1e-9
_PATIENCE = 3  # points at which a lattice may be of no use

Model = TypeVar("Model", SeatModel, LatticeModel)


@dataclass(frozen=True, slots=True)
class Unshuffled:
    """What holds without shuffling: a report costs no more than its local profile.

    `unprotected` is the probability that no seat is empty, when nothing better is proved then;
    `rate` bounds the probability that the client's report is there at all.
    """

    profile: Profile
    unprotected: float
    rate: float
    local_delta: float

    def complete(self, upper: Array, alphas: Array) -> Array:
        """The theorem's finite part completed to a full upper bound."""
        local = self.profile(left_of(alphas))
        whole = upper + self.unprotected * local + self.rate * self.local_delta
        return np.asarray(np.minimum(whole, self.rate * local * UPPER_SLACK))


class RoundCurve(ABC):
    """delta(eps) of one round for eps >= 0."""

    spread: float  # standard deviation of the loss, a guide for the grid
    quantum: float = 0.0  # spacing of the losses if they are nearly equidistant
    resolution: int = 160  # grid points per standard deviation that are worth computing
    finest: int = 640  # as many if there are few rounds
    most_lower: int = 100_000  # points of the lower bound that are worth computing

    def coarser(self) -> RoundCurve:
        """A curve nowhere below this one's upper bound that is much quicker to compute.

        Its lower bounds say nothing.
        """
        return self

    @abstractmethod
    def reach(self, tolerance: float) -> float:
        """A loss beyond which the curve's changeable part is at most `tolerance`."""

    @abstractmethod
    def at(self, epsilon: float) -> Bracket:
        """The curve at one place, with no grid in between."""

    def upper_at(self, epsilon: float) -> float:
        """The upper end alone, for searches."""
        return self.at(epsilon).upper

    def lower_at(self, epsilon: float) -> float:
        """The lower end alone, for searches."""
        return self.at(epsilon).lower

    @abstractmethod
    def upper(self, step: float, points: int) -> Array:
        """Upper bounds at eps = 0, step, 2 step, ..."""

    @abstractmethod
    def lower(self, step: float, points: int) -> Array:
        """Lower bounds of the finite part at the same places."""


class SeatCurve(RoundCurve):
    """Mixture of three-atom models, each an explicit pair."""

    def __init__(
        self,
        parts: Sequence[tuple[float, SeatModel]],
        local: Unshuffled,
        effort: Effort = FULL,
    ) -> None:
        self._parts, self._local, self._effort = parts, local, effort

    def coarser(self) -> SeatCurve:
        return SeatCurve(_fewer(self._parts, lambda model: model.steps), self._local, QUICK)

    @cached_property
    def _atoms(self) -> list[tuple[float, Atoms, Atoms]]:
        return [(weight, *seats.atoms(model, self._effort)) for weight, model in self._parts]

    @property
    def upper_atoms(self) -> list[tuple[float, Atoms]]:
        """The split atoms with their weights (for Renyi moments)."""
        return [(weight, above) for weight, above, _ in self._atoms]

    @cached_property
    def spread(self) -> float:  # type: ignore[override]
        chosen = [(w, below if self._effort.both else above) for w, above, below in self._atoms]
        return math.sqrt(sum(w * seats.spread(side) ** 2 for w, side in chosen))

    @cached_property
    def quantum(self) -> float:  # type: ignore[override]
        model = self._parts[0][1]
        hits = max(model.steps * model.hits, 1.0)
        weight = float(model.mean_weight(np.array([hits]))[0])
        # once a single hit is felt in the total weight the losses are no longer equidistant
        return 2 * math.atanh(model.kappa / weight) if model.kappa < 0.05 * weight else 0.0

    def reach(self, tolerance: float) -> float:
        return max(seats.largest_loss(above, tolerance) for _, above, _ in self._atoms)

    def upper_at(self, epsilon: float) -> float:
        upper = sum(w * (_excess(a, epsilon) * UPPER_SLACK + a.corner) for w, a, _ in self._atoms)
        whole = self._local.complete(np.array([upper]), np.array([math.exp(epsilon)]))
        return float(whole[0])

    def lower_at(self, epsilon: float) -> float:
        return sum(w * _excess(below, epsilon) * LOWER_SLACK for w, _, below in self._atoms)

    def at(self, epsilon: float) -> Bracket:
        lower = self.lower_at(epsilon)
        return Bracket(lower, max(self.upper_at(epsilon), lower))

    def upper(self, step: float, points: int) -> Array:
        total = np.zeros(points)
        for weight, above, _ in self._atoms:
            values = seats.curve_on_grid(above, step, points)
            total += weight * (values * UPPER_SLACK + above.corner)
        return self._local.complete(total, np.exp(np.arange(points) * step))

    def lower(self, step: float, points: int) -> Array:
        total = np.zeros(points)
        for weight, _, below in self._atoms:
            total += weight * LOWER_SLACK * seats.curve_on_grid(below, step, points)
        return total


class ProfileCurve(RoundCurve):
    """Mixture of models given by a local profile: one Fourier inversion for each point.

    `simple` is a curve that lies above the truth as well. It is the lower one where reports have
    tails so heavy, or crowds are so large, that a lattice is too coarse.
    """

    resolution = finest = 24
    most_lower = 250

    def __init__(
        self,
        parts: Sequence[tuple[float, LatticeModel]],
        local: Unshuffled,
        largest_loss: float,
        smallest: float,
        simple: SeatCurve | None = None,
        *,
        coarse: bool = False,
    ) -> None:
        self._local, self._largest, self._coarse = local, largest_loss, coarse
        self._simple = simple and simple.coarser()
        self._negligible = 100 * smallest
        self._curves = [(w, LatticeCurve(model, coarse=coarse)) for w, model in parts]
        self._parts = parts
        self._known: dict[float, float] = {}  # what the lattice gave
        self._too_far = math.inf  # where it gives up
        self._in_vain = 0
        self._bad_case: HomogeneousCurve | None = None
        variance = sum(
            w * m.steps * m.take * 2 * min(_moment(m), m.scale**2) / m.scale**2 for w, m in parts
        )
        most = largest_loss if math.isfinite(largest_loss) else 1.0
        self.spread = min(math.sqrt(variance), most)

    def coarser(self) -> ProfileCurve:
        fewer = _fewer(self._parts, lambda model: model.steps)
        parts = [(w, replace(model, shares=_fewer_shares(model.shares))) for w, model in fewer]
        smallest = self._negligible / 100
        return ProfileCurve(parts, self._local, self._largest, smallest, self._simple, coarse=True)

    def _upper(self, epsilon: float) -> float:
        if epsilon < self._too_far:
            try:
                value = sum(w * curve.upper(epsilon) for w, curve in self._curves)
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
        self._in_vain = self._in_vain + 1 if value >= unshuffled else 0
        if self._in_vain == _PATIENCE:
            self._too_far, self._in_vain = epsilon, 0

    def reach(self, tolerance: float) -> float:
        loss = 3 * self.spread
        # what is cut off is charged; twice the tolerance leaves room for the chances that a round
        # spends in parts of it (bad luck with the others, a report beyond its epsilon)
        while loss < self._largest and self._at(loss) > 2 * tolerance:
            loss *= 1.7 if self._coarse else 1.2
        return min(loss, self._largest)

    def _at(self, epsilon: float) -> float:
        """The upper bound without what no epsilon covers."""
        upper = np.array([self._upper(epsilon) * UPPER_SLACK])
        completed = float(self._local.complete(upper, np.array([math.exp(epsilon)]))[0])
        if self._simple is not None:
            completed = min(completed, self._simple.upper_at(epsilon))
        return completed - self._local.rate * self._local.local_delta

    def at(self, epsilon: float) -> Bracket:
        upper = self._at(epsilon) + self._local.rate * self._local.local_delta
        return Bracket(min(float(self.homogeneous(epsilon, 2)[0][1]), upper), upper)

    def upper(self, step: float, points: int) -> Array:
        chosen = (
            _few(points, self.spread / step)
            if self._coarse
            else _sparse(points, self.spread / step)
        )
        above = np.array([self._upper(i * step) for i in chosen]) * UPPER_SLACK
        # chords of a convex function lie above it: sparse points are enough
        alphas = np.exp(np.arange(points) * step)
        rises = np.expm1(np.arange(points) * step)  # alphas - 1 with all digits
        whole = self._local.complete(np.interp(rises, rises[chosen], above), alphas)
        if self._simple is not None:
            whole = np.minimum(whole, self._simple.upper(step, points))
        return whole

    def lower(self, step: float, points: int) -> Array:
        return self.homogeneous(step, points)[0]

    def homogeneous(self, step: float, points: int) -> tuple[Array, Array]:
        """Lower bounds of both directions when all others hold one value (see `homogeneous`)."""
        weight, model = max(self._parts, key=lambda part: part[0])
        sides = np.zeros((2, points))
        try:
            if self._bad_case is None:
                self._bad_case = HomogeneousCurve(_even_shares(model))
            curve = self._bad_case
            for values, side in zip(sides, (curve.forward, curve.backward), strict=True):
                for i in range(points):
                    values[i] = weight * side(i * step) * LOWER_SLACK
                    if values[i] <= self._negligible:
                        break
        except NumericalFailure:
            sides[:] = 0.0  # what cannot be computed is bounded below by nothing
        return sides[0], sides[1]


class LocalCurve(RoundCurve):
    """Nothing but the local profile, at the rate of reporting: exact, in closed form."""

    def __init__(self, local: Unshuffled, largest_loss: float) -> None:
        self._local, self._largest = local, largest_loss
        top = min(largest_loss, 40.0)
        losses = np.linspace(0.0, top, 2000)
        # variance of the loss from the profile: 2 * integral of loss-weighted tail (a guide)
        values = local.rate * (local.profile(np.exp(losses)) - local.local_delta)
        self.spread = math.sqrt(max(2 * float(np.sum(values) * (losses[1] - losses[0])), 1e-30))

    def reach(self, tolerance: float) -> float:
        loss = self.spread
        while loss < min(self._largest, 700.0):
            value = self._local.rate * float(self._local.profile(np.array([math.exp(loss)]))[0])
            if value - self._local.rate * self._local.local_delta <= tolerance:
                return loss
            loss *= 1.2
        return min(self._largest, 700.0)

    def at(self, epsilon: float) -> Bracket:
        return Bracket(float(self.lower(epsilon, 2)[1]), float(self.upper(epsilon, 2)[1]))

    def upper(self, step: float, points: int) -> Array:
        alphas = np.exp(np.minimum(np.arange(points) * step, 700.0))
        return self._local.rate * self._local.profile(left_of(alphas)) * UPPER_SLACK

    def lower(self, step: float, points: int) -> Array:
        alphas = np.exp(np.minimum(np.arange(points) * step, 700.0))
        finite = self._local.profile(right_of(alphas)) - self._local.local_delta
        return np.asarray(self._local.rate * np.maximum(finite, 0.0) * LOWER_SLACK)


def _even_shares(model: LatticeModel) -> LatticeModel:
    """The same seats when every share is the mean one: no larger, by Jensen's inequality."""
    if model.shares == WHOLE:
        return model
    scale = model.scale / sum(w * p for w, p in model.shares)
    return replace(model, scale=scale, offset=scale - model.steps, shares=WHOLE)


def _moment(model: LatticeModel) -> float:
    return model.second_moment * sum(p * w * w for w, p in model.shares)


def _excess(atoms: Atoms, epsilon: float) -> float:
    above = atoms.losses > epsilon
    return float(np.sum(atoms.p[above] * -np.expm1(epsilon - atoms.losses[above])))


def _fewer(
    parts: Sequence[tuple[float, Model]], steps: Callable[[Model], int], most: int = 6
) -> Sequence[tuple[float, Model]]:
    """Neighbouring parts of a mixture counted as the one with the most reports.

    The curve grows with the number of reports: one more replaces an empty seat by a report of the
    same mean.
    """
    if len(parts) <= most:
        return parts
    ordered = sorted(parts, key=lambda part: steps(part[1]))
    merged: list[tuple[float, Model]] = []
    total, weight, seen = sum(w for w, _ in ordered), 0.0, 0.0
    for here, model in ordered:
        weight += here
        seen += here
        if seen >= total * (len(merged) + 1) / most:
            merged.append((weight, model))
            weight = 0.0
    if weight > 0.0:
        merged.append((weight, ordered[-1][1]))
    return merged


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
    """Every point near the middle, ever fewer in the tail; first and last always."""
    chosen, i = [0], 0
    while i < points - 1:
        if i < 3.5 * deviation:
            stride = 1
        elif i < 6 * deviation:
            stride = max(1, int(deviation / 10))
        else:
            stride = max(1, int(i / 20))
        i = min(i + stride, points - 1)
        chosen.append(i)
    return chosen
