"""The command line. Commands are thin: they read arguments, call the library and print.

Nothing heavy is imported until a command runs. Every option that takes a number reads it as people type it
(`dpcheckin.numerals`); that is seen to when the tree of commands is made, so no command has to think of it.
"""

from __future__ import annotations

import inspect
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Annotated, Any, NoReturn, Union, get_args, get_origin

import typer
import typer.main
from typer.models import ParameterInfo

from dpcheckin import __version__
from dpcheckin.cli.arguments import Listing
from dpcheckin.cli.complaints import what_to_say
from dpcheckin.numerals import number, whole

# module -> its commands, in the order of the help; modules import what they need when they run. One that is called
# like a group has the group's commands, such as `analyzer serve`.
MODULES = {
    "account": "epsilon delta plan trust",
    "ui": "ui",
    "compare": "compare bounds",
    "reproduce": "reproduce",
    "demo": "demo",
    "advise": "advise",
    "train": "train",
    "utility": "utility",
    "sweep": "sweep",
    "survey": "plan run",
    "audit": "audit",
    "parties.deploy": "demo",
    "parties.shuffler": "serve init identity enroll rotate revoke backup restore",
    "parties.analyzer": "serve identity budget close backup restore",
    "parties.issuer": "init serve identity enroll revoke rekey backup restore",
    "parties.client": "run status",
    "parties.flower": "agent fleet",
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


def _commands() -> Iterator[tuple[str, tuple[str, str]]]:
    """The name of each command, with its module and function."""
    for module, functions in MODULES.items():
        group = module.rpartition(".")[2]
        for function in functions.split():
            yield f"{group} {function}" if group in GROUPS else function, (f"dpcheckin.cli.{module}", function)


COMMANDS = dict(_commands())


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
        version: bool = typer.Option(False, "--version", help="Show the version.", callback=_version, is_eager=True),
    ) -> None:
        pass

    groups: dict[str, typer.Typer] = {}
    for name, (module, function) in COMMANDS.items():
        group, _, own = name.rpartition(" ")
        if group and group not in groups:
            groups[group] = typer.Typer(no_args_is_help=True)
            app.add_typer(groups[group], name=group, help=GROUPS[group], rich_help_panel=_panel(group))
            groups[group].callback()(lambda: None)  # a group even when it has one command only
        place = groups[group] if group else app
        panel = None if group else _panel(own)
        command = getattr(import_module(module), function)
        _let_read_numbers(command)
        place.command(own, cls=Listing, rich_help_panel=panel)(command)
    return app


_READERS: dict[Any, tuple[Callable[[str], float], str]] = {float: (number, "NUMBER"), int: (whole, "INTEGER")}


def _let_read_numbers(command: Callable[..., Any]) -> None:
    """Let the number options and arguments of a command take 1e6, 60_000, 1/30 and 2%."""
    signature = inspect.signature(command, eval_str=True)
    for parameter in signature.parameters.values():
        about, kind = _described(parameter), _scalar(parameter.annotation)
        if about is not None and kind is bool:
            about.metavar = ""  # a flag takes no value; some versions of typer write <bool>
        reader, metavar = _READERS.get(kind, (None, None))
        if about is None or reader is None or about.parser is not None:
            continue
        about.parser = _within(reader, about.min, about.max)
        about.metavar = about.metavar or metavar
    # annotations that are text would be read anew, without what was just said of them
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}


def _within(read: Callable[[str], float], least: float | None, most: float | None) -> Callable[[Any], float]:
    """The reader as the parser wants it; limits are checked here, as typer forgets them."""

    def parse(value: Any) -> float:
        try:
            figure = read(value) if isinstance(value, str) else value
        except ValueError as problem:
            raise typer.BadParameter(str(problem)) from None
        if least is not None and not figure >= least:
            raise typer.BadParameter(f"{figure:,} is below {least:,}")
        if most is not None and not figure <= most:
            raise typer.BadParameter(f"{figure:,} is above {most:,}")
        return figure

    return parse


def _described(parameter: inspect.Parameter) -> ParameterInfo | None:
    """What typer is told of a parameter: as its default, or in its annotation."""
    places = [parameter.default, *getattr(parameter.annotation, "__metadata__", ())]
    return next((place for place in places if isinstance(place, ParameterInfo)), None)


def _scalar(kind: Any) -> Any:
    """The type of one value: of `list[float] | None`, float."""
    if get_origin(kind) in (Annotated, list):
        return _scalar(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        inner = [option for option in get_args(kind) if option is not type(None)]
        return _scalar(inner[0]) if len(inner) == 1 else None
    return kind


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
