"""Numbers as people type and read them, in one way on the command line, on pages and in sweeps.

A number is a decimal, a power of ten, a fraction or a per cent (0.02, 1e-5, 1/30, 2%); a whole one may also be grouped
(60_000, 60,000). Elsewhere a comma is refused: some write 1,500 for one and a half. What cannot be read is a
`ValueError` that shows what can. Whatever is written for people has its thousands in groups; JSON, CSV and commands to
copy hold plain digits. What a figure is worth (`Kind`) says how it is rounded. Below: the ranges that parameters have
to lie in, one clear line for each that does not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import StrEnum
from typing import SupportsFloat, SupportsIndex

from dpcheckin.errors import InvalidParameter

_DIGITS = re.compile(r"[+-]?(\d+(_\d+)*|[1-9]\d{0,2}(,\d{3})+)")
_LARGEST_IN_FULL = 1e15  # above, digits are counted, not read
_POWER = re.compile(r"([+-]?\d+)(?:\.(\d+))?e\+?(\d{1,3})", re.IGNORECASE)


def number(text: str) -> float:
    """A decimal, a fraction or a per cent.

    >>> number("1/30") == 1 / 30, number("2%"), number("1e-5"), number("-3")
    (True, 0.02, 1e-05, -3.0)
    """
    plain = text.strip()
    try:
        if plain.endswith("%"):
            return float(plain[:-1]) / 100.0
        above, slash, below = plain.partition("/")
        return float(above) / float(below) if slash else float(plain)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{text!r} is not a number such as 0.02, 1e-5, 1/30 or 2%") from None


def typed(value: float) -> str:
    """The shortest text that `number` or `whole` reads back as this very number.

    >>> typed(1 / 30), typed(1e-5), typed(0.02), typed(60_000), typed(2.0), typed(0.1 + 0.2)
    ('1/30', '1e-5', '0.02', '60000', '2', '0.30000000000000004')
    """
    if isinstance(value, int):
        return str(value)
    short = f"{value:g}"
    if float(short) != value:
        short = repr(value)
    if len(short) > 12 and 0.0 < value < 1.0:
        parts = round(1 / value)
        if 1 / parts == value:  # instead of sixteen digits
            return f"1/{parts}"
    return re.sub(r"e\+?(-?)0*", r"e\1", short)


def whole(text: str) -> int:
    """A whole number, with all of its digits.

    >>> whole("60_000"), whole("1e6"), whole("-3"), whole("60,000")
    (60000, 1000000, -3, 60000)
    """
    plain = text.strip()
    if _DIGITS.fullmatch(plain):
        return int(plain.replace(",", ""))
    powers = _POWER.fullmatch(plain)
    if powers is not None:
        digits, decimals, power = powers[1], powers[2] or "", int(powers[3])
        if len(decimals) <= power:  # by its digits: a float would round large ones
            return int(digits + decimals + "0" * (power - len(decimals)))
    raise ValueError(f"{text!r} is not a whole number such as 60000, 60_000 or 1e6")


def written(value: float, digits: int | None = None) -> str:
    """A value for people to read, its thousands in groups, rounded to so many digits.

    None are whole numbers in full and others in six.

    >>> written(9133405.0), written(1234.5), written(1e-5), written(1e6), written(12345.6, 4)
    ('9,133,405', '1,234.5', '1e-05', '1,000,000', '12,350')
    """
    if digits is None and float(value).is_integer():
        return f"{int(value):,}"
    digits = digits or 6
    rounded = float(f"{value:.{digits}g}")
    if 10.0**digits <= abs(rounded) < _LARGEST_IN_FULL:
        return f"{int(rounded):,}"  # where a power of ten would stand
    return f"{rounded:,.{digits}g}"


class Kind(StrEnum):
    """What a number is worth."""

    GUARANTEE = "guarantee"
    LOWER_BOUND = "lower bound"
    CONJECTURE = "conjecture"
    REFUTED = "refuted claim"

    def figure(self, value: float | None, digits: int = 4) -> str:
        """The `value` in so many `digits`, as it may be printed: rounding never turns it into a stronger claim."""
        if value is None:
            return "–"
        if self is Kind.GUARANTEE:
            return rounded_up(value, digits)
        return rounded_down(value, digits) if self is Kind.LOWER_BOUND else written(value, digits)


def rounded_up(value: float, digits: int = 4) -> str:
    """The `value` in so many `digits`, rounded up: a printed guarantee is never below the certified one.

    >>> rounded_up(0.07353001), rounded_up(0.1), rounded_up(12345.6), rounded_up(0.0)
    ('0.07354', '0.1', '12,350', '0')
    """
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = 4) -> str:
    """The `value` in so many `digits`, rounded down, for lower bounds.

    >>> rounded_down(0.07353999), rounded_down(0.3)
    ('0.07353', '0.3')
    """
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, direction: str) -> str:
    if not math.isfinite(value):
        return f"{value:g}"
    # The shortest decimal that names this very float: 0.1 stays 0.1 and does not become 0.1001.
    exact = Decimal(repr(float(value)))
    shown = Context(prec=digits, rounding=direction).plus(exact)
    return written(float(shown), digits)


LARGEST_COUNT = 10**12
LARGEST_LOCAL_EPSILON = 50.0


def in_range(name: str, value: object, allowed: str = "a number", fits: Callable[[float], bool] | None = None) -> float:
    """The `value` of the parameter `name` as a float that `fits` what is `allowed`; NaN and non-numbers never do."""
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        raise InvalidParameter(name, value, allowed)
    result = float(value)
    if math.isnan(result) or not (fits is None or fits(result)):
        raise InvalidParameter(name, value, allowed)
    return result


def probability(name: str, value: object) -> float:
    """The `value` of the parameter `name` as a float in [0, 1]."""
    return in_range(name, value, "a probability in [0, 1]", lambda x: 0.0 <= x <= 1.0)


def fraction_below_one(name: str, value: object) -> float:
    """The `value` of the parameter `name` as a float in [0, 1)."""
    return in_range(name, value, "a fraction in [0, 1)", lambda x: 0.0 <= x < 1.0)


def open_probability(name: str, value: object) -> float:
    """The `value` of the parameter `name` as a float strictly between 0 and 1."""
    return in_range(name, value, "a number strictly between 0 and 1", lambda x: 0.0 < x < 1.0)


def positive(name: str, value: object, most: float = math.inf) -> float:
    """The `value` of the parameter `name` as a finite float above zero, and at most `most`."""
    allowed = "a finite number above 0" if math.isinf(most) else f"a number above 0 and at most {most:g}"
    return in_range(name, value, allowed, lambda x: 0.0 < x <= most and math.isfinite(x))


def non_negative(name: str, value: object) -> float:
    """The `value` of the parameter `name` as a finite float, zero allowed."""
    return in_range(name, value, "a finite number, 0 or more", lambda x: 0.0 <= x < math.inf)


def count(name: str, value: object, smallest: int = 1, largest: int = LARGEST_COUNT) -> int:
    """The `value` of the parameter `name`, whole and from `smallest` to `largest`; 1e6 counts as one, 2.5 does not."""
    allowed = f"a whole number from {smallest:,} to {largest:,}"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise InvalidParameter(name, value, allowed)
    result = value.__index__()
    if not smallest <= result <= largest:
        raise InvalidParameter(name, value, allowed)
    return result


def at_least(name: str, value: object, least: int) -> None:
    """Refuse a `value` of the parameter `name` that is no integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or value.__index__() < least:
        raise InvalidParameter(name, value, f"an integer of at least {least}")


def keep_count(frozen: object, name: str, smallest: int = 1, largest: int = LARGEST_COUNT) -> None:
    """Let a `frozen` description hold the field `name` as an int from `smallest` to `largest`, perhaps given as 1e6."""
    object.__setattr__(frozen, name, count(name, getattr(frozen, name), smallest, largest))


def local_epsilon_in_range(value: object) -> float:
    """The epsilon of one report, in (0, 50]."""
    return positive("local_epsilon", value, LARGEST_LOCAL_EPSILON)
