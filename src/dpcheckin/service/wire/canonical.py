"""Canonical JSON: one value, one sequence of bytes, so that digests and signatures mean something.

UTF-8, keys sorted by code point, no spaces, no NaN or infinity, no key twice. Integers and floats are different values
(`1` and `1.0`); a float is written with the fewest digits that give it back. Numbers have bounds, checked as they are
read: nothing behind the parser meets an integer that no float can hold.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from dpcheckin.service.wire.problems import Malformed

LARGEST_DOCUMENT = 1 << 20
MOST_DIGITS = 30
"""Of an integer; every field of every document needs fewer."""
_LONGEST_FLOAT = 64


def canonical(value: Any) -> bytes:
    """The bytes of a value.

    >>> canonical({"b": 1.0, "a": [True, None, "µ"]})
    b'{"a":[true,null,"\\xc2\\xb5"],"b":1.0}'
    """
    try:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8")
    except (ValueError, TypeError, RecursionError) as problem:
        raise Malformed(f"not a JSON value: {problem}") from None


def parse(data: bytes, limit: int = LARGEST_DOCUMENT) -> Any:
    """The value of `data`, at most `limit` bytes; they need not be canonical, but must have a canonical form."""
    if len(data) > limit:
        raise Malformed(f"a document of {len(data):,} bytes, more than {limit:,}")
    try:
        value = json.loads(
            data.decode("utf-8"),
            parse_int=_bounded_integer,
            parse_float=_bounded_float,
            parse_constant=_no_constant,
            object_pairs_hook=_unique,
        )
    except (ValueError, RecursionError) as problem:
        raise Malformed(f"not JSON: {problem}") from None
    canonical(value)  # 1e999 and lone surrogates parse, but nothing could be signed with them
    return value


def digest(data: bytes) -> bytes:
    """SHA-256."""
    return hashlib.sha256(data).digest()


def _bounded_integer(text: str) -> int:
    if len(text.lstrip("-")) > MOST_DIGITS:
        raise ValueError(f"an integer of more than {MOST_DIGITS} digits")
    return int(text)


def _bounded_float(text: str) -> float:
    if len(text) > _LONGEST_FLOAT:
        raise ValueError(f"a number of more than {_LONGEST_FLOAT} characters")
    return float(text)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found
