"""What a round hands to an engine: how many seats, who sits there, and what a report gives away.

The empty-seat theorem (docs/theory.md) gives every other client a seat. A seat is taken by a report
with probability `participation`, is empty with probability `absent`, and otherwise the adversary
has been told of an absence. Data only: the engines are in `three_atoms` and `lattice_curve`, and a
local pair knows which of them fits it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from dpcheckin.accounting.engine.arrays import Array

Profile = Callable[[Array], Array]
# chances that a report stands in its place, with their probabilities
Shares = tuple[tuple[float, float], ...]
WHOLE: Shares = ((1.0, 1.0),)


class Law(Protocol):
    """What an engine needs to know of a report: its likelihood ratio W = dP/dQ under Q."""

    @property
    def local_epsilon(self) -> float:
        """Logarithm of the largest finite ratio; may be infinite."""

    @property
    def local_delta(self) -> float:
        """Mass of P where Q has none."""

    @property
    def second_moment(self) -> float:
        """E[(W - 1)+^2]; guides the choice of grids only."""

    def profile(self, alpha: Array) -> Array:
        """E(W - alpha)+ for alpha >= 0, local_delta included."""

    @property
    def directions(self) -> tuple[RealPair, ...]:
        """Pairs of laws at most as revealing, for lower bounds."""

    def simplified(self, local_delta: float) -> ThreeAtomLaw:
        """A law of at most three ratios, nowhere more private but for `local_delta`."""


class ThreeAtomLaw(Law, Protocol):
    """A report with at most three ratios: e^local_epsilon, 1 and e^-local_epsilon."""

    @property
    def hit(self) -> float:
        """Mass of Q at the largest ratio."""

    @property
    def rest(self) -> float:
        """Probability that a report says nothing about two other inputs (mass of Z* at zero)."""

    @property
    def rest_weight(self) -> float:
        """What such a report weighs beside an empty seat: 0 in the theorem."""


@dataclass(frozen=True, slots=True, eq=False)
class RealPair:
    """One direction of a pair of laws: the law of W = dP/dQ under Q, with mean one.

    A profile that takes the larger of both directions belongs to no pair of laws; lower bounds
    need one that does.

    Args:
        above: E(W - alpha)+ for alpha >= 1.
        below: E(alpha - W)+ for alpha < 1.
        largest_ratio: W never exceeds this; may be infinite.
        smallest_ratio: W is never less.
        second_moment: E[(W - 1)+^2]; guides the choice of grids only.
        atoms: The ratios and their masses under Q, if they are finitely many.
        tails: P(W > w) under Q and under P, where W is continuous and that is known.
    """

    above: Profile
    below: Profile
    largest_ratio: float
    smallest_ratio: float
    second_moment: float
    atoms: tuple[Array, Array] | None = None
    tails: Callable[[float], tuple[float, float]] | None = None


L_co = TypeVar("L_co", bound=Law, covariant=True)


@dataclass(frozen=True, slots=True)
class Seats(Generic[L_co]):
    """So many seats of one law, and perhaps so many of others.

    Args:
        count: Seats that reports of `law` may take.
        law: What a report gives away.
        empty: Further seats that are surely empty.
        population: What the sum over all seats is divided by.
        participation: Probability that a seat is taken.
        absent: Probability that it is empty; what is left, the adversary is told of an absence.
        revealed: That probability, given as such to keep its digits.
        shares: Chances that a report stands in its place, with their probabilities.
        more: Seats of further laws, as (count, law).
    """

    count: int
    law: L_co
    empty: float
    population: float
    participation: float = 1.0
    absent: float = 0.0
    revealed: float = 0.0
    shares: Shares = WHOLE
    more: tuple[tuple[int, L_co], ...] = ()


# a round as a mixture: (probability, its seats)
Mixture = Sequence[tuple[float, Seats[L_co]]]
