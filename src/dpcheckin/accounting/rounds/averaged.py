"""Averaged windows of random check-ins: all who picked a slot are averaged, and their number is seen.

Given the loads the reports are a sequence in random order, each made when the earlier ones are known: a full shuffle
but for that, in which draws that say nothing stand for clients that stay away (docs/random-check-ins.md). Loads do not
enter, nor does bad luck with them. An adversary may choose what comes next by what was seen, so that one law has to
stand in for all reports.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from dpcheckin.accounting.engine.curves import Curve
from dpcheckin.accounting.engine.seats import Mixture, Seats
from dpcheckin.accounting.pairs.local import LocalPair
from dpcheckin.accounting.pairs.marking import Crowds
from dpcheckin.accounting.rounds.base import EMPTY_SEAT, SMALLEST_DELTA, TAIL_SHARE, Round, local_pair, seen_curve
from dpcheckin.accounting.rounds.windows import AVERAGED_ASSUMPTIONS
from dpcheckin.accounting.statements import SLOTS_ARE_KNOWN
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import keep_count


@dataclass(frozen=True, slots=True)
class AveragedRound(Round):
    """One averaged window.

    Args:
        population: Clients, each of which picks a slot.
        slots: Of the window.
        pair: What a report gives away.
        elapsed: Slots that have passed; None for all of them.
        counted: Do the loads and the averages tell how many reports were which? Only then a lower bound is known.
    """

    exposed_when: ClassVar[str] = SLOTS_ARE_KNOWN

    population: int
    slots: int
    pair: LocalPair
    elapsed: int | None = None
    counted: bool = False

    def __post_init__(self) -> None:
        local_pair("pair", self.pair)
        keep_count(self, "population")
        keep_count(self, "slots")
        if self.elapsed is not None and not 1 <= self.elapsed <= self.slots:
            raise InvalidParameter("elapsed", self.elapsed, f"between 1 and {self.slots:,}")

    @property
    def participation(self) -> float:
        return (self.elapsed or self.slots) / self.slots

    def assumptions(self) -> tuple[str, ...]:
        return AVERAGED_ASSUMPTIONS

    def basis(self) -> tuple[str, ...]:
        return (EMPTY_SEAT + ", for a sequence in random order (docs/random-check-ins.md)",)

    def simpler(self, local_delta: float) -> AveragedRound:
        return replace(self, pair=self.pair.simplified(local_delta))

    def curves(self, smallest: float = SMALLEST_DELTA) -> list[tuple[Curve, int]]:
        n, rate = self.population, self.participation
        if n == 1:
            return [(seen_curve(self.pair, rate), 1)]
        full: Mixture = [(1.0, Seats(n, self.pair, 0.0, float(n), rate, 1.0 - rate))]
        crowds = Crowds(self.pair, [(1.0, n)], rate, full, steered=True)
        return [(crowds.curve(min(smallest / TAIL_SHARE, 0.1), smallest, None, enough=False), 1)]

    def lower_seats(self, pair: LocalPair) -> Seats | None:
        if not self.counted:
            return None
        rate = self.participation
        return Seats(self.population, pair, 0.0, float(self.population), rate, 1.0 - rate)
