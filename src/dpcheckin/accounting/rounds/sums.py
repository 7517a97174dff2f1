"""Rounds in which only a sum is seen: distributed check-in, and central DP-SGD beside it.

Distributed check-in: each client checks in with probability ``rate`` and adds noise to a vector of norm at most C.
Given k check-ins, replacing one client moves the sum by at most 2C, and the client is among the k with probability k/n.
So one round has the curve E_k[(k/n) h_k(1 + (alpha-1) n/k)] on alpha >= 1 and its mirror image, h_k the profile of a
sum of k reports; k = 0 reveals nothing (tight per round and order; see docs/errata.md for P1 Theorem 4's missing k = 0
term). Any dimension.

Central DP-SGD: a trusted server adds N(0, s^2) to a Poisson sample. With one's record the law of the sum is P = (1 - q)
N(0, s^2) + q N(1, s^2), without it Q = N(0, s^2); both curves follow from that of the plain Gaussian pair exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.engine.curves import Curve, CurveFunction
from dpcheckin.accounting.engine.sampling import (
    BINS,
    LARGEST_LOSS,
    TAIL,
    FunctionCurve,
    averaged,
    left_out,
    mixture,
    reach,
    sampled,
    sampled_backward,
    visible_counts,
)
from dpcheckin.accounting.pairs.gaussian import GaussianPair
from dpcheckin.accounting.pairs.local import LocalPair
from dpcheckin.accounting.pairs.profile import ProfilePair
from dpcheckin.accounting.renyi import MAX_ORDER, RenyiCurve, SkellamSide
from dpcheckin.accounting.rounds.base import SMALLEST_DELTA, Round
from dpcheckin.accounting.statements import AGGREGATORS_COLLUDE, Adjacency
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.numerals import count, keep_count, positive, probability
from dpcheckin.special.gamma import skellam_profile
from dpcheckin.special.normal import gaussian_profile

MOST_ENTRIES = 2_000_000  # on either side of a table of noise
COARSE_BINS = 64  # of the visible number of reports, for a preview
ROUNDING = 1e-9  # more than differences of normal tails lose


class SummedRound(Round):
    """Distributed check-in: the sum of the reports and their number are seen, nothing else."""

    __slots__ = ()
    exposed_when: ClassVar[str] = AGGREGATORS_COLLUDE
    is_function: ClassVar[bool] = True
    population: int
    rate: float

    @property
    def participation(self) -> float:
        return self.rate

    def assumptions(self) -> tuple[str, ...]:
        return (
            f"{self.population:,} clients flip their own secret coins, independent of their data",
            "secure aggregation shows nothing but the sum and the number of reports",
            "every client adds its share of the noise",
        )

    def _check(self) -> None:
        keep_count(self, "population")
        probability("rate", self.rate)


@dataclass(frozen=True)
class DistributedRound(SummedRound):
    """Distributed check-in with Gaussian noise.

    Args:
        population: Number of clients.
        rate: Probability that a client checks in.
        noise_multiplier: Noise of one report, in clipping norms.
        sensitivity: How far a replaced report moves the sum, in clipping norms.
        groups: Of the visible number of reports; fewer are quicker and looser.

    >>> from dpcheckin.accounting import compose
    >>> run = compose([(DistributedRound(1_000, 0.1, 1.0), 100)])
    >>> 0.49 < run.epsilon(1e-3).upper < 0.5
    True
    """

    population: int
    rate: float
    noise_multiplier: float
    sensitivity: float = 2.0
    groups: int = BINS

    def __post_init__(self) -> None:
        self._check()
        positive("noise_multiplier", self.noise_multiplier)
        positive("sensitivity", self.sensitivity)

    @cached_property
    def pair(self) -> LocalPair:  # type: ignore[override]
        return GaussianPair(2.0 * self.noise_multiplier / self.sensitivity)

    def basis(self) -> tuple[str, ...]:
        return (
            "P1 (arXiv 2206.03151v2) section 5 with sampling without replacement given the "
            "visible number of reports, composed as loss distributions",
        )

    def simpler(self, local_delta: float) -> DistributedRound:
        return DistributedRound(self.population, self.rate, self.noise_multiplier, self.sensitivity, COARSE_BINS)

    def curves(self, smallest: float = SMALLEST_DELTA) -> list[tuple[Curve, int]]:
        counts = visible_counts(self.population, self.rate, self.groups, smallest)

        def profile(k: float) -> CurveFunction:
            distance = self.sensitivity / (self.noise_multiplier * math.sqrt(k))
            return partial(gaussian_profile, distance)

        return [(mixture(self.population, counts, profile, profile, smallest), 1)]

    def bad_sum(self, smallest: float) -> FunctionCurve:
        counts = visible_counts(self.population, self.rate, smallest=smallest)
        parts = [
            (w, low / self.population, partial(gaussian_profile, 2.0 / (self.noise_multiplier * math.sqrt(high))))
            for low, high, w in zip(counts.low, counts.high, counts.probability, strict=True)
            if low > 0.0 and w > 0.0
        ]
        moved = averaged(parts, sampled)  # H_alpha((1-q)Q + qP || Q)
        still = averaged(parts, sampled_backward)  # H_alpha(Q || (1-q)Q + qP)
        return FunctionCurve(moved, moved, reach(moved, 1e-6 * smallest), (still, still))


@dataclass(frozen=True)
class IntegerSumRound(SummedRound):
    """Distributed check-in of one integer per client with Skellam noise: its exact curve.

    The sum of k reports, each with Skellam noise of the given variance, carries exactly Skellam noise of k times that
    variance (Agarwal, Kairouz and Liu, arXiv 2110.04995v1); the noise is log-concave, so the largest shift dominates.

    Args:
        population: Number of clients.
        rate: Probability that a client checks in.
        bound: Integers lie in [-bound, bound].
        variance: Of one report's noise.
    """

    population: int
    rate: float
    bound: int
    variance: float

    def __post_init__(self) -> None:
        self._check()
        count("bound", self.bound)
        if not 0.0 < self.variance <= 1e10:  # the exact curve is tabulated and needs an end
            raise InvalidParameter("variance", self.variance, "above 0 and at most 1e+10")

    @cached_property
    def pair(self) -> LocalPair:  # type: ignore[override]
        return ProfilePair("Skellam noise", lambda alpha: self._profile(1.0)(np.asarray(alpha, np.float64)))

    def basis(self) -> tuple[str, ...]:
        return ("exact Skellam profiles, sampled without replacement given the visible number",)

    def _profile(self, k: float, cut: float = TAIL) -> CurveFunction:
        return partial(skellam_profile, k * self.variance, 2 * self.bound, cut=cut)

    def _lower(self, k: float, cut: float) -> CurveFunction:
        def below(alpha: FloatArray) -> FloatArray:
            return np.maximum(self._profile(k, cut)(alpha) - 2.0 * cut, 0.0)

        return below

    def curves(self, smallest: float = SMALLEST_DELTA) -> list[tuple[Curve, int]]:
        counts = visible_counts(self.population, self.rate, smallest=smallest)
        cut = left_out(smallest)
        largest = self.variance * float(counts.high[-1])
        if not largest * (-math.log(cut)) <= MOST_ENTRIES**2 / 2.0:
            raise OutsideTheorem(
                f"the noise of all reports has variance {largest:.3g}: too much for a table; use SkellamRound"
            )
        profile, lower = partial(self._profile, cut=cut), partial(self._lower, cut=cut)
        return [(mixture(self.population, counts, profile, lower, smallest), 1)]


@dataclass(frozen=True)
class SkellamRound(SkellamSide, SummedRound):
    """Distributed check-in of integer vectors with Skellam noise: equal rounds by Rényi curves."""

    def __post_init__(self) -> None:
        self._check()
        positive("variance", self.variance)
        positive("l1", self.l1)
        positive("l2", self.l2)

    @property
    def renyi(self) -> SkellamSide:  # type: ignore[override]
        return self

    noise_name: ClassVar[str] = "Skellam noise"

    @cached_property
    def pair(self) -> LocalPair:  # type: ignore[override]
        orders = np.arange(2.0, MAX_ORDER + 1.0)
        told = self._told(RenyiCurve(orders, self.of_noise(orders, self.variance)))
        return ProfilePair(self.noise_name, lambda alpha: told(np.asarray(alpha, np.float64)))

    def _told(self, curve: RenyiCurve) -> CurveFunction:
        """What a Rényi curve and the error of drawing say of delta; it falls, however this error is multiplied."""

        def bound(alpha: FloatArray) -> FloatArray:
            return np.minimum(curve.profile(alpha) + (1.0 + alpha) * self.drawing_error, 1.0)

        places = np.exp(np.linspace(0.0, LARGEST_LOSS, 601))
        turn = places[int(np.argmin(bound(places)))]
        return lambda alpha: bound(np.minimum(alpha, turn))

    def basis(self) -> tuple[str, ...]:
        return (
            "Skellam noise: Agarwal, Kairouz, Liu, arXiv 2110.04995v1, Theorem 3.5, with the "
            "exact bounds of conditional rounding",
            "sampling without replacement given the visible number of reports: Wang, Balle, "
            "Kasiviswanathan, arXiv 1808.00087v2, Theorem 9",
        )

    def curves(self, smallest: float = SMALLEST_DELTA) -> list[tuple[Curve, int]]:
        """What the Rényi curve says of delta: for runs mixed with other rounds."""
        upper = self._told(self.renyi_curve)
        return [(FunctionCurve(upper, np.zeros_like, reach(upper, 1e-6 * smallest)), 1)]


@dataclass(frozen=True)
class DiscreteGaussianRound(SkellamRound):
    """Distributed check-in of integer vectors with discrete Gaussian noise, by Rényi curves.

    Replacing one report moves the mean of N_Z(0, v)^d by an integer vector, whose Rényi divergence of order a is at
    most a l2^2/(2v) (Canonne, Kamath and Steinke, arXiv 2004.00010v5, Proposition 5). A sum of discrete Gaussians is
    not one of their kind; how far it is from N_Z(0, k v) is part of `drawing_error` and bounded in
    `dpcheckin.randomizers.integer_vectors`.
    """

    noise_name: ClassVar[str] = "discrete Gaussian noise"

    def of_noise(self, orders: FloatArray, variance: float) -> FloatArray:
        positive("variance", variance)
        return np.asarray(orders * self.l2**2 / (2.0 * variance))

    def basis(self) -> tuple[str, ...]:
        return (
            "discrete Gaussian noise: Canonne, Kamath, Steinke, arXiv 2004.00010v5, Proposition 5, "
            "with the exact bounds of conditional rounding and the distance of a sum charged",
            super().basis()[1],
        )


@dataclass(frozen=True)
class SampledGaussianRound(Round):
    """One step of central DP-SGD: a trusted server sums a Poisson sample and adds Gaussian noise.

    Args:
        rate: Probability that a record is in the sample.
        noise_multiplier: Noise of the sum, in clipping norms.

    >>> from dpcheckin.accounting import compose
    >>> one = compose([(SampledGaussianRound(1.0, 2.0), 1)]).epsilon(1e-5)
    >>> 1.993 < one.lower <= one.upper < 1.994  # the Gaussian mechanism itself
    True
    """

    adjacency: ClassVar[Adjacency] = Adjacency.ADD_OR_REMOVE_RECORD
    is_function: ClassVar[bool] = True

    rate: float
    noise_multiplier: float

    @property
    def pair(self) -> None:  # type: ignore[override]
        """There is none: the server sees every record."""

    def __post_init__(self) -> None:
        probability("rate", self.rate)
        positive("noise_multiplier", self.noise_multiplier)

    @property
    def participation(self) -> float:
        return self.rate

    def assumptions(self) -> tuple[str, ...]:
        return ("the server is trusted with every record", "each record is sampled by an independent secret coin")

    def basis(self) -> tuple[str, ...]:
        return ("Poisson-sampled Gaussian mechanism, exact curves, certified composition",)

    def curves(self, smallest: float = SMALLEST_DELTA) -> list[tuple[Curve, int]]:
        if self.rate == 0.0:
            return []
        furthest = reach(self.present, 1e-6 * smallest)
        ahead, behind = _widened(self.present), _widened(self.absent)
        return [(FunctionCurve(*ahead, furthest, behind), 1)]

    def present(self, alpha: FloatArray) -> FloatArray:
        """H_alpha of the sum with the record from that without."""
        return sampled(partial(gaussian_profile, 1.0 / self.noise_multiplier), self.rate, alpha)

    def absent(self, alpha: FloatArray) -> FloatArray:
        """H_alpha of the sum without the record from that with it."""
        profile = partial(gaussian_profile, 1.0 / self.noise_multiplier)
        return sampled_backward(profile, self.rate, alpha)


def _widened(curve: CurveFunction) -> tuple[CurveFunction, CurveFunction]:
    return (lambda alpha: (1.0 + ROUNDING) * curve(alpha), lambda alpha: (1.0 - ROUNDING) * curve(alpha))
