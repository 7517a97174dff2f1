"""From a dataclass of options to the arguments of a command.

`options_from(Kind)` decorates a command that takes one argument, an instance of `Kind`, beside
arguments of its own: typer is shown one option for every option of the dataclass instead
(`dpcheckin.options`), and what was typed arrives as that one instance.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from dpcheckin.options import Option, changed, listed, options_of
from dpcheckin.protocols.names import RunFields

Command = Callable[..., None]
RANDOMIZERS, VECTOR_RANDOMIZERS, AUDITED_RANDOMIZERS = "{any}", "{vectors}", "{audited}"
"""Stand in a help text for lists of randomizers: to load the registry takes what help must not."""


class Listing(TyperCommand):
    """A command whose help texts are filled with lists once they are shown."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, lists filled in.

        Args:
            ctx: of the parser.
            formatter: of the parser.
        """
        fill_lists(self)
        super().format_help(ctx, formatter)


def fill_lists(command: Any) -> None:
    """Put the names of randomizers where they are wanted in a command's help texts.

    Args:
        command: of the tree of commands.
    """
    for one in command.params:
        text = getattr(one, "help", None) or ""
        for sign in (RANDOMIZERS, VECTOR_RANDOMIZERS, AUDITED_RANDOMIZERS):
            if sign in text:
                one.help = text.replace(sign, listed(_randomizers(sign)))


def _randomizers(sign: str) -> tuple[str, ...]:
    from dpcheckin.randomizers import Randomizer, VectorRandomizer
    from dpcheckin.randomizers.registry import usages

    if sign == VECTOR_RANDOMIZERS:
        known = ("dimension", "noise_multiplier")
        return usages(lambda kind: issubclass(kind, VectorRandomizer), *known)
    if sign == AUDITED_RANDOMIZERS:
        return usages(lambda kind: kind.log_ratio is not Randomizer.log_ratio)
    return usages()


def options_from(kind: type[Any], parameter: str = "options") -> Callable[[Command], Command]:
    """Replace a command's parameter by the options of a dataclass.

    Args:
        kind: the dataclass; it must be possible to make it without arguments.
        parameter: the name of the command's parameter that takes its instance.
    """
    described = [one for one in options_of(kind) if one.on_command_line]

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters
        if parameter not in own:
            raise TypeError(f"{command.__name__} has no parameter {parameter}")

        @wraps(command)
        def with_options(**given: Any) -> None:
            values = {one.name: given.pop(one.name, one.default) for one in described}
            command(**{parameter: changed(kind(), values)}, **given)

        shown = [_parameter(one, one.default) for one in described]
        shown += [_named(one) for name, one in own.items() if name != parameter]
        signature = inspect.Signature(shown, return_annotation=None)
        with_options.__signature__ = signature  # type: ignore[attr-defined]
        with_options.__annotations__ = {one.name: one.annotation for one in shown}
        return with_options

    return decorate


def takes_run(*without: str, **defaults: Any) -> Callable[[Command], Command]:
    """Let a command take the fields of a run, between its own arguments and its own options.

    Args:
        without: fields that it has no use for.
        defaults: what some are when they are left out.
    """
    fields = [one for one in options_of(RunFields) if one.name not in without]

    def decorate(command: Command) -> Command:
        own = [p for p in inspect.signature(command, eval_str=True).parameters.values()
               if p.kind is not p.VAR_KEYWORD]  # fmt: skip
        shared = [_parameter(one, defaults.get(one.name, one.default)) for one in fields]
        first = [_named(p) for p in own if p.default is p.empty]
        last = [_named(p) for p in own if p.default is not p.empty]
        shown = [*first, *shared, *last]
        command.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in shown}
        return command

    return decorate


def _named(one: inspect.Parameter) -> inspect.Parameter:
    return one.replace(kind=inspect.Parameter.KEYWORD_ONLY)


def _parameter(one: Option, default: Any) -> inspect.Parameter:
    # a flag says one thing only: without its name typer would add a --no-… to it
    names = [f"--{one.dashed}"] if one.scalar is bool else []
    kind = str if one.type is Any else one.type
    about = typer.Option(*names, help=one.help or None, rich_help_panel=one.section or None)
    return inspect.Parameter(
        one.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind | None if default is None else kind, about],
    )
