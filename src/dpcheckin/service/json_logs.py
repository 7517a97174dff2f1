"""Structured logs of the services: one JSON object a line, on standard error.

Only the fields an event is given are written: no addresses, no tokens, no paths, no headers.
"""

from __future__ import annotations

import json
import logging
import sys
import time
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


def set_up(logger: str, level: str) -> None:
    """Send a service's events and the web server's warnings to standard error.

    Args:
        logger: name of the service's logger, such as `dpcheckin.shuffler`.
        level: least severity of the events that are written: debug, info, warning or error.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name, lowest in ((logger, level.upper()), ("uvicorn", "WARNING")):
        one = logging.getLogger(name)
        one.handlers, one.propagate = [handler], False
        one.setLevel(lowest)
