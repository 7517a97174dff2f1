"""Statements of composed rounds: what is guaranteed, with its reasons, and what is left if the shuffler colludes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

from dpcheckin.accounting.composition import account
from dpcheckin.accounting.composition.account import Composition, compose
from dpcheckin.accounting.composition.gate import loud_arithmetic, passed
from dpcheckin.accounting.pairs.local import LocalPair
from dpcheckin.accounting.proof.certificate import Prover
from dpcheckin.accounting.rounds.base import EVERY, LocalRound, Round, Rounds, as_run
from dpcheckin.accounting.statements import SHUFFLER_COLLUDES, Bracket, Guarantee, LocalGuarantee, rounds_in_words
from dpcheckin.errors import Unreachable
from dpcheckin.numerals import open_probability

KEPT_STATEMENTS = 1024


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
    account.latest_curves.clear()


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

    What is left when it is seen who reported what is stated at the same delta, where that is strictly between 0 and 1.

    `run`: composed rounds. `epsilon`: of the statement, 0 or more.
    """
    found = run.delta(epsilon)
    local = _local_figures(run, found.upper)[0] if 0 < found.upper < 1 else None
    return _statement(run, Bracket(epsilon, epsilon), found.upper, local), found


def _statement(run: Composition, epsilon: Bracket, delta: float, local: LocalGuarantee | None) -> Guarantee:
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
        conditions = () if one.pair is None or not one.pair.condition else (one.pair.condition,)
        for text in (*one.assumptions(), *conditions):
            counts[text] = counts.get(text, 0) + repeats
    return tuple(
        text if n == run.total else f"{text.removesuffix(EVERY)} in {rounds_in_words(n)}" for text, n in counts.items()
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
    seen = [(LocalRound(pair, rate), n) for (pair, rate), n in merged.items()]
    return LocalGuarantee(worst.local_epsilon, worst.local_delta, Composition(seen).upper(delta), total, when)
