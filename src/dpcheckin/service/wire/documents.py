"""Plan, key and round documents: what the analyzer announces, under its signature.

A document is a frozen value with an id (the digest of its canonical bytes). Reading one checks
every field; an unknown or missing field is an error, so that two parties never disagree about what
they have agreed to. What a plan *costs* is not decided here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dpcheckin.service.wire.canonical import canonical, digest
from dpcheckin.service.wire.problems import Malformed

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
LARGEST_COUNT = 2**32 - 1
LARGEST_TIME = 2.0**40
_HEX = re.compile(r"(?:[0-9a-f]{2})*")

Check = Callable[[str, Any], Any]


def _fail(name: str, value: object, allowed: str) -> Malformed:
    shown = repr(value)
    return Malformed(f"{name} = {shown[:80]} is not allowed: expected {allowed}")


def _integer(low: int, high: int = LARGEST_COUNT) -> Check:
    def check(name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise _fail(name, value, f"an integer from {low} to {high}")
        return value

    return check


def _number(low: float, high: float = math.inf, *, least: bool = False) -> Check:
    def check(name: str, value: Any) -> float:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value > high or value < low:
            raise _fail(name, value, f"a number from {low:g} to {high:g}")
        if value == low and not least:
            raise _fail(name, value, f"a number above {low:g}")
        return float(value) if isinstance(value, float) else value

    return check


def _hex(length: int) -> Check:
    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or len(value) != 2 * length or _HEX.fullmatch(value) is None:
            raise _fail(name, value, f"{length} bytes in lower-case hex")
        return value

    return check


def _one_of(*allowed: object) -> Check:
    def check(name: str, value: Any) -> Any:
        if not any(type(value) is type(one) and value == one for one in allowed):
            raise _fail(name, value, " or ".join(repr(one) for one in allowed))
        return value

    return check


def _mapping(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _fail(name, value, "an object")
    return value


_probability = _number(0.0, 1.0)


def read_fields(kind: str, value: Any, fields: Mapping[str, Check]) -> dict[str, Any]:
    """Exactly these fields, each checked."""
    found = _mapping(kind, value)
    if found.keys() != fields.keys():
        odd = sorted(found.keys() ^ fields.keys())
        raise Malformed(f"{kind}: missing or unknown fields {', '.join(odd)[:200]}")
    return {name: check(f"{kind}.{name}", found[name]) for name, check in fields.items()}


class Document:
    """What the three kinds of document have in common."""

    type: ClassVar[str]

    def fields(self) -> dict[str, Any]:
        """Everything but the type."""
        raise NotImplementedError

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
    minimum_batch: int
    participation: Mapping[str, Any]
    """`rate`, or `slots`, `check_in_probability` and `minibatch`."""
    rounds: int
    randomizer: Mapping[str, Any]
    """`name`, `dimension`, `clip`, `encoding`, and the randomizer's own parameters."""
    delta: float
    epsilon_budget: float
    round_seconds: float
    suite: int
    cover: bool
    task: Mapping[str, Any]
    nonce: str

    @classmethod
    def from_object(cls, value: Any) -> Self:
        """Read and check; `from_object(plan.to_object()) == plan`."""
        given = _mapping("plan", value)
        protocol = _one_of(*PROTOCOLS)("plan.protocol", given.get("protocol"))
        participation = _participation(protocol)
        found = read_fields("plan", given, _PLAN_FIELDS | participation)
        _check_encoding(protocol, found["randomizer"])
        return cls(
            participation={name: found.pop(name) for name in participation},
            **{name: found[name] for name in _PLAN_FIELDS if name not in ("type", "format")},
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


@dataclass(frozen=True)
class KeyDocument(Document):
    """A public opening key, and the round from which on it is used."""

    type: ClassVar[str] = "key"

    plan: str
    suite: int
    key: str
    from_round: int

    @classmethod
    def from_object(cls, value: Any) -> Self:
        """Read and check."""
        found = read_fields("key", value, _KEY_FIELDS)
        _hex(PUBLIC_KEY_BYTES[found["suite"]])("key.key", found["key"])
        del found["type"]
        return cls(**found)

    def fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _KEY_FIELDS if name != "type"}

    @property
    def public_key(self) -> bytes:
        """The raw public key."""
        return bytes.fromhex(self.key)

    @property
    def key_id(self) -> bytes:
        """The eight bytes that name the key in envelopes and rounds."""
        return digest(self.public_key)[:8]


