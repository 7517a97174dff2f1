"""Worker processes that play the runs of an audit, and the processor time they take."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

from dpcheckin.errors import InvalidParameter


def _timed(function: Callable[..., Any], job: tuple[Any, ...]) -> tuple[Any, int, float]:
    """What a job gives, and how much processor time its process has used since it began."""
    return function(*job), os.getpid(), time.process_time()


class WorkerPool:
    """Runs jobs here, or in worker processes, and knows what they cost."""

    def __init__(self, workers: int, pool: ProcessPoolExecutor | None) -> None:
        self.workers, self._pool = workers, pool
        self._began, self._spent = time.process_time(), dict[int, float]()

    def run(self, function: Callable[..., Any], jobs: list[tuple[Any, ...]]) -> list[Any]:
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
    if workers < 1:
        raise InvalidParameter("workers", workers, "at least 1")
    if workers == 1:
        yield WorkerPool(1, None)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        yield WorkerPool(workers, pool)
