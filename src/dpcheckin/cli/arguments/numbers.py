"""Every option that takes a number reads it as people type it (`dpcheckin.numerals`).

`reading_numbers` is put on each command when the tree of commands is made, so no command has to
think of it.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import typer
from typer.models import ParameterInfo

from dpcheckin.numerals import number, whole

Command = TypeVar("Command", bound=Callable[..., Any])

_READERS: dict[Any, tuple[Callable[[str], float], str]] = {
    float: (number, "NUMBER"),
    int: (whole, "INTEGER"),
}


def reading_numbers(command: Command) -> Command:
    """Let the number options and arguments of a command take 1e6, 60_000, 1/30 and 2%.

    Args:
        command: a function with typer's annotations; it is given back.
    """
    signature = inspect.signature(command, eval_str=True)
    for one in signature.parameters.values():
        about, kind = _described(one), _scalar(one.annotation)
        if about is not None and kind is bool:
            about.metavar = ""  # a flag takes no value; some versions of typer write <bool>
        reader, metavar = _READERS.get(kind, (None, None))
        if about is None or reader is None or about.parser is not None:
            continue
        about.parser = _within(reader, about.min, about.max)
        about.metavar = about.metavar or metavar
    # annotations that are text would be read anew, without what was just said of them
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    return command


def _within(
    read: Callable[[str], float], least: float | None, most: float | None
) -> Callable[[Any], float]:
    """The reader as the parser wants it; limits are checked here, as typer forgets them."""

    def parse(value: Any) -> float:
        try:
            found = read(value) if isinstance(value, str) else value
        except ValueError as problem:
            raise typer.BadParameter(str(problem)) from None
        if least is not None and not found >= least:
            raise typer.BadParameter(f"{found:,} is below {least:,}")
        if most is not None and not found <= most:
            raise typer.BadParameter(f"{found:,} is above {most:,}")
        return found

    return parse


def _described(one: inspect.Parameter) -> ParameterInfo | None:
    """What typer is told of a parameter: as its default, or in its annotation."""
    said = [one.default, *getattr(one.annotation, "__metadata__", ())]
    return next((x for x in said if isinstance(x, ParameterInfo)), None)


def _scalar(kind: Any) -> Any:
    """The type of one value: of `list[float] | None`, float."""
    if get_origin(kind) in (Annotated, list):
        return _scalar(get_args(kind)[0])
    if get_origin(kind) in (Union, types.UnionType):
        inner = [one for one in get_args(kind) if one is not type(None)]
        return _scalar(inner[0]) if len(inner) == 1 else None
    return kind
