"""Numbers as people type them: 0.02, 1e-5, 1/30, 2%; whole ones also as 1e6 or 60_000."""

from __future__ import annotations

import re
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


def whole(value: str | int) -> int:
    """A whole number.

    >>> whole("60_000"), whole("1e6"), whole("-3")
    (60000, 1000000, -3)
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    if re.fullmatch(r"[+-]?\d+(_\d+)*", text):
        return int(text)
    powers = re.fullmatch(r"([+-]?\d+)(?:\.(\d+))?e\+?(\d{1,3})", text, re.IGNORECASE)
    if powers is not None:
        digits, decimals, power = powers[1], powers[2] or "", int(powers[3])
        if len(decimals) <= power:  # by its digits: a float would round large ones
            return int(digits + decimals + "0" * (power - len(decimals)))
    raise typer.BadParameter(f"{value!r} is not a whole number such as 60000, 60_000 or 1e6")


def whole_option(text: str, *names: str, **about: Any) -> Any:
    """An option that takes such a number."""
    return typer.Option(*names, help=text, parser=whole, metavar="INTEGER", **about)
