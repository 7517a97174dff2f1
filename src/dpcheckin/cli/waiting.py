"""A sign of life on standard error: within a second, and then every few.

On a terminal one line is written over and over and taken away at the end; elsewhere each is a line
of its own, so that a log shows that work goes on.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

FIRST, THEN = 0.9, 3.0  # seconds


@contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """Say what is going on while the block runs; what it is given says how far it is.

    Args:
        what: The command.
    """
    on_terminal = sys.stderr.isatty()
    started, over, latest = time.monotonic(), threading.Event(), [""]

    def say() -> None:
        pause = FIRST
        while not over.wait(pause):
            pause = 0.5 if on_terminal else THEN
            seconds = time.monotonic() - started
            line = f"dpcheckin {what}: {seconds:.0f} s" + (f", {latest[0]}" if latest[0] else "")
            text = f"\r\x1b[K{line[:110]}" if on_terminal else f"{line}\n"
            sys.stderr.write(text)
            sys.stderr.flush()

    thread = threading.Thread(target=say, daemon=True)
    thread.start()
    try:
        yield lambda text: latest.__setitem__(0, text)
    finally:
        over.set()
        thread.join()
        if on_terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
