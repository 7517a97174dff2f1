"""`dpcheckin client …`: the agent on the side of the data's owner, and what it has given away."""

from __future__ import annotations

from pathlib import Path

import typer

from dpcheckin.cli.parties import preparing

_CONFIG = typer.Option(Path("client.toml"), "--config", "-c", help="The owner's limits.")


def run(config: Path = _CONFIG, log_level: str = typer.Option("info", help="debug, info, warning or error.")) -> None:
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


def status(config: Path = _CONFIG, as_json: bool = preparing.AS_JSON) -> None:
    """Show whether the agent runs, what it has spent and what its owner's limits leave, by plan.

    It reads the agent's files and asks nobody; how coins fell is not shown.
    """
    from dpcheckin.service.client.config import read_config
    from dpcheckin.service.client.status import status as found

    preparing.show_budget(found(read_config(config)[0]), as_json)
