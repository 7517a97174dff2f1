"""Report tokens: the right to one report in one round of one plan, which names nobody.

A token is a number of 32 random bytes that its client drew, and the issuer's blind signature (`blind_signatures`) over
it, the plan and the round. There is a key for each round, so that tokens of many rounds cannot be saved up for one. The
issuer signs its keys, and the analyzer repeats the round's key in the round document, which is the same for everybody:
a client that was given a key of its own, by which its token could be told from others, finds out and does not use it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from dpcheckin.service.wire.blind_signatures import PublicKey
from dpcheckin.service.wire.documents import MODULUS_BYTES, TOKEN_BYTES
from dpcheckin.service.wire.problems import Malformed
from dpcheckin.service.wire.schema import Document, hex_bytes, integer, not_allowed

NUMBER_BYTES = 32
MOST_KEYS = 1024
"""Rounds that one document of keys, or one request for tokens, may be about."""
_CONTEXT = b"dpcheckin/1 token"
_ROUND = struct.Struct(">I")


def token_message(plan_id: bytes, round_number: int, number: bytes) -> bytes:
    """What the issuer signs without seeing it, for round `round_number` of a plan (`plan_id`): the token's random
    `number`.

    >>> token_message(bytes(32), 7, b"n" * 32) == b"dpcheckin/1 token" + bytes(32) + (
    ...     b"\\0\\0\\0\\7" + b"n" * 32
    ... )
    True
    """
    if len(plan_id) != 32 or len(number) != NUMBER_BYTES:
        raise Malformed("a plan's id and a token's number have 32 bytes each")
    return _CONTEXT + plan_id + _ROUND.pack(round_number) + number


@dataclass(frozen=True)
class Token:
    """A number and its signature."""

    number: bytes
    signature: bytes

    @staticmethod
    def from_bytes(raw: bytes) -> Token:
        """Read a token from the end of a payload."""
        if len(raw) != TOKEN_BYTES:
            raise Malformed(f"a token has {TOKEN_BYTES} bytes")
        return Token(raw[:NUMBER_BYTES], raw[NUMBER_BYTES:])

    def to_bytes(self) -> bytes:
        """As it is sealed."""
        return self.number + self.signature

    def check(self, key: PublicKey, plan_id: bytes, round_number: int) -> None:
        """Raise `Malformed` unless the issuer signed it with its `key` of the round `round_number` of a plan
        (`plan_id`)."""
        key.verify(token_message(plan_id, round_number, self.number), self.signature)


def _keys(name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or not 1 <= len(value) <= MOST_KEYS:
        raise not_allowed(name, value, f"a list of 1 to {MOST_KEYS} keys")
    check = hex_bytes(MODULUS_BYTES)
    return [check(f"{name}[{place}]", one) for place, one in enumerate(value)]


@dataclass(frozen=True)
class TokenKeysDocument(Document):
    """The issuer's public keys of some rounds that follow each other, under its signature."""

    type: ClassVar[str] = "token-keys"

    plan: Annotated[str, hex_bytes(32)]
    """Id of the plan, in hex."""
    first: Annotated[int, integer(0)]
    """The round of the first key."""
    keys: Annotated[list[str], _keys]
    """Moduli, in hex."""

    def check_together(self) -> None:
        integer(0)("token-keys.first", self.first + len(self.keys) - 1)

    @property
    def rounds(self) -> range:
        """The rounds it has keys of."""
        return range(self.first, self.first + len(self.keys))

    def key_of(self, round_number: int) -> str:
        """The key of one of `rounds`, in hex."""
        return self.keys[round_number - self.first]


@dataclass(frozen=True)
class CrowdDocument(Document):
    """How many clients may have a token of a round, under the issuer's signature: more cannot have been present."""

    type: ClassVar[str] = "crowd"

    plan: Annotated[str, hex_bytes(32)]
    """Id of the plan, in hex."""
    round: Annotated[int, integer(0)]
    clients: Annotated[int, integer(0)]


@dataclass(frozen=True)
class TokenRequest:
    """What a client asks an issuer to sign: one blinded message for each of some rounds."""

    rounds: list[int]
    blinded: list[bytes]
    taken: int = 0
    """Rounds that the client has taken part in, of all plans, by its own ledger: a client that says less than it said
    before has forgotten what it spent."""

    @staticmethod
    def from_object(value: Any) -> TokenRequest:
        """Read a request; no round may stand in it twice."""
        if not isinstance(value, dict) or value.keys() | {"taken"} != {"rounds", "blinded", "taken"}:
            raise Malformed("a request for tokens has the fields rounds, blinded and perhaps taken")
        rounds, blinded = value["rounds"], _keys("request.blinded", value["blinded"])
        if not isinstance(rounds, list) or len(rounds) != len(blinded):
            raise Malformed("as many rounds as blinded messages")
        check = integer(0)
        numbers = [check("request.rounds", one) for one in rounds]
        if len(set(numbers)) != len(numbers):
            raise Malformed("a round stands in the request twice")
        taken = check("request.taken", value.get("taken", 0))
        return TokenRequest(numbers, [bytes.fromhex(one) for one in blinded], taken)

    def to_object(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {"rounds": self.rounds, "blinded": [one.hex() for one in self.blinded], "taken": self.taken}
