"""One check of one claim: play pairs of runs, choose an event, bet on it, say what was shown.

The first part of the budget is the pilot, from which the event and the stakes are chosen; only the runs after it count.
State is written after every few blocks, so that a check can be stopped and taken up again: the bet may go on for as
long as one likes, the confidence holds at every moment.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpcheckin.audit import evidence
from dpcheckin.audit.budget import Budget, WorkerPool, worker_pool
from dpcheckin.audit.choice import Choice, choose, choose_turns
from dpcheckin.audit.evidence import Capital, Counts, FloatArray, epsilon_grid
from dpcheckin.audit.finding import Finding, State
from dpcheckin.audit.simulated import Simulated
from dpcheckin.audit.statistics import Statistic
from dpcheckin.audit.systems import Neighbours, System
from dpcheckin.audit.turns import NAME as TURNS
from dpcheckin.audit.turns import Turns, can_take_turns, play_in_turns
from dpcheckin.errors import InvalidParameter, Superfluous
from dpcheckin.numerals import open_probability

Progress = Callable[[float, str], None]
"""Called with the share of the budget that is used up, and a few words."""

PILOT = 0.25
_LARGEST_PILOT = 2_000_000
_LARGEST_TURNS = 4_000_000  # runs, of all targets
_TURNS_TO_ONE = 10
_EQUALLY = 3_000  # single targets, before turns get so much more
_SAVE_EVERY = 2.0


@dataclass(frozen=True)
class Check:
    """A claim about a system, and how to attack it.

    With `turns` every client is the target in turn; the statistics, which look at one target, are tried in the pilot
    all the same.

    Args:
        name: a few words for reports.
        system: what is attacked.
        data: the neighbours.
        statistics: scores to choose an event from.
        epsilon: the claim's.
        delta: the claim's, strictly between 0 and 1.
        confidence: of the lower bound, in [0.5, 1).
        turns: let every client be the target in turn.
    """

    name: str
    system: System
    data: Neighbours
    statistics: Sequence[Statistic]
    epsilon: float
    delta: float
    confidence: float = 0.99
    turns: bool = False

    def __post_init__(self) -> None:
        if self.turns and not can_take_turns(self.system):
            raise Superfluous("turns", True, "leave it out: this system cannot take turns")
        evidence.needed_capital(self.confidence)
        if not 0.0 <= self.epsilon <= math.inf:
            raise InvalidParameter("epsilon", self.epsilon, "a number of at least 0")
        open_probability("delta", self.delta)

    def fingerprint(self) -> str:
        """What must be equal for a saved state to be taken up."""
        return hashlib.sha256(repr(self).encode()).hexdigest()

    def scores(self, seed: int, block: int, runs: int) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Play a block of so many runs (the number `block` of `seed`) and score it."""
        first, second = self.system.play_both(self.data, (seed, block), runs)
        return {s.name: (s.scores(first), s.scores(second)) for s in self.statistics}

    def in_turns(self, seed: int, block: int, plays: int) -> tuple[Turns, Turns]:
        """Play a block of so many plays (the number `block` of `seed`) with every client as the target."""
        assert isinstance(self.system, Simulated)
        return play_in_turns(self.system, self.data, (seed, block), plays)

    def counted(self, seed: int, block: int, runs: int, choice: Choice) -> Counts | Capital:
        """Play a block of so many runs (the number `block` of `seed`) and count the event of `choice`."""
        event = choice.event
        if event.statistic == TURNS:
            means = [t.mean(event.slope(t.values)) for t in self.in_turns(seed, block, runs)]
            one, other = means if event.for_first else means[::-1]
            grid = epsilon_grid(self.epsilon, choice.promised)
            return Capital.won(grid, choice.stakes, self.delta, one, other)
        (statistic,) = [s for s in self.statistics if s.name == event.statistic]
        scores = replace(self, statistics=(statistic,)).scores(seed, block, runs)
        return event.count(*scores[event.statistic])


def examine(
    check: Check,
    budget: Budget,
    *,
    seed: int | None = None,
    workers: int = 1,
    progress: Progress = lambda share, words: None,
    state_path: Path | None = None,
    resume: bool = False,
    stop_when_refuted: bool = False,
    planned: int | None = None,
) -> Finding:
    """Audit one claim within a budget.

    The stakes suit the pairs that this budget buys, or those that are `planned` for all sessions together.

    Args:
        check: claim and attack.
        budget: seconds, processor seconds or pairs of runs.
        seed: repeats an audit exactly; None draws one.
        workers: number of processes.
        progress: called with the share of the budget used and a few words.
        state_path: file to go on from, None to keep none.
        resume: add the budget to what the file holds.
        stop_when_refuted: end as soon as the claim has fallen.
        planned: pairs, if more sessions are to follow.
    """
    fingerprint, began = check.fingerprint(), time.perf_counter()
    with worker_pool(workers) as pool:
        clock = _Clock(budget, began, pool, progress)
        if resume:
            if state_path is None:
                raise InvalidParameter("resume", True, "used together with a folder")
            state = State.load(state_path, fingerprint)
        else:
            fresh = secrets.randbits(48) if seed is None else seed
            state = _pilot(check, fresh, clock, pool, planned)
        before, cpu_before, saved = state.seconds, state.cpu_seconds, time.perf_counter()
        runs = check.system.block
        while state.counts is None or not clock.over():  # a bet of no pairs shows nothing
            blocks = [state.next_block + i for i in range(workers)]
            runs = min(runs, clock.left(workers))
            jobs = [(check, state.seed, block, runs, state.choice) for block in blocks]
            for counts in pool.run(Check.counted, jobs):
                state.counts = counts if state.counts is None else state.counts + counts
            state.next_block += workers
            clock.spend(workers * runs)
            state.seconds = before + time.perf_counter() - began
            state.cpu_seconds = cpu_before + pool.cpu_seconds()
            finding = _finding(check, state)
            clock.report(f"epsilon ≥ {finding.lower:.4g}, {finding.pairs:,} pairs")
            if state_path and time.perf_counter() - saved > _SAVE_EVERY:
                state.save(state_path, fingerprint)
                saved = time.perf_counter()
            if stop_when_refuted and finding.refuted:
                break
    if state_path:
        state.save(state_path, fingerprint)
    return _finding(check, state)


