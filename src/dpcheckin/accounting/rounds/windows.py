"""Random check-ins: a client reports in at most one slot of a window, chosen by itself.

Fixed and sliding windows follow from the empty-seat argument turned round, averaged windows from the posteriors of P2.
The proofs are written out in docs/random-check-ins.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import partial
from typing import ClassVar

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.engine.curves import Curve
from dpcheckin.accounting.engine.lattice_curve import even_shares
from dpcheckin.accounting.engine.sampling import FunctionCurve
from dpcheckin.accounting.engine.seats import WHOLE, Seats, Shares
from dpcheckin.accounting.pairs.local import LocalPair
from dpcheckin.accounting.pairs.pure_types import Family
from dpcheckin.accounting.rounds.base import EMPTY_SEAT, SMALLEST_DELTA, Round, local_pair
from dpcheckin.accounting.statements import SLOTS_ARE_KNOWN
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.numerals import count, keep_count, positive
from dpcheckin.special import binomial, intervals

# where cells of a slot's load begin, in deviations: what lies below the first counts as empty
_CELLS = (-16.0, -13.0, -11.0, -9.5, -8.0, -7.0, *(0.5 * i - 6.0 for i in range(24)))

_GROUPS = 96  # of posteriors
_TWO_TYPES = math.log(1.8)  # up to here no single type stands for every pure randomizer

AVERAGED_ASSUMPTIONS = (
    "every client picks its slot on its own and keeps it secret",
    "the server sees reports, not who might have sent them",
    "clients do not collude",
)
"""What the statements about averaged windows rest on."""


@dataclass(frozen=True, slots=True)
class WindowRound(Round):
    """One window of random check-ins, fixed or sliding; minibatches are post-processing.

    Args:
        slots: Slots of the window.
        pair: What a report gives away.
        check_in_probability: With which a client chooses a slot at all.
        elapsed: Slots that have passed, for a window that is not over; None for all of them.
        others: Other clients who choose a slot of this very window likewise; None to rely on
            nobody.

    >>> from dpcheckin.accounting import any_pure, compose
    >>> run = compose([(WindowRound(1000, any_pure(1.0)), 1)])
    >>> round(run.epsilon(1e-6).upper, 4)
    0.1356
    """

    exposed_when: ClassVar[str] = SLOTS_ARE_KNOWN

    slots: int
    pair: LocalPair
    check_in_probability: float = 1.0
    elapsed: int | None = None
    others: int | None = None

    def __post_init__(self) -> None:
        local_pair("pair", self.pair)
        keep_count(self, "slots")
        if not 0.0 < self.check_in_probability <= 1.0:
            raise InvalidParameter("check_in_probability", self.check_in_probability, "above 0 and at most 1")
        if self.elapsed is not None and not 1 <= self.elapsed <= self.slots:
            raise InvalidParameter("elapsed", self.elapsed, f"between 1 and {self.slots:,}")
        if self.others is not None and not self.others >= 0:
            raise InvalidParameter("others", self.others, "at least 0")

    @property
    def equivalent_population(self) -> int:
        """The number of clients of the equivalent subsample, rounded down (safe)."""
        return math.floor(self.slots / self.check_in_probability)

    @property
    def participation(self) -> float:
        return self.check_in_probability

    def basis(self) -> tuple[str, ...]:
        return (EMPTY_SEAT + ", for a window of slots (docs/random-check-ins.md)",)

    @property
    def standing(self) -> float:
        """Probability that a client's report stands in some slot: p E 1/(1 + others in it)."""
        clients, rate = 1 + (self.others or 0), self.check_in_probability / self.slots
        filled = -math.expm1(clients * math.log1p(-rate)) if rate < 1.0 else 1.0
        return min(filled * self.slots / clients, self.check_in_probability)

    @property
    def standing_so_far(self) -> float:
        """The same for the slots that have passed; whether it stands does not depend on data."""
        return self.standing * (self.elapsed or self.slots) / self.slots

    def assumptions(self) -> tuple[str, ...]:
        stated = [
            f"each client reports in at most one of {self.slots:,} slots, chosen by itself",
            "the slot a client chose stays secret, and so does the noise of the other reports",
            "an empty slot is filled with a randomized dummy",
        ]
        if self.others:
            often = (
                ""
                if self.check_in_probability == 1
                else f"each with probability {self.check_in_probability:g} or more, "
            )
            stated.append(
                f"at least {self.others:,} other honest clients choose a slot of the same window, {often}"
                "evenly, and each slot takes one of those who chose it, evenly"
            )
        return tuple(stated)

    def curves(self, smallest: float = SMALLEST_DELTA) -> list[tuple[Curve, int]]:
        parts = [self._seats()]
        worst = self.pair.curve(parts, self.standing_so_far, smallest)
        if not (self.pair.family is Family.SYMBOLS or self.pair.local_epsilon > _TWO_TYPES):
            return [(worst, 1)]
        from dpcheckin.accounting.pairs.steered import steered_curve

        below = self.pair.bad_case([(1.0, self.lower_seats(self.pair))], smallest)
        return [(steered_curve(self.pair, parts, worst, self.standing_so_far, below), 1)]

    def lower_seats(self, pair: LocalPair) -> Seats:
        # others and dummies hold one value; who of a slot's clients was taken is not told
        places, scale = self.elapsed or self.slots, self.slots / self.standing
        return Seats(places, pair, scale - places, scale)

    def simpler(self, local_delta: float) -> WindowRound:
        known = {field.name: getattr(self, field.name) for field in fields(self)}
        return _EvenWindow(**{**known, "pair": self.pair.simplified(local_delta)})

    def _seats(self) -> tuple[float, Seats]:
        """The seats of the theorem, and what their bound is multiplied by."""
        n, seen = self.equivalent_population, self.elapsed or self.slots
        shares, factor = WHOLE, 1.0
        if self.others:
            load, factor = poisson_load(self.others, self.check_in_probability / self.slots)
            shares = _shares(load)
        return factor, Seats(seen, self.pair, float(n - seen), float(n), shares=shares)


