"""Local pairs of the randomizers that count: subset selection, unary encoding, Hadamard response.

All of them have three likelihood ratios between any two inputs, so they differ only in how often a report tells the two
inputs apart. docs/theory.md, section 2, has the table and what is proved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpcheckin.accounting.engine.loss import Atoms
from dpcheckin.accounting.engine.lower.preference_sums import FEW_SEATS, PreferenceLaw, preference_atoms
from dpcheckin.accounting.engine.seats import Seats
from dpcheckin.accounting.pairs.local import ThreeAtoms, two_atoms
from dpcheckin.accounting.pairs.pure_types import Family, OthersData
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import count, local_epsilon_in_range, open_probability


def binary_response(local_epsilon: float) -> ThreeAtoms:
    """Warner's binary randomized response."""
    return two_atoms("binary response", "binary", local_epsilon, Family.TWO_VALUES)


def hemisphere(local_epsilon: float) -> ThreeAtoms:
    """LDP-SGD: a random vector of the hemisphere of the (randomly signed) direction."""
    return two_atoms("hemisphere (LDP-SGD)", "hemisphere", local_epsilon, Family.TWO_VALUES)


def dary_response(local_epsilon: float, symbols: int) -> ThreeAtoms:
    """k-ary response of `local_epsilon`, k `symbols`: the truth with probability e^epsilon / (e^epsilon + k - 1)."""
    epsilon, k = local_epsilon_in_range(local_epsilon), count("symbols", symbols, 2)
    if k == 2:
        return two_atoms("2-ary response", "binary", epsilon, Family.TWO_VALUES)
    weight, others = math.exp(epsilon) + k - 1, OthersData.THIRD_VALUE
    hit, neutral = 1 / weight, (k - 2) / weight
    described = ("kind", "dary"), ("local_epsilon", epsilon), ("values", k)
    name, family = f"{k}-ary response", Family.SYMBOLS
    return ThreeAtoms(name, epsilon, hit, neutral, True, 0.0, others, family, shared=k / weight, described=described)


@dataclass(frozen=True)
class SetPair(ThreeAtoms):
    """The pair of two symbols of sets, where a third client's report may support one of them or both."""

    def at_third_value(self) -> SetPair | None:
        return self if self._third_is_worse else None

    def at_one_of_two(self, seats: Seats) -> SetPair | None:
        """As in the base, in these `seats`; of few clients both are tried."""
        if self._third_is_worse and seats.count > FEW_SEATS:
            return None
        return replace(self, others_data=OthersData.ONE_OF_TWO)

    @property
    def _third_is_worse(self) -> bool:
        """A third value's reports vary more where most of them support one of the three alone."""
        return self.others_data is OthersData.MERGED_THIRD and 2.0 * self.laws.third > self.hit

    def bad_views(self, seats: Seats) -> tuple[Atoms, ...]:
        """Others at a third value, and beside what is merged what reports that support two symbols lean."""
        merged = super().bad_views(seats)
        if not merged or seats.count <= FEW_SEATS:
            return merged
        one, two = self.laws.third, self.hit - self.laws.third
        leaning = PreferenceLaw(self.local_epsilon, one, two * math.exp(self.local_epsilon))
        return preference_atoms(seats, leaning), *merged


def _three_atoms(
    name: str, epsilon: float, hit: float, shared: float, third: float | None, *described: tuple[str, Any]
) -> ThreeAtoms:
    """The pair of symbols with these masses of `Symbols`, and its lowest density; no `third` of two symbols."""
    neutral = max(1.0 - (math.exp(epsilon) + 1.0) * hit, 0.0)
    others, family = OthersData.MERGED_THIRD, Family.SETS
    if third is None:
        others, family = OthersData.ONE_OF_TWO, Family.TWO_VALUES
    elif third == hit:  # nothing has to be merged, and of that third value the worst law has the variance
        others, family, third = OthersData.THIRD_VALUE, Family.OTHER, None
    kind = SetPair if family is Family.SETS else ThreeAtoms
    return kind(name, epsilon, hit, neutral, False, 0.0, others, family, third, shared, described)


