"""The command line. Commands are thin: they read arguments, call the library and print.

Nothing heavy is imported until a command runs.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from typing import NoReturn

import typer
import typer.main

from dpcheckin import __version__
from dpcheckin.cli.arguments.numbers import reading_numbers
from dpcheckin.cli.arguments.options import Listing
from dpcheckin.cli.complaints import what_to_say

# command name -> (module, function), in the order of the help; modules import what they need when
# they run. A name of two words is a command of a group, such as `analyzer serve`.
COMMANDS = {
    "epsilon": ("dpcheckin.cli.account", "epsilon"),
    "delta": ("dpcheckin.cli.account", "delta"),
    "plan": ("dpcheckin.cli.account", "plan"),
    "trust": ("dpcheckin.cli.trust", "trust"),
    "ui": ("dpcheckin.cli.ui", "ui"),
    "compare": ("dpcheckin.cli.compare", "compare"),
    "bounds": ("dpcheckin.cli.compare", "bounds"),
    "reproduce": ("dpcheckin.cli.reproduce", "reproduce"),
    "demo": ("dpcheckin.cli.demo", "demo"),
    "advise": ("dpcheckin.cli.advise", "advise"),
    "train": ("dpcheckin.cli.train", "train"),
    "utility": ("dpcheckin.cli.utility", "utility"),
    "sweep": ("dpcheckin.cli.sweep", "sweep"),
    "survey plan": ("dpcheckin.cli.survey", "plan"),
    "survey run": ("dpcheckin.cli.survey", "run"),
    "audit": ("dpcheckin.cli.audit", "audit"),
    "deploy demo": ("dpcheckin.cli.parties.deploy", "demo"),
    "shuffler serve": ("dpcheckin.cli.parties.shuffler", "serve"),
    "shuffler init": ("dpcheckin.cli.parties.shuffler", "init"),
    "shuffler identity": ("dpcheckin.cli.parties.shuffler", "identity"),
    "shuffler enroll": ("dpcheckin.cli.parties.shuffler", "enroll"),
    "shuffler rotate": ("dpcheckin.cli.parties.shuffler", "rotate"),
    "shuffler revoke": ("dpcheckin.cli.parties.shuffler", "revoke"),
    "shuffler backup": ("dpcheckin.cli.parties.shuffler", "backup"),
    "shuffler restore": ("dpcheckin.cli.parties.shuffler", "restore"),
    "analyzer serve": ("dpcheckin.cli.parties.analyzer", "serve"),
    "analyzer identity": ("dpcheckin.cli.parties.analyzer", "identity"),
    "analyzer backup": ("dpcheckin.cli.parties.analyzer", "backup"),
    "analyzer restore": ("dpcheckin.cli.parties.analyzer", "restore"),
    "issuer init": ("dpcheckin.cli.parties.issuer", "init"),
    "issuer serve": ("dpcheckin.cli.parties.issuer", "serve"),
    "issuer identity": ("dpcheckin.cli.parties.issuer", "identity"),
    "issuer enroll": ("dpcheckin.cli.parties.issuer", "enroll"),
    "issuer revoke": ("dpcheckin.cli.parties.issuer", "revoke"),
    "issuer rekey": ("dpcheckin.cli.parties.issuer", "rekey"),
    "client run": ("dpcheckin.cli.parties.client", "run"),
    "flower agent": ("dpcheckin.cli.parties.flower", "agent"),
    "flower fleet": ("dpcheckin.cli.parties.flower", "fleet"),
}

# the boxes of the help, by what people come for
PANELS = {
    "What is guaranteed": ("epsilon", "delta", "plan", "trust", "ui"),
    "What others say": ("compare", "bounds", "reproduce", "demo"),
    "Fleets in simulation": ("advise", "train", "utility", "sweep", "survey", "audit"),
    "Fleets that run": ("deploy", "shuffler", "analyzer", "issuer", "client", "flower"),
}

GROUPS = {
    "shuffler": "The party between clients and analyzer.",
    "analyzer": "The party that trains the model or asks the questions.",
    "issuer": "The party that signs one report token for each client and round.",
    "client": "The agent on the side of the data's owner.",
    "deploy": "The whole system on one machine.",
    "survey": "Questions to a fleet: counts, means, quantiles, heavy hitters.",
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
            app.add_typer(
                groups[group], name=group, help=GROUPS[group], rich_help_panel=_panel(group)
            )
            groups[group].callback()(lambda: None)  # a group even when it has one command only
        place = groups[group] if group else app
        panel = None if group else _panel(own)
        command = reading_numbers(getattr(import_module(module), function))
        place.command(own, cls=Listing, rich_help_panel=panel)(command)
    return app


def _panel(name: str) -> str:
    return next((title for title, names in PANELS.items() if name in names), "More")


def main() -> None:
    """Entry point: bad input ends with exit code 2 and one line on standard error."""
    warnings.formatwarning = lambda said, *_, **__: f"dpcheckin: {said}\n"
    try:
        code = application()(standalone_mode=False) or 0
        if code == 130:  # the parser has caught the interrupt, and says nothing
            _stop("interrupted", code)
        sys.exit(code)
    except (KeyboardInterrupt, EOFError):
        _stop("interrupted", 130)
    except Exception as problem:
        said = what_to_say(problem, typer.main.get_command(application()), sys.argv[1:])
        if said is None:
            raise
        message, code = said
        if not message:  # the help was shown because nothing was asked for
            sys.exit(code)
        _stop(message, code)


def _stop(message: str, code: int) -> NoReturn:
    typer.echo(f"dpcheckin: {message}", err=True)
    sys.exit(code)
