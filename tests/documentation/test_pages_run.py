"""Every code block of every page runs, and prints what the page shows."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from documentation.blocks import PAGES, ROOT, Block, Session, blocks, name_of

MOST_NOT_RUN = 20


@contextlib.contextmanager
def one_thread(page: Path) -> Iterator[None]:
    """Training pages leave the other cores to the tests that run beside them."""
    if not re.search(r"dpcheckin (train|audit)|dpcheckin\.learning", page.read_text("utf-8")):
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_of_the_page_runs(page: Path, tmp_path: Path) -> None:
    session = Session(tmp_path)
    with one_thread(page):
        for block in blocks(page):
            session.run(block)


@pytest.mark.parametrize(
    ("page", "least"), [("errata.md", 30), ("gaussian-reports.md", 4), ("random-check-ins.md", 3)]
)
def test_the_theory_pages_have_their_examples(page: str, least: int) -> None:
    """So many statements are checked; a page whose examples went away would still run."""
    found = [block for block in blocks(ROOT / "docs" / page) if block.language == "python"]
    assert sum(block.text.count(">>> ") for block in found) >= least


def test_few_blocks_are_excused_and_each_says_why() -> None:
    excused = [block for page in PAGES for block in blocks(page) if block.not_run is not None]
    told = "\n".join(f"{block}: {block.not_run}" for block in excused)
    print(told)
    assert len(excused) <= MOST_NOT_RUN, told
    assert all(len(block.not_run or "") >= 15 for block in excused), told


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_command_hides_in_an_indented_block(page: Path) -> None:
    """Four spaces make a code block that nothing would run."""
    outside = re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert not re.findall(r"^(?: {4}|\t)\s*(?:\$ |>>> |dpcheckin ).*$", outside, flags=re.M)


# --- the runner itself can fail -------------------------------------------------------------


def block(language: str, text: str, **more: object) -> Block:
    return Block(PAGES[0], 1, language, text, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        block("python", ">>> 1 + 1\n3\n"),
        block("python", "assert False\n"),
        block("console", "$ dpcheckin --version\ndpcheckin 99\n"),
        block("console", "dpcheckin no-such-command\n"),
        block("console", "rm something\n"),
        block("cobol", "STOP RUN.\n"),
    ],
    ids=str,
)
def test_a_block_that_does_not_do_as_it_says_fails(wrong: Block, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        Session(tmp_path).run(wrong)


def test_what_a_script_prints_is_compared(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.run(block("python", "print('0.4   and more')\n"))
    session.run(block("text", "0.4 ...\n", prints=True))
    with pytest.raises(AssertionError, match="but this was printed"):
        session.run(block("text", "0.5\n", prints=True))


def test_an_excused_block_is_not_run(tmp_path: Path) -> None:
    Session(tmp_path).run(block("python", "assert False\n", not_run="it would fail"))


def test_markers_and_fences_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- not run: takes an hour -->\n\n```sh\ndpcheckin train\n```\n\n"
        "- item\n\n    ```python\n    x = 1\n    ```\n\n<!-- prints -->\n```text\n1\n```\n",
        encoding="utf-8",
    )
    first, second, third = blocks(page)
    assert (first.language, first.not_run, first.line) == ("sh", "takes an hour", 3)
    assert (second.language, second.text, second.not_run) == ("python", "x = 1\n", None)
    assert third.prints and third.text == "1\n"
