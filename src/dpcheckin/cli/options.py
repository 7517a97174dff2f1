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

Command = Callable[..., None]
RANDOMIZERS, VECTOR_RANDOMIZERS, AUDITED_RANDOMIZERS = "{any}", "{vectors}", "{audited}"
"""Stand in a help text for lists of randomizers: to load the registry takes what help must not."""


class Listing(TyperCommand):
    """A command whose help texts are filled with lists once they are shown."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with their help texts filled.

        Args:
            ctx: of the parser.
        """
        found = super().get_params(ctx)
        for one in found:
            text = getattr(one, "help", None) or ""
            for sign in (RANDOMIZERS, VECTOR_RANDOMIZERS, AUDITED_RANDOMIZERS):
                if sign in text:
                    one.help = text.replace(sign, listed(_randomizers(sign)))  # type: ignore[attr-defined]
        return found


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
            values = {one.name: given.pop(one.name) for one in described}
            command(**{parameter: changed(kind(), values)}, **given)

        shown = [_parameter(one) for one in described]
        shown += [_named(one) for name, one in own.items() if name != parameter]
        signature = inspect.Signature(shown, return_annotation=None)
        with_options.__signature__ = signature  # type: ignore[attr-defined]
        with_options.__annotations__ = {one.name: one.annotation for one in shown}
        return with_options

    return decorate


def _named(one: inspect.Parameter) -> inspect.Parameter:
    return one.replace(kind=inspect.Parameter.KEYWORD_ONLY)


def _parameter(one: Option) -> inspect.Parameter:
    # a flag says one thing only: without its name typer would add a --no-… to it
    names = [f"--{one.dashed}"] if one.scalar is bool else []
    about = typer.Option(*names, help=one.help or None, rich_help_panel=one.section or None)
    return inspect.Parameter(
        one.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=one.default,
        annotation=Annotated[one.type, about],
    )
