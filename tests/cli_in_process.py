"""The command line in this process: what it prints, and the exit code it should end with."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from unittest import mock

from dpcheckin.cli import main

A_SIGN_OF_LIFE = re.compile(r"dpcheckin [a-z -]+: \d+ s\b.*\n")  # a busy machine shows some


def run_cli(*arguments: str, code: int = 0) -> str:
    """Standard output, or standard error if the command is to end with another code.

    Signs of life are left out: whether there are any depends on the machine.
    """
    out, err = io.StringIO(), io.StringIO()
    ended: object = 0
    with (
        mock.patch.object(sys, "argv", ["dpcheckin", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            ended = end.code or 0
    assert ended == code, err.getvalue()
    return out.getvalue() if code == 0 else A_SIGN_OF_LIFE.sub("", err.getvalue())
