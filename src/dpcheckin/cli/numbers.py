"""Numbers as people type them: 0.02, 1e-5, 1/30, 2%."""

from __future__ import annotations

from typing import Any

import typer


def number(value: str | float) -> float:
    """A decimal, a fraction or a per cent.

    >>> number("1/30") == 1 / 30, number("2%"), number("1e-5"), number("-3")
    (True, 0.02, 1e-05, -3.0)
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    try:
        if text.endswith("%"):
            return float(text[:-1]) / 100.0
        above, slash, below = text.partition("/")
        return float(above) / float(below) if slash else float(text)
    except (ValueError, ZeroDivisionError):
        raise typer.BadParameter(
            f"{value!r} is not a number such as 0.02, 1e-5, 1/30 or 2%"
        ) from None


def number_option(text: str, *names: str, **about: Any) -> Any:
    """An option that takes such a number."""
    return typer.Option(*names, help=text, parser=number, metavar="NUMBER", **about)
