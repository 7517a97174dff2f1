"""The standing of a privacy figure.  Only a guarantee may ever be charged or quoted as one.

How a figure is printed follows from its standing: guarantees round up, lower bounds down.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import StrEnum


class Kind(StrEnum):
    """What a number is worth."""

    GUARANTEE = "guarantee"
    LOWER_BOUND = "lower bound"
    CONJECTURE = "conjecture"
    REFUTED = "refuted claim"

    def figure(self, value: float | None, digits: int = 4) -> str:
        """The value as it may be printed: rounding never turns it into a stronger claim."""
        if value is None:
            return "–"
        if self is Kind.GUARANTEE:
            return rounded_up(value, digits)
        return rounded_down(value, digits) if self is Kind.LOWER_BOUND else f"{value:.{digits}g}"


def rounded_up(value: float, digits: int = 4) -> str:
    """A few digits, rounded up: a printed guarantee is never below the certified one.

    >>> rounded_up(0.07353001), rounded_up(0.1), rounded_up(12345.6), rounded_up(0.0)
    ('0.07354', '0.1', '1.235e+04', '0')
    """
    return _rounded(value, digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = 4) -> str:
    """A few digits, rounded down, for lower bounds.

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
    return f"{float(shown):.{digits}g}"
