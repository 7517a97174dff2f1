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
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpcheckin.accounting.curves import RoundCurve
from dpcheckin.accounting.local_pairs import LocalPair
from dpcheckin.accounting.rounds import SMALLEST_DELTA, Round, Seats, seats_curve
from dpcheckin.errors import InvalidParameter


@dataclass(frozen=True, slots=True)
class WindowRound(Round):
    """One window of random check-ins, fixed or sliding; minibatches are post-processing.

    >>> from dpcheckin.accounting import any_pure, compose
    >>> run = compose([(WindowRound(1000, any_pure(1.0)), 1)])
    >>> round(run.epsilon(1e-6).upper, 4)
    0.1487
    """

    slots: int
    pair: LocalPair
    check_in_probability: float = 1.0
    elapsed: int | None = None
    """Slots that have passed, for a window that is not over; None for all of them."""

    def __post_init__(self) -> None:
        if not self.slots >= 1:
            raise InvalidParameter("slots", self.slots, "at least 1")
        if not 0.0 < self.check_in_probability <= 1.0:
            raise InvalidParameter(
                "check_in_probability", self.check_in_probability, "above 0 and at most 1"
            )
        if self.elapsed is not None and not 1 <= self.elapsed <= self.slots:
            raise InvalidParameter("elapsed", self.elapsed, f"between 1 and {self.slots}")

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

    def assumptions(self) -> tuple[str, ...]:
        return (
            f"each client reports in at most one of {self.slots} slots, chosen by itself",
            "the slot a client chose stays secret, and so does the noise of the other reports",
            "an empty slot is filled with a randomized dummy",
        )

    def curve(self, smallest: float = SMALLEST_DELTA) -> RoundCurve:
        n, seen = self.population, self.elapsed or self.slots
        seats = [(1.0, Seats(seen, float(n - seen), float(n), 1.0, 0.0))]
        return seats_curve(self.pair, seats, seen / n, smallest)
