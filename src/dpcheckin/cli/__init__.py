"""The command line. Commands are thin: they read arguments, call the library and print.

Nothing heavy is imported until a command runs.
"""

from __future__ import annotations

import re
import sys
from difflib import get_close_matches
from importlib import import_module
from itertools import pairwise
from typing import NoReturn

import typer
import typer.main

from dpcheckin import __version__
from dpcheckin.cli.numbers import reading_numbers
from dpcheckin.errors import DpCheckinError, InvalidParameter, MissingExtra

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
    "deploy demo": ("dpcheckin.cli.deploy", "demo"),
    "shuffler serve": ("dpcheckin.cli.shuffler", "serve"),
    "shuffler init": ("dpcheckin.cli.shuffler", "init"),
    "shuffler identity": ("dpcheckin.cli.shuffler", "identity"),
    "shuffler enroll": ("dpcheckin.cli.shuffler", "enroll"),
    "shuffler rotate": ("dpcheckin.cli.shuffler", "rotate"),
    "shuffler revoke": ("dpcheckin.cli.shuffler", "revoke"),
    "shuffler backup": ("dpcheckin.cli.shuffler", "backup"),
    "shuffler restore": ("dpcheckin.cli.shuffler", "restore"),
    "analyzer serve": ("dpcheckin.cli.analyzer", "serve"),
    "analyzer identity": ("dpcheckin.cli.analyzer", "identity"),
    "analyzer backup": ("dpcheckin.cli.analyzer", "backup"),
    "analyzer restore": ("dpcheckin.cli.analyzer", "restore"),
    "issuer init": ("dpcheckin.cli.issuer", "init"),
    "issuer serve": ("dpcheckin.cli.issuer", "serve"),
    "issuer identity": ("dpcheckin.cli.issuer", "identity"),
    "issuer enroll": ("dpcheckin.cli.issuer", "enroll"),
    "issuer revoke": ("dpcheckin.cli.issuer", "revoke"),
    "issuer rekey": ("dpcheckin.cli.issuer", "rekey"),
    "client run": ("dpcheckin.cli.client", "run"),
    "flower agent": ("dpcheckin.cli.flower", "agent"),
    "flower fleet": ("dpcheckin.cli.flower", "fleet"),
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


# libraries that only some commands need -> the extra that brings them
EXTRAS = {
    "matplotlib": "plot",
    "pandas": "frame",
    "dp_accounting": "bridge",
    "torch": "learning",
    "sklearn": "learning",
    "starlette": "ui",
    "uvicorn": "ui",
    "cryptography": "service",
    "httpx": "service",
    "psycopg": "service",
    "uvloop": "service",
    "httptools": "service",
    "flwr": "flower",
    "ray": "flower",
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
        place.command(own, rich_help_panel=panel)(command)
    return app


def _panel(name: str) -> str:
    return next((title for title, names in PANELS.items() if name in names), "More")


def main() -> None:
    """Entry point: bad input ends with exit code 2 and one line on standard error."""
    try:
        code = application()(standalone_mode=False) or 0
        if code == 130:  # the parser has caught the interrupt, and says nothing
            _stop("interrupted", code)
        sys.exit(code)
    except (KeyboardInterrupt, EOFError):
        _stop("interrupted", 130)
    except Exception as problem:
        said = _said(problem)
        if said is None:
            raise
        message, code = said
        if not message:  # the help was shown because nothing was asked for
            sys.exit(code)
        _stop(message, code)


def _said(problem: Exception) -> tuple[str, int] | None:
    """What is said of a problem that is not the program's own, and the exit code."""
    if isinstance(problem, InvalidParameter):
        return _as_typed(problem), 2
    if isinstance(problem, DpCheckinError):
        return str(problem), 2
    if isinstance(problem, ModuleNotFoundError):
        module = (problem.name or "").partition(".")[0]
        return (str(MissingExtra(module, EXTRAS[module])), 2) if module in EXTRAS else None
    if isinstance(problem, OSError) and problem.filename is not None:
        return f"{problem.filename}: {problem.strerror}", 2  # a file that cannot be used
    # the argument parser's own errors: unknown option, missing value, not a number
    if hasattr(problem, "format_message"):
        message = " ".join(problem.format_message().split())
        if message.count("Did you mean") > 1:  # the parser and its wrapper both have an idea
            message = re.sub(r" \(Did you mean one of: [^)]*\)$", "", message)
        hint = _hint(problem, sys.argv[1:])
        return hint or message + _meant(problem), getattr(problem, "exit_code", 2)
    return None


def _meant(problem: Exception) -> str:
    """The options that an unknown one may stand for, where the parser has no idea itself."""
    typed = str(getattr(problem, "option_name", None) or "").lstrip("-")
    if not typed or getattr(problem, "possibilities", ["none"]):
        return ""
    known = sorted(_options(sys.argv[1:]))
    alike = [name for name in known if name.startswith(typed)] or get_close_matches(typed, known, 2)
    return f" Did you mean {' or '.join(f'--{name}' for name in alike)}?" if alike else ""


def _hint(problem: Exception, arguments: list[str]) -> str:
    """What to type instead, where an option of training was given to a sweep over them."""
    option = str(getattr(problem, "option_name", "")).lstrip("-")
    if "sweep" not in arguments[:1] or option not in _options(["train"]):
        return ""
    value = next((v for o, v in pairwise(arguments) if o == f"--{option}"), "")
    for word in arguments:
        if word.startswith(f"--{option}="):
            value = word.partition("=")[2]
    verb = "over" if "," in value else "set"
    return f"a sweep has no --{option}: write --{verb} {option}={value or 'VALUE'}"


def _as_typed(problem: InvalidParameter) -> str:
    """The message about a parameter, in the words of the command line: options with dashes."""
    known = _options(sys.argv[1:])

    def dashed(text: str) -> str:
        for option in known:
            text = re.sub(rf"\b{option.replace('-', '_')}\b", option, text)
        return text

    name, allowed = problem.name.replace("_", "-"), dashed(problem.allowed)
    value = dashed(problem.value) if isinstance(problem.value, str) else problem.value
    if name not in known:
        return str(InvalidParameter(problem.name, problem.value, allowed))
    if value is None:
        return f"--{name} is needed: {allowed}"
    if "probability" in allowed and isinstance(value, float) and 1.0 < value <= 100.0:
        allowed += f", such as {value:g}%"
    return f"--{InvalidParameter(name, value, allowed)}"


def _options(arguments: list[str]) -> set[str]:
    """The long options of the command that was typed, without their dashes."""
    command = typer.main.get_command(application())
    for word in arguments:
        command = getattr(command, "commands", {}).get(word, command)
    return {text[2:] for one in command.params for text in one.opts if text.startswith("--")}


def _stop(message: str, code: int) -> NoReturn:
    typer.echo(f"dpcheckin: {message}", err=True)
    sys.exit(code)
