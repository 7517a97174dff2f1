"""Group commit: what waits together is written together."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from dpcheckin.service.shuffler.committer import GroupCommitter
from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.records import Submission
from dpcheckin.service.shuffler.stores.sqlite import MemoryStore
from dpcheckin.service.storage.database import StorageFailure
from dpcheckin.service.wire.problems import Problem
from service.shuffler_world import Clock, SeededChance


class Slow(MemoryStore):
    """A store for which it pays to wait for company, as for one on a disk."""

    immediate = False


class Recording(Shuffler):
    """A core that notes what it is asked, and can be told to fail or to wait."""

    def __init__(self) -> None:
        super().__init__(Slow(), clock=Clock(), chance=SeededChance())
        self.groups: list[int] = []
        self.entered, self.gate = threading.Event(), threading.Event()
        self.problem: Exception | None = None

    def accept(self, submissions: Any) -> list[Problem | None]:
        self.entered.set()
        self.gate.wait(120)
        self.groups.append(len(submissions))
        if self.problem is not None:
            raise self.problem
        return [None if s.body else Problem.DUPLICATE for s in submissions]

    def mark_present(self, serial: int, clients: Any) -> bool:
        self.gate.wait(120)
        if self.problem is not None:
            raise self.problem
        return serial == 1


def submission(body: bytes | None = b"x") -> Submission:
    return Submission(b"client", 1, 1e9, body)


def test_what_arrives_during_a_commit_is_committed_together() -> None:
    core = Recording()

    async def run() -> list[Any]:
        committer = GroupCommitter(core)
        first = asyncio.ensure_future(committer.submit(submission()))
        await asyncio.to_thread(core.entered.wait, 120)  # the writer has the first, and waits
        rest = [asyncio.ensure_future(committer.submit(submission(b""))) for _ in range(20)]
        there = [asyncio.ensure_future(committer.present(s, b"c")) for s in (1, 2, 1)]
        await asyncio.sleep(0.05)
        core.gate.set()
        answers = await asyncio.gather(first, *rest, *there)
        await asyncio.to_thread(committer.stop)
        return answers

    answers = asyncio.run(run())
    assert core.groups == [1, 20]
    assert answers == [None] + [Problem.DUPLICATE] * 20 + [True, False, True]


def test_a_failed_commit_is_told_to_all_who_waited_and_the_next_works() -> None:
    core = Recording()
    core.gate.set()
    core.problem = StorageFailure("full")

    async def run() -> Any:
        committer = GroupCommitter(core)
        failed = await asyncio.gather(
            committer.submit(submission()), committer.present(1, b"c"), return_exceptions=True
        )
        core.problem = None
        then = await committer.submit(submission())
        await asyncio.to_thread(committer.stop)
        return failed, then

    failed, then = asyncio.run(run())
    assert [type(problem) for problem in failed] == [StorageFailure, StorageFailure]
    assert then is None


def test_a_client_that_hangs_up_while_it_waits_disturbs_nobody() -> None:
    core = Recording()

    async def run() -> Any:
        committer = GroupCommitter(core)
        gone = asyncio.ensure_future(committer.submit(submission()))
        await asyncio.sleep(0.02)
        gone.cancel()
        stays = asyncio.ensure_future(committer.submit(submission()))
        await asyncio.sleep(0.02)
        core.gate.set()
        answer = await stays
        stopping = asyncio.to_thread(committer.stop)
        await stopping
        return answer

    assert asyncio.run(run()) is None
    assert sum(core.groups) == 2


def test_stopping_writes_what_was_submitted() -> None:
    core = Recording()

    async def run() -> list[Any]:
        committer = GroupCommitter(core)
        jobs = [asyncio.ensure_future(committer.submit(submission())) for _ in range(5)]
        await asyncio.sleep(0)
        stopping = asyncio.ensure_future(asyncio.to_thread(committer.stop))
        await asyncio.sleep(0.02)
        core.gate.set()
        await stopping
        return await asyncio.gather(*jobs)

    assert asyncio.run(run()) == [None] * 5