@dataclass(frozen=True, slots=True)
class _EvenWindow(WindowRound):
    """A window in which every slot has as few other clients as the emptiest, but for bad luck."""

    def curves(self, smallest: float = SMALLEST_DELTA) -> list[tuple[Curve, int]]:
        factor, seats = self._seats()
        even, unlucky = even_shares(seats, smallest / 4)
        parts = [(factor, even)]
        return [(self.pair.curve(parts, self.standing_so_far, smallest, factor * unlucky), 1)]


def poisson_load(others: int, rate: float) -> tuple[float, float]:
    """Independent Poisson loads that may stand for the slots' own, and the price of it.

    The loads of the slots are multinomial: independent Poisson numbers, given their sum. What is lost falls in every
    load, so with S the sum the expected loss given S = others is at most that of the independent loads divided by P(S
    <= others). The mean with the least variance is taken.

    `others`: clients who choose a slot likewise. `rate`: probability that one of them chooses a given slot.

    Returns the mean load of a slot, zero if others are of no use, and the factor.
    """
    near = others - np.linspace(0.0, 4.0, 81) * math.sqrt(others)
    means = np.concatenate([near[near > 0.0], others * np.geomspace(1e-3, 1.0, 30)])
    # a bound from below on the probability, a little more than its rounding
    factors = (1.0 + 1e-9) / binomial.poisson_cdf(others, means)
    loads = means * rate
    variances = factors / (1.0 + 0.75 * loads + loads**2)  # about E 1/(1 + load)^2
    best = int(np.argmin(variances))
    if variances[best] > 0.98:
        return 0.0, 1.0
    return float(loads[best]), float(factors[best])


def _shares(load: float) -> Shares:
    """1/(1 + B) for Poisson B with this mean; crowded slots are counted as less crowded."""
    if load == 0.0:
        return WHOLE
    deviation = math.sqrt(load)
    edges = [max(0.0, load + deviation * cell) for cell in _CELLS]
    starts = sorted({0, *(int(x) for x in edges)})
    shares, left = [], 1.0
    for first, after in zip(starts, [*starts[1:], None], strict=True):
        mass = left
        if after is not None:
            below = binomial.poisson_cdf(first - 1, load) if first else 0.0
            mass = float(binomial.poisson_cdf(after - 1, load) - below)
        shares.append((1.0 / (1.0 + first), mass))
        left = max(left - mass, 0.0)
    total = math.fsum(p for _, p in shares)
    return tuple((w, p / total) for w, p in shares)


