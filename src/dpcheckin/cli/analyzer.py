"""`dpcheckin analyzer …`: run an analyzer, show its identity."""

from __future__ import annotations

from pathlib import Path

import typer

_FOLDER = typer.Option(
    Path("analyzer-data"), "--folder", "-f", help="Settings, keys, ledger and checkpoint."
)


def serve(
    folder: Path = _FOLDER,
    host: str | None = typer.Option(None, help="Address of the page."),
    port: int | None = typer.Option(None, help="Port of the page; 0: any."),
    stay: bool = typer.Option(False, "--stay", help="Keep the page up when the run is over."),
) -> None:
    """Run the plan in analyzer.toml: announce rounds, charge, open, learn; resumes after a crash.

    The page is on http://HOST:PORT, health on /healthz, Prometheus metrics on /metrics. SIGHUP
    makes a new opening key with the next round.
    """
    import dataclasses

    from dpcheckin.deployment.tasks_by_name import analyzer_task
    from dpcheckin.service.analyzer.server import serve as run
    from dpcheckin.service.analyzer.settings import read_settings

    settings = read_settings(folder)
    settings = dataclasses.replace(
        settings,
        host=settings.host if host is None else host,
        port=settings.port if port is None else port,
    )
    task = analyzer_task(settings.task, float(settings.randomizer.get("clip", 1.0)))
    typer.echo(run(settings, task, task.dimension, stay=stay))


def identity(folder: Path = _FOLDER) -> None:
    """Print the analyzer's public identity, for the configurations of clients; made if missing."""
    from dpcheckin.service.analyzer.keys import load_identity
    from dpcheckin.service.wire.signing import public_identity

    typer.echo(public_identity(load_identity(folder)).hex())
