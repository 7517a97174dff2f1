"""What a round hands to an engine: how many seats, who sits there, and what a report gives away.

The empty-seat theorem (docs/theory.md) gives every other client a seat. A seat is taken by a report with probability
`participation`, is empty with probability `absent`, and otherwise the adversary has been told of an absence. A local
pair knows which engine fits it, `three_atoms` or `lattice_curve`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

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


@dataclass(frozen=True, slots=True)
class Hits:
    """Reports with at most three ratios: a hit for either of two inputs, something of less weight, or neither.

    `local_epsilon`: logarithm of the ratio of a hit. `hit`: probability, under an input that is neither of the two, of
    a hit for one of them. `rest`: probability of a report that says nothing about the two (mass of Z* at zero), or less
    likely under both. `rest_weight`: what such a report weighs beside an empty seat: 0 in the theorem.
    """

    local_epsilon: float
    hit: float
    rest: float
    rest_weight: float = 0.0


class ThreeAtomLaw(Law, Protocol):
    """A report with at most three ratios: e^local_epsilon, 1 and e^-local_epsilon."""

    @property
    def hits(self) -> Hits:
        """Their masses."""


@dataclass(frozen=True, slots=True, eq=False)
class RealPair:
    """One direction of a pair of laws: the law of W = dP/dQ under Q, with mean one.

    A profile that takes the larger of both directions belongs to no pair of laws; lower bounds need one that does.

    `above`: E(W - alpha)+ for alpha >= 1. `below`: E(alpha - W)+ for alpha < 1. `largest_ratio`: W never exceeds this;
    may be infinite. `smallest_ratio`: W is never less. `second_moment`: E[(W - 1)+^2]; guides the choice of grids only.
    `atoms`: the ratios and their masses under Q, if they are finitely many. `tails`: P(W > w) under Q and under P,
    where W is continuous and that is known.
    """

    above: Profile
    below: Profile
    largest_ratio: float
    smallest_ratio: float
    second_moment: float
    atoms: tuple[Array, Array] | None = None
    tails: Callable[[float], tuple[float, float]] | None = None


@dataclass(frozen=True, slots=True)
class Seats:
    """So many seats of one law."""

    count: int  # seats that reports of `law` may take
    law: Law  # what a report gives away
    empty: float  # further seats that are surely empty
    population: float  # what the sum over all seats is divided by
    participation: float = 1.0  # probability that a seat is taken
    absent: float = 0.0  # probability that it is empty; what is left, the adversary is told of an absence
    revealed: float = 0.0  # that probability, given as such to keep its digits
    shares: Shares = WHOLE  # chances that a report stands in its place, with their probabilities


# a round as a mixture: (probability, its seats)
Mixture = Sequence[tuple[float, Seats]]