@dataclass(frozen=True, slots=True)
class PosteriorRound(Round):
    """Steps in which the target's report stands with posterior probability at most q_i.

    The proofs of P2 (arXiv 2007.06605v2) write a run as such steps, whatever has been seen before. By advanced joint
    convexity (Balle, Barthe and Gaboardi, arXiv 1807.01647v2, Theorem 2) step i has the curve q_i h(1 + (alpha -
    1)/q_i) on alpha >= 1 and its mirror image below, h the local profile. Composing these curves never does worse than
    P2's closed forms, which use only the largest loss of each step. The posterior bounds need a pure local epsilon.

    >>> from dpcheckin.accounting import any_pure, compose
    >>> steps = PosteriorRound((0.001,) * 1000, any_pure(1.0))
    >>> 0.1 < compose([(steps, 1)]).epsilon(1e-6).upper < 0.256
    True
    """

    exposed_when: ClassVar[str] = SLOTS_ARE_KNOWN
    is_function: ClassVar[bool] = True

    posteriors: tuple[float, ...]  # the q_i
    pair: LocalPair  # a pure local pair; only its epsilon counts
    reserved: float = 0.0  # probability that the posteriors are larger
    stated_assumptions: tuple[str, ...] = ("which step a report is part of stays secret",)  # what must hold

    def __post_init__(self) -> None:
        local_pair("pair", self.pair)
        if not self.pair.pure:
            raise OutsideTheorem(f"posterior bounds need a pure local epsilon, not {self.pair.label}")
        if not self.posteriors or not all(0.0 <= q <= 1.0 for q in self.posteriors):
            raise InvalidParameter("posteriors", list(self.posteriors[:3]), "probabilities")

    @property
    def participation(self) -> float:
        return 1.0

    def assumptions(self) -> tuple[str, ...]:
        return self.stated_assumptions

    def basis(self) -> tuple[str, ...]:
        return ("P2 (arXiv 2007.06605v2) Theorem 4.1, its steps composed numerically",)

    def curves(self, smallest: float = SMALLEST_DELTA) -> list[tuple[Curve, int]]:
        # Equal-sized groups of neighbouring q; the bracket takes each group's largest and smallest.
        q = np.sort(np.asarray(self.posteriors, dtype=np.float64))
        groups = np.array_split(q, min(_GROUPS, q.size))
        e0 = self.pair.local_epsilon
        return [(_step_curve(float(g[0]), float(g[-1]), e0), g.size) for g in groups]


def averaged_window(
    population: int, slots: int, pair: LocalPair, load_delta: float, elapsed: int | None = None
) -> PosteriorRound:
    """One averaged window: all clients of a slot are averaged, an empty slot is skipped.

    Args:
        population: Clients, each of which picks a slot.
        slots: Of the window.
        pair: A pure local pair.
        load_delta: Probability set aside for slots with unusually many or few clients.
        elapsed: Slots that have passed; None for all.
    """
    if not pair.pure:
        raise OutsideTheorem(f"averaged random check-ins are proved for pure local randomizers, not for {pair.label}")
    q = typical_averaged_posteriors(population, slots, pair.local_epsilon, load_delta)
    return PosteriorRound(q[: elapsed or slots], pair, load_delta, AVERAGED_ASSUMPTIONS)


def _step_curve(low: float, high: float, local_epsilon: float) -> FunctionCurve:
    return FunctionCurve(
        upper=partial(_posterior_curve, high, local_epsilon),
        lower=partial(_posterior_curve, low, local_epsilon),
        largest_loss=math.log1p(high * math.expm1(local_epsilon)),
        accuracy=1e-2,
    )


def _posterior_curve(q: float, local_epsilon: float, alpha: FloatArray) -> FloatArray:
    """The curve for the extremal pure pair: (q (e0 - 1) - (alpha - 1))_+ / (e0 + 1)."""
    gain = q * math.expm1(local_epsilon) - (alpha - 1.0)
    return np.maximum(gain, 0.0) / (math.exp(local_epsilon) + 1.0)


def typical_averaged_posteriors(
    population: int, slots: int, local_epsilon: float, load_delta: float
) -> tuple[float, ...]:
    """Posteriors that hold for all loads, except with probability ``load_delta``; so many ``slots``.

    Of a `population` with reports of this `local_epsilon`. All loads lie in [low, high] but for load_delta (union bound
    over the slots, both tails); the posterior grows with the slot's own load and shrinks with the loads after it.
    """
    positive("local_epsilon", local_epsilon)
    count("population", population)
    count("slots", slots)
    if not 0.0 < load_delta < 1.0:
        raise InvalidParameter("load_delta", load_delta, "a number strictly between 0 and 1")
    tail = load_delta / (2.0 * slots)
    high = min(population, intervals.upper_quantile(tail, population, 1.0 / slots))
    while binomial.sf(high, population, 1.0 / slots) > tail:
        high += 1
    low = max(0, intervals.quantile(tail, population, 1.0 / slots))
    while low > 0 and binomial.cdf(low - 1, population, 1.0 / slots) > tail:
        low -= 1
    i = np.arange(1, slots + 1, dtype=np.float64)
    rest = float(population - high)
    after = np.minimum((slots - i) * low, rest)
    e = math.exp(-local_epsilon)
    return tuple((high / (high + e * e * (rest - after) + e * after)).tolist())
