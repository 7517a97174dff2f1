"""What commands say on a terminal: signs of life on standard error while they work, tables and sentences at the end.

A sign comes within a second, and then every few. On a terminal one line is written over and over and taken away at the
end; elsewhere each is a line of its own, so that a log shows that work goes on; the longer it takes, the rarer they
come.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

FIRST, THEN, RAREST = 0.9, 3.0, 60.0  # seconds
_BAR = 16  # characters


class Say(Protocol):
    """Takes what is being done, such as "round 7 of 20", and its share of all, from 0 to 1, where that is known."""

    def __call__(self, text: str, share: float | None = None) -> None:
        """Say this text and share with the next sign."""


@contextmanager
def waiting(what: str) -> Iterator[Say]:
    """Say of a command what is going on while the block runs; what it is given says how far it is."""
    on_terminal = sys.stderr.isatty()
    started, over = time.monotonic(), threading.Event()
    latest: list[tuple[str, float | None]] = [("", None)]

    def say() -> None:
        pause = FIRST
        while not over.wait(pause):
            seconds = time.monotonic() - started
            pause = 0.5 if on_terminal else min(max(THEN, seconds / 20), RAREST)
            line = f"dpcheckin {what}: {told(seconds, *latest[0], bar=on_terminal)}"
            sys.stderr.write(f"\r\x1b[K{line[:110]}" if on_terminal else f"{line}\n")
            sys.stderr.flush()

    def hear(text: str, share: float | None = None) -> None:
        latest[0] = text, share

    thread = threading.Thread(target=say, daemon=True)
    thread.start()
    try:
        yield hear
    finally:
        over.set()
        thread.join()
        if on_terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def told(seconds: float, text: str, share: float | None, *, bar: bool = False) -> str:
    """How many seconds it took, what is being done (text) and how long it may take, where its share is known.

    On request the share is drawn as a bar.

    >>> told(12.0, "round 5 of 20", 0.25)
    '12 s, round 5 of 20, about 36 s left'
    >>> told(3.0, "", 0.5, bar=True)
    '3 s, ━━━━━━━━╌╌╌╌╌╌╌╌, about 3 s left'
    """
    parts = [f"{seconds:.0f} s"]
    if bar and share is not None:
        full = round(_BAR * min(max(share, 0.0), 1.0))
        parts.append("━" * full + "╌" * (_BAR - full))
    if text:
        parts.append(text)
    if share is not None and 0.0 < share < 1.0:
        left = seconds * (1.0 - share) / share
        parts.append(f"about {left:.0f} s left" if left < 120 else f"about {left / 60:.0f} min left")
    return ", ".join(parts)


def print_table(
    rows: Iterable[Sequence[str]], *headings: str, title: str | None = None, width: int | None = None, **columns: Any
) -> None:
    """Print `rows` under their `headings`; without any, the first column says what the second is.

    Args:
        rows: of texts, which may have markup.
        headings: of the columns.
        title: above the table.
        width: of the page; None for the terminal's.
        columns: how `rich` is to set every column, such as overflow="fold".
    """
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, show_header=bool(headings))
    for heading in headings:
        table.add_column(heading, **columns)
    for row in rows:
        table.add_row(*row)
    Console(width=width).print(table)


def print_sentence(text: str) -> None:
    """Print a sentence as it is, in one line however long."""
    from rich.console import Console

    Console().print(text, highlight=False, soft_wrap=True)


def remark(line: str) -> None:
    """Say something at once, and beside what is printed as a result."""
    print(line, file=sys.stderr, flush=True)