def subset_selection(local_epsilon: float, symbols: int, chosen: int) -> ThreeAtoms:
    """A set of `chosen` symbols, e^epsilon times as likely if the true one is among them.

    Reports that contain both symbols in question, or neither, do not tell them apart. With one symbol chosen it is
    k-ary response.

    Args:
        local_epsilon: Epsilon of one report.
        symbols: How many there are, 2 or more.
        chosen: Symbols of a report, from 1 to symbols - 1.

    >>> pair = subset_selection(1.0, 10, 3)
    >>> pair.hit < dary_response(1.0, 10).hit * 3
    True
    """
    epsilon, d = local_epsilon_in_range(local_epsilon), count("symbols", symbols, 2)
    w = count("chosen", chosen, 1, d - 1)
    if w == 1:
        return dary_response(epsilon, d)
    # one report is likelier than another by e^epsilon; a base report has 1 / total of w * C(d-1, w)
    total = w * math.exp(epsilon) + d - w
    hit = w * (d - w) / ((d - 1) * total)
    return _three_atoms(
        f"subsets of {w} of {d}",
        epsilon,
        hit,
        d / total,
        hit * (d - w - 1) / (d - 2),
        *(("kind", "subset"), ("local_epsilon", epsilon), ("values", d), ("size", w)),
    )


def unary_encoding(local_epsilon: float, symbols: int, truth: float = 0.5) -> ThreeAtoms:
    """One bit a symbol: the true one set with probability `truth`, the others far less often.

    Only the bits of the two symbols in question differ in law, so their number does not matter.

    Args:
        local_epsilon: Epsilon of one report.
        symbols: How many there are, 2 or more.
        truth: Probability that the bit of the true symbol is set.
    """
    epsilon, d = local_epsilon_in_range(local_epsilon), count("symbols", symbols, 2)
    p = open_probability("truth", truth)
    q = p / (p + math.exp(epsilon) * (1.0 - p))
    third = q * (1.0 - p) * (1.0 - q) if d > 2 else None
    return _three_atoms(
        f"unary encoding of {d}",
        epsilon,
        q * (1.0 - p),
        (1.0 - p) / (1.0 - q),
        third,
        *(("kind", "unary"), ("p", p), ("q", q)),
    )


def hadamard_response(local_epsilon: float, symbols: int) -> ThreeAtoms:
    """A column of a Hadamard matrix, likelier where the row of the true symbol is positive.

    Two rows differ in half of the columns, so half of all reports say nothing about the two. Of three symbols one has
    the product of the others' rows, and supports whatever supports both of them or neither.

    Args:
        local_epsilon: Epsilon of one report.
        symbols: How many there are, 2 or more.
    """
    epsilon, d = local_epsilon_in_range(local_epsilon), count("symbols", symbols, 2)
    hit = 0.5 / (math.exp(epsilon) + 1)
    return _three_atoms(
        f"Hadamard response of {d}",
        epsilon,
        hit,
        4.0 * hit,
        hit if d > 2 else None,
        *(("kind", "hadamard"), ("local_epsilon", epsilon)),
    )


def mixed(pairs: Sequence[ThreeAtoms], name: str) -> ThreeAtoms:
    """A report that first draws, by an open and fair coin, in which of these ways it is made.

    The coin is seen and does not depend on the input, so the masses of the ratios are averaged.

    Args:
        pairs: Of the ways, all of one local epsilon and without delta.
        name: For sentences and tables.
    """
    if not pairs or len({pair.local_epsilon for pair in pairs}) > 1:
        raise InvalidParameter("pairs", len(pairs), "pairs of one and the same local epsilon")
    if len(pairs) == 1:
        return pairs[0]
    hit = math.fsum(pair.hit for pair in pairs) / len(pairs)
    # each way with as many draws from its own G as make the same density everywhere
    shared = math.fsum(pair.shared for pair in pairs) / len(pairs)
    made = _three_atoms(name, pairs[0].local_epsilon, hit, shared, None)
    proved = all(pair.full_shuffle_proved for pair in pairs)
    return replace(made, full_shuffle_proved=proved, family=Family.OTHER)
