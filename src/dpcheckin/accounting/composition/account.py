"""Rounds composed: from one-round curves to a certified epsilon, delta or whole profile.

One composition serves every protocol: what a round reveals reaches it as curves, wherever they come from, and rounds of
different kinds compose. Questions share what they can, a discretisation or a transform, and agree to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar, overload

import numpy as np

from dpcheckin.accounting.composition.gate import loud_arithmetic, passed
from dpcheckin.accounting.composition.preview import other_bounds
from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.engine.compose import WindowTooLong, repeated
from dpcheckin.accounting.engine.compose import compose as composed
from dpcheckin.accounting.engine.curves import FINE, Accuracy, Curves, Grids, crossing
from dpcheckin.accounting.engine.loss import Tail
from dpcheckin.accounting.engine.sampling import FunctionCurve, refined
from dpcheckin.accounting.figures import Brackets, Profile
from dpcheckin.accounting.rounds.base import MOST_ROUNDS, SMALLEST_DELTA, TAIL_SHARE, LocalRound, Round, Rounds, as_run
from dpcheckin.accounting.statements import Adjacency, Bracket
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.numerals import count, non_negative, open_probability

KEPT_CURVES = 4  # how many are remembered; curves can be large
# deltas so many decades apart may share a grid, or a transform: that moves an epsilon by less than a millionth
DECADES_OF_A_GRID, DECADES_OF_A_TILT = 6.0, 4.0
PLACES = 2_000  # of a whole profile

N = TypeVar("N", int, float)


def compose(rounds: Rounds) -> Composition:
    """The composition of rounds, given as (round, how many times) pairs, in any order, adaptively.

    >>> from dpcheckin.accounting import CheckInRound, any_pure
    >>> run = compose([(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)])
    >>> round(run.epsilon(1e-4).upper, 4)
    0.0695
    """
    return Composition(rounds)


class Composition:
    """Answers questions about a sequence of rounds, and remembers its answers.

    Args:
        rounds: Rounds and how often each takes place; a round alone takes place once.
        accuracy: How fine and how long grids may be; a coarser one only raises figures.
        swapped: Are the two datasets in the other order?
    """

    def __init__(self, rounds: Rounds, accuracy: Accuracy = FINE, *, swapped: bool = False) -> None:
        self.rounds = tuple((one, repeats) for one, repeats in as_run(rounds) if repeats)
        self.total = sum(repeats for _, repeats in self.rounds)
        kinds = {one.adjacency for one, _ in self.rounds} or {Adjacency.REPLACE_ONE}
        if len(kinds) > 1:
            named = " and ".join(sorted(kind.value for kind in kinds))
            raise InvalidParameter("rounds", named, "rounds with one and the same adjacency")
        self.adjacency = kinds.pop()
        # what local privacy alone gives: the sum of local epsilons, if there is no delta
        self._most = math.fsum(n * one.largest_loss for one, n in self.rounds)
        self._reserved = math.fsum(n * one.reserved for one, n in self.rounds)
        self._accuracy, self._swapped = accuracy, swapped
        self._answers: dict[float, Bracket] = {}
        self._kept: dict[float, Curves] = {}
        self._grids: dict[int, tuple[Grids, float]] = {}  # and how much wider their steps are than a first guess

    @overload
    def epsilon(self, delta: float) -> Bracket: ...
    @overload
    def epsilon(self, delta: Sequence[float] | FloatArray) -> Brackets: ...
    @loud_arithmetic()
    def epsilon(self, delta: float | Sequence[float] | FloatArray) -> Bracket | Brackets:
        """Smallest epsilon for this delta, or for many of them, between certified bounds (upper may be infinite)."""
        deltas = np.asarray(delta if np.ndim(delta) else [open_probability("delta", delta)])
        asked = [open_probability("delta", value) for value in deltas.ravel().tolist()]
        new = [d for d in dict.fromkeys(asked) if d not in self._answers]
        possible = {d: d - self._reserved for d in new if d > self._reserved}
        answers = dict(zip(possible, self._epsilons(list(possible.values())), strict=True))
        self._answers.update({d: answers.get(d, Bracket(0.0, math.inf)) for d in new})
        for d in asked:
            passed(self._answers[d].upper, self.rounds, d)
        found = [self._answers[d] for d in asked]
        return Brackets.of(found, deltas.shape) if np.ndim(delta) else found[0]

    def _epsilons(self, deltas: Sequence[float]) -> list[Bracket]:
        """Brackets at these deltas, from which what rounds reserve was taken off."""
        if not self.rounds:
            return [Bracket(0.0, 0.0) for _ in deltas]
        one, repeats = self.rounds[0]
        if len(self.rounds) == 1 and one.renyi is not None:
            return [one.renyi.epsilon(repeats, delta) for delta in deltas]
        if all(one.is_function for one, _ in self.rounds):
            return [self._refined(delta) for delta in deltas]
        found = [self._single(delta) for delta in deltas] if self.total == 1 else self._composed(deltas)
        if len(self.rounds) > 1:
            return found
        return [better(bracket, one, repeats, delta) for bracket, delta in zip(found, deltas, strict=True)]

    @loud_arithmetic()
    def upper(self, delta: float) -> float:
        """The upper end of `epsilon` alone, which is there sooner; for rounds that have one curve each."""
        tail = None if self.total == 1 else self._tail("above", delta, delta=delta)
        found = self._single(delta).upper if tail is None else tail.epsilon(delta, upper=True)
        whole = Bracket(0.0, min(found, self._most))
        whole = better(whole, *self.rounds[0], delta) if len(self.rounds) == 1 else whole
        return passed(whole.upper, self.rounds, delta)

    def _composed(self, deltas: Sequence[float]) -> list[Bracket]:
        """Neighbours share discretisation and transform."""
        found: dict[float, Bracket] = {}
        for alike in _spans(deltas, 10.0**DECADES_OF_A_GRID):
            for near in _spans(alike, 10.0**DECADES_OF_A_TILT):
                middle = near[0] if len(near) == 1 else math.sqrt(near[0] * near[-1])
                above, below = (self._tail(side, alike[0], delta=middle) for side in ("above", "below"))
                for delta in near:
                    ends = below.epsilon(delta, upper=False), above.epsilon(delta, upper=True)
                    found[delta] = Bracket.of(min(ends[0], self._most), min(ends[1], self._most))
        return [found[delta] for delta in deltas]

    def _single(self, delta: float) -> Bracket:
        """One round needs no grid."""
        smallest = TAIL_SHARE * 10.0 ** math.floor(math.log10(delta))
        curve = self._curves(smallest)[0][0]
        lower = crossing(curve.lower_at, delta, self._most, up=False)
        upper = crossing(curve.upper_at, delta, self._most, up=True)
        return Bracket(min(lower, upper), upper)

    def _refined(self, delta: float) -> Bracket:
        """For curves given as functions, on a grid refined until the bracket is narrow."""
        curves = [(c, n) for c, n in self._curves(delta / self.total) if isinstance(c, FunctionCurve)]
        lower, upper = refined(curves, delta)
        return Bracket(min(lower, self._most), min(upper, self._most))

    @overload
    def delta(self, epsilon: float) -> Bracket: ...
    @overload
    def delta(self, epsilon: Sequence[float] | FloatArray) -> Brackets: ...
    @loud_arithmetic()
    def delta(self, epsilon: float | Sequence[float] | FloatArray) -> Bracket | Brackets:
        """delta for this epsilon, 0 or more, or for many of them, between certified bounds."""
        if np.ndim(epsilon):
            epsilons = np.asarray(epsilon)
            found = [self.delta(value) for value in epsilons.ravel().tolist()]
            return Brackets.of(found, epsilons.shape)
        epsilon = non_negative("epsilon", epsilon)
        delta = self._delta(epsilon)
        upper = min(delta.upper + self._reserved, 1.0)
        passed(epsilon, self.rounds, upper)
        return Bracket(delta.lower, upper)

    def _delta(self, epsilon: float) -> Bracket:
        curves = self._curves(SMALLEST_DELTA) if epsilon < self._most else []
        if not curves:
            return Bracket(0.0, 0.0)
        if sum(n for _, n in curves) == 1:
            curve = curves[0][0]
            lower = max(curve.lower_at(epsilon), curve.swapped().lower_at(epsilon))
            upper = max(curve.upper_at(epsilon), curve.swapped().upper_at(epsilon))
            return Bracket(lower, max(upper, lower))
        found = [side._composed_delta(epsilon) for side in self._orders()]
        return Bracket(max(one.lower for one in found), max(one.upper for one in found))

    def _composed_delta(self, epsilon: float) -> Bracket:
        magnitude = 1e-9
        for _ in range(12):
            upper = self._tail("above", magnitude, epsilon=epsilon).delta(epsilon, upper=True)
            # the tails cut off must not be what the answer consists of
            if upper >= magnitude or magnitude <= 1e-30:
                break
            magnitude = max(upper * 0.1, magnitude * 1e-4, 1e-30)
        lower = self._tail("below", magnitude, epsilon=epsilon).delta(epsilon, upper=False)
        return Bracket(lower, upper)

    def _orders(self) -> list[Composition]:
        """The two datasets as they are and, where that is another question, swapped."""
        if all(curve.symmetric for curve, _ in self._curves(SMALLEST_DELTA)):
            return [self]
        return [self, Composition(self.rounds, self._accuracy, swapped=not self._swapped)]

    @loud_arithmetic()
    def profile(self, smallest: float = 1e-12) -> Profile:
        """delta(epsilon) as certified upper bounds, from epsilon = 0 to where it is `smallest`.

        The larger of both orders of the two datasets; between the places it is at most linear in exp(epsilon).
        """
        if not self.rounds:
            return Profile(np.array([0.0, 1.0]), np.zeros(2))
        if any(one.renyi is not None for one, _ in self.rounds):
            why = "these rounds are composed by their Rényi curves, one delta at a time: they have no whole profile"
            raise OutsideTheorem(why)
        smallest = open_probability("smallest", smallest)
        profiles = [side._one_profile(smallest) for side in self._orders()]
        end = max(float(profile.epsilons[-1]) for profile in profiles)
        epsilons = np.linspace(0.0, end, PLACES)
        deltas = np.max([profile.at(epsilons) for profile in profiles], axis=0)
        if math.isfinite(self._most) and self._most <= end:
            deltas[epsilons >= self._most] = 0.0
        whole = Profile(epsilons, np.minimum(deltas + self._reserved, 1.0))
        for row in whole.records()[:: PLACES // 8]:
            passed(row["epsilon"], self.rounds, row["delta"])
        return whole

    def _one_profile(self, smallest: float) -> Profile:
        deltas = np.geomspace(0.3, smallest, max(2, math.ceil(-math.log10(smallest) / 3)))
        tails = [self._tail("above", smallest, delta=delta) for delta in deltas]
        end = min(tail.epsilon(smallest, upper=True) for tail in tails)
        if math.isinf(end):
            end = max(tail.furthest for tail in tails)
        epsilons = np.linspace(0.0, min(end, self._most) or 1.0, PLACES)
        return Profile(epsilons, np.min([tail.deltas(epsilons, upper=True) for tail in tails], axis=0))

    def _curves(self, smallest: float) -> Curves:
        if smallest not in self._kept:
            made = [(c, times * n) for one, n in self.rounds for c, times in _new_curves(one, smallest)]
            self._kept[smallest] = [(c.swapped(), n) for c, n in made] if self._swapped else made
        return self._kept[smallest]

    def _tail(self, side: str, near: float, **question: float) -> Tail:
        """All rounds from one `side`, for a `question`, on grids for a delta `near`; wider ones if losses spread."""
        decade, longest = math.floor(math.log10(near)), self._accuracy.longest_window
        if decade not in self._grids:
            tolerance = TAIL_SHARE * 10.0**decade / self.total
            self._grids[decade] = Grids(self._curves(tolerance), tolerance, self._accuracy), 1.0
        while True:
            grids, wider = self._grids[decade]
            both = grids.sides(sum(n for _, n in grids.curves), wider)
            try:
                return composed(both.above if side == "above" else both.below, longest=2 * longest, **question)
            except WindowTooLong as spread:
                self._grids[decade] = grids, wider * max(2.0, spread.points / longest)


def better(composed: Bracket, one: Round, repeats: int, delta: float) -> Bracket:
    """The smaller of what was `composed` of so many `repeats` of `one` round and of other bounds, at this `delta`."""
    if isinstance(one, LocalRound):
        return Bracket.of(composed.lower, min(composed.upper, one.pair.every_report_seen(repeats, delta)))
    if composed.upper > 2 * composed.lower:  # the grids may be to blame
        return Bracket.of(composed.lower, min(composed.upper, other_bounds(one, repeats, delta)))
    return composed


@loud_arithmetic()
def epsilon_by_rounds(one: Round, counts: Sequence[int], delta: float, *, near: int | None = None) -> Brackets:
    """Certified epsilon after each number of equal rounds.

    Args:
        one: The round.
        counts: Numbers of rounds, in any order.
        delta: Of the statements, strictly between 0 and 1.
        near: A number of rounds that a statement was made about before: its curve of one round is used again.
            Certified as always, but not always to the same digits, and less tightly for counts far above it.

    >>> from dpcheckin.accounting import CheckInRound, any_pure
    >>> one = CheckInRound(10_000, 0.01, any_pure(2.0))
    >>> [round(x, 4) for x in epsilon_by_rounds(one, [1, 10, 100], 1e-4).upper.tolist()]
    [0.0043, 0.018, 0.0695]
    """
    delta = open_probability("delta", delta)
    asked = [count("rounds", n, 0, MOST_ROUNDS) for n in counts]
    shared = sorted({n for n in asked if n > 1})
    found: dict[int, Bracket] = {}
    if len(shared) > 1 and not one.is_function and one.renyi is None and not one.reserved:
        decade = 10.0 ** math.floor(math.log10(delta))
        smallest = TAIL_SHARE * decade / (near or shared[-1])
        curves = one.curves(smallest) if near is None else _curves_at_hand(one, smallest)
        if len(curves) == 1 and curves[0][1] == 1:
            with suppress(WindowTooLong):  # each number of rounds is then asked alone
                found = dict(_by_rounds(one, Grids(curves, smallest), shared, delta))
    return Brackets.of([found[n] if n in found else compose([(one, n)]).epsilon(delta) for n in asked])


def _by_rounds(one: Round, grids: Grids, counts: Sequence[int], delta: float) -> Iterator[tuple[int, Bracket]]:
    for near in _spans(counts, 2):
        sides = grids.sides(near[0])
        asked = partial(repeated, times=near, delta=delta, longest=2 * FINE.longest_window)
        for n, above, below in zip(near, asked(sides.above), asked(sides.below), strict=True):
            most = n * one.largest_loss
            ends = min(below.epsilon(delta, upper=False), most), min(above.epsilon(delta, upper=True), most)
            bracket = better(Bracket.of(*ends), one, n, delta)
            passed(bracket.upper, [(one, n)], delta)
            yield n, bracket


def _spans(values: Sequence[N], factor: float) -> list[list[N]]:
    """The values in increasing groups, each within this factor of its smallest."""
    groups: list[list[N]] = []
    for value in sorted(set(values)):
        if groups and value <= groups[-1][0] * factor:
            groups[-1].append(value)
        else:
            groups.append([value])
    return groups


latest_curves: dict[tuple[Round, float], Curves] = {}


def _new_curves(one: Round, smallest: float) -> Curves:
    """The curves of a round, made anew: what is certified never depends on what was asked before."""
    made = one.curves(smallest)
    latest_curves.pop((one, smallest), None)
    latest_curves[one, smallest] = made
    while len(latest_curves) > KEPT_CURVES:
        del latest_curves[next(iter(latest_curves))]
    return made


def _curves_at_hand(one: Round, smallest: float) -> Curves:
    """The curves of a round that were made last. A curve gives up where its arithmetic does, and then what it says
    further out depends on what it was asked before: certified, but not to the same digits as a statement's own.
    """
    return latest_curves.get((one, smallest)) or _new_curves(one, smallest)
