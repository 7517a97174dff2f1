"""Structured logs: one JSON object a line, and nothing in it about any client.

Only the fields an event is given are written: no addresses, no tokens, no paths, no headers.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

LOGGER = logging.getLogger("dpcheckin.shuffler")


class JsonLines(logging.Formatter):
    """time, level, event and the event's own fields."""

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + "Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return json.dumps(said)


def set_up(level: str = "info") -> None:
    """Send our events and the web server's warnings to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name, lowest in (("dpcheckin.shuffler", level.upper()), ("uvicorn", "WARNING")):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(lowest)
        logger.propagate = False


def event(name: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Write one line."""
    LOGGER.log(level, name, extra={"fields": fields})
