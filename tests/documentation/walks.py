"""The walks of docs/architecture.md: what the page says, and what a profiler sees of the same.

`hops` reads a walk from the page; `Entered` writes down every function of the package in the order
in which it is first entered, in all threads.
"""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Self

import dpcheckin
from documentation.blocks import ROOT

PACKAGE = Path(dpcheckin.__file__).parent
PAGE = ROOT / "docs" / "architecture.md"
_HOP = re.compile(r"^\| \d+ \| `([\w/]+\.py)` \| `([\w.]+)` \|", flags=re.M)

Hop = tuple[str, str]


def hops(heading: str) -> list[Hop]:
    """The (file, function) rows of the table under a heading, in order."""
    _, found, rest = PAGE.read_text(encoding="utf-8").partition(f"\n### {heading}\n")
    assert found, f"no walk is headed {heading!r}"
    return _HOP.findall(re.split(r"^#{2,3} ", rest, maxsplit=1, flags=re.M)[0])


class Entered:
    """Which functions of the package are entered while this is open."""

    def __init__(self) -> None:
        self._found: dict[Hop, None] = {}

    def __enter__(self) -> Self:
        self._before = sys.getprofile()
        threading.setprofile(self._look)
        sys.setprofile(self._look)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)
        threading.setprofile(self._before)

    def _look(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            file = Path(code.co_filename).relative_to(PACKAGE).as_posix()
            self._found.setdefault((file, code.co_qualname))

    @property
    def hops(self) -> list[Hop]:
        """Each once, in the order of its first call."""
        return list(self._found)