@dataclass(frozen=True)
class RoundDocument(Document):
    """One round: which model, which key, from when to when."""

    type: ClassVar[str] = "round"

    plan: str
    round: int
    model: str
    key: str
    opens: float
    closes: float

    @classmethod
    def from_object(cls, value: Any) -> Self:
        """Read and check."""
        found = read_fields("round", value, _ROUND_FIELDS)
        if not found["opens"] < found["closes"]:
            raise _fail("round.closes", found["closes"], f"a time after {found['opens']}")
        del found["type"]
        return cls(**found)

    def fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _ROUND_FIELDS if name != "type"}

    @property
    def model_digest(self) -> bytes:
        """As bytes."""
        return bytes.fromhex(self.model)

    @property
    def key_id(self) -> bytes:
        """As bytes."""
        return bytes.fromhex(self.key)


PUBLIC_KEY_BYTES = {1: 32, 2: 1216}
_FIXED = ("type", "format")


def _randomizer(name: str, value: Any) -> dict[str, Any]:
    found = _mapping(name, value)
    for field, check in _RANDOMIZER_FIELDS.items():
        check(f"{name}.{field}", found.get(field))
    for field, parameter in found.items():
        if not isinstance(parameter, (str, int, float, bool)):
            raise _fail(f"{name}.{field}", parameter, "a number or a name")
    return found


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= 64 or not value.isprintable():
        raise _fail(name, value, "a name of 1 to 64 characters")
    return value


_RANDOMIZER_FIELDS: dict[str, Check] = {
    "name": _text,
    "dimension": _integer(1, LARGEST_DIMENSION),
    "clip": _number(0.0),
    "encoding": _one_of(VECTOR, SYMBOL, SHARES),
}

_PLAN_FIELDS: dict[str, Check] = {
    "type": _one_of("plan"),
    "format": _one_of(FORMAT),
    "protocol": _one_of(*PROTOCOLS),
    "population": _integer(2),
    "minimum_batch": _integer(0),
    "rounds": _integer(1),
    "randomizer": _randomizer,
    "delta": _probability,
    "epsilon_budget": _number(0.0),
    "round_seconds": _number(0.0, LARGEST_TIME),
    "suite": _one_of(1, 2),
    "cover": _one_of(True, False),
    "task": _mapping,
    "nonce": _hex(16),
}

_KEY_FIELDS: dict[str, Check] = {
    "type": _one_of("key"),
    "plan": _hex(32),
    "suite": _one_of(1, 2),
    "key": lambda name, value: value,  # its length depends on the suite: checked after it
    "from_round": _integer(0),
}

_ROUND_FIELDS: dict[str, Check] = {
    "type": _one_of("round"),
    "plan": _hex(32),
    "round": _integer(0),
    "model": _hex(32),
    "key": _hex(8),
    "opens": _number(0.0, LARGEST_TIME, least=True),
    "closes": _number(0.0, LARGEST_TIME),
}


def _participation(protocol: str) -> dict[str, Check]:
    if protocol.startswith("random-"):
        return {
            "slots": _integer(2),
            "check_in_probability": _probability,
            "minibatch": _integer(1),
        }
    return {"rate": _probability}


def _check_encoding(protocol: str, randomizer: Mapping[str, Any]) -> None:
    """Shares belong to distributed check-in, and distributed check-in to shares."""
    if (protocol == "distributed-check-in") != (randomizer["encoding"] == SHARES):
        raise _fail(
            "plan.randomizer.encoding",
            randomizer["encoding"],
            f"{SHARES} with distributed-check-in, {VECTOR} or {SYMBOL} with all others",
        )
