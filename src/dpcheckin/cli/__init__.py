"""The command line. Commands are thin: they read arguments, call the library and print.

Nothing heavy is imported until a command runs.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NoReturn

import typer

from dpcheckin import __version__
from dpcheckin.errors import DpCheckinError

# command name -> (module, function); modules import what they need when they run.
# A name of two words is a command of a group, such as `analyzer serve`.
COMMANDS = {
    "epsilon": ("dpcheckin.cli.account", "epsilon"),
    "delta": ("dpcheckin.cli.account", "delta"),
    "plan": ("dpcheckin.cli.account", "plan"),
    "bounds": ("dpcheckin.cli.account", "bounds"),
    "demo": ("dpcheckin.cli.demo", "demo"),
    "compare": ("dpcheckin.cli.compare", "compare"),
    "reproduce": ("dpcheckin.cli.reproduce", "reproduce"),
    "train": ("dpcheckin.cli.train", "train"),
    "ui": ("dpcheckin.cli.ui", "ui"),
    "sweep": ("dpcheckin.cli.sweep", "sweep"),
    "flower agent": ("dpcheckin.cli.flower", "agent"),
    "flower fleet": ("dpcheckin.cli.flower", "fleet"),
    "audit": ("dpcheckin.cli.audit", "audit"),
    "shuffler serve": ("dpcheckin.cli.shuffler", "serve"),
    "shuffler init": ("dpcheckin.cli.shuffler", "init"),
    "shuffler enroll": ("dpcheckin.cli.shuffler", "enroll"),
    "shuffler rotate": ("dpcheckin.cli.shuffler", "rotate"),
    "shuffler revoke": ("dpcheckin.cli.shuffler", "revoke"),
    "analyzer serve": ("dpcheckin.cli.analyzer", "serve"),
    "analyzer identity": ("dpcheckin.cli.analyzer", "identity"),
    "client run": ("dpcheckin.cli.client", "run"),
    "deploy demo": ("dpcheckin.cli.deploy", "demo"),
}

GROUPS = {
    "shuffler": "The party between clients and analyzer.",
    "analyzer": "The party that trains the model.",
    "client": "The agent on the side of the data's owner.",
    "deploy": "The whole system on one machine.",
    "flower": "Fleets that run Flower.",
}


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpcheckin {__version__}")
        raise typer.Exit()


def application() -> typer.Typer:
    """The whole command tree."""
    app = typer.Typer(
        name="dpcheckin",
        help="Differential privacy for fleets whose clients decide for themselves.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def root(
        version: bool = typer.Option(
            False, "--version", help="Show the version.", callback=_version, is_eager=True
        ),
    ) -> None:
        pass

    groups: dict[str, typer.Typer] = {}
    for name, (module, function) in COMMANDS.items():
        group, _, own = name.rpartition(" ")
        if group and group not in groups:
            groups[group] = typer.Typer(no_args_is_help=True)
            app.add_typer(groups[group], name=group, help=GROUPS[group])
            groups[group].callback()(lambda: None)  # a group even when it has one command only
        place = groups[group] if group else app
        place.command(own)(getattr(import_module(module), function))
    return app


def main() -> None:
    """Entry point: bad input ends with exit code 2 and one line on standard error."""
    try:
        sys.exit(application()(standalone_mode=False) or 0)
    except DpCheckinError as problem:
        _stop(str(problem), 2)
    except (KeyboardInterrupt, EOFError):
        _stop("interrupted", 130)
    except OSError as problem:
        if problem.filename is None:
            raise
        _stop(f"{problem.filename}: {problem.strerror}", 2)  # a file or folder that cannot be used
    except Exception as problem:
        # the argument parser's own errors: unknown option, missing value, not a number
        if not hasattr(problem, "format_message"):
            raise
        code = getattr(problem, "exit_code", 2)
        message = " ".join(problem.format_message().split())
        if not message:  # the help was shown because nothing was asked for
            sys.exit(code)
        _stop(message, code)


def _stop(message: str, code: int) -> NoReturn:
    typer.echo(f"dpcheckin: {message}", err=True)
    sys.exit(code)
