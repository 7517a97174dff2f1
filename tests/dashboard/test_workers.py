"""The worker processes: kept answers, shared questions, questions nobody waits for any longer."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpcheckin.dashboard.workers import WorkerDied, Workers


def number(_: str) -> int:
    """Which process answers."""
    return os.getpid()


def end_of(process: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return process


def time_of_asking() -> int:
    return time.perf_counter_ns()


def refuse() -> None:
    raise ValueError("not like this")


def beat(file: str) -> None:
    """Compute for ever, and leave a trace of it."""
    if not Path(file).exists():  # whoever reads it meanwhile finds it whole
        Path(file).write_text(str(os.getpid()))
    while True:
        sum(range(10_000))
        Path(file).touch()


def deaf(file: str) -> None:
    """Compute for ever and take no for no answer."""
    while True:
        try:
            beat(file)
        except BaseException:
            continue


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    made = Workers(processes=1)
    yield made
    made.close()


def test_a_question_is_computed_once_and_its_answer_kept(workers: Workers) -> None:
    async def ask() -> list[int]:
        together = await asyncio.gather(workers.soon(time_of_asking), workers.soon(time_of_asking))
        return [*together, await workers.soon(time_of_asking)]

    assert len(set(asyncio.run(ask()))) == 1


def test_previews_and_plots_do_not_share_a_process_and_one_that_dies_is_replaced(workers: Workers) -> None:
    async def ask() -> tuple[int, int, int]:
        first, other = await workers.soon(number, "a"), await workers.later(number, "b")
        with pytest.raises(WorkerDied, match="terminated abruptly"):
            await workers.soon(end_of, first)  # dies again when it is asked again
        return first, other, await workers.soon(number, "again")

    first, other, after = asyncio.run(ask())
    assert len({first, other, after}) == 3


def test_what_goes_wrong_in_a_process_is_raised_where_it_was_asked(workers: Workers) -> None:
    async def ask() -> int:
        with pytest.raises(ValueError, match="not like this"):
            await workers.later(refuse)
        return int(await workers.later(number, "well"))

    assert asyncio.run(ask()) > 0


async def begun(file: Path) -> None:
    while not (file.exists() and file.read_text()):
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("play", [beat, deaf], ids=["ends", "is deaf"])
def test_a_question_without_readers_is_dropped_and_the_next_one_answered(
    workers: Workers, tmp_path: Path, play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process lives on, unless it does not listen: then it is replaced."""
    file = tmp_path / "beat"
    # on a busy machine one that listens may need long to drop its question
    monkeypatch.setattr("dpcheckin.dashboard.workers.GRACE", 600.0 if play is beat else 0.3)

    async def ask() -> tuple[int, int]:
        asked = asyncio.ensure_future(workers.later(play, str(file)))
        other = asyncio.ensure_future(workers.later(play, str(file)))
        await begun(file)
        asked.cancel()
        await asyncio.sleep(0.1)
        assert not other.done()  # somebody is still waiting
        other.cancel()
        after = await asyncio.wait_for(workers.later(number, f"after {play.__name__}"), 600)
        return int(file.read_text()), after

    computed, after = asyncio.run(ask())
    assert (computed == after) == (play is beat)
    file.unlink()
    time.sleep(0.2)
    assert not file.exists()


def test_a_question_that_waits_is_never_asked_once_its_reader_left(workers: Workers, tmp_path: Path) -> None:
    """And a statement goes before the points of lines that wait already."""
    one, two = tmp_path / "one", tmp_path / "two"

    async def ask() -> list[str]:
        order: list[str] = []

        async def told(name: str, answer) -> None:
            await answer
            order.append(name)

        first = asyncio.ensure_future(workers.later(beat, str(one)))
        await begun(one)
        second = asyncio.ensure_future(workers.later(beat, str(two)))
        line = asyncio.ensure_future(told("line", workers.later(number, "line")))
        await asyncio.sleep(0)
        statement = asyncio.ensure_future(told("statement", workers.next(number, "statement")))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait_for(asyncio.gather(line, statement), 600)
        return order

    assert asyncio.run(ask()) == ["statement", "line"]
    assert not two.exists()
