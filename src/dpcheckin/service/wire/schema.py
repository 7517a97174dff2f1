"""What documents are: frozen values whose fields stand beside their checks, with a digest for a name.

A class of documents is its own schema: each field is `Annotated` with a `Check`, which is given the field's full name
and its value and returns the value, or raises `Malformed` with one line that names both and what is allowed. An unknown
or missing field is an error, so that two parties never disagree about what they have agreed to.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Self, get_origin, get_type_hints

from dpcheckin.numerals import written
from dpcheckin.service.wire.canonical import canonical, digest
from dpcheckin.service.wire.problems import Malformed

LARGEST_COUNT = 2**32 - 1
_LARGEST_NUMBER = sys.float_info.max

Check = Callable[[str, Any], Any]


def not_allowed(name: str, value: object, allowed: str) -> Malformed:
    """The error of a field `name` that holds `value`, where `allowed` says what it may hold."""
    shown = repr(value)
    problem = Malformed(f"{name} = {shown[:80]} is not allowed: expected {allowed}")
    problem.entry = name, value, allowed
    return problem


def _such(is_good: Callable[[Any], bool], allowed: str) -> Check:
    """The check that a value is good, and what it could be is `allowed`."""

    def check(name: str, value: Any) -> Any:
        if not is_good(value):
            raise not_allowed(name, value, allowed)
        return value

    return check


def integer(low: int, high: int = LARGEST_COUNT) -> Check:
    """An integer (no truth value) from `low` to `high`, both included."""
    return _such(lambda value: type(value) is int and low <= value <= high, f"an integer from {low} to {high}")


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
    digits = re.compile(rf"[0-9a-f]{{{2 * length}}}")
    return _such(
        lambda value: isinstance(value, str) and digits.fullmatch(value) is not None,
        f"{length} bytes in lower-case hex",
    )


def one_of(*allowed: object) -> Check:
    """One of these values, and of its type: 1 is not True."""
    return _such(
        lambda value: any(type(value) is type(one) and value == one for one in allowed),
        " or ".join(repr(one) for one in allowed),
    )


mapping = _such(lambda value: isinstance(value, dict), "an object")
"""An object, whatever is in it."""
name_text = _such(
    lambda value: isinstance(value, str) and 1 <= len(value) <= 64 and value.isprintable(),
    "a name of 1 to 64 characters",
)
"""A printable name."""
probability = number(0.0, 1.0)


class Document:
    """What the kinds of document have in common: all are frozen dataclasses of annotated fields. A field whose default
    is None may be missing."""

    type: ClassVar[str]
    _checks: ClassVar[Mapping[str, Check]]
    """Of the fields that stand in JSON as they stand in the value."""

    def __init_subclass__(cls) -> None:
        hints = get_type_hints(cls, include_extras=True).items()
        cls._checks = {name: hint.__metadata__[0] for name, hint in hints if get_origin(hint) is Annotated}

    @classmethod
    def from_object(cls, value: Any) -> Self:
        """Read a JSON value, as `canonical.parse` gave it, and check it; `from_object(document.to_object())` is the
        document."""
        document = cls(**cls._read(value))
        document.check_together()
        return document

    @classmethod
    def _read(cls, value: Any) -> dict[str, Any]:
        """Exactly the fields of the schema, each checked."""
        given = mapping(cls.type, value)
        schema = cls.schema(given)
        if given.keys() != schema.keys():
            odd = sorted(given.keys() ^ schema.keys())
            raise Malformed(f"{cls.type}: missing or unknown fields {', '.join(odd)[:200]}")
        found = {name: check(f"{cls.type}.{name}", given[name]) for name, check in schema.items()}
        del found["type"]
        return found

    @classmethod
    def schema(cls, given: Mapping[str, Any]) -> dict[str, Check]:
        """The check of each field that must be there when these are `given`."""
        # of the fields with a default, which stands in the class, those that are given
        wanted = {name: check for name, check in cls._checks.items() if name in given or not hasattr(cls, name)}
        return {"type": one_of(cls.type)} | wanted

    def check_together(self) -> None:
        """Raise `Malformed` for what no field shows alone."""

    def fields(self) -> dict[str, Any]:
        """Everything but the type."""
        found = {name: getattr(self, name) for name in self._checks}
        return {name: value for name, value in found.items() if value is not None}

    def to_object(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {"type": self.type, **self.fields()}

    def to_bytes(self) -> bytes:
        """Canonical bytes."""
        return canonical(self.to_object())

    @property
    def id(self) -> bytes:
        """Digest of the canonical bytes."""
        return digest(self.to_bytes())
