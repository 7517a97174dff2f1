"""The worker processes: kept answers, shared questions, and life after a killed worker."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from dpcheckin.dashboard.workers import Workers


def number(_: str) -> int:
    """Which process answers."""
    return os.getpid()


def end_of(process: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return process


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers(processes=1)
    yield made
    made.close()


def test_a_question_is_computed_once_and_its_answer_kept(workers: Workers) -> None:
    async def ask() -> list[int]:
        together = await asyncio.gather(workers.soon(time_of_asking), workers.soon(time_of_asking))
        return [*together, await workers.soon(time_of_asking)]

    assert len(set(asyncio.run(ask()))) == 1


def time_of_asking() -> int:
    import time

    return time.perf_counter_ns()


def test_previews_and_plots_do_not_share_a_process_and_one_that_dies_is_replaced(
    workers: Workers,
) -> None:
    async def ask() -> tuple[int, int, int]:
        first, other = await workers.soon(number, "a"), await workers.later(number, "b")
        with pytest.raises(Exception, match="terminated abruptly"):
            await workers.soon(end_of, first)  # dies again when it is asked again
        return first, other, await workers.soon(time_of_asking)

    first, other, after = asyncio.run(ask())
    assert first != other and after > 0
