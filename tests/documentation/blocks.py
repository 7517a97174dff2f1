"""Code blocks of a Markdown page and the markers above them; `session` runs them.

A marker is a comment on a line of its own, right above the block:

* ``<!-- prints -->``: what the Python block before it prints;
* ``<!-- file: PATH -->``: a file, to be written in the page's folder;
* ``<!-- serves -->``: commands that run until they are stopped, at the end of the page;
* ``<!-- violated -->``: commands that end with exit code 1, as an audit does that refutes a claim;
* ``<!-- may be inconclusive -->``: the same, but with 0 or 3: its chance cannot be seeded;
* ``<!-- not run: reason -->``: excused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
MARKERS = ("prints", "file", "serves", "violated", "may be inconclusive", "not run")

_FENCE = re.compile(r"^( *)(`{3,}|~{3,}) *([\w+-]*)[^\n`]*$")
_COMMENT = re.compile(r"^ *<!-- (?P<name>[a-z ]+?)(?:: (?P<said>.+))? -->\s*$")


def name_of(page: Path) -> str:
    """The page as the tests name it."""
    return (page.relative_to(ROOT) if page.is_relative_to(ROOT) else page).as_posix()


@dataclass(frozen=True)
class Block:
    """One fenced block: where it starts, what it is, and the marker above it, if any."""

    page: Path
    line: int
    language: str
    text: str
    marker: str = ""
    said: str = ""
    """What the marker says after its name: a path, a reason, how long."""

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line} ({self.language or 'no language'})"


def blocks(page: Path) -> list[Block]:
    """Every fenced block of the page, in order."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    marker, said = "", ""
    number = 0
    while number < len(lines):
        line = lines[number]
        fence = _FENCE.match(line)
        if fence is None:
            if line.strip():
                marker, said = _marker(line)
            number += 1
            continue
        indent, ticks, language = fence.groups()
        end = number + 1
        while lines[end].strip() != ticks:  # an unclosed fence is an IndexError: mend the page
            end += 1
        assert marker in ("", *MARKERS), f"{name_of(page)}:{number}: no such marker"
        text = "\n".join(part.removeprefix(indent) for part in lines[number + 1 : end]) + "\n"
        found.append(Block(page, number + 1, language, text, marker, said))
        marker, said = "", ""
        number = end + 1
    return found


def _marker(line: str) -> tuple[str, str]:
    comment = _COMMENT.match(line)
    return ("", "") if comment is None else (comment["name"], comment["said"] or "")


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
