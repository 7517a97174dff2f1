"""Running `dpcheckin …` inside the test's own process: what it printed and how it ended."""

from __future__ import annotations

import sys
from typing import NamedTuple, Protocol

import pytest

from dpcheckin.cli import main


class Ended(NamedTuple):
    code: int
    out: str
    err: str


class Cli(Protocol):
    def __call__(self, *arguments: str) -> Ended: ...


def runner(patch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> Cli:
    def run(*arguments: str) -> Ended:
        patch.setattr(sys, "argv", ["dpcheckin", *arguments])
        captured.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = captured.readouterr()
        return Ended(int(ended.value.code or 0), printed.out, printed.err)

    return run
