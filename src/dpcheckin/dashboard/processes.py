"""One worker process: a question in, an answer out, and a way to call a question off.

A signal ends a computation between two steps of Python, so the process lives on with everything it
has imported and kept; where there is no such signal (Windows) the process is replaced.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
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
    """A process and the thread that listens to it.

    Args:
        told: Called on that thread with each answer, and with None when the process has ended.
        lower_priority: Should others on this machine go first?
    """

    def __init__(
        self, told: Callable[[Process, Answered | None], None], *, lower_priority: bool
    ) -> None:
        # a fresh interpreter: forking a process that has threads is asking for trouble
        context = multiprocessing.get_context("spawn")
        self._told = told
        self._pipe, theirs = context.Pipe()
        self._off = context.Value("q", 0, lock=False)
        self._process = context.Process(
            target=_serve, args=(theirs, self._off, lower_priority), daemon=True
        )
        self._process.start()
        theirs.close()
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def pid(self) -> int | None:
        """Of the process."""
        return self._process.pid

    def ask(self, number: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Put a question; the process has answered the one before."""
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
