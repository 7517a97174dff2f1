"""Checks of single fields: what a value in a document may be, stated once for all documents.

A `Check` is given the field's full name and its value; it returns the value or raises `Malformed`
with one line that names both and what is allowed.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from dpcheckin.numerals import written
from dpcheckin.service.wire.problems import Malformed

LARGEST_COUNT = 2**32 - 1
_LARGEST_NUMBER = sys.float_info.max
_HEX = re.compile(r"(?:[0-9a-f]{2})*")

Check = Callable[[str, Any], Any]


def not_allowed(name: str, value: object, allowed: str) -> Malformed:
    """The error of a field `name` that holds `value`, where `allowed` says what it may hold."""
    shown = repr(value)
    return Malformed(f"{name} = {shown[:80]} is not allowed: expected {allowed}")


def integer(low: int, high: int = LARGEST_COUNT) -> Check:
    """An integer (no truth value) from `low` to `high`, both included."""

    def check(name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise not_allowed(name, value, f"an integer from {low} to {high}")
        return value

    return check


def number(low: float, high: float = math.inf, *, least: bool = False) -> Check:
    """A finite number above `low` (with `least`: or equal to it) and at most `high`."""

    def check(name: str, value: Any) -> float:
        numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
        # compared before anything turns it into a float: an integer may be too large to become one
        if not numeric or not low <= value <= min(high, _LARGEST_NUMBER):
            raise not_allowed(name, value, f"a number from {written(low)} to {written(high)}")
        if value == low and not least:
            raise not_allowed(name, value, f"a number above {written(low)}")
        return float(value) if isinstance(value, float) else value

    return check


def hex_bytes(length: int) -> Check:
    """So many bytes in lower-case hex."""

    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or len(value) != 2 * length or _HEX.fullmatch(value) is None:
            raise not_allowed(name, value, f"{length} bytes in lower-case hex")
        return value

    return check


def one_of(*allowed: object) -> Check:
    """One of these values, and of its type: 1 is not True."""

    def check(name: str, value: Any) -> Any:
        if not any(type(value) is type(one) and value == one for one in allowed):
            raise not_allowed(name, value, " or ".join(repr(one) for one in allowed))
        return value

    return check


def mapping(name: str, value: Any) -> dict[str, Any]:
    """An object, whatever is in it."""
    if not isinstance(value, dict):
        raise not_allowed(name, value, "an object")
    return value


def read_fields(kind: str, value: Any, fields: Mapping[str, Check]) -> dict[str, Any]:
    """Exactly these fields, each checked.

    Args:
        kind: name of the document, with which errors begin.
        value: what was parsed.
        fields: the check of each field; none may be missing, and no other may be there.
    """
    found = mapping(kind, value)
    if found.keys() != fields.keys():
        odd = sorted(found.keys() ^ fields.keys())
        raise Malformed(f"{kind}: missing or unknown fields {', '.join(odd)[:200]}")
    return {name: check(f"{kind}.{name}", found[name]) for name, check in fields.items()}


def name_text(name: str, value: Any) -> str:
    """A printable name of 1 to 64 characters."""
    if not isinstance(value, str) or not 1 <= len(value) <= 64 or not value.isprintable():
        raise not_allowed(name, value, "a name of 1 to 64 characters")
    return value


probability = number(0.0, 1.0)
