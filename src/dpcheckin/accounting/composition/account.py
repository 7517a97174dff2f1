"""Rounds composed: from one-round curves to a certified (epsilon, delta), and the statement of it.

One composition serves every protocol: what a round reveals reaches it as curves, wherever they come
from, and rounds of different kinds compose.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import overload

import numpy as np

from dpcheckin.accounting.composition.curves import (
    CurveComposition,
    Curves,
    Profile,
    bracket,
)
from dpcheckin.accounting.composition.gate import loud_arithmetic, passed, passed_bracket
from dpcheckin.accounting.composition.preview import coarser_epsilon
from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.engine.curves import Curve
from dpcheckin.accounting.engine.grids import FINE, Accuracy
from dpcheckin.accounting.figures import Bracket, Brackets, is_array
from dpcheckin.accounting.pairs.local import LocalPair
from dpcheckin.accounting.parameters import non_negative, open_probability
from dpcheckin.accounting.proof.certificate import Prover
from dpcheckin.accounting.rounds.base import EVERY, LocalRound, Round, Rounds, as_run
from dpcheckin.accounting.statements import (
    SHUFFLER_COLLUDES,
    Adjacency,
    Guarantee,
    LocalGuarantee,
    rounds_in_words,
)
from dpcheckin.errors import InvalidParameter, OutsideTheorem, Unreachable

KEPT_STATEMENTS, KEPT_CURVES = 1024, 4  # how many are remembered; curves can be large


def compose(rounds: Rounds) -> Composition:
    """The composition of (round, how many times) pairs, in any order, adaptively.

    Args:
        rounds: Rounds and how often each takes place; a round alone takes place once.

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
    """

    def __init__(self, rounds: Rounds, accuracy: Accuracy = FINE) -> None:
        self.rounds = tuple((one, repeats) for one, repeats in as_run(rounds) if repeats)
        self.total = sum(repeats for _, repeats in self.rounds)
        kinds = {one.adjacency for one, _ in self.rounds} or {Adjacency.REPLACE_ONE}
        if len(kinds) > 1:
            named = " and ".join(sorted(kind.value for kind in kinds))
            raise InvalidParameter("rounds", named, "rounds with one and the same adjacency")
        self.adjacency = kinds.pop()
        # what local privacy alone gives: the sum of local epsilons, if there is no delta
        most = math.fsum(n * one.largest_loss for one, n in self.rounds)
        self._composed = CurveComposition(self._make, self.total, most, accuracy)
        self._reserved = math.fsum(n * one.reserved for one, n in self.rounds)
        self._answers: dict[float, Bracket] = {}

    def _make(self, smallest: float) -> Curves:
        return [(c, times * n) for one, n in self.rounds for c, times in _new_curves(one, smallest)]

    @overload
    def epsilon(self, delta: float) -> Bracket: ...
    @overload
    def epsilon(self, delta: Sequence[float] | FloatArray) -> Brackets: ...
    @loud_arithmetic()
    def epsilon(self, delta: float | Sequence[float] | FloatArray) -> Bracket | Brackets:
        """Smallest epsilon for this delta, between certified bounds (upper may be infinite).

        Args:
            delta: Of the statement, strictly between 0 and 1; or many of them, which share one
                composition.
        """
        if not is_array(delta):
            return self._epsilons([open_probability("delta", delta)])[0]
        deltas = np.asarray(delta)
        asked = [open_probability("delta", value) for value in deltas.ravel().tolist()]
        return Brackets.of(self._epsilons(asked), deltas.shape)

    def _epsilons(self, deltas: Sequence[float]) -> list[Bracket]:
        new = [d for d in dict.fromkeys(deltas) if d not in self._answers]
        if len(new) > 1 and self._by_one_composition():
            left = [d - self._reserved for d in new]
            possible = [d for d in left if d > 0.0]
            found = dict(zip(possible, self._composed.epsilons(possible), strict=True))
            for asked, delta in zip(new, left, strict=True):
                self._answers[asked] = (
                    self._better(found[delta], delta) if delta > 0.0 else Bracket(0.0, math.inf)
                )
        else:
            self._answers.update((delta, self._epsilon(delta)) for delta in new)
        return [passed_bracket(self._answers[delta], self.rounds, delta) for delta in deltas]

    def _by_one_composition(self) -> bool:
        """Is epsilon read off one composed distribution, whatever delta is?"""
        if not self.rounds or (len(self.rounds) == 1 and self.rounds[0][0].renyi is not None):
            return False
        return not all(one.is_function for one, _ in self.rounds)

    def _epsilon(self, delta: float) -> Bracket:
        delta -= self._reserved
        if not self.rounds:
            return Bracket(0.0, 0.0)
        if delta <= 0.0:
            return Bracket(0.0, math.inf)
        one, repeats = self.rounds[0]
        if len(self.rounds) == 1 and one.renyi is not None:
            return one.renyi.epsilon(repeats, delta)
        if all(one.is_function for one, _ in self.rounds):
            return self._composed.refined_epsilon(delta)
        return self._better(self._composed.epsilon(delta), delta)

    def _better(self, found: Bracket, delta: float) -> Bracket:
        """The smaller of what was composed and of other bounds about equal rounds."""
        if len(self.rounds) > 1:
            return found
        one, repeats = self.rounds[0]
        return better(found, one, repeats, delta)

    @overload
    def delta(self, epsilon: float) -> Bracket: ...
    @overload
    def delta(self, epsilon: Sequence[float] | FloatArray) -> Brackets: ...
    @loud_arithmetic()
    def delta(self, epsilon: float | Sequence[float] | FloatArray) -> Bracket | Brackets:
        """delta for this epsilon, between certified bounds.

        Args:
            epsilon: Of the statement, 0 or more; or many of them.
        """
        if is_array(epsilon):
            epsilons = np.asarray(epsilon)
            found = [self.delta(value) for value in epsilons.ravel().tolist()]
            return Brackets.of(found, epsilons.shape)
        epsilon = non_negative("epsilon", epsilon)
        if not self.rounds:
            return Bracket(0.0, 0.0)
        one = self._composed.delta(epsilon)
        upper = min(one.upper + self._reserved, 1.0)
        passed(epsilon, self.rounds, upper)
        return Bracket(one.lower, upper)

    @loud_arithmetic()
    def profile(self, smallest: float = 1e-12) -> Profile:
        """delta(epsilon) as certified upper bounds, from epsilon = 0 to where it is `smallest`.

        Args:
            smallest: Where the curve may end.
        """
        if not self.rounds:
            return Profile(np.array([0.0, 1.0]), np.zeros(2))
        if any(one.renyi is not None for one, _ in self.rounds):
            raise OutsideTheorem(
                "these rounds are composed by their Rényi curves, one delta at a time: "
                "there is no whole profile of them"
            )
        found = self._composed.profile(open_probability("smallest", smallest))
        whole = Profile(found.epsilons, np.minimum(found.deltas + self._reserved, 1.0))
        for row in whole.records()[:: whole.epsilons.size // 8]:
            passed(row["epsilon"], self.rounds, row["delta"])
        return whole


def better(found: Bracket, one: Round, repeats: int, delta: float) -> Bracket:
    """The smaller of what was composed and of other bounds about equal rounds."""
    if isinstance(one, LocalRound):
        seen = every_report_seen(one.pair, repeats, delta)
        return bracket(found.lower, min(found.upper, seen))
    if found.upper > 2 * found.lower:  # the grids may be to blame
        return bracket(found.lower, min(found.upper, coarser_epsilon(one, repeats, delta)))
    return found


@loud_arithmetic()
def guarantee(rounds: Rounds | Composition, delta: float) -> Guarantee:
    """The certified statement for these rounds at this delta; asked again it is there at once.

    Args:
        rounds: Rounds and how often each takes place, or their composition; a round alone takes
            place once.
        delta: Of the statement, strictly between 0 and 1.

    >>> from dpcheckin.accounting import CheckInRound, any_pure
    >>> stated = guarantee([(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)], delta=1e-4)
    >>> print(str(stated)[:59])
    The run is (0.0695, 0.0001)-differentially private (replace
    """
    delta = open_probability("delta", delta)
    if isinstance(rounds, Composition):
        return _stated(rounds, delta)
    return _remembered(as_run(rounds), delta)


@lru_cache(KEPT_STATEMENTS)
def _remembered(run: tuple[tuple[Round, int], ...], delta: float) -> Guarantee:
    # a statement, not a composition: figures never depend on what was asked before
    return _stated(compose(run), delta)


def clear_cache() -> None:
    """Forget all answers; whoever measures times wants that."""
    _remembered.cache_clear()
    _latest_curves.clear()


_latest_curves: OrderedDict[tuple[Round, float], Sequence[tuple[Curve, int]]] = OrderedDict()


def _new_curves(one: Round, smallest: float) -> Sequence[tuple[Curve, int]]:
    """The curves of a round, made anew: what is certified never depends on what was asked before.

    They are left where `curves_at_hand` finds them.
    """
    made = _latest_curves[one, smallest] = one.curves(smallest)
    _latest_curves.move_to_end((one, smallest))
    while len(_latest_curves) > KEPT_CURVES:
        _latest_curves.popitem(last=False)
    return made


def curves_at_hand(one: Round, smallest: float) -> Sequence[tuple[Curve, int]]:
    """The curves of a round that were made last, with all that has been evaluated of them.

    A curve gives up where its arithmetic does, and then what it says further out depends on what
    it was asked before: certified, but not to the same digits. Statements have curves of their own.

    Args:
        one: The round.
        smallest: Of the deltas they are good for.
    """
    return _latest_curves.get((one, smallest)) or _new_curves(one, smallest)


def _stated(run: Composition, delta: float) -> Guarantee:
    epsilon = run.epsilon(delta)
    if math.isinf(epsilon.upper):
        raise Unreachable(
            f"delta = {delta:g} cannot be reached by any epsilon: mass without counterpart or "
            "rounds in which every client reports exceed it; raise delta or lower the rate"
        )
    local, unshuffled = _local_figures(run, delta)
    upper = passed(min(epsilon.upper, unshuffled), run.rounds, delta)
    return _statement(run, Bracket(min(epsilon.lower, upper), upper), delta, local)


@loud_arithmetic()
def guarantee_at(run: Composition, epsilon: float) -> tuple[Guarantee, Bracket]:
    """The statement about a run at this epsilon, and between which bounds its delta was found.

    What is left when it is seen who reported what is stated at the same delta, where that is
    strictly between 0 and 1.

    Args:
        run: Composed rounds.
        epsilon: Of the statement, 0 or more.
    """
    found = run.delta(epsilon)
    local = _local_figures(run, found.upper)[0] if 0 < found.upper < 1 else None
    return _statement(run, Bracket(epsilon, epsilon), found.upper, local), found


def _statement(
    run: Composition, epsilon: Bracket, delta: float, local: LocalGuarantee | None
) -> Guarantee:
    basis = _each(one.basis() for one, _ in run.rounds)
    proof = Prover(run.rounds)
    return Guarantee(epsilon, delta, run.adjacency, basis, _assumed(run), local, proof)


def _each(texts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Every text once, in the order of its first mention."""
    return tuple(dict.fromkeys(text for some in texts for text in some))


def _assumed(run: Composition) -> tuple[str, ...]:
    """What must hold; of a run of several kinds of rounds, in how many of them."""
    counts: dict[str, int] = {}
    for one, repeats in run.rounds:
        for text in one.assumptions():
            counts[text] = counts.get(text, 0) + repeats
    return tuple(
        text if n == run.total else f"{text.removesuffix(EVERY)} in {rounds_in_words(n)}"
        for text, n in counts.items()
    )


def _local_figures(run: Composition, delta: float) -> tuple[LocalGuarantee | None, float]:
    """What is left when it is seen who reported what; and what holds without the permutation."""
    if len(run.rounds) == 1:
        (one, repeats), *_ = run.rounds
        if one.renyi is not None:
            return one.renyi.local(repeats, delta), math.inf
    seen, exposed = [], []
    for one, n in run.rounds:
        if one.pair is None:  # a trusted server stands in the middle
            return None, math.inf
        seen.append((one.pair, one.participation, n))
        exposed.append((one.pair, one.exposed_participation, n))
    when = "; or if ".join(dict.fromkeys(one.exposed_when for one, _ in run.rounds))
    local = local_guarantee(exposed, delta, when or SHUFFLER_COLLUDES)
    # what holds without the permutation holds with it
    unshuffled = local if exposed == seen else local_guarantee(seen, delta)
    return local, unshuffled.epsilon


def every_report_seen(pair: LocalPair, reports: int, delta: float) -> float:
    """An epsilon for a client that reports every time and is seen to; infinite if not known."""
    whole = pair.repeated(reports)
    return math.inf if whole is None else whole.epsilon_within(delta)


@loud_arithmetic()
def local_guarantee(
    reports: Sequence[tuple[LocalPair, float, int]], delta: float, when: str = SHUFFLER_COLLUDES
) -> LocalGuarantee:
    """What is left when it is seen who reported what.

    Args:
        reports: Local pairs, the probability of reporting in a round, and the number of rounds.
        delta: Of the statement.
        when: In which case only this is left.
    """
    total = sum(n for _, _, n in reports)
    merged: dict[tuple[LocalPair, float], int] = {}
    for pair, rate, n in reports:
        if rate > 0 and n > 0:
            merged[pair, rate] = merged.get((pair, rate), 0) + n
    worst = max((pair for pair, _, _ in reports), key=lambda x: x.local_epsilon, default=None)
    if worst is None:
        return LocalGuarantee(0.0, 0.0, 0.0, total, when)
    if not merged:  # nobody ever reports
        return LocalGuarantee(worst.local_epsilon, worst.local_delta, 0.0, total, when)
    curves = [(pair.local_curve(rate), n) for (pair, rate), n in merged.items()]
    most = math.fsum(n * pair.largest_loss for (pair, _), n in merged.items())
    composed = CurveComposition(lambda _: curves, sum(merged.values()), most)
    seen = [(LocalRound(pair, rate), n) for (pair, rate), n in merged.items()]
    spent = passed(composed.upper(delta), seen, delta)
    if len(merged) == 1:
        ((pair, _), n), *_ = merged.items()
        spent = passed(min(spent, every_report_seen(pair, n, delta)), seen, delta)
    return LocalGuarantee(worst.local_epsilon, worst.local_delta, spent, total, when)
