"""Worker processes for the answers, what has been answered already, and what nobody waits for.

Accounting would hold up every other request in the server's own process. Previews have a process to themselves, so that
they never wait behind a plot, and what is shown until a preview is there has another; the rest run at a lower priority,
statements before points of lines. A question asked twice is computed once. When its last reader leaves, it is called
off by a signal between two steps of Python, so the process lives on with all it has imported and kept; where there is
no such signal (Windows) the process is replaced.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import multiprocessing
import os
import signal
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

NICE = 5
_SIGNAL = getattr(signal, "SIGUSR1", None)


@dataclass(frozen=True)
class Answered:
    """What became of a question: a value, a problem, or neither if it was called off."""

    number: int
    value: Any = None
    problem: Exception | None = None


class CalledOff(BaseException):
    """Nobody waits for the answer. No `Exception`: nothing on the way may take it for its own."""


class Process:
    """A process and the thread on which `told` is called with each answer, and with None when the process has ended.

    With `lower_priority` others on this machine go first.
    """

    def __init__(self, told: Callable[[Process, Answered | None], None], *, lower_priority: bool) -> None:
        # a fresh interpreter: forking a process that has threads is asking for trouble
        context = multiprocessing.get_context("spawn")
        self._told = told
        self._pipe, theirs = context.Pipe()
        self._off = context.Value("q", 0, lock=False)
        self._process = context.Process(target=_serve, args=(theirs, self._off, lower_priority), daemon=True)
        self._process.start()
        theirs.close()
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def pid(self) -> int | None:
        """Of the process."""
        return self._process.pid

    def ask(self, number: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Put the question of this number: the function with its arguments. The process has answered the one before."""
        with suppress(OSError):  # it has ended: the listening thread says so
            self._pipe.send((number, function, arguments))

    def call_off(self, number: int) -> None:
        """The answer to this question is no longer wanted."""
        self._off.value = number
        if _SIGNAL is None or self._process.pid is None:
            self._process.terminate()
            return
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, _SIGNAL)

    def end(self) -> None:
        """Stop the process at once."""
        self._process.terminate()
        self._process.join(5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _listen(self) -> None:
        answered: Answered | None
        while True:
            try:
                answered = self._pipe.recv()
            except (EOFError, OSError):
                break
            self._told(self, answered)
        self._pipe.close()
        self._told(self, None)


def _serve(pipe: Connection, off: Any, lower_priority: bool) -> None:
    """What the process does until it is stopped or the server is gone."""
    if lower_priority and hasattr(os, "nice"):
        os.nice(NICE)
    # an interrupt at the terminal reaches the whole group; the server sees to the workers
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    current = 0

    def stop(*_: object) -> None:
        nonlocal current
        if current and off.value == current:
            current = 0  # so that it is raised once
            raise CalledOff

    if _SIGNAL is not None:
        signal.signal(_SIGNAL, stop)
    _warm()
    while True:
        try:
            number, function, arguments = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            current = number
            try:
                answered = Answered(number, function(*arguments))
            except Exception as problem:
                answered = Answered(number, problem=problem)
            current = 0
        except CalledOff:
            answered = Answered(number)
        pipe.send(answered)


def _warm() -> None:
    """Pay for imports before the first question comes."""
    from dpcheckin.dashboard import answers
    from dpcheckin.dashboard.form import Form

    for form in (
        Form(population=100, rounds=2),
        Form(population=10**9, protocol="shuffle", rounds=10),
        Form(population=1_000, randomizer="gaussian"),
        Form(population=1_000, cohort=100, protocol="subsampled-shuffle", colluding=0.1),
        Form(population=1_000, protocol="distributed-check-in", randomizer="gaussian"),
    ):
        answers.quick(form)


KEPT = 4096
GRACE = 1.0  # seconds for a process to drop a question before it is replaced


class WorkerDied(RuntimeError):
    """A process ended twice over the same question."""


@dataclass(order=True)
class _Job:
    """A question, how urgent it is, and how many wait for its answer."""

    urgency: int
    number: int
    pool: str = field(compare=False)
    function: Callable[..., Any] = field(compare=False)
    arguments: tuple[Any, ...] = field(compare=False)
    answer: asyncio.Future[Any] = field(compare=False)
    readers: int = field(default=0, compare=False)
    deaths: int = field(default=0, compare=False)


class Workers:
    """Three pools: a process for previews, one for what comes before them, more for the rest."""

    def __init__(self, processes: int | None = None) -> None:
        count = processes or max(1, min(os.cpu_count() or 1, 4))
        self._pools = {
            name: [self._made(name) for _ in range(size)]
            for name, size in (("soon", 1), ("first", 1), ("later", count))
        }
        self.width = count
        self._waiting: dict[str, list[_Job]] = {name: [] for name in self._pools}
        self._busy: dict[Process, _Job] = {}
        self._numbers = itertools.count(1)
        self._known: OrderedDict[Hashable, Any] = OrderedDict()
        self._asked: dict[Hashable, _Job] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    async def soon(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The answer, from the process that is kept free for this."""
        return await self._ask("soon", 0, function, arguments)

    async def first(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A rougher answer, from a process of its own: for when `soon` takes its time."""
        return await self._ask("first", 0, function, arguments)

    async def next(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The answer, as soon as one of the other processes has time."""
        return await self._ask("later", 0, function, arguments)

    async def later(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The answer, once nothing more urgent waits."""
        return await self._ask("later", 1, function, arguments)

    def close(self) -> None:
        """Stop the processes; what is being computed is thrown away."""
        self._loop = None
        for pool in self._pools.values():
            for process in pool:
                process.end()
        self._pools.clear()

    def _made(self, pool: str) -> Process:
        return Process(self._told, lower_priority=pool == "later")

    async def _ask(self, pool: str, urgency: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        key = (function.__name__, arguments)
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        self._loop = asyncio.get_running_loop()
        job = self._asked.get(key)
        if job is None:
            answer = self._loop.create_future()
            job = _Job(urgency, next(self._numbers), pool, function, arguments, answer)
            self._asked[key] = job
            heapq.heappush(self._waiting[pool], job)
            self._hand_out(pool)
        job.readers += 1
        try:
            # whoever asked may go away; others may be waiting for the same answer
            value = await asyncio.shield(job.answer)
        finally:
            job.readers -= 1
            if self._asked.get(key) is job and (job.answer.done() or not job.readers):
                del self._asked[key]
                self._drop(job)
        self._known[key] = value
        while len(self._known) > KEPT:
            self._known.popitem(last=False)
        return value

    def _hand_out(self, pool: str) -> None:
        """Give the most urgent questions to processes that have none."""
        for process in self._pools.get(pool, ()):
            if process not in self._busy and self._waiting[pool]:
                job = heapq.heappop(self._waiting[pool])
                self._busy[process] = job
                process.ask(job.number, job.function, job.arguments)

    def _drop(self, job: _Job) -> None:
        """Nobody waits for this any longer."""
        if job.answer.done():
            return
        job.answer.cancel()
        if job in self._waiting[job.pool]:
            self._waiting[job.pool].remove(job)
            heapq.heapify(self._waiting[job.pool])
        for process, current in self._busy.items():
            if current is job and self._loop is not None:
                process.call_off(job.number)
                self._loop.call_later(GRACE, self._insist, process, job)

    def _insist(self, process: Process, job: _Job) -> None:
        """End a process that has not dropped its question."""
        if self._busy.get(process) is job:
            process.end()  # its death is noticed, and it is replaced

    def _told(self, process: Process, answered: Answered | None) -> None:
        """A process says something, on its own thread; `None` is its end."""
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._heard, process, answered)
            except RuntimeError:  # the loop is closed: nobody waits
                return

    def _heard(self, process: Process, answered: Answered | None) -> None:
        pool = next((name for name, some in self._pools.items() if process in some), None)
        if pool is None:  # replaced, or everything is closed
            return
        job = self._busy.pop(process, None)
        if answered is None:
            process.end()
            self._pools[pool][self._pools[pool].index(process)] = self._made(pool)
            if job is not None:
                self._ask_again(job)
        elif job is not None and not job.answer.done():
            if answered.problem is not None:
                job.answer.set_exception(answered.problem)
            else:
                job.answer.set_result(answered.value)
        self._hand_out(pool)

    def _ask_again(self, job: _Job) -> None:
        """A process was killed (out of memory, by hand): ask another, once."""
        job.deaths += 1
        if job.answer.done():
            return
        if job.deaths > 1:
            job.answer.set_exception(WorkerDied("a worker process was terminated abruptly, twice"))
        else:
            heapq.heappush(self._waiting[job.pool], job)
