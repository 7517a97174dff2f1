"""The shuffler's log: one JSON object a line, and nothing in it about any client."""

from __future__ import annotations

import logging
from typing import Any

from dpcheckin.service import json_logs

LOGGER = logging.getLogger("dpcheckin.shuffler")


def set_up(level: str = "info") -> None:
    """Send our events and the web server's warnings to standard error."""
    json_logs.set_up(LOGGER.name, level)


def event(name: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Write one line."""
    LOGGER.log(level, name, extra={"fields": fields})
