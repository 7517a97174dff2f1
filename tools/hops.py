"""Through how many files does an answer go? Prints those in which a function ran, in order.

    python tools/hops.py                      check-in, a window, Gaussian reports
    python tools/hops.py epsilon --rate …     any command

What runs while modules are imported does not count; the files that only hold data do not appear.
"""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import dpcheckin
from dpcheckin.cli import main

ROOT = Path(dpcheckin.__file__).parent
WALKS = (
    "epsilon --population 10000 --rate 0.01 --local-epsilon 2 --rounds 100 --delta 1e-4",
    "epsilon --protocol random-check-in-fixed --population 10000 --slots 1000 --local-epsilon 0.5 --delta 1e-6",
    "epsilon --population 10000 --rate 0.01 --noise-multiplier 2 --rounds 100 --delta 1e-4",
)
_FUNCTION = 0x1  # CO_OPTIMIZED: a function body, not that of a module or class


def importing(frame: FrameType | None) -> bool:
    """Does the frame run because a module is being imported?"""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename != __file__:
            return True
        if frame.f_code is main.__code__:
            return False
        frame = frame.f_back
    return True


def walk(arguments: list[str]) -> dict[str, set[str]]:
    """The files a command goes through, with the functions that ran in each."""
    entered: dict[str, set[str]] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_flags & _FUNCTION or code.co_name.startswith("<"):
            return
        path = Path(code.co_filename)
        if path.is_relative_to(ROOT) and not importing(frame):
            entered.setdefault(str(path.relative_to(ROOT)), set()).add(code.co_qualname)

    sys.argv = ["dpcheckin", *arguments]
    sys.setprofile(note)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            main()
    finally:
        sys.setprofile(None)
    return entered


if __name__ == "__main__":
    for arguments in [sys.argv[1:]] if len(sys.argv) > 1 else [text.split() for text in WALKS]:
        files = walk(arguments)
        print("dpcheckin " + " ".join(arguments))
        for name, functions in files.items():
            print(f"  {name}  ({len(functions)})")
        print(f"  {len(files)} files, {sum(map(len, files.values()))} functions\n")
