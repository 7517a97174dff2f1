"""Structured logs of the services: one JSON object a line, on standard error.

Only the fields an event is given are written: no addresses, no tokens, no paths, no headers.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any


class JsonLines(logging.Formatter):
    """time, level, event and the event's own fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + "Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


class BoundedRate(logging.Filter):
    """Lets warnings and errors of one kind through at a bounded rate: junk must not fill a disk.

    `burst` lines of a kind may come at once, `per_minute` on average by a clock of `monotonic` seconds. The line after
    a gap says how many were left out, under `suppressed`. Events below a warning are ours alone to cause, and pass.
    """

    _KINDS = 256  # kinds are texts in the code; should one hold a value after all, they share one

    def __init__(
        self, burst: int = 20, per_minute: float = 20.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._burst, self._rate, self._monotonic = float(burst), per_minute / 60.0, monotonic
        self._lock = threading.Lock()
        self._level: dict[tuple[str, str], tuple[float, float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        kind = (record.name, str(record.msg))
        with self._lock:
            if kind not in self._level and len(self._level) >= self._KINDS:
                kind = ("", "")
            now = self._monotonic()
            level, since, left_out = self._level.get(kind, (self._burst, now, 0))
            level = min(self._burst, level + max(0.0, now - since) * self._rate)
            if level < 1.0:
                self._level[kind] = (level, now, left_out + 1)
                return False
            self._level[kind] = (level - 1.0, now, 0)
        if left_out:
            record.fields = {**getattr(record, "fields", {}), "suppressed": left_out}
        return True


def set_up(logger: str, level: str) -> None:
    """Send a service's events from the severity `level` on, and the web server's warnings, to standard error; `logger`
    is the name of the service's, such as `dpcheckin.shuffler`.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(BoundedRate())
    for name, lowest in ((logger, level.upper()), ("uvicorn", "WARNING")):
        one = logging.getLogger(name)
        one.handlers, one.propagate = [handler], False
        one.setLevel(lowest)


def event(log: logging.Logger, name: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Write a line of severity `level` with `fields` to a party's `log`; lines are counted by `name`, one of few."""
    log.log(level, name, extra={"fields": fields})
