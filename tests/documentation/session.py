"""How each kind of block is run.

What a page's author has to know (CONTRIBUTING.md says the same):

* ``python`` blocks of a page share one namespace and run in order, as a doctest if they start
  with ``>>>``, otherwise as a script;
* ``console`` and ``sh`` blocks hold ``dpcheckin`` commands, run in order in the page's own folder.
  With a ``$ `` before the command, the lines below it are its output and are compared; output that
  starts with ``dpcheckin:`` is an error on standard error, with exit code 2;
* ``json``, ``yaml``, ``toml`` and ``ini`` blocks must parse; ``text`` is not code;
* ``…`` in a file stands for what the last command before it printed, as for the reader;
* what the markers above a block mean is in `blocks`.

Spaces and line breaks do not count in a comparison, and ``...`` stands for anything.
"""

from __future__ import annotations

import configparser
import contextlib
import doctest
import io
import json
import shlex
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from unittest.mock import patch

import yaml

from documentation.blocks import ROOT, Block, commands
from documentation.serving import Parties

LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
COMMANDS = {"console", "sh", "bash", "shell"}
DATA = {
    "json": json.loads,
    "yaml": yaml.safe_load,
    "toml": tomllib.loads,
    "ini": lambda text: configparser.ConfigParser(strict=False).read_string(text),
}
PROSE = {"text", "", "js"}  # scripts are tested in tests/web
# how commands below a marker may end; all others end with 0
EXIT_CODES = {"violated": (1,), "may be inconclusive": (0, 3)}


@dataclass
class Session:
    """Runs the blocks of one page one after the other, in one namespace and one folder."""

    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    printed: str = ""
    answered: str = ""

    def __enter__(self) -> Self:
        self.parties = Parties(self.folder)
        (self.folder / "examples").symlink_to(ROOT / "examples")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        wrong = self.parties.stop()
        assert kind is not None or not wrong, "\n".join(wrong)

    def run(self, block: Block) -> None:
        """Run one block; raises AssertionError with the place when it does not do as it says."""
        if block.marker == "not run":
            return
        if block.marker == "prints":
            self._compare(block, block.text, self.printed)
        elif block.language == "python":
            self._python(block)
        elif block.language in COMMANDS:
            for command, shown in commands(block.text):
                self._command(block, command, shown)
        elif block.language in DATA:
            self._parse(block)
        else:
            assert block.language in PROSE, f"{block}: no way to run this language"
        if block.marker == "file":
            self._write(block)

    def _python(self, block: Block) -> None:
        said, text = io.StringIO(), self.parties.here(block.text)
        if text.lstrip().startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(text, self.names, str(block), str(block.page), block.line)
            test.globs = self.names  # not a copy: the next block goes on from here
            runner = doctest.DocTestRunner(optionflags=LOOSE, verbose=False)
            with contextlib.chdir(self.folder):
                outcome = runner.run(test, out=said.write, clear_globs=False)
            assert outcome.failed == 0, said.getvalue()
            return
        # line numbers of a traceback are those of the page
        code = compile("\n" * block.line + text, str(block.page), "exec")
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(said):
            exec(code, self.names)
        self.printed = said.getvalue()

    def _command(self, block: Block, command: str, shown: str | None) -> None:
        if block.marker == "serves":
            self.parties.start(command)
            return
        code, said, complained = call(self.parties.here(command), self.folder)
        fails = shown is not None and shown.startswith("dpcheckin:")
        expected = (2,) if fails else EXIT_CODES.get(block.marker, (0,))
        assert code in expected, f"{block}: {command}\n{said}{complained}"
        if shown is not None:
            self._compare(block, shown, complained if fails else said)
        self.answered = said.strip()

    @staticmethod
    def _parse(block: Block) -> None:
        try:
            DATA[block.language](block.text)
        except (ValueError, yaml.YAMLError, configparser.Error) as problem:
            raise AssertionError(f"{block}: {problem}") from problem

    def _write(self, block: Block) -> None:
        file = self.folder / block.said
        assert file.resolve().is_relative_to(self.folder.resolve()), f"{block}: outside the folder"
        file.parent.mkdir(parents=True, exist_ok=True)
        text = self.parties.here(block.text)
        assert self.answered or "…" not in text, f"{block}: nothing was printed to stand here"
        file.write_text(text.replace("…", self.answered), encoding="utf-8")

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
