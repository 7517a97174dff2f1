"""What the parties announce under their signatures: plan, key and round, and rounds that a shuffler destroyed.

What a document is stands in `schema`, report tokens and their keys in `tokens`. What a plan *costs* is not decided
here, but what the numbers that speak of its crowd must be to each other is: `population` is priced, with the share
`colluding` of it taken out; `minimum_present` decides which rounds are void. The price holds for a round that is
released only if at least as many clients were there as were priced: if at most the share `colluding` of those present
collude, the honest ones are at least (1 - colluding) * minimum_present >= (1 - colluding) * population.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar

from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.schema import (
    Check,
    Document,
    hex_bytes,
    integer,
    mapping,
    name_text,
    not_allowed,
    number,
    one_of,
    probability,
)

FORMAT = 1
PROTOCOLS = (
    "shuffled-check-in",
    "distributed-check-in",
    "random-check-in-fixed",
    "random-check-in-averaged",
    "random-check-in-sliding",
)
KEEP_ONE = ("random-check-in-fixed", "random-check-in-sliding")
VECTOR, SYMBOL, SHARES, OCTETS = 1, 2, 3, 4
LARGEST_DIMENSION = 1 << 26
LARGEST_SLOTS = 1 << 20
"""Of a window of random check-ins: pricing one takes a time that grows with them, and clients do it."""
LARGEST_TIME = 2.0**40
LARGEST_COMPUTE_SHARE = 0.7
"""Of a round: the rest is for spreading what is sent, and for trying again."""
MODULUS_BYTES = 256
"""Length of the modulus of a token key: RSA with 2048 bits."""
TOKEN_BYTES = 32 + MODULUS_BYTES
"""Length of a report token: its number and the issuer's signature."""
PUBLIC_KEY_BYTES = {1: 32, 2: 1216}
"""Length of a public opening key, in bytes, by suite."""
MOST_VOID_ROUNDS = 4096
"""Rounds in one statement of void ones: the latest."""

_RANDOMIZER: dict[str, Check] = {
    "name": name_text,
    "dimension": integer(1, LARGEST_DIMENSION),
    "clip": number(0.0),
    "encoding": one_of(VECTOR, SYMBOL, SHARES, OCTETS),
}


def _randomizer(name: str, value: Any) -> dict[str, Any]:
    found: dict[str, Any] = mapping(name, value)
    for field, check in _RANDOMIZER.items():
        check(f"{name}.{field}", found.get(field))
    for field, parameter in found.items():
        if not isinstance(parameter, (str, int, float, bool)):
            raise not_allowed(f"{name}.{field}", parameter, "a number or a name")
    return found


def _participation(protocol: str) -> dict[str, Check]:
    if protocol.startswith("random-"):
        return {"slots": integer(2, LARGEST_SLOTS), "check_in_probability": probability, "minibatch": integer(1)}
    return {"rate": probability}


