"""Group commit: reports that arrive while others are being written are written together next.

One thread owns the writing. The event loop hands it submissions and is told, once per group, what became of them; a
disk that syncs slowly makes groups larger, not clients slower in line.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.records import Submission
from dpcheckin.service.wire.problems import Problem

LARGEST_GROUP = 1024
LARGEST_GROUP_BYTES = 32 << 20


class _Waiting(NamedTuple):
    """Somebody who waits until it is written that a client is present in a round or, with a `submission`, sent it."""

    future: asyncio.Future[Any]
    serial: int
    client: bytes
    submission: Submission | None = None

    @property
    def size(self) -> int:
        return 0 if self.submission is None else len(self.submission.body)


class GroupCommitter:
    """How the shell makes reports and presence durable: one writer thread, which begins with the first of them."""

    def __init__(self, core: Shuffler) -> None:
        self._core = core
        self._jobs: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def submit(self, submission: Submission) -> Problem | None:
        """None once it is durable, else why it was not taken."""
        if self._core.store.immediate:
            return self._core.accept([submission])[0]
        answer: Problem | None = await self._put(submission.serial, submission.client, submission)
        return answer

    async def present(self, serial: int, client: bytes) -> bool:
        """True once the presence of `client` in the round `serial` is durable, False if the round is over."""
        return bool(await self._put(serial, client))

    def stop(self) -> None:
        """What was submitted is written, then it ends."""
        self._jobs.put(None)
        if self._thread is not None:
            self._thread.join()

    def _put(self, serial: int, client: bytes, submission: Submission | None = None) -> asyncio.Future[Any]:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="group-commit", daemon=True)
            self._thread.start()
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._jobs.put(_Waiting(future, serial, client, submission))
        return future

    def _run(self) -> None:
        ended = False
        while not ended and (job := self._jobs.get()) is not None:
            group, ended = self._waiting_group(job)
            answers = list(self._written(group))
            job.future.get_loop().call_soon_threadsafe(_resolve, answers)

    def _waiting_group(self, first: _Waiting) -> tuple[list[_Waiting], bool]:
        """Everything that waits already, up to a limit; and whether it is time to end."""
        group, size = [first], first.size
        while len(group) < LARGEST_GROUP and size < LARGEST_GROUP_BYTES:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return group, True
            group.append(job)
            size += job.size
        return group, False

    def _written(self, group: Sequence[_Waiting]) -> Iterator[tuple[asyncio.Future[Any], Any]]:
        """Write all submissions together, and who is present round by round; the answer to each who waits."""
        together: dict[int | None, list[_Waiting]] = {}
        for job in group:
            together.setdefault(job.serial if job.submission is None else None, []).append(job)
        for serial, jobs in together.items():
            answers: Sequence[Any]
            try:
                if serial is None:
                    answers = self._core.accept([job.submission for job in jobs if job.submission is not None])
                else:
                    answers = [self._core.mark_present(serial, [job.client for job in jobs])] * len(jobs)
            except Exception as problem:  # told to everybody who waits, whatever it is
                answers = [problem] * len(jobs)
            yield from zip([job.future for job in jobs], answers, strict=True)


def _resolve(answers: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, answer in answers:
        if future.done():  # whoever asked has hung up; what was written stays written
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
