"""Worker processes for the answers, and what has been answered already.

Accounting takes tenths of seconds of pure computing; in the server's own process it would hold up
every other request. Previews have a process to themselves, so that they never wait behind a plot,
and what is shown until a preview is there has another; the rest run at a lower priority. Results
are kept, and a question asked twice at the same time is computed once.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

KEPT = 4096
NICE = 5


def _begin(lower_priority: bool) -> None:
    """Pay for imports before the first question comes."""
    if lower_priority and hasattr(os, "nice"):
        os.nice(NICE)
    import signal

    from dpcheckin.dashboard import answers
    from dpcheckin.dashboard.form import Form

    # an interrupt at the terminal reaches the whole group; the server sees to the workers
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for warm in (
        Form(population=100, rounds=2),
        Form(population=10**9, protocol="shuffle", rounds=10),
        Form(population=1_000, randomizer="gaussian"),
        Form(population=1_000, cohort=100, protocol="subsampled-shuffle", colluding=0.1),
        Form(population=1_000, protocol="distributed-check-in", randomizer="gaussian"),
    ):
        answers.quick(warm)


def _nothing() -> None:
    """A question that only wakes a worker up."""


class Workers:
    """Three pools: a process for previews, one for what comes before them, more for the rest."""

    def __init__(self, processes: int | None = None) -> None:
        count = processes or max(1, min(os.cpu_count() or 1, 4))
        self._sizes = {"soon": 1, "first": 1, "later": count}
        self._pools = {name: self._made(name) for name in self._sizes}
        self.width = count
        self._known: OrderedDict[Hashable, Any] = OrderedDict()
        self._asked: dict[Hashable, asyncio.Task[Any]] = {}
        for name in ("soon", "first"):  # processes start with the first question: ask it now
            self._pools[name].submit(_nothing)

    def _made(self, pool: str) -> ProcessPoolExecutor:
        # a fresh interpreter each: forking a process that has threads is asking for trouble
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._sizes[pool], context, _begin, (pool == "later",))

    async def soon(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The answer, from the process that is kept free for this."""
        return await self._ask("soon", function, arguments)

    async def first(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A rougher answer, from a process of its own: for when `soon` takes its time."""
        return await self._ask("first", function, arguments)

    async def later(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The answer, whenever one of the other processes has time."""
        return await self._ask("later", function, arguments)

    def close(self) -> None:
        """Stop the processes; what is being computed is thrown away."""
        for pool in self._pools.values():
            for process in list((getattr(pool, "_processes", None) or {}).values()):
                process.terminate()
            pool.shutdown(wait=True, cancel_futures=True)
        # the pools own system-wide semaphores, which are given back with the last reference
        self._pools.clear()

    async def _ask(
        self, pool: str, function: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> Any:
        key = (function.__name__, arguments)
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        task = self._asked.get(key)
        if task is None:
            task = asyncio.create_task(self._compute(pool, key, function, arguments))
            self._asked[key] = task
            task.add_done_callback(lambda _: self._asked.pop(key, None))
        # whoever asked may go away; others may be waiting for the same answer
        return await asyncio.shield(task)

    async def _compute(
        self,
        pool: str,
        key: Hashable,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
    ) -> Any:
        used = self._pools[pool]
        try:
            answer = await asyncio.wrap_future(used.submit(function, *arguments))
        except BrokenProcessPool:
            # a worker was killed (out of memory, by hand): start afresh, and ask once more
            if self._pools[pool] is used:
                self._pools[pool] = self._made(pool)
            answer = await asyncio.wrap_future(self._pools[pool].submit(function, *arguments))
        self._known[key] = answer
        while len(self._known) > KEPT:
            self._known.popitem(last=False)
        return answer


__all__ = ["Workers"]