@dataclass(frozen=True)
class PlanDocument(Document):
    """What will be asked of every client, and what is promised in return."""

    type: ClassVar[str] = "plan"

    protocol: Annotated[str, one_of(*PROTOCOLS)]
    population: Annotated[int, integer(2)]
    """Clients the guarantee is stated for, those that collude among them."""
    minimum_present: Annotated[int, integer(2)]
    """A round with fewer clients present is void; at least `population`."""
    colluding: Annotated[float, number(0.0, 1.0, least=True)]
    """Largest share of `population` that works with the analyzer."""
    dropout: Annotated[float, number(0.0, 1.0, least=True)]
    """Largest probability with which a client that is present and reports is lost."""
    minimum_batch: Annotated[int, integer(0)]
    """Fewest reports of a round that is released."""
    participation: Mapping[str, Any]
    """`rate`, or `slots`, `check_in_probability` and `minibatch`; in JSON they stand beside the other fields."""
    rounds: Annotated[int, integer(1)]
    """Most rounds that are ever charged."""
    randomizer: Annotated[Mapping[str, Any], _randomizer]
    """`name`, `dimension`, `clip`, `encoding`, and the randomizer's own parameters."""
    delta: Annotated[float, probability]
    epsilon_budget: Annotated[float, number(0.0)]
    """Most epsilon, at `delta`, that is ever spent with an honest shuffler."""
    round_seconds: Annotated[float, number(0.0, LARGEST_TIME)]
    """How long rounds are; the analyzer may make single ones longer."""
    compute_seconds: Annotated[float, number(0.0, LARGEST_TIME)]
    """Time every client takes before it may send, whatever its coin says and its task needs."""
    suite: Annotated[int, one_of(1, 2)]
    """Sealing: 1 (X25519) or 2 (ML-KEM-768 with X25519)."""
    cover: Annotated[bool, one_of(True, False)]
    """Whether clients that do not report send an envelope that holds nothing."""
    task: Annotated[Mapping[str, Any], mapping]
    """What is learned or asked; not looked into here."""
    nonce: Annotated[str, hex_bytes(16)]
    """16 bytes in hex: two runs of the same plan have different ids."""
    issuer: Annotated[str | None, hex_bytes(32)] = None
    """Public identity, in hex, of who signs report tokens; None: reports carry no tokens, and the
    shuffler is trusted to invent none."""

    @classmethod
    def schema(cls, given: Mapping[str, Any]) -> dict[str, Check]:
        protocol = one_of(*PROTOCOLS)("plan.protocol", given.get("protocol"))
        return {"format": one_of(FORMAT)} | super().schema(given) | _participation(protocol)

    @classmethod
    def _read(cls, value: Any) -> dict[str, Any]:
        found = super()._read(value)
        del found["format"]
        participation = {name: found.pop(name) for name in _participation(found["protocol"])}
        return {**found, "participation": participation}

    def fields(self) -> dict[str, Any]:
        copies = {"randomizer": dict(self.randomizer), "task": dict(self.task)}
        return {"format": FORMAT, **super().fields(), **copies, **self.participation}

    def check_together(self) -> None:
        self._check_encoding()
        self._check_crowd()
        self._check_issuer()

    def _check_encoding(self) -> None:
        """Shares belong to distributed check-in, and distributed check-in to shares. Reports that a task counts by
        itself are those of shuffled check-in: nobody fills its slots."""
        encoding = self.randomizer["encoding"]
        if encoding == OCTETS and self.protocol != "shuffled-check-in":
            raise not_allowed("plan.protocol", self.protocol, f"shuffled-check-in with encoding {OCTETS}")
        if (self.protocol == "distributed-check-in") != (encoding == SHARES):
            allowed = f"{SHARES} with distributed-check-in, {VECTOR} or {SYMBOL} with all others"
            raise not_allowed("plan.randomizer.encoding", encoding, allowed)

    def _check_crowd(self) -> None:
        """No round is released with fewer clients than it is priced for, or without time to send."""
        if self.minimum_present < self.population:
            allowed = f"at least the population of {self.population} that is priced"
            raise not_allowed("plan.minimum_present", self.minimum_present, allowed)
        for name, share in (("colluding", self.colluding), ("dropout", self.dropout)):
            if share >= 1:
                raise not_allowed(f"plan.{name}", share, "below 1")
        if self.honest < 2:
            raise not_allowed("plan.colluding", self.colluding, "leaving two honest clients")
        if not self.compute_seconds <= LARGEST_COMPUTE_SHARE * self.round_seconds:
            allowed = f"at most {LARGEST_COMPUTE_SHARE:g} of the {self.round_seconds:g} of a round"
            raise not_allowed("plan.compute_seconds", self.compute_seconds, allowed)

    def _check_issuer(self) -> None:
        """What a plan with an issuer cannot have."""
        if self.issuer is None:
            return
        if self.keeps_one:
            allowed = "one whose empty slots the shuffler need not fill: it has no tokens"
            raise not_allowed("plan.protocol", self.protocol, allowed)
        if not self.cover:
            raise not_allowed("plan.cover", False, "true with an issuer: who has no token must not count as present")

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
        """Clients of the priced crowd that do not collude with the analyzer; a fraction of one counts as colluding."""
        return self.population - math.ceil(self.colluding * self.population - 1e-9)

    @property
    def report_probability(self) -> float:
        """The largest probability that a client reports in one given round."""
        if self.numbered_slots:
            return float(self.participation["check_in_probability"] / self.participation["slots"])
        return float(self.participation["rate"])

    @property
    def numbered_slots(self) -> bool:
        """Random check-ins: round numbers are slots of a window, and none is ever repeated."""
        return self.protocol.startswith("random-")

    @property
    def keeps_one(self) -> bool:
        """Of each round only one uniformly chosen report reaches the analyzer."""
        return self.protocol in KEEP_ONE


@dataclass(frozen=True)
class KeyDocument(Document):
    """A public opening key, and the round from which on it is used."""

    type: ClassVar[str] = "key"

    plan: Annotated[str, hex_bytes(32)]
    """Id of the plan, in hex."""
    suite: Annotated[int, one_of(1, 2)]
    key: Annotated[str, lambda name, value: value]
    """The raw public key, in hex; its length depends on the suite and is checked with it."""
    from_round: Annotated[int, integer(0)]

    def check_together(self) -> None:
        hex_bytes(PUBLIC_KEY_BYTES[self.suite])("key.key", self.key)

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

    plan: Annotated[str, hex_bytes(32)]
    """Id of the plan, in hex."""
    round: Annotated[int, integer(0)]
    model: Annotated[str, hex_bytes(32)]
    """Digest of the model, in hex."""
    key: Annotated[str, hex_bytes(8)]
    """The opening key's id, in hex."""
    opens: Annotated[float, number(0.0, LARGEST_TIME, least=True)]
    """Seconds since the epoch."""
    closes: Annotated[float, number(0.0, LARGEST_TIME)]
    """Seconds since the epoch."""
    token_key: Annotated[str | None, hex_bytes(MODULUS_BYTES)] = None
    """Modulus of the issuer's key of this round, in hex; None in a plan without an issuer."""

    def check_together(self) -> None:
        if not self.opens < self.closes:
            raise not_allowed("round.closes", self.closes, f"a time after {self.opens}")

    @property
    def model_digest(self) -> bytes:
        """As bytes."""
        return bytes.fromhex(self.model)

    @property
    def key_id(self) -> bytes:
        """As bytes."""
        return bytes.fromhex(self.key)


def _ascending(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > MOST_VOID_ROUNDS:
        raise not_allowed(name, value, f"a list of at most {MOST_VOID_ROUNDS:,} rounds")
    rounds = tuple(integer(0)(f"{name}[{place}]", number) for place, number in enumerate(value))
    if any(after <= before for before, after in pairwise(rounds)):
        raise not_allowed(name, value, "ascending rounds")
    return rounds


@dataclass(frozen=True)
class VoidDocument(Document):
    """Rounds of a plan that the shuffler destroyed unseen, under the shuffler's own signature.

    They were void by population: counted without looking at coins. A client that reads this from the shuffler it trusts
    need not pay for them (`client.ledger`).
    """

    type: ClassVar[str] = "void"

    plan: Annotated[str, hex_bytes(32)]
    """Id of the plan, in hex."""
    rounds: Annotated[tuple[int, ...], _ascending]
    """Ascending: nothing of them was released or will ever be."""

    def fields(self) -> dict[str, Any]:
        return {"plan": self.plan, "rounds": list(self.rounds)}
