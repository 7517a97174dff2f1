"""Rounds composed: from one-round curves to a certified (epsilon, delta), and the statement of it.

One composition serves every protocol: what a round reveals reaches it as curves, wherever they come
from, and rounds of different kinds compose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from threadpoolctl import threadpool_limits

from dpcheckin.accounting.engine import compose as engine
from dpcheckin.accounting.engine.coarse import StageCurve
from dpcheckin.accounting.engine.curves import Curve, FunctionCurve, crossing
from dpcheckin.accounting.engine.sampling import refined
from dpcheckin.accounting.pairs import LocalPair
from dpcheckin.accounting.parameters import count, non_negative, open_probability
from dpcheckin.accounting.preview import coarser_epsilon
from dpcheckin.accounting.rounds import MOST_ROUNDS, SMALLEST_DELTA, TAIL_SHARE, LocalRound, Round
from dpcheckin.accounting.statements import (
    SHUFFLER_COLLUDES,
    Adjacency,
    Bracket,
    Guarantee,
    LocalGuarantee,
)
from dpcheckin.errors import InvalidParameter, Unreachable

# rounds beyond which a run is composed in two stages, of so many parts
LONG_RUN, STAGES = 2_000_000, 40_000

Run = Sequence[tuple[Round, int]]
Curves = list[tuple[Curve, int]]


def compose(rounds: Run) -> Composition:
    """The composition of (round, how many times) pairs, in any order, adaptively.

    Args:
        rounds: Rounds and how often each takes place.

    >>> from dpcheckin.accounting import CheckInRound, any_pure
    >>> run = compose([(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)])
    >>> round(run.epsilon(1e-4).upper, 4)
    0.0735
    """
    return Composition(rounds)


class CurveComposition:
    """Many one-round curves composed; results are kept between questions.

    Args:
        make: The curves and their counts, good for deltas down to its argument.
        total: Number of rounds.
        most: A loss that all of them together never exceed.
    """

    def __init__(self, make: Callable[[float], Curves], total: int, most: float) -> None:
        self._make, self.total, self._most = make, total, most
        self._kept: dict[float, Curves] = {}
        self._parts: dict[int, tuple[engine.Parts, engine.Parts]] = {}

    def epsilon(self, delta: float) -> Bracket:
        """Smallest epsilon for this delta, between certified bounds (upper may be infinite)."""
        # the products inside are small: more threads would only wait for each other
        with threadpool_limits(1):
            if self.total == 1:  # only rounds with one curve come here alone
                return self._single_epsilon(delta)
            above, below = self._distributions(delta)
            upper = engine.compose(above, delta=delta).epsilon(delta, upper=True)
            lower = engine.compose(below, delta=delta).epsilon(delta, upper=False)
        return _bracket(min(lower, self._most), min(upper, self._most))

    def refined_epsilon(self, delta: float) -> Bracket:
        """The same for curves given as functions, on a grid refined until the bracket is narrow."""
        curves = [
            (c, n) for c, n in self._curves(delta / self.total) if isinstance(c, FunctionCurve)
        ]
        with threadpool_limits(1):
            lower, upper = refined(curves, delta)
        return Bracket(min(lower, self._most), min(upper, self._most))

    def delta(self, epsilon: float) -> Bracket:
        """delta for this epsilon, between certified bounds."""
        if epsilon >= self._most:
            return Bracket(0.0, 0.0)
        with threadpool_limits(1):
            curves = self._curves(SMALLEST_DELTA)
            if not curves:
                return Bracket(0.0, 0.0)
            if sum(n for _, n in curves) == 1:
                curve = curves[0][0]
                lower = max(curve.lower_at(epsilon), curve.swapped().lower_at(epsilon))
                upper = max(curve.upper_at(epsilon), curve.swapped().upper_at(epsilon))
                return Bracket(lower, max(upper, lower))
            found = self._composed_delta(epsilon)
            if all(curve.symmetric for curve, _ in curves):
                return found
            other = CurveComposition(self._make_swapped, self.total, self._most)
            turned = other._composed_delta(epsilon)
        return Bracket(max(found.lower, turned.lower), max(found.upper, turned.upper))

    def _make_swapped(self, smallest: float) -> Curves:
        return [(curve.swapped(), n) for curve, n in self._make(smallest)]

    def _composed_delta(self, epsilon: float) -> Bracket:
        magnitude = 1e-9
        for _ in range(12):
            above, below = self._distributions(magnitude)
            upper = engine.compose(above, epsilon=epsilon).delta(epsilon, upper=True)
            # the tails cut off must not be what the answer consists of
            if upper >= magnitude or magnitude <= 1e-30:
                break
            magnitude = max(upper * 0.1, magnitude * 1e-4, 1e-30)
        lower = engine.compose(below, epsilon=epsilon).delta(epsilon, upper=False)
        return Bracket(lower, upper)

    def _curves(self, smallest: float) -> Curves:
        if smallest not in self._kept:
            self._kept[smallest] = self._make(smallest)
        return self._kept[smallest]

    def _single_epsilon(self, delta: float) -> Bracket:
        """One round needs no grid."""
        smallest = TAIL_SHARE * 10.0 ** math.floor(math.log10(delta))
        curve = self._curves(smallest)[0][0]
        sides = [
            crossing(curve.lower_at, delta, self._most, up=False),
            crossing(curve.upper_at, delta, self._most, up=True),
        ]
        return Bracket(min(sides), sides[1])

    def _distributions(self, delta: float) -> tuple[engine.Parts, engine.Parts]:
        key = math.floor(math.log10(delta))
        if key not in self._parts:
            self._parts[key] = self._discretised(10.0**key)
        return self._parts[key]

    def _discretised(self, delta: float) -> tuple[engine.Parts, engine.Parts]:
        tolerance = TAIL_SHARE * delta / self.total
        curves = self._curves(tolerance)
        if len(curves) == 1 and curves[0][1] == self.total > LONG_RUN:
            (curve, _), *_ = curves
            stage = math.ceil(self.total / STAGES)
            (above, _), (below, _) = (part[0] for part in engine.gridded(curves, tolerance, stage))
            first = StageCurve(above, below, stage, curve.spread**2)
            above_all, below_all = engine.gridded([(first, 1)], tolerance * stage, STAGES)
            # a last stage that is not full counts as one from above, and not from below
            full = self.total // stage
            return [(above_all[0][0], math.ceil(self.total / stage))], [(below_all[0][0], full)]
        return engine.gridded(curves, tolerance, sum(n for _, n in curves))


def _bracket(lower: float, upper: float) -> Bracket:
    """The bracket; ends that differ by rounding alone are one."""
    if upper < lower <= upper + 1e-12 + 1e-9 * upper:
        lower = upper
    return Bracket(lower, upper)


class Composition:
    """Answers questions about a sequence of rounds."""

    def __init__(self, rounds: Run) -> None:
        if not rounds:
            raise InvalidParameter("rounds", [], "at least one round")
        merged: dict[Round, int] = {}
        for one, repeats in rounds:
            if not isinstance(one, Round):
                raise InvalidParameter("rounds", one, "pairs of a round and a count")
            repeats = count("count", repeats, 0, MOST_ROUNDS)
            merged[one] = merged.get(one, 0) + repeats
        self.rounds = tuple((one, repeats) for one, repeats in merged.items() if repeats)
        self.total = sum(repeats for _, repeats in self.rounds)
        kinds = {one.adjacency for one, _ in self.rounds} or {Adjacency.REPLACE_ONE}
        if len(kinds) > 1:
            named = " and ".join(sorted(kind.value for kind in kinds))
            raise InvalidParameter("rounds", named, "rounds with one and the same adjacency")
        self.adjacency = kinds.pop()
        # what local privacy alone gives: the sum of local epsilons, if there is no delta
        most = math.fsum(n * one.largest_loss for one, n in self.rounds)
        self._composed = CurveComposition(self._make, self.total, most)
        self._reserved = math.fsum(n * one.reserved for one, n in self.rounds)

    def _make(self, smallest: float) -> Curves:
        return [(c, times * n) for one, n in self.rounds for c, times in one.curves(smallest)]

    def epsilon(self, delta: float) -> Bracket:
        """Smallest epsilon for this delta, between certified bounds (upper may be infinite)."""
        delta = open_probability("delta", delta) - self._reserved
        if not self.rounds:
            return Bracket(0.0, 0.0)
        if delta <= 0.0:
            return Bracket(0.0, math.inf)
        one, repeats = self.rounds[0]
        if len(self.rounds) == 1 and one.renyi is not None:
            return one.renyi.epsilon(repeats, delta)
        if all(one.is_function for one, _ in self.rounds):
            return self._composed.refined_epsilon(delta)
        found = self._composed.epsilon(delta)
        if len(self.rounds) == 1 and isinstance(one, LocalRound):
            seen = every_report_seen(one.pair, repeats, delta)
            return _bracket(found.lower, min(found.upper, seen))
        if len(self.rounds) == 1 and found.upper > 2 * found.lower:  # the grids may be to blame
            return _bracket(found.lower, min(found.upper, coarser_epsilon(one, repeats, delta)))
        return found

    def delta(self, epsilon: float) -> Bracket:
        """delta for this epsilon, between certified bounds."""
        epsilon = non_negative("epsilon", epsilon)
        if not self.rounds:
            return Bracket(0.0, 0.0)
        found = self._composed.delta(epsilon)
        return Bracket(found.lower, min(found.upper + self._reserved, 1.0))


def guarantee(rounds: Run | Composition, delta: float) -> Guarantee:
    """The certified statement for these rounds at this delta.

    Args:
        rounds: Rounds and how often each takes place, or their composition.
        delta: Of the statement, strictly between 0 and 1.

    >>> from dpcheckin.accounting import CheckInRound, any_pure
    >>> stated = guarantee([(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)], delta=1e-4)
    >>> print(str(stated)[:60])
    The run is (0.07354, 0.0001)-differentially private (replace
    """
    delta = open_probability("delta", delta)
    run = rounds if isinstance(rounds, Composition) else compose(rounds)
    epsilon = run.epsilon(delta)
    if math.isinf(epsilon.upper):
        raise Unreachable(
            f"delta = {delta:g} cannot be reached by any epsilon: mass without counterpart or "
            "rounds in which every client reports exceed it; raise delta or lower the rate"
        )
    local, unshuffled = _local_figures(run, delta)
    upper = min(epsilon.upper, unshuffled)
    return Guarantee(
        epsilon=Bracket(min(epsilon.lower, upper), upper),
        delta=delta,
        adjacency=run.adjacency,
        basis=_each(one.basis() for one, _ in run.rounds),
        assumptions=_each(one.assumptions() for one, _ in run.rounds),
        local=local,
    )


def _each(texts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Every text once, in the order of its first mention."""
    return tuple(dict.fromkeys(text for some in texts for text in some))


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
    if not merged:
        return LocalGuarantee(0.0, 0.0, 0.0, total, when)
    curves = [(pair.local_curve(rate), n) for (pair, rate), n in merged.items()]
    most = math.fsum(n * pair.largest_loss for (pair, _), n in merged.items())
    composed = CurveComposition(lambda _: curves, sum(merged.values()), most)
    worst = max((pair for pair, _ in merged), key=lambda pair: pair.local_epsilon)
    spent = composed.epsilon(delta).upper
    if len(merged) == 1:
        ((pair, _), n), *_ = merged.items()
        spent = min(spent, every_report_seen(pair, n, delta))
    return LocalGuarantee(worst.local_epsilon, worst.local_delta, spent, total, when)
