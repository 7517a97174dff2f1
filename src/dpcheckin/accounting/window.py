"""Random check-ins into a window, by the empty-seat argument turned round.

The proof is written out in docs/random-check-ins.md.

A client picks one of m slots (with probability p; else it stays away) and, if the slot accepts it,
its report stands in the place of the report that would stand there otherwise: another client's, or
the server's dummy.  Fix everybody else's choices.  Relative to the run without the client, the
density of the whole run is

    f_a = (1 - sum_i p w_i / m) + sum_i (p w_i / m) W_i,      W_i = dR_i(a)/dR_i(x_i) (y_i),

w_i the chance of being accepted in slot i.  R_i may depend on everything seen before.  Given the
past, Z_i = (R_i(a) - e^eps R_i(b))/R_i(x_i) is below Z* of the local profile in convex order, and
w_i < 1 only contracts it towards its mean, so by induction from the last slot backwards

    delta(eps) <= E[((1 - p)(1 - e^eps) + (p/m) sum of m independent Z*)+].

That is the theorem's bound for m reports among m/p clients: any local pair, Gaussian reports
included, any dimension, adaptive.  No empty seat is needed even for p = 1, because the reports that
are displaced belong to nobody else's seat.  Adjacency: replace one client's data; which slot a
client chose, and the others' noise, stay secret.

With enough other clients the w_i are small.  Slot i accepts one of those who chose it, evenly, so
w_i = 1/(1 + B_i) with B_i others in the slot; tell the adversary all B_i.  The bound falls in every
B_i, so it grows when the others are replaced by a Poisson number of clients that exceeds them only
with probability eta, and then the B_i are independent: each Z* - E Z* is multiplied by its own
random share.  eta is paid at the price of a run without protection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dpcheckin.accounting.curves import RoundCurve
from dpcheckin.accounting.lattice import WHOLE, Shares
from dpcheckin.accounting.local_pairs import LocalPair
from dpcheckin.accounting.rounds import SLOTS_ARE_KNOWN, SMALLEST_DELTA, Round
from dpcheckin.accounting.seating import Seats, seats_curve
from dpcheckin.errors import InvalidParameter

# where cells of a slot's load begin, in deviations from its mean: far down, because what lies below
# the first is counted as an empty slot, and there are many slots and windows
_CELLS = (-16.0, -13.0, -11.0, -9.5, -8.0, -7.0, *(0.5 * i - 6.0 for i in range(24)))


@dataclass(frozen=True, slots=True)
class WindowRound(Round):
    """One window of random check-ins, fixed or sliding; minibatches are post-processing.

    >>> from dpcheckin.accounting import any_pure, compose
    >>> run = compose([(WindowRound(1000, any_pure(1.0)), 1)])
    >>> round(run.epsilon(1e-6).upper, 4)
    0.1487
    >>> run = compose([(WindowRound(1000, any_pure(1.0), others=9_999), 1)])
    >>> run.epsilon(1e-6).upper < 0.03
    True
    """

    exposed: ClassVar[str] = SLOTS_ARE_KNOWN

    slots: int
    pair: LocalPair
    check_in_probability: float = 1.0
    elapsed: int | None = None
    """Slots that have passed, for a window that is not over; None for all of them."""
    others: int | None = None
    """Other clients who choose a slot of this very window likewise; None to rely on nobody."""

    def __post_init__(self) -> None:
        if not self.slots >= 1:
            raise InvalidParameter("slots", self.slots, "at least 1")
        if not 0.0 < self.check_in_probability <= 1.0:
            raise InvalidParameter(
                "check_in_probability", self.check_in_probability, "above 0 and at most 1"
            )
        if self.elapsed is not None and not 1 <= self.elapsed <= self.slots:
            raise InvalidParameter("elapsed", self.elapsed, f"between 1 and {self.slots}")
        if self.others is not None and not self.others >= 0:
            raise InvalidParameter("others", self.others, "at least 0")

    @property
    def population(self) -> int:  # type: ignore[override]
        """The number of clients of the equivalent subsample, rounded down (safe)."""
        return math.floor(self.slots / self.check_in_probability)

    @property
    def honest(self) -> int:
        return self.population

    @property
    def participation(self) -> float:
        return self.check_in_probability

    @property
    def standing(self) -> float:
        """Probability that a client's report stands in some slot: p E 1/(1 + others in it)."""
        clients, rate = 1 + (self.others or 0), self.check_in_probability / self.slots
        filled = -math.expm1(clients * math.log1p(-rate)) if rate < 1.0 else 1.0
        return min(filled * self.slots / clients, self.check_in_probability)

    @property
    def standing_so_far(self) -> float:
        """The same for the slots that have passed. Whether a report stands does not depend on what
        it says, and a run in which it does not is the same for all data."""
        return self.standing * (self.elapsed or self.slots) / self.slots

    def assumptions(self) -> tuple[str, ...]:
        said = [
            f"each client reports in at most one of {self.slots} slots, chosen by itself",
            "the slot a client chose stays secret, and so does the noise of the other reports",
            "an empty slot is filled with a randomized dummy",
        ]
        if self.others:
            said.append(
                f"at least {self.others} other honest clients choose a slot of the same window, "
                "and each slot takes one of those who chose it, evenly"
            )
        return tuple(said)

    def curve(self, smallest: float = SMALLEST_DELTA) -> RoundCurve:
        seats, unlucky = self.seats(smallest)
        return seats_curve(self.pair, seats, self.standing_so_far, smallest, unlucky)

    def seats(self, smallest: float) -> tuple[list[tuple[float, Seats]], float]:
        """The seats of the theorem, and the probability that there are fewer others than that."""
        n, seen = self.population, self.elapsed or self.slots
        shares, unlucky = WHOLE, 0.0
        if self.others:
            unlucky = smallest
            per_client = self.check_in_probability / self.slots
            shares = _shares(surely_below(self.others, unlucky) * per_client)
        seats = Seats(seen, float(n - seen), float(n), 1.0, 0.0, shares=shares)
        return [(1.0, seats)], unlucky


def surely_below(count: int, chance: float) -> float:
    """The mean of a Poisson variable that exceeds `count` with at most this probability."""
    above = count + 1.0
    low, high = 0.0, above
    for _ in range(60):
        mean = 0.5 * (low + high)
        # Chernoff: P(N >= a) <= exp(-(a log(a / mean) - a + mean))
        exponent = above * math.log(above / mean) - above + mean
        low, high = (mean, high) if exponent >= -math.log(chance) else (low, mean)
    return low


def _shares(load: float) -> Shares:
    """1/(1 + B) for Poisson B with this mean; crowded slots are counted as less crowded."""
    if load == 0.0:
        return WHOLE
    deviation = math.sqrt(load)
    edges = [max(0.0, load + deviation * cell) for cell in _CELLS]
    starts = sorted({0, *(int(x) for x in edges)})
    shares, left = [], 1.0
    for first, after in zip(starts, [*starts[1:], None], strict=True):
        mass = left if after is None else _poisson_between(load, first, after)
        shares.append((1.0 / (1.0 + first), mass))
        left = max(left - mass, 0.0)
    total = math.fsum(p for _, p in shares)
    return tuple((w, p / total) for w, p in shares)


def _poisson_between(mean: float, first: int, after: int) -> float:
    from scipy.special import pdtr

    return float(pdtr(after - 1, mean) - (pdtr(first - 1, mean) if first else 0.0))
