"""Group commit: reports that arrive while others are being written are written together next.

One thread owns the writing. The event loop hands it submissions and is told, once per group, what became of them; a
disk that syncs slowly makes groups larger, not clients slower in line.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.records import Submission
from dpcheckin.service.wire.problems import Problem

LARGEST_GROUP = 1024
LARGEST_GROUP_BYTES = 32 << 20


class Committer:
    """How the shell makes reports and presence durable: at once, which suits a store in memory.

    There, waiting for company would only cost time.
    """

    def __init__(self, core: Shuffler) -> None:
        self._core = core

    async def submit(self, submission: Submission) -> Problem | None:
        """None once it is durable, else why it was not taken."""
        return self._core.accept((submission,))[0]

    async def present(self, serial: int, client: bytes) -> bool:
        """True once the presence of `client` in the round `serial` is durable, False if the round is over."""
        return self._core.mark_present(serial, (client,))

    def start(self) -> None:
        """Inside the event loop, before the first request."""

    def stop(self) -> None:
        """What was submitted is written, then it ends."""


@dataclass(frozen=True, slots=True)
class _Job:
    """A submission, or (serial, client) who is present, and who waits for the answer."""

    future: asyncio.Future[Problem | bool | None]
    submission: Submission | None
    present: tuple[int, bytes] | None

    @property
    def size(self) -> int:
        return 0 if self.submission is None else len(self.submission.body)


_Answer = tuple["asyncio.Future[Problem | bool | None]", "Problem | bool | BaseException | None"]


class GroupCommitter(Committer):
    """One writer thread for one event loop."""

    def __init__(self, core: Shuffler) -> None:
        super().__init__(core)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="group-commit", daemon=True)

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self) -> None:
        self._jobs.put(None)
        self._thread.join()

    async def submit(self, submission: Submission) -> Problem | None:
        answer = await self._put(submission, None)
        assert not isinstance(answer, bool)
        return answer

    async def present(self, serial: int, client: bytes) -> bool:
        return bool(await self._put(None, (serial, client)))

    def _put(
        self, submission: Submission | None, present: tuple[int, bytes] | None
    ) -> asyncio.Future[Problem | bool | None]:
        assert self._loop is not None, "started before the first request"
        future: asyncio.Future[Problem | bool | None] = self._loop.create_future()
        self._jobs.put(_Job(future, submission, present))
        return future

    def _run(self) -> None:
        assert self._loop is not None
        while (job := self._jobs.get()) is not None:
            group, ended = self._waiting_group(job)
            answers = self._submissions(group) + self._presence(group)
            self._loop.call_soon_threadsafe(_resolve, answers)
            if ended:
                break

    def _waiting_group(self, first: _Job) -> tuple[list[_Job], bool]:
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

    def _submissions(self, group: Sequence[_Job]) -> list[_Answer]:
        jobs = [job for job in group if job.submission is not None]
        if not jobs:
            return []
        try:
            answers = self._core.accept([j.submission for j in jobs if j.submission is not None])
        except Exception as problem:  # told to everybody who waits, whatever it is
            return [(job.future, problem) for job in jobs]
        return [(job.future, answer) for job, answer in zip(jobs, answers, strict=True)]

    def _presence(self, group: Sequence[_Job]) -> list[_Answer]:
        by_round: dict[int, list[_Job]] = {}
        for job in group:
            if job.present is not None:
                by_round.setdefault(job.present[0], []).append(job)
        answers: list[_Answer] = []
        for serial, jobs in by_round.items():
            answer: bool | Exception
            try:
                clients = [job.present[1] for job in jobs if job.present is not None]
                answer = self._core.mark_present(serial, clients)
            except Exception as problem:
                answer = problem
            answers += [(job.future, answer) for job in jobs]
        return answers


def _resolve(answers: list[_Answer]) -> None:
    for future, answer in answers:
        if future.done():  # whoever asked has hung up; what was written stays written
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