class _Clock:
    """Keeps the budget."""

    def __init__(self, budget: Budget, began: float, pool: WorkerPool, progress: Progress) -> None:
        self._budget, self._began, self._progress, self._used = budget, began, progress, 0
        self._pool = pool

    def share(self) -> float:
        if self._budget.pairs is not None:
            return self._used / self._budget.pairs
        if self._budget.cpu_seconds is not None:
            return self._pool.cpu_seconds() / self._budget.cpu_seconds
        assert self._budget.seconds is not None
        return (time.perf_counter() - self._began) / self._budget.seconds

    def over(self) -> bool:
        return self.share() >= 1.0

    def left(self, workers: int) -> int:
        """Most pairs that each worker may still play."""
        if self._budget.pairs is None:
            return 2**62
        return max(1, -(-(self._budget.pairs - self._used) // workers))

    def spend(self, pairs: int) -> None:
        self._used += pairs

    def report(self, words: str) -> None:
        self._progress(min(self.share(), 1.0), words)

    def to_come(self) -> int:
        """Pairs that the rest of the budget will buy at the pace so far."""
        share = max(self.share(), 1e-9)
        return max(1, round(self._used * (1.0 - share) / share))


def _pilot(check: Check, seed: int, clock: _Clock, pool: WorkerPool, planned: int | None) -> State:
    parts: list[dict[str, tuple[FloatArray, FloatArray]]] = []
    turns: list[tuple[Turns, Turns]] = []
    workers, block = pool.workers, 0
    single, plays, runs_kept = 0, 0, 0
    while not parts or (clock.share() < PILOT and single + plays < _LARGEST_PILOT and runs_kept < _LARGEST_TURNS):
        # on sound code single targets seldom show more than all of them in turn, but orders and
        # repeated cohorts show in them
        apiece = 1 if single < _EQUALLY else _TURNS_TO_ONE
        take_turns = check.turns and single * apiece > plays
        # small blocks first: a slow system must not eat its whole budget in the pilot
        so_far = plays if take_turns else single
        runs = min(check.system.block, max(4, so_far // workers), clock.left(workers))
        jobs = [(check, seed, block + i, runs) for i in range(workers)]
        if take_turns:
            played = pool.run(_played_in_turns, jobs)
            turns += played
            runs_kept += sum(side.values.size for pair in played for side in pair)
            plays += workers * runs
        else:
            parts += pool.run(Check.scores, jobs)
            single += workers * runs
        block += workers
        clock.spend(workers * runs)
        clock.report("pilot")
    scores = {name: tuple(np.concatenate([part[name][side] for part in parts]) for side in (0, 1)) for name in parts[0]}
    to_come = max(clock.to_come(), (planned or 0) - single - plays)
    return State(seed, _chosen(check, scores, turns, single, to_come), single + plays, block)


def _chosen(check: Check, scores: Any, turns: list[tuple[Turns, Turns]], single: int, to_come: int) -> Choice:
    """The event that promises most.

    A single target is preferred only for what it shows in as few pairs as were tried: in so short a pilot some event
    always looks good by luck, and many pairs to come make luck look certain.
    """
    if not turns:
        return choose(scores, to_come, check.delta, check.confidence)
    first, second = (Turns.joined([pair[side] for pair in turns]) for side in (0, 1))
    of_all = choose_turns(first, second, to_come, check.delta, check.confidence)
    of_one = choose(scores, single, check.delta, check.confidence)
    if of_one.promised <= of_all.promised:
        return of_all
    return choose(scores, to_come, check.delta, check.confidence)


def _finding(check: Check, state: State) -> Finding:
    stakes = state.choice.stakes
    counts = Counts.plain() if state.counts is None else state.counts
    if isinstance(counts, Capital):
        lower = counts.lower_epsilon(evidence.needed_capital(check.confidence), stakes)
        won = counts.log_evidence(check.epsilon, stakes)
    else:
        lower = evidence.lower_epsilon(counts, check.delta, check.confidence, stakes)
        won = evidence.log_evidence(counts, check.epsilon, check.delta, stakes)
    return Finding(
        name=check.name,
        claimed=check.epsilon,
        delta=check.delta,
        confidence=check.confidence,
        lower=lower,
        log_evidence=won,
        pairs=counts.pairs,
        pilot_pairs=state.pilot_pairs,
        counts=counts,
        event=state.choice.event,
        stakes=stakes,
        seconds=state.seconds,
        seed=state.seed,
        cpu_seconds=state.cpu_seconds,
        played=check.system.played,
    )


def _played_in_turns(check: Check, seed: int, block: int, plays: int) -> Any:
    first, second = check.in_turns(seed, block, plays)
    return first.coarse(), second.coarse()
