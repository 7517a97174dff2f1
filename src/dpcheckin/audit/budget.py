"""How much an audit may cost (seconds of wall clock or of processors, or pairs of runs), and the processes that play
it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import at_least

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Budget:
    """Exactly one of seconds of wall clock, pairs of runs, or processor seconds of all workers together."""

    seconds: float | None = None
    pairs: int | None = None
    cpu_seconds: float | None = None

    def __post_init__(self) -> None:
        given = [x for x in (self.seconds, self.pairs, self.cpu_seconds) if x is not None]
        if len(given) != 1 or not given[0] > 0:
            raise InvalidParameter("budget", given, "a positive time or a positive number of pairs")

    @staticmethod
    def parse(text: str) -> Budget:
        """Read a time such as 30s, 10m, 2h or 20m-cpu, or a number of pairs such as 100000.

        >>> Budget.parse("10m").seconds, Budget.parse("20m-cpu").cpu_seconds
        (600.0, 1200.0)
        """
        amount = re.fullmatch(r"(\d+(?:\.\d+)?)(?:([smhd])(-cpu)?)?", text.strip())
        if not amount or (not amount[2] and "." in amount[1]):
            allowed = "a time (30s, 10m, 2h, 20m-cpu) or a number of pairs"
            raise InvalidParameter("budget", text, allowed)
        if amount[2]:
            seconds = float(amount[1]) * _UNITS[amount[2]]
            return Budget(cpu_seconds=seconds) if amount[3] else Budget(seconds=seconds)
        return Budget(pairs=int(amount[1]))

    def __str__(self) -> str:
        if self.pairs is not None:
            return f"{self.pairs:,} pairs"
        if self.cpu_seconds is not None:
            return f"{self.cpu_seconds:,g} s of processor time"
        return f"{self.seconds:,g} s"


def _timed(function: Callable[..., Any], job: tuple[Any, ...]) -> tuple[Any, int, float]:
    """What a job gives, and how much processor time its process has used since it began."""
    return function(*job), os.getpid(), time.process_time()


class WorkerPool:
    """Runs jobs here, or in worker processes, and knows what they cost."""

    def __init__(self, workers: int, pool: ProcessPoolExecutor | None) -> None:
        self.workers, self._pool = workers, pool
        self._began, self._spent = time.process_time(), dict[int, float]()

    def run(self, function: Callable[..., Any], jobs: list[tuple[Any, ...]]) -> list[Any]:
        """What `function` gives for each of the `jobs`, which are its arguments, in their order."""
        if self._pool is None:
            return [function(*job) for job in jobs]
        waiting: list[Future[Any]] = [self._pool.submit(_timed, function, job) for job in jobs]
        results = [future.result() for future in waiting]
        for _, worker, spent in results:
            self._spent[worker] = max(spent, self._spent.get(worker, 0.0))
        return [result for result, _, _ in results]

    def cpu_seconds(self) -> float:
        """Processor time of this process and all workers."""
        return time.process_time() - self._began + sum(self._spent.values())


@contextmanager
def worker_pool(workers: int) -> Iterator[WorkerPool]:
    """So many processes (1: this one only); they end with the block."""
    at_least("workers", workers, 1)
    if workers == 1:
        yield WorkerPool(1, None)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        yield WorkerPool(workers, pool)
