"""Plan, key and round documents: what the analyzer announces, under its signature.

A document is a frozen value with an id (the digest of its canonical bytes). Reading one checks
every field; an unknown or missing field is an error, so that two parties never disagree about what
they have agreed to. What a plan *costs* is not decided here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dpcheckin.service.wire.canonical import canonical, digest
from dpcheckin.service.wire.fields import (
    Check,
    hex_bytes,
    integer,
    mapping,
    name_text,
    not_allowed,
    number,
    one_of,
    probability,
    read_fields,
)

FORMAT = 1
PROTOCOLS = (
    "shuffled-check-in",
    "distributed-check-in",
    "random-check-in-fixed",
    "random-check-in-averaged",
    "random-check-in-sliding",
)
VECTOR, SYMBOL, SHARES = 1, 2, 3
LARGEST_DIMENSION = 1 << 26
LARGEST_TIME = 2.0**40
PUBLIC_KEY_BYTES = {1: 32, 2: 1216}
"""Length of a public opening key, in bytes, by suite."""
_FIXED = ("type", "format")


def _randomizer(name: str, value: Any) -> dict[str, Any]:
    found = mapping(name, value)
    for field, check in _RANDOMIZER_FIELDS.items():
        check(f"{name}.{field}", found.get(field))
    for field, parameter in found.items():
        if not isinstance(parameter, (str, int, float, bool)):
            raise not_allowed(f"{name}.{field}", parameter, "a number or a name")
    return found


_RANDOMIZER_FIELDS: dict[str, Check] = {
    "name": name_text,
    "dimension": integer(1, LARGEST_DIMENSION),
    "clip": number(0.0),
    "encoding": one_of(VECTOR, SYMBOL, SHARES),
}

_PLAN_FIELDS: dict[str, Check] = {
    "type": one_of("plan"),
    "format": one_of(FORMAT),
    "protocol": one_of(*PROTOCOLS),
    "population": integer(2),
    "minimum_batch": integer(0),
    "rounds": integer(1),
    "randomizer": _randomizer,
    "delta": probability,
    "epsilon_budget": number(0.0),
    "round_seconds": number(0.0, LARGEST_TIME),
    "suite": one_of(1, 2),
    "cover": one_of(True, False),
    "task": mapping,
    "nonce": hex_bytes(16),
}

_KEY_FIELDS: dict[str, Check] = {
    "type": one_of("key"),
    "plan": hex_bytes(32),
    "suite": one_of(1, 2),
    "key": lambda name, value: value,  # its length depends on the suite: checked after it
    "from_round": integer(0),
}

_ROUND_FIELDS: dict[str, Check] = {
    "type": one_of("round"),
    "plan": hex_bytes(32),
    "round": integer(0),
    "model": hex_bytes(32),
    "key": hex_bytes(8),
    "opens": number(0.0, LARGEST_TIME, least=True),
    "closes": number(0.0, LARGEST_TIME),
}


def _participation(protocol: str) -> dict[str, Check]:
    if protocol.startswith("random-"):
        return {
            "slots": integer(2),
            "check_in_probability": probability,
            "minibatch": integer(1),
        }
    return {"rate": probability}


def _check_encoding(protocol: str, randomizer: Mapping[str, Any]) -> None:
    """Shares belong to distributed check-in, and distributed check-in to shares."""
    if (protocol == "distributed-check-in") != (randomizer["encoding"] == SHARES):
        raise not_allowed(
            "plan.randomizer.encoding",
            randomizer["encoding"],
            f"{SHARES} with distributed-check-in, {VECTOR} or {SYMBOL} with all others",
        )


class Document(ABC):
    """What the three kinds of document have in common."""

    type: ClassVar[str]

    @classmethod
    @abstractmethod
    def from_object(cls, value: Any) -> Self:
        """Read a JSON value and check it; `from_object(document.to_object()) == document`.

        Args:
            value: what `canonical.parse` gave.
        """

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """Everything but the type."""

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


@dataclass(frozen=True)
class PlanDocument(Document):
    """What will be asked of every client, and what is promised in return."""

    type: ClassVar[str] = "plan"

    protocol: str
    population: int
    """Clients the guarantee is stated for; a round with fewer present is void."""
    minimum_batch: int
    """Fewest reports of a round that is released."""
    participation: Mapping[str, Any]
    """`rate`, or `slots`, `check_in_probability` and `minibatch`."""
    rounds: int
    """Most rounds that are ever charged."""
    randomizer: Mapping[str, Any]
    """`name`, `dimension`, `clip`, `encoding`, and the randomizer's own parameters."""
    delta: float
    epsilon_budget: float
    """Most epsilon, at `delta`, that is ever spent with an honest shuffler."""
    round_seconds: float
    suite: int
    """Sealing: 1 (X25519) or 2 (ML-KEM-768 with X25519)."""
    cover: bool
    """Whether clients that do not report send an envelope that holds nothing."""
    task: Mapping[str, Any]
    """What is learned; not looked into here."""
    nonce: str
    """16 bytes in hex: two runs of the same plan have different ids."""

    @classmethod
    def from_object(cls, value: Any) -> Self:
        given = mapping("plan", value)
        protocol = one_of(*PROTOCOLS)("plan.protocol", given.get("protocol"))
        participation = _participation(protocol)
        found = read_fields("plan", given, _PLAN_FIELDS | participation)
        _check_encoding(protocol, found["randomizer"])
        return cls(
            participation={name: found.pop(name) for name in participation},
            **{name: found[name] for name in _PLAN_FIELDS if name not in _FIXED},
        )

    def fields(self) -> dict[str, Any]:
        named = {name: getattr(self, name) for name in _PLAN_FIELDS if name not in _FIXED}
        for name in ("randomizer", "task"):
            named[name] = dict(named[name])
        return {"format": FORMAT, **named, **self.participation}

    @property
    def dimension(self) -> int:
        """Coordinates of a report, or the number of symbols."""
        return int(self.randomizer["dimension"])

    @property
    def encoding(self) -> int:
        """What is sealed: `VECTOR`, `SYMBOL` or `SHARES`."""
        return int(self.randomizer["encoding"])

    @property
    def numbered_slots(self) -> bool:
        """Random check-ins: round numbers are slots of a window, and none is ever repeated."""
        return self.protocol.startswith("random-")

    @property
    def keeps_one(self) -> bool:
        """Of each round only one uniformly chosen report reaches the analyzer."""
        return self.protocol in ("random-check-in-fixed", "random-check-in-sliding")


