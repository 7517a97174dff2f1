"""`dpcheckin client run`: the agent on the side of the data's owner."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import typer


def run(
    config: Path = typer.Option(Path("client.toml"), "--config", "-c", help="The owner's limits."),
    log_level: str = typer.Option("info", help="debug, info, warning or error."),
) -> None:
    """Take part in a plan within the owner's limits, until interrupted or a limit is reached."""
    from dpcheckin.deployment.tasks import client_task
    from dpcheckin.errors import InvalidParameter
    from dpcheckin.service.client.config import read_config
    from dpcheckin.service.client.running import run_agent
    from dpcheckin.service.json_logs import JsonLines

    if log_level not in ("debug", "info", "warning", "error"):
        raise InvalidParameter("log_level", log_level, "debug, info, warning or error")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("dpcheckin.client")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(log_level.upper())
    found, data = read_config(config)
    run_agent(found, client_task(data, config.parent))
