"""What a shuffler states under its own signature: the rounds that it destroyed unseen.

A round void by population was counted without looking at coins and its envelopes are destroyed; a
client that reads this from the shuffler it trusts need not pay for it (`client.ledger`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

from dpcheckin.service.wire.document_kinds import Document
from dpcheckin.service.wire.fields import (
    Check,
    hex_bytes,
    integer,
    not_allowed,
    one_of,
    read_fields,
)

MOST_VOID_ROUNDS = 4096
"""Rounds in one statement: the latest ones."""


def _ascending(name: str, value: Any) -> list[int]:
    check = integer(0)
    if not isinstance(value, list) or len(value) > MOST_VOID_ROUNDS:
        raise not_allowed(name, value, f"a list of at most {MOST_VOID_ROUNDS:,} rounds")
    rounds = [check(f"{name}[{place}]", one) for place, one in enumerate(value)]
    if any(after <= before for before, after in pairwise(rounds)):
        raise not_allowed(name, value, "ascending rounds")
    return rounds


_VOID_FIELDS: dict[str, Check] = {
    "type": one_of("void"),
    "plan": hex_bytes(32),
    "rounds": _ascending,
}


@dataclass(frozen=True)
class VoidDocument(Document):
    """Rounds of a plan that the shuffler destroyed unseen, under the shuffler's own signature."""

    type: ClassVar[str] = "void"

    plan: str
    """Id of the plan, in hex."""
    rounds: tuple[int, ...]
    """Void by population, ascending: nothing of them was released or will ever be."""

    @classmethod
    def from_object(cls, value: Any) -> Self:
        found = read_fields("void", value, _VOID_FIELDS)
        return cls(found["plan"], tuple(found["rounds"]))

    def fields(self) -> dict[str, Any]:
        return {"plan": self.plan, "rounds": list(self.rounds)}
