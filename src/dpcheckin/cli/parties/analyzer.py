"""`dpcheckin analyzer …`: run an analyzer, show its identity and budget, close a round, back it up."""

from __future__ import annotations

from pathlib import Path

import typer

from dpcheckin.cli.parties import preparing

_FOLDER = typer.Option(Path("analyzer-data"), "--folder", "-f", help="Settings, keys, ledger and checkpoint.")


def serve(
    folder: Path = _FOLDER,
    host: str | None = typer.Option(None, help="Address of the page."),
    port: int | None = typer.Option(None, help="Port of the page; 0: any."),
    stay: bool = typer.Option(False, "--stay", help="Keep the page up when the run is over."),
) -> None:
    """Run the plan in analyzer.toml: announce, charge, open, learn or count; survives crashes.

    The page is on http://HOST:PORT, health on /healthz, Prometheus metrics on /metrics. SIGHUP makes a new opening key
    with the next round.
    """
    import dataclasses

    from dpcheckin.deployment.survey_tasks import SurveyAnalyzerTask
    from dpcheckin.deployment.tasks import analyzer_task
    from dpcheckin.service.analyzer.server import serve as run
    from dpcheckin.service.analyzer.settings import read_settings

    settings = read_settings(folder)
    settings = dataclasses.replace(
        settings, host=settings.host if host is None else host, port=settings.port if port is None else port
    )
    settings, task, dimension = analyzer_task(settings)
    typer.echo(run(settings, task, dimension, stay=stay))
    if isinstance(task, SurveyAnalyzerTask) and task.finish():
        typer.echo(f"report: {folder / 'report.html'} (estimate.csv, .json and .png beside it)")


def identity(folder: Path = _FOLDER) -> None:
    """Print the analyzer's public identity, for the configurations of clients.

    It is made if the folder, which has to exist, has none.
    """
    from dpcheckin.service.analyzer.settings import identity_place

    preparing.print_identity(folder, place=identity_place(folder))


def budget(folder: Path = _FOLDER, as_json: bool = preparing.AS_JSON) -> None:
    """Show what was spent and what is left, by plan: of this folder, and of the fleet's common budget if it has one.

    May run beside an analyzer.
    """
    from dpcheckin.service.analyzer.ledger import view
    from dpcheckin.service.analyzer.settings import FILE, read_settings

    settings = read_settings(folder) if (folder / FILE).is_file() else None
    preparing.show_budget(view(folder, None if settings is None else settings.budget), as_json)


def close(
    folder: Path = _FOLDER, patience: float = typer.Option(10.0, help="Seconds in which the shuffler may answer.")
) -> None:
    """Close the round that an analyzer cannot get past, and destroy its reports at the shuffler; run it again after.

    The round is charged unless the shuffler says that nothing of it was or will be released. The analyzer must be
    stopped.
    """
    import threading

    from dpcheckin.deployment.tasks import analyzer_task
    from dpcheckin.service.analyzer.parties import ShufflerClient
    from dpcheckin.service.analyzer.server import open_analyzer
    from dpcheckin.service.analyzer.settings import read_settings

    settings, task, dimension = analyzer_task(read_settings(folder))
    stop = threading.Event()
    timer = threading.Timer(patience, stop.set)
    timer.start()
    shuffler = ShufflerClient(settings.shuffler, settings.token, settings.authority, stop)
    try:
        with open_analyzer(settings, task, dimension, shuffler, stop) as analyzer:
            typer.echo(analyzer.close_round())
    finally:
        timer.cancel()


def backup(
    out: Path = typer.Option(..., help="Write to this new file."),
    folder: Path = _FOLDER,
    with_keys: bool = typer.Option(
        False, "--with-keys", help="Opening keys too: what is sealed to them stays readable."
    ),
) -> None:
    """Write settings, identity, checkpoint, ledger and a survey's rounds to a file; may run beside an analyzer.

    The file is as secret as the folder.
    """
    from dpcheckin.service.analyzer.backup import backup as run

    typer.echo(f"{out}: {run(folder, out, with_keys=with_keys)} files")


def restore(
    file: Path = typer.Option(..., "--from", help="What `analyzer backup` wrote."), folder: Path = _FOLDER
) -> None:
    """Make an analyzer's folder from a backup; rounds released since then are charged when it runs.

    Never run two analyzers from one backup.
    """
    from dpcheckin.service.analyzer.backup import restore as run

    typer.echo(f"{folder}: {', '.join(run(folder, file))}")
