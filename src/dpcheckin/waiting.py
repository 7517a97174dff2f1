"""A sign of life on standard error: within a second, and then every few.

On a terminal one line is written over and over and taken away at the end; elsewhere each is a line
of its own, so that a log shows that work goes on; the longer it takes, the rarer they come.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

FIRST, THEN, RAREST = 0.9, 3.0, 60.0  # seconds
_BAR = 16  # characters


class Say(Protocol):
    """Takes how far the work is."""

    def __call__(self, text: str, share: float | None = None) -> None:
        """Say so with the next sign.

        Args:
            text: What is being done, such as "round 7 of 20".
            share: How much of all is done, from 0 to 1, where that is known.
        """


@contextmanager
def waiting(what: str) -> Iterator[Say]:
    """Say what is going on while the block runs; what it is given says how far it is.

    Args:
        what: The command.
    """
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
    """How long it took, how far it is and how long it may take.

    Args:
        seconds: Since the beginning.
        text: What is being done.
        share: How much of all is done, where that is known.
        bar: Whether to draw that.

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
        parts.append(
            f"about {left:.0f} s left" if left < 120 else f"about {left / 60:.0f} min left"
        )
    return ", ".join(parts)
