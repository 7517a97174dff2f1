"""What every round of every protocol is to accounting, and the round that nothing hides.

Rounds in the words of the field are in `shuffled`, `windows` and `sums`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from dpcheckin import numerals
from dpcheckin.accounting.engine.curves import Curve, Unshuffled
from dpcheckin.accounting.engine.sampling import FunctionCurve
from dpcheckin.accounting.engine.seats import Mixture, Seats
from dpcheckin.accounting.engine.seen import LocalCurve, no_loss
from dpcheckin.accounting.pairs.local import LocalPair
from dpcheckin.accounting.statements import SHUFFLER_COLLUDES, Adjacency, Bracket, LocalGuarantee
from dpcheckin.errors import InvalidParameter

MOST_ROUNDS = 10**9
SMALLEST_DELTA = 1e-30
# Part of delta that may be spent on tails that are cut off instead of computed.
TAIL_SHARE = 1e-4
EVERY = " in every round"  # the end of an assumption about each of them
EMPTY_SEAT = "empty-seat theorem (docs/theory.md)"


def local_pair(name: str, value: object) -> LocalPair:
    """The `value` of the parameter `name` if it is a local pair; a number is a frequent mistake and gets a hint."""
    if isinstance(value, LocalPair):
        return value
    example = value if isinstance(value, int | float) and not isinstance(value, bool) else 2.0
    raise InvalidParameter(name, value, f"what one report gives away: any_pure({example!r}), gaussian(2.0), ...")


def seen_curve(pair: LocalPair, rate: float) -> Curve:
    """The curve of a round in which it is seen who reported: of a `pair`, at this `rate`."""
    if rate == 0.0:
        return no_loss()
    local = Unshuffled(pair.profile, 0.0, rate, pair.local_delta)
    real = pair.directions[0] if len(pair.directions) > 1 else None
    return LocalCurve(local, pair.local_epsilon, real, pair.three_atoms)


class RenyiSide(Protocol):
    """Equal rounds composed by their Rényi curve."""

    def epsilon(self, rounds: int, delta: float) -> Bracket:
        """Epsilon of so many rounds at this delta."""

    def local(self, rounds: int, delta: float) -> LocalGuarantee:
        """What is left of so many `rounds` at `delta` when each client's reports are seen one by one."""


class Round(ABC):
    """A round of any protocol: who takes part, what is revealed, what it rests on."""

    pair: LocalPair | None  # None where a trusted server stands in the middle
    adjacency: ClassVar[Adjacency] = Adjacency.REPLACE_ONE
    exposed_when: ClassVar[str] = SHUFFLER_COLLUDES
    """In which case nothing but the noise of each report protects a client."""
    is_function: ClassVar[bool] = False
    """Are its curves functions that cost next to nothing?"""
    reserved: float = 0.0
    """Part of delta that every such round needs for bad luck."""
    renyi: RenyiSide | None = None
    """Its Rényi curve, where equal rounds are composed by that."""

    @abstractmethod
    def curves(self, smallest: float = SMALLEST_DELTA) -> Sequence[tuple[Curve, int]]:
        """The round's steps as curves with counts, good for deltas down to `smallest`."""

    @property
    @abstractmethod
    def participation(self) -> float:
        """Probability that a given client reports in this round."""

    @property
    def exposed_participation(self) -> float:
        """The same when the party in the middle works for the analyzer: a coin of one's own stays
        as it is, a draw made by that party can fall on anybody it likes."""
        return self.participation

    @property
    def largest_loss(self) -> float:
        """A loss that the round never exceeds: that of one report."""
        return math.inf if self.pair is None else self.pair.largest_loss

    @abstractmethod
    def assumptions(self) -> tuple[str, ...]:
        """What must hold for the curve to be a guarantee."""

    @abstractmethod
    def basis(self) -> tuple[str, ...]:
        """The theorems that the curve rests on."""

    def lower_seats(self, pair: LocalPair) -> Seats | None:
        """Seats of the honest case without dropouts, which the assumptions allow, taken by reports of this pair.

        None for rounds of a kind whose bad data are not known.
        """
        return None

    def lower_parts(self, pair: LocalPair) -> Mixture:
        """A mixture of seats of this `pair`, in which no more is lost than by some data that the assumptions allow."""
        seats = self.lower_seats(pair)
        return [] if seats is None else [(1.0, seats)]

    def bad_sum(self, smallest: float) -> FunctionCurve | None:
        """Where only a sum is seen: everybody else on one end of the ball, for deltas down to `smallest`."""
        return None

    def simpler(self, local_delta: float) -> Round:
        """A round nowhere more private but for `local_delta`, quicker to account for."""
        return self


Run = Sequence[tuple[Round, int]]
Rounds = Round | tuple[Round, int] | Run


def as_run(rounds: object) -> tuple[tuple[Round, int], ...]:
    """Rounds and how often each takes place, from all that may stand for it.

    `rounds`: a round, which takes place once; a round and a count; or several of these.

    >>> from dpcheckin.accounting import CheckInRound, any_pure
    >>> one = CheckInRound(10_000, 0.01, any_pure(2.0))
    >>> as_run(one) == as_run((one, 1)) == as_run([one]) == as_run([(one, 1)])
    True
    """
    allowed = "a round, a round and a count, or several of them: [(round, 100)]"
    if isinstance(rounds, Round):
        return ((rounds, 1),)
    if not isinstance(rounds, Sequence) or isinstance(rounds, str):
        raise InvalidParameter("rounds", rounds, allowed)
    if not rounds:
        raise InvalidParameter("rounds", [], "at least one round")
    first, *others = rounds
    if isinstance(first, Round) and len(others) == 1 and not isinstance(others[0], Round | Sequence):
        rounds = [rounds]  # a round and a count
    merged: dict[Round, int] = {}
    for item in rounds:
        one, repeats = item if isinstance(item, Sequence) and len(item) == 2 else (item, 1)
        if not isinstance(one, Round):
            raise InvalidParameter("rounds", item, allowed)
        repeats = numerals.count("rounds", repeats, 0, MOST_ROUNDS)
        merged[one] = merged.get(one, 0) + repeats
    return tuple(merged.items())


@dataclass(frozen=True, slots=True)
class LocalRound(Round):
    """A round in which it is seen who reported what: the shuffler colludes, or there is none.

    Args:
        pair: What a report gives away.
        rate: Probability that the client reports.
    """

    pair: LocalPair
    rate: float = 1.0

    def __post_init__(self) -> None:
        local_pair("pair", self.pair)
        numerals.probability("rate", self.rate)

    @property
    def participation(self) -> float:
        return self.rate

    def assumptions(self) -> tuple[str, ...]:
        return ("every client randomizes its own reports",)

    def basis(self) -> tuple[str, ...]:
        return ("composition of the local randomizer alone",)

    def curves(self, smallest: float = SMALLEST_DELTA) -> list[tuple[Curve, int]]:
        return [(seen_curve(self.pair, self.rate), 1)]

    def lower_seats(self, pair: LocalPair) -> Seats:
        return Seats(1, pair, 0.0, 1.0, self.rate, 1 - self.rate)
