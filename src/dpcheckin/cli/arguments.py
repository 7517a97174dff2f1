"""From a dataclass of options to the arguments of a command, and what is asked of arguments before work begins.

`options_from(Kind)` decorates a command that takes one argument, an instance of `Kind`, beside arguments of its own:
typer is shown one option for every option of the dataclass instead (`dpcheckin.options`), and what was typed arrives as
that one instance. `takes_run` does so with the fields of a run, which arrive by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from dpcheckin.errors import InvalidParameter, MissingExtra
from dpcheckin.options import Option, changed, listed, options_of
from dpcheckin.protocols.questions import RunQuestion

Command = Callable[..., None]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
RANDOMIZERS, VECTOR_RANDOMIZERS, AUDITED_RANDOMIZERS = "{any}", "{vectors}", "{audited}"
"""Stand in a help text for lists of randomizers: to load the registry takes what help must not."""


class Listing(TyperCommand):
    """A command whose help texts are filled with lists once they are shown."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, lists filled in; `ctx` and `formatter` are the parser's."""
        fill_lists(self)
        super().format_help(ctx, formatter)


def fill_lists(command: Any) -> None:
    """Put the names of randomizers where they are wanted in the help texts of a command of the tree."""
    for parameter in command.params:
        text = getattr(parameter, "help", None) or ""
        for sign in (RANDOMIZERS, VECTOR_RANDOMIZERS, AUDITED_RANDOMIZERS):
            if sign in text:
                parameter.help = text.replace(sign, listed(_randomizers(sign)))


def _randomizers(sign: str) -> tuple[str, ...]:
    from dpcheckin.randomizers import Randomizer, VectorRandomizer
    from dpcheckin.randomizers.registry import usages

    if sign == VECTOR_RANDOMIZERS:
        known = ("dimension", "noise_multiplier")
        return usages(lambda kind: issubclass(kind, VectorRandomizer), *known)
    if sign == AUDITED_RANDOMIZERS:
        return usages(lambda kind: kind.log_ratio is not Randomizer.log_ratio)
    return usages()


def options_from(kind: type[Any], *, only_given: bool = False) -> Callable[[Command], Command]:
    """Replace a command's parameter `options` by the options of a dataclass.

    Args:
        kind: the dataclass; without `only_given` it must be possible to make it without arguments.
        only_given: for what a settings file may say too: the parameter takes what was typed, by name, and no default.
    """
    described = [option for option in options_of(kind) if option.on_command_line]
    defaults = {option.name: None if only_given else option.default for option in described}
    shown = [_parameter(option, defaults[option.name]) for option in described]

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters
        if "options" not in own:
            raise TypeError(f"{command.__name__} has no parameter options")

        @wraps(command)
        def with_options(**given: Any) -> None:
            values = {name: given.pop(name, default) for name, default in defaults.items()}
            typed = {name: value for name, value in values.items() if value is not None}
            command(options=typed if only_given else changed(kind(), values), **given)

        places = (shown if name == "options" else [one] for name, one in own.items())
        show_parameters(with_options, chain.from_iterable(places))
        return with_options

    return decorate


def takes_run(*without: str, **defaults: Any) -> Callable[[Command], Command]:
    """Let a command take the fields of a run, between its own arguments and its own options.

    Args:
        without: fields that it has no use for.
        defaults: what some are when they are left out.
    """
    fields = [option for option in options_of(RunQuestion) if option.name not in without]

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters.values()
        first = [one for one in own if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
        shared = [_parameter(option, defaults.get(option.name, option.default)) for option in fields]
        show_parameters(command, [*first, *shared, *(one for one in own if one.default is not one.empty)])
        return command

    return decorate


def show_parameters(command: Callable[..., Any], parameters: Iterable[inspect.Parameter]) -> None:
    """Let typer see these parameters of a command, whatever the function itself has."""
    named = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
    command.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in named}


def _parameter(option: Option, default: Any) -> inspect.Parameter:
    # a flag says one thing only: without its name typer would add a --no-… to it
    names = [f"--{option.dashed}"] if option.scalar is bool else []
    kind = str if option.type is Any else option.type
    about = typer.Option(*names, help=option.help or None, rich_help_panel=option.section or None)
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind | None if default is None else kind, about],
    )


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
    "tensorboard": "tensorboard",
    "flwr": "flower",
    "ray": "flower",
}


def need(*modules: str) -> None:
    """Raise `MissingExtra` for the first module that is not there; nothing is loaded."""
    for module in modules:
        if find_spec(module) is None:
            raise MissingExtra(module, EXTRAS[module])


def check_empty(folder: Path) -> None:
    """Refuse a folder with something in it: nothing of an earlier run is ever written over."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidParameter("out", str(folder), "a new or empty folder")


def check_exists(folder: Path, allowed: str = "a folder that exists") -> None:
    """Refuse a party's `folder` that is not there, as it is `allowed`: a misspelt name would be a party nobody runs."""
    if not folder.is_dir():
        raise InvalidParameter("folder", str(folder), allowed)
