"""`dpcheckin flower …`: the agent behind a doorbell, and a whole fleet on one machine."""

from __future__ import annotations

import json as json_format
import sys
from pathlib import Path

import typer

from dpcheckin.cli.account import print_coalitions
from dpcheckin.cli.arguments import check_empty, need
from dpcheckin.console import waiting


def agent(
    config: Path = typer.Option(Path("client.toml"), "--config", "-c", help="The owner's limits."),
    doorbell: Path = typer.Option(Path("doorbell"), help="Mailbox that the node's doorbell drops rings into."),
    quiet: float = typer.Option(2.0, help="Seconds after a ring in which nothing is done."),
) -> None:
    """Take part in rounds that a Flower node is rung for, within the owner's limits.

    The same agent as `dpcheckin client run`; it wakes when the bell rings and takes the model from the ring. Give the
    mailbox to the node: --node-config 'doorbell="/path"'.
    """
    import asyncio
    import contextlib
    import logging

    from dpcheckin.deployment.tasks import client_task
    from dpcheckin.flower.host import Host, delivering_client, run_hosts
    from dpcheckin.flower.mailbox import Mailbox
    from dpcheckin.service.client.config import read_config
    from dpcheckin.service.client.running import opened_daemon
    from dpcheckin.service.storage.files import make_folder

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(name)s: %(message)s")
    settings, data = read_config(config)
    task = client_task(data, config.parent)
    make_folder(settings.state)

    async def work() -> None:
        async with contextlib.AsyncExitStack() as lines:
            http, delivered = delivering_client(settings.shuffler, settings.authority)
            lines.push_async_callback(http.aclose)
            daemon = await opened_daemon(settings, task, http, lines)
            lines.callback(daemon.close)
            await run_hosts([Host([daemon], Mailbox(doorbell), delivered, quiet)])

    asyncio.run(work())


def fleet(
    app: Path = typer.Option(Path("."), help="Folder of the Flower app to run."),
    out: Path = typer.Option(Path("flower-fleet"), help="New folder for everything."),
    nodes: int = typer.Option(3, min=1, help="SuperNodes."),
    clients: int = typer.Option(150, help="Clients, each with an agent, spread over the nodes."),
    rounds: int = typer.Option(8, min=1, help="Rounds of the plan."),
    round_seconds: float | None = typer.Option(
        None, min=1, help="Length of a round; without it, what this machine needs."
    ),
    rate: float = typer.Option(0.5, help="Check-in rate."),
    local_epsilon: float = typer.Option(6.0, help="Epsilon of one report."),
    epsilon_budget: float = typer.Option(40.0, help="The analyzer stops before passing it."),
    issuer: bool = typer.Option(True, "--issuer/--no-issuer", help="Report tokens."),
    json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Start shuffler, SuperLink, SuperNodes and agents on this machine, and run a Flower app.

    Everything listens on the loopback interface and is stopped at the end. The clients share the digits that come with
    scikit-learn. With so few of them epsilon is large: it shows how the parts work together, not what a fleet can
    promise.
    """
    from dpcheckin.deployment.options import DemoOptions
    from dpcheckin.errors import InvalidParameter
    from dpcheckin.flower import turn_telemetry_off

    turn_telemetry_off()
    need("flwr", "cryptography", "httpx", "starlette", "uvicorn", "torch")
    from dpcheckin.flower.fleet import FlowerFleet
    from dpcheckin.flower.fleet import round_seconds as needed
    from dpcheckin.flower.host import QUIET_SECONDS
    from dpcheckin.protocols.coalitions import Coalition

    check_empty(out)
    if not (app / "pyproject.toml").is_file():
        raise InvalidParameter("app", str(app), "the folder of a Flower app (pyproject.toml)")
    length = needed(QUIET_SECONDS) if round_seconds is None else round_seconds
    options = DemoOptions(
        clients=clients,
        processes=nodes,
        rounds=rounds,
        round_seconds=round(length, 1),
        rate=rate,
        local_epsilon=local_epsilon,
        epsilon_budget=epsilon_budget,
        absent=0.4,
        minimum_batch=5,
        rotate_every=0,
        issuer=issuer,
    )
    with waiting("flower fleet") as say, FlowerFleet(out, options) as started:
        say("starting")
        started.start()
        run = started.submit(app.absolute())
        say(f"run {run}, 0 of {rounds:,} rounds")
        result = started.wait(
            run,
            # on a busy machine rounds are void, and become up to eight times as long
            patience=600 + 16 * rounds * length,
            watch=lambda done: say(f"run {run}, {done:,} of {rounds:,} rounds", done / rounds),
        )
    if json:
        typer.echo(json_format.dumps(result))
        return
    for row in result["rounds"]:
        accuracy = f"  accuracy {100 * row['accuracy']:.1f} %" if "accuracy" in row else ""
        typer.echo(f"round {row['round']}: {row['state']}, {row['present']} present{accuracy}")
    typer.echo(f"test accuracy {100 * result['metrics']['accuracy']:.1f} %")
    print_coalitions([Coalition.from_json(one) for one in result["coalitions"]], issuer=issuer)
    typer.echo(result["statement"] or "nothing was released")
