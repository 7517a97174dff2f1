"""Every code block of every page runs, and prints what the page shows."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from documentation.blocks import PAGES, ROOT, Block, blocks, commands, name_of
from documentation.session import Session
from dpcheckin.deployment.processes import Party
from dpcheckin.flower import turn_telemetry_off
from dpcheckin.service.storage.journal import Journal

EXCUSED = ["CONTRIBUTING.md", "README.md", "docs/browser.md", "docs/index.md"]


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


def check_both_clients_were_seen(folder: Path) -> None:
    """By the shuffler, which counted them, and in their own ledgers, in every round charged."""
    with Journal(folder / "analyzer-data" / "privacy.ledger") as ledger:
        charged = {entry.body["round"] for entry in ledger if entry.body["kind"] == "charge"}
    assert charged
    events = map(json.loads, (folder / "served-0.log").read_text("utf-8").splitlines())
    present = {e["round"]: e["present"] for e in events if e["event"] == "round closed"}
    assert all(present[number] == 2 for number in charged), present
    for device in ("device-0", "device-1"):
        with Journal(folder / device / "state" / "client.ledger") as ledger:
            assert charged <= {entry.body["round"] for entry in ledger}, device


# what must have come of a page, beyond what its own blocks say
AFTERWARDS = {"docs/deploying.md": check_both_clients_were_seen}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_of_the_page_runs(page: Path, tmp_path: Path) -> None:
    if "from flwr" in page.read_text("utf-8"):
        turn_telemetry_off()
        pytest.importorskip("flwr", reason="Flower is not installed (extra: flower)")
    with one_thread(page), Session(tmp_path) as session:
        for block in blocks(page):
            session.run(block)
    if name_of(page) in AFTERWARDS:
        AFTERWARDS[name_of(page)](tmp_path)


@pytest.mark.parametrize(("page", "least"), [("errata.md", 30), ("gaussian-reports.md", 4), ("random-check-ins.md", 3)])
def test_the_theory_pages_have_their_examples(page: str, least: int) -> None:
    """So many statements are checked; a page whose examples went away would still run."""
    found = [block for block in blocks(ROOT / "docs" / page) if block.language == "python"]
    assert sum(block.text.count(">>> ") for block in found) >= least


def test_only_what_makes_the_environment_is_excused() -> None:
    """The tests run in the environment that these blocks make, so they cannot run them."""
    excused = [b for page in PAGES for b in blocks(page) if b.marker == "not run"]
    assert sorted(name_of(b.page) for b in excused) == EXCUSED
    known = re.findall(r"^  (\w+) ", run_dev("help"), flags=re.M)
    for one in excused:
        assert len(one.said) >= 15, f"{one}: say why it is not run"
        for command, _ in commands(one.text):
            words = shlex.split(command, comments=True)
            makes = (["source", ".venv/bin/activate"], ["pip", "install", "."])
            assert words in makes or (words[0] == "./dev" and words[1] in known), command


def run_dev(*arguments: str) -> str:
    return subprocess.run([ROOT / "dev", *arguments], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_command_hides_in_an_indented_block(page: Path) -> None:
    """Four spaces make a code block that nothing would run."""
    outside = re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert not re.findall(r"^(?: {4}|\t)\s*(?:\$ |>>> |dpcheckin ).*$", outside, flags=re.M)


# --- the runner itself can fail -------------------------------------------------------------


def block(language: str, text: str, marker: str = "", said: str = "") -> Block:
    return Block(PAGES[0], 1, language, text, marker, said)


@pytest.mark.parametrize(
    "wrong",
    [
        block("python", ">>> 1 + 1\n3\n"),
        block("python", "assert False\n"),
        block("console", "$ dpcheckin --version\ndpcheckin 99\n"),
        block("console", "dpcheckin no-such-command\n"),
        block("console", "rm something\n"),
        block("console", "dpcheckin --version\n", "violated"),
        block("console", "dpcheckin no-such-command\n", "may be inconclusive"),
        block("console", "dpcheckin shuffler serve --port no\n", "serves"),
        block("console", "rm something\n", "serves"),
        block("toml", "a =\n", "file", "a.toml"),
        block("toml", 'a = "…"\n', "file", "a.toml"),
        block("text", "a\n", "file", "../a"),
        block("cobol", "STOP RUN.\n"),
    ],
    ids=str,
)
def test_a_block_that_does_not_do_as_it_says_fails(wrong: Block, tmp_path: Path) -> None:
    with pytest.raises(AssertionError), Session(tmp_path) as session:
        session.run(wrong)


def test_what_a_script_prints_is_compared(tmp_path: Path) -> None:
    with Session(tmp_path) as session:
        session.run(block("python", "print('0.4   and more')\n"))
        session.run(block("text", "0.4 ...\n", "prints"))
        with pytest.raises(AssertionError, match="but this was printed"):
            session.run(block("text", "0.5\n", "prints"))


def test_excused_blocks_are_not_run(tmp_path: Path) -> None:
    with Session(tmp_path) as session:
        session.run(block("python", "assert False\n", "not run", "it would fail"))


def test_a_file_holds_what_was_printed_and_this_pages_ports(tmp_path: Path) -> None:
    with Session(tmp_path) as session:
        session.run(block("console", "dpcheckin --version\n"))
        session.run(block("toml", 'version = "…"\nport = 8440\n', "file", "in/here.toml"))
        taken = session.parties.ports["8440"]
    written = (tmp_path / "in" / "here.toml").read_text(encoding="utf-8")
    assert re.fullmatch(rf'version = "dpcheckin [\d.]+"\nport = {taken}\n', written)


def test_what_does_not_end_when_it_is_told_to_is_noticed(tmp_path: Path) -> None:
    """The party is killed after all; the page has failed."""
    session = Session(tmp_path)
    with pytest.raises(AssertionError, match="exit code -15"), session:
        deaf = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        (tmp_path / "log").write_text("here I am\n")
        session.parties.running.append(Party("somebody", deaf, tmp_path / "log", {}))
    assert deaf.poll() is not None


def test_markers_and_fences_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- not run: takes an hour -->\n\n```sh\ndpcheckin train\n```\n\n<!-- table -->\nwords\n"
        "- item\n\n    ```python\n    x = 1\n    ```\n\n<!-- prints -->\n```text\n1\n```\n"
        "<!-- file: a/b.toml -->\n```toml\n```\n",
        encoding="utf-8",
    )
    first, second, third, fourth = blocks(page)
    assert (first.language, first.marker, first.line) == ("sh", "not run", 3)
    assert first.said == "takes an hour"
    assert (second.language, second.text, second.marker) == ("python", "x = 1\n", "")
    assert third.marker == "prints" and third.text == "1\n"
    assert (fourth.marker, fourth.said) == ("file", "a/b.toml")


def test_a_misspelt_marker_is_an_error(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- nor run: x -->\n```sh\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="no such marker"):
        blocks(page)


def test_the_scaling_page_is_short() -> None:
    """It was 2,650 words."""
    assert len((ROOT / "docs" / "scaling.md").read_text("utf-8").split()) <= 1325
