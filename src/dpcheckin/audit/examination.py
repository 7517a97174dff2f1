"""One check of one claim: play pairs of runs, choose an event, bet on it, say what was shown.

The first part of the budget is the pilot, from which the event and the stakes are chosen; only the
runs after it count. State is written after every few blocks, so that a check can be stopped and
taken up again: the bet may go on for as long as one likes, the confidence holds at every moment.
What systems, statistics and events are is said in the modules of those names.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from dpcheckin.audit import evidence
from dpcheckin.audit.budget import Budget
from dpcheckin.audit.choice import Choice, Event, choose
from dpcheckin.audit.evidence import Counts, FloatArray, Stakes
from dpcheckin.audit.finding import Finding
from dpcheckin.audit.released import Neighbours
from dpcheckin.audit.statistics import Statistic
from dpcheckin.audit.systems import System
from dpcheckin.errors import InvalidParameter

Progress = Callable[[float, str], None]
"""Told the share of the budget that is used up, and a few words."""

PILOT = 0.25
_LARGEST_PILOT = 2_000_000
_SAVE_EVERY = 2.0


@dataclass(frozen=True)
class Check:
    """A claim about a system, and how to attack it."""

    name: str
    system: System
    data: Neighbours
    statistics: Sequence[Statistic]
    epsilon: float
    delta: float
    confidence: float = 0.99

    def __post_init__(self) -> None:
        evidence.needed_capital(self.confidence)
        if not 0.0 <= self.epsilon <= math.inf:
            raise InvalidParameter("epsilon", self.epsilon, "a number of at least 0")
        if not 0.0 < self.delta < 1.0:
            raise InvalidParameter("delta", self.delta, "a number strictly between 0 and 1")

    def fingerprint(self) -> str:
        """What must be equal for a saved state to be taken up."""
        return hashlib.sha256(repr(self).encode()).hexdigest()

    def scores(self, seed: int, block: int, runs: int) -> dict[str, tuple[FloatArray, FloatArray]]:
        """Play one block and score it."""
        first, second = self.system.play_both(self.data, (seed, block), runs)
        return {s.name: (s.scores(first), s.scores(second)) for s in self.statistics}

    def counted(self, seed: int, block: int, runs: int, event: Event) -> Counts:
        """Play one block and count the event."""
        (statistic,) = [s for s in self.statistics if s.name == event.statistic]
        scores = replace(self, statistics=(statistic,)).scores(seed, block, runs)
        return event.count(*scores[event.statistic])


@dataclass
class _State:
    """Everything needed to go on."""

    seed: int
    choice: Choice
    pilot_pairs: int
    next_block: int
    counts: Counts | None = None
    seconds: float = 0.0

    def save(self, path: Path, fingerprint: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"fingerprint": fingerprint, **asdict(self)}
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(content), encoding="utf-8")
        os.replace(fresh, path)

    @staticmethod
    def load(path: Path, fingerprint: str) -> _State:
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
            chosen = read["choice"]
            stakes = Stakes(*(tuple(chosen["stakes"][key]) for key in ("sizes", "shares")))
            state = _State(
                int(read["seed"]),
                Choice(Event(**chosen["event"]), stakes, float(chosen["promised"])),
                int(read["pilot_pairs"]),
                int(read["next_block"]),
                read["counts"] and Counts(tuple(tuple(row) for row in read["counts"]["table"])),
                float(read["seconds"]),
            )
        except FileNotFoundError:
            raise InvalidParameter("resume", str(path), "a folder with a saved audit") from None
        except (KeyError, TypeError, ValueError) as problem:
            raise InvalidParameter("resume", str(problem), "a state saved by an audit") from None
        if read["fingerprint"] != fingerprint:
            raise InvalidParameter(
                "resume", str(path), "the state of an audit with the same options"
            )
        return state


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
    """Audit one claim within a budget; `resume` adds the budget to what was saved before.

    The stakes suit the pairs that this budget buys; when more sessions are to follow, `planned` is
    the number of pairs in all of them.
    """
    fingerprint, began = check.fingerprint(), time.perf_counter()
    with _players(workers) as play:
        clock = _Clock(budget, began, progress)
        if resume:
            if state_path is None:
                raise InvalidParameter("resume", True, "used together with a folder")
            state = _State.load(state_path, fingerprint)
        else:
            fresh = secrets.randbits(48) if seed is None else seed
            state = _pilot(check, fresh, clock, play, workers, planned)
        before, saved = state.seconds, time.perf_counter()
        runs = check.system.block
        while not clock.over():
            blocks = [state.next_block + i for i in range(workers)]
            runs = min(runs, clock.left(workers))
            jobs = [(check, state.seed, block, runs, state.choice.event) for block in blocks]
            for counts in play(_counted, jobs):
                state.counts = counts if state.counts is None else state.counts + counts
            state.next_block += workers
            clock.spend(workers * runs)
            state.seconds = before + time.perf_counter() - began
            finding = _finding(check, state)
            clock.tell(f"epsilon ≥ {finding.lower:.4g}, {finding.pairs:,} pairs")
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

    def __init__(self, budget: Budget, began: float, progress: Progress) -> None:
        self._budget, self._began, self._progress, self._used = budget, began, progress, 0

    def share(self) -> float:
        if self._budget.pairs is not None:
            return self._used / self._budget.pairs
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

    def tell(self, words: str) -> None:
        self._progress(min(self.share(), 1.0), words)

    def to_come(self) -> int:
        """Pairs that the rest of the budget will buy at the pace so far."""
        share = max(self.share(), 1e-9)
        return max(1, round(self._used * (1.0 - share) / share))


def _pilot(
    check: Check, seed: int, clock: _Clock, play: _Play, workers: int, planned: int | None
) -> _State:
    parts: list[dict[str, tuple[FloatArray, FloatArray]]] = []
    block, pairs = 0, 0
    while (clock.share() < PILOT and pairs < _LARGEST_PILOT) or not parts:
        # small blocks first: a slow system must not eat its whole budget in the pilot
        runs = min(check.system.block, max(4, pairs // workers), clock.left(workers))
        parts += play(_scored, [(check, seed, block + i, runs) for i in range(workers)])
        block, pairs = block + workers, pairs + workers * runs
        clock.spend(workers * runs)
        clock.tell("pilot")
    scores = {
        name: tuple(np.concatenate([part[name][side] for part in parts]) for side in (0, 1))
        for name in parts[0]
    }
    to_come = max(clock.to_come(), (planned or 0) - pairs)
    chosen = choose(scores, to_come, check.delta, check.confidence)  # type: ignore[arg-type]
    return _State(seed, chosen, pairs, block)


def _finding(check: Check, state: _State) -> Finding:
    stakes = state.choice.stakes
    counts = state.counts or Counts.plain()
    return Finding(
        name=check.name,
        claimed=check.epsilon,
        delta=check.delta,
        confidence=check.confidence,
        lower=evidence.lower_epsilon(counts, check.delta, check.confidence, stakes),
        log_evidence=evidence.log_evidence(counts, check.epsilon, check.delta, stakes),
        pairs=counts.pairs,
        pilot_pairs=state.pilot_pairs,
        counts=counts,
        event=state.choice.event,
        stakes=stakes,
        seconds=state.seconds,
        seed=state.seed,
    )


_Play = Callable[[Callable[..., Any], list[tuple[Any, ...]]], list[Any]]


def _scored(check: Check, seed: int, block: int, runs: int) -> Any:
    return check.scores(seed, block, runs)


def _counted(check: Check, seed: int, block: int, runs: int, event: Event) -> Counts:
    return check.counted(seed, block, runs, event)


@contextmanager
def _players(workers: int) -> Iterator[_Play]:
    """Run jobs here, or in worker processes."""
    if workers < 1:
        raise InvalidParameter("workers", workers, "at least 1")
    if workers == 1:
        yield lambda function, jobs: [function(*job) for job in jobs]
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:

        def play(function: Callable[..., Any], jobs: list[tuple[Any, ...]]) -> list[Any]:
            waiting: list[Future[Any]] = [pool.submit(function, *job) for job in jobs]
            return [future.result() for future in waiting]

        yield play
