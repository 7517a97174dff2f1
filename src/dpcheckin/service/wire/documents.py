"""Plan, key and round documents: what the analyzer announces, under its signature.

What a document is stands in `document_kinds`. What a plan *costs* is not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.crowd import check_crowd, honest_clients
from dpcheckin.service.wire.document_kinds import Document, FlatDocument, given_fields
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
_KEEP_ONE = ("random-check-in-fixed", "random-check-in-sliding")
VECTOR, SYMBOL, SHARES, OCTETS = 1, 2, 3, 4
LARGEST_DIMENSION = 1 << 26
LARGEST_TIME = 2.0**40
MODULUS_BYTES = 256
"""Length of the modulus of a token key: RSA with 2048 bits."""
TOKEN_BYTES = 32 + MODULUS_BYTES
"""Length of a report token: its number and the issuer's signature."""
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
    "encoding": one_of(VECTOR, SYMBOL, SHARES, OCTETS),
}

_PLAN_FIELDS: dict[str, Check] = {
    "type": one_of("plan"),
    "format": one_of(FORMAT),
    "protocol": one_of(*PROTOCOLS),
    "population": integer(2),
    "minimum_present": integer(2),
    "colluding": number(0.0, 1.0, least=True),
    "dropout": number(0.0, 1.0, least=True),
    "minimum_batch": integer(0),
    "rounds": integer(1),
    "randomizer": _randomizer,
    "delta": probability,
    "epsilon_budget": number(0.0),
    "round_seconds": number(0.0, LARGEST_TIME),
    "compute_seconds": number(0.0, LARGEST_TIME),
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

_PLAN_ISSUER: dict[str, Check] = {"issuer": hex_bytes(32)}
_ROUND_TOKENS: dict[str, Check] = {"token_key": hex_bytes(MODULUS_BYTES)}


def _participation(protocol: str) -> dict[str, Check]:
    if protocol.startswith("random-"):
        return {
            "slots": integer(2),
            "check_in_probability": probability,
            "minibatch": integer(1),
        }
    return {"rate": probability}


def _check_encoding(protocol: str, randomizer: Mapping[str, Any]) -> None:
    """Shares belong to distributed check-in, and distributed check-in to shares.

    Reports that a task counts by itself are those of shuffled check-in: nobody fills its slots.
    """
    if randomizer["encoding"] == OCTETS and protocol != "shuffled-check-in":
        raise not_allowed("plan.protocol", protocol, f"shuffled-check-in with encoding {OCTETS}")
    if (protocol == "distributed-check-in") != (randomizer["encoding"] == SHARES):
        raise not_allowed(
            "plan.randomizer.encoding",
            randomizer["encoding"],
            f"{SHARES} with distributed-check-in, {VECTOR} or {SYMBOL} with all others",
        )


def _check_issuer(found: Mapping[str, Any]) -> None:
    """What a plan with an issuer cannot have."""
    if "issuer" not in found:
        return
    if found["protocol"] in _KEEP_ONE:
        raise not_allowed(
            "plan.protocol",
            found["protocol"],
            "one whose empty slots the shuffler need not fill: it has no tokens",
        )
    if not found["cover"]:
        raise not_allowed(
            "plan.cover", False, "true with an issuer: who has no token must not count as present"
        )


@dataclass(frozen=True)
class PlanDocument(Document):
    """What will be asked of every client, and what is promised in return."""

    type: ClassVar[str] = "plan"

    protocol: str
    population: int
    """Clients the guarantee is stated for, those that collude among them."""
    minimum_present: int
    """A round with fewer clients present is void; at least `population`."""
    colluding: float
    """Largest share of `population` that works with the analyzer."""
    dropout: float
    """Largest probability with which a client that is present and reports is lost."""
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
    """How long rounds are; the analyzer may make single ones longer."""
    compute_seconds: float
    """Time every client takes before it may send, whatever its coin says and its task needs."""
    suite: int
    """Sealing: 1 (X25519) or 2 (ML-KEM-768 with X25519)."""
    cover: bool
    """Whether clients that do not report send an envelope that holds nothing."""
    task: Mapping[str, Any]
    """What is learned or asked; not looked into here."""
    nonce: str
    """16 bytes in hex: two runs of the same plan have different ids."""
    issuer: str | None = None
    """Public identity, in hex, of who signs report tokens; None: reports carry no tokens, and the
    shuffler is trusted to invent none."""

    @classmethod
    def from_object(cls, value: Any) -> Self:
        given = mapping("plan", value)
        protocol = one_of(*PROTOCOLS)("plan.protocol", given.get("protocol"))
        participation = _participation(protocol)
        optional = given_fields(given, _PLAN_ISSUER)
        found = read_fields("plan", given, _PLAN_FIELDS | participation | optional)
        _check_encoding(protocol, found["randomizer"])
        check_crowd(found)
        _check_issuer(found)
        return cls(
            participation={name: found.pop(name) for name in participation},
            **{name: found[name] for name in _PLAN_FIELDS | optional if name not in _FIXED},
        )

    def fields(self) -> dict[str, Any]:
        named = {name: getattr(self, name) for name in _PLAN_FIELDS if name not in _FIXED}
        for name in ("randomizer", "task"):
            named[name] = dict(named[name])
        if self.issuer is not None:
            named["issuer"] = self.issuer
        return {"format": FORMAT, **named, **self.participation}

    @property
    def dimension(self) -> int:
        """Coordinates of a report, the number of symbols, or the bytes of a report (`OCTETS`)."""
        return int(self.randomizer["dimension"])

    @property
    def encoding(self) -> int:
        """What is sealed: `VECTOR`, `SYMBOL`, `SHARES` or `OCTETS`."""
        return int(self.randomizer["encoding"])

    @property
    def honest(self) -> int:
        """Clients of the priced crowd that do not collude with the analyzer."""
        return honest_clients(self.population, self.colluding)

    @property
    def numbered_slots(self) -> bool:
        """Random check-ins: round numbers are slots of a window, and none is ever repeated."""
        return self.protocol.startswith("random-")

    @property
    def keeps_one(self) -> bool:
        """Of each round only one uniformly chosen report reaches the analyzer."""
        return self.protocol in _KEEP_ONE


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
    optional: ClassVar[Mapping[str, Check]] = _ROUND_TOKENS

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
    token_key: str | None = None
    """Modulus of the issuer's key of this round, in hex; None in a plan without an issuer."""

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
