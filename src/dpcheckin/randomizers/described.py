"""Randomizers as plain tables of a name and numbers, for plans that travel.

`described` and `from_description` are inverse to each other. What a description costs is
accounting's business, which reports it makes is in `formats`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers.base import Randomizer
from dpcheckin.randomizers.caps import LdpSgd, PrivUnit
from dpcheckin.randomizers.codes import HadamardResponse, LocalHashing
from dpcheckin.randomizers.levels import DitheredLevels
from dpcheckin.randomizers.response import DaryResponse
from dpcheckin.randomizers.subsets import SubsetSelection, UnaryEncoding
from dpcheckin.randomizers.tree import TreeResponse

DESCRIBED: Mapping[str, type[Randomizer]] = {
    "dary": DaryResponse,
    "subset": SubsetSelection,
    "unary": UnaryEncoding,
    "hadamard": HadamardResponse,
    "levels": DitheredLevels,
    "tree": TreeResponse,
    "hash": LocalHashing,
    "privunit": PrivUnit,
    "hemisphere": LdpSgd,
}
"""Randomizers whose reports have a fixed size in bytes, by name."""

_NAMES = {kind: name for name, kind in DESCRIBED.items()}
_SPELLED = {"dimension": "entries"}
"""`dimension` of a plan's randomizer is the size of a report; a vector has entries there."""


def described(randomizer: Randomizer) -> dict[str, Any]:
    """The name and every parameter of a randomizer.

    Args:
        randomizer: one of `DESCRIBED`.

    >>> described(DaryResponse(2.0, 10))
    {'name': 'dary', 'local_epsilon': 2.0, 'symbols': 10}
    """
    name = _NAMES.get(type(randomizer))
    if name is None:
        raise InvalidParameter("randomizer", randomizer.describe(), ", ".join(DESCRIBED))
    own = (one.name for one in fields(randomizer))  # type: ignore[arg-type]
    return {"name": name, **{_SPELLED.get(one, one): getattr(randomizer, one) for one in own}}


def from_description(table: Mapping[str, Any]) -> Randomizer:
    """The randomizer of a description; a missing, unknown or impossible entry is refused.

    Args:
        table: as `described` gave it.
    """
    given = dict(table)
    kind = DESCRIBED.get(str(given.pop("name", None)))
    if kind is None:
        raise InvalidParameter("randomizer.name", table.get("name"), ", ".join(DESCRIBED))
    wanted = {_SPELLED.get(one.name, one.name): one.name for one in fields(kind)}  # type: ignore[arg-type]
    if given.keys() != wanted.keys():
        odd = sorted(given.keys() ^ wanted.keys())
        raise InvalidParameter("randomizer", odd, f"exactly {', '.join(sorted(wanted))}")
    for name, value in given.items():
        if isinstance(value, bool) or (isinstance(value, str) and name != "salt"):
            raise InvalidParameter(f"randomizer.{name}", value, "a number")
    return kind(**{wanted[name]: value for name, value in given.items()})
