"""Code blocks of a Markdown page, and how each kind of block is run.

What a page's author has to know (CONTRIBUTING.md says the same):

* ``python`` blocks of a page share one namespace and run in order, as a doctest if they start
  with ``>>>``, otherwise as a script;
* ``console`` and ``sh`` blocks hold ``dpcheckin`` commands, run in order in the page's own folder.
  With a ``$ `` before the command, the lines below it are its output and are compared; output that
  starts with ``dpcheckin:`` is an error on standard error, with exit code 2;
* a ``text`` block after ``<!-- prints -->`` is what the Python block before it prints;
* ``json``, ``yaml``, ``toml`` and ``ini`` blocks must parse; ``text`` is not code;
* ``<!-- not run: reason -->`` above a block excuses it, with the reason.

Spaces and line breaks do not count in a comparison, and ``...`` stands for anything.
"""

from __future__ import annotations

import configparser
import contextlib
import doctest
import io
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")],
)

LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
COMMANDS = {"console", "sh", "bash", "shell"}
DATA = {
    "json": json.loads,
    "yaml": yaml.safe_load,
    "toml": tomllib.loads,
    "ini": lambda text: configparser.ConfigParser(strict=False).read_string(text),
}
PROSE = {"text", ""}

_FENCE = re.compile(r"^( *)(`{3,}|~{3,}) *([\w+-]*)[^\n`]*$")
_MARKER = re.compile(r"^ *<!-- (not run: (?P<reason>.+)|prints) -->\s*$")


def name_of(page: Path) -> str:
    """The page as the tests name it."""
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Block:
    """One fenced block: where it starts, what it is, and the marker above it, if any."""

    page: Path
    line: int
    language: str
    text: str
    not_run: str | None = None
    prints: bool = False

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line} ({self.language or 'no language'})"


def blocks(page: Path) -> list[Block]:
    """Every fenced block of the page, in order."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    marker: re.Match[str] | None = None
    number = 0
    while number < len(lines):
        line = lines[number]
        fence = _FENCE.match(line)
        if fence is None:
            if line.strip():
                marker = _MARKER.match(line)
            number += 1
            continue
        indent, ticks, language = fence.groups()
        end = number + 1
        while lines[end].strip() != ticks:  # an unclosed fence is an IndexError: mend the page
            end += 1
        text = "\n".join(part.removeprefix(indent) for part in lines[number + 1 : end]) + "\n"
        reason = marker["reason"] if marker else None
        prints = marker is not None and reason is None
        found.append(Block(page, number + 1, language, text, reason, prints))
        marker = None
        number = end + 1
    return found


def commands(text: str) -> Iterator[tuple[str, str | None]]:
    """Each command of a console block with the output shown for it, None if none is shown."""
    joined = text.replace("\\\n", " ")
    if not re.search(r"^\$ ", joined, flags=re.MULTILINE):
        for line in joined.splitlines():
            if line.strip() and not line.startswith("#"):
                yield line, None
        return
    for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output if output.strip() else None


@dataclass
class Session:
    """Runs the blocks of one page one after the other, in one namespace and one folder."""

    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    printed: str = ""

    def run(self, block: Block) -> None:
        """Run one block; raises AssertionError with the place when it does not do as it says."""
        if block.not_run is not None:
            return
        if block.prints:
            self._compare(block, block.text, self.printed)
        elif block.language == "python":
            self._python(block)
        elif block.language in COMMANDS:
            for command, shown in commands(block.text):
                self._command(block, command, shown)
        elif block.language in DATA:
            DATA[block.language](block.text)
        else:
            assert block.language in PROSE, f"{block}: no way to run this language"

    def _python(self, block: Block) -> None:
        said = io.StringIO()
        if block.text.lstrip().startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(
                block.text, self.names, str(block), str(block.page), block.line
            )
            test.globs = self.names  # not a copy: the next block goes on from here
            runner = doctest.DocTestRunner(optionflags=LOOSE, verbose=False)
            with contextlib.chdir(self.folder):
                outcome = runner.run(test, out=said.write, clear_globs=False)
            assert outcome.failed == 0, said.getvalue()
            return
        # line numbers of a traceback are those of the page
        code = compile("\n" * block.line + block.text, str(block.page), "exec")
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(said):
            exec(code, self.names)
        self.printed = said.getvalue()

    def _command(self, block: Block, command: str, shown: str | None) -> None:
        code, said, complained = call(command, self.folder)
        fails = shown is not None and shown.startswith("dpcheckin:")
        assert code == (2 if fails else 0), f"{block}: {command}\n{said}{complained}"
        if shown is not None:
            self._compare(block, shown, complained if fails else said)

    @staticmethod
    def _compare(block: Block, shown: str, said: str) -> None:
        same = doctest.OutputChecker().check_output(shown, said, LOOSE)
        assert same, f"{block} shows\n{shown}\nbut this was printed\n{said}"


def call(command: str, folder: Path) -> tuple[int, str, str]:
    """Exit code, output and complaints of a dpcheckin command, run in this process."""
    from dpcheckin.cli import main

    words = shlex.split(command, comments=True)
    assert words[0] == "dpcheckin", f"only dpcheckin commands are run, not: {command}"
    said, complained = io.StringIO(), io.StringIO()
    code: object = 0
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(complained),
        patch.object(sys, "argv", words),
        patch.dict("os.environ", {"COLUMNS": "100", "NO_COLOR": "1"}),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code
    return int(code or 0) if isinstance(code, int) else 1, said.getvalue(), complained.getvalue()
