"""`dpcheckin client run`: the agent on the side of the data's owner."""

from __future__ import annotations

from pathlib import Path

import typer


def run(
    config: Path = typer.Option(Path("client.toml"), "--config", "-c", help="The owner's limits."),
    log_level: str = typer.Option("info", help="debug, info, warning or error."),
) -> None:
    """Take part in a plan within the owner's limits, until interrupted or a limit is reached."""
    from dpcheckin.deployment.tasks import client_task
    from dpcheckin.service.client.config import read_config
    from dpcheckin.service.client.running import run_agent
    from dpcheckin.service.logs import set_up
    from dpcheckin.service.settings import check_level

    check_level(log_level)
    set_up("dpcheckin.client", log_level)
    settings, data = read_config(config)
    run_agent(settings, client_task(data, config.parent))