class FlatDocument(Document):
    """A document whose fields stand in JSON as they stand in the value."""

    checks: ClassVar[Mapping[str, Check]]

    @classmethod
    def from_object(cls, value: Any) -> Self:
        found = read_fields(cls.type, value, cls.checks)
        cls.check_together(found)
        del found["type"]
        return cls(**found)

    @classmethod
    @abstractmethod
    def check_together(cls, found: Mapping[str, Any]) -> None:
        """What no field shows alone."""

    def fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.checks if name != "type"}


@dataclass(frozen=True)
class KeyDocument(FlatDocument):
    """A public opening key, and the round from which on it is used."""

    type: ClassVar[str] = "key"
    checks: ClassVar[Mapping[str, Check]] = _KEY_FIELDS

    plan: str
    """Id of the plan, in hex."""
    suite: int
    key: str
    """The raw public key, in hex."""
    from_round: int

    @classmethod
    def check_together(cls, found: Mapping[str, Any]) -> None:
        hex_bytes(PUBLIC_KEY_BYTES[found["suite"]])("key.key", found["key"])

    @property
    def public_key(self) -> bytes:
        """The raw public key."""
        return bytes.fromhex(self.key)

    @property
    def key_id(self) -> bytes:
        """The eight bytes that name the key in envelopes and rounds."""
        return digest(self.public_key)[:8]


@dataclass(frozen=True)
class RoundDocument(FlatDocument):
    """One round: which model, which key, from when to when."""

    type: ClassVar[str] = "round"
    checks: ClassVar[Mapping[str, Check]] = _ROUND_FIELDS

    plan: str
    """Id of the plan, in hex."""
    round: int
    model: str
    """Digest of the model, in hex."""
    key: str
    """The opening key's id, in hex."""
    opens: float
    """Seconds since the epoch."""
    closes: float
    """Seconds since the epoch."""

    @classmethod
    def check_together(cls, found: Mapping[str, Any]) -> None:
        if not found["opens"] < found["closes"]:
            raise not_allowed("round.closes", found["closes"], f"a time after {found['opens']}")

    @property
    def model_digest(self) -> bytes:
        """As bytes."""
        return bytes.fromhex(self.model)

    @property
    def key_id(self) -> bytes:
        """As bytes."""
        return bytes.fromhex(self.key)
