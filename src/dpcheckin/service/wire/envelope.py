"""The envelope: one report, sealed to the analyzer, at one size per plan. See docs/wire.md.

Here are its header, its size, its keys, sealing and opening; what is sealed is in `payloads`.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.documents import PUBLIC_KEY_BYTES, SHARES, TOKEN_BYTES, PlanDocument
from dpcheckin.service.wire.payloads import payload_bytes
from dpcheckin.service.wire.problems import Malformed

MAGIC = b"DPCI"
VERSION, VERSION_WITH_TOKEN = 2, 3
"""Of an envelope whose payload ends with its data, or with a token behind them."""
COVER, REPORT, TWO_SHARES = 0, 1, 2
HEADER = struct.Struct(">4sBBBBI8sI")
HEADER_BYTES = HEADER.size
TAG_BYTES = 16
_INFO = b"dpcheckin/1 report"
_MLKEM_PUBLIC, _MLKEM_SEED = 1184, 64

_SUITES = {
    1: hpke.Suite(hpke.KEM.X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_128_GCM),
    2: hpke.Suite(hpke.KEM.MLKEM768_X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_128_GCM),
}
_ENC_BYTES = {1: 32, 2: 1120}
_PRIVATE_KEY_BYTES = {1: 32, 2: 96}


@dataclass(frozen=True)
class Header:
    """The first 24 bytes."""

    suite: int
    kind: int
    round: int
    key_id: bytes
    sealed_bytes: int
    version: int = VERSION

    def to_bytes(self) -> bytes:
        return HEADER.pack(MAGIC, self.version, self.suite, self.kind, 0, self.round, self.key_id, self.sealed_bytes)


def header_of(plan: PlanDocument, round_number: int, key: bytes, *, cover: bool = False) -> bytes:
    """The only header that a report, or a `cover`, can have in round `round_number` of a `plan`, whose opening key has
    the id `key`."""
    expected = sizes(plan)
    kind = COVER if cover else TWO_SHARES if expected.share else REPORT
    version = VERSION if plan.issuer is None else VERSION_WITH_TOKEN
    return Header(plan.suite, kind, round_number, key, expected.sealed, version).to_bytes()


def read_header(data: bytes | memoryview) -> Header:
    """The header of an envelope; whether it fits a plan is for the caller."""
    if len(data) < HEADER_BYTES:
        raise Malformed(f"an envelope has at least {HEADER_BYTES} bytes")
    magic, version, suite, kind, zero, number, key_id, sealed = HEADER.unpack_from(data)
    if magic != MAGIC or version not in (VERSION, VERSION_WITH_TOKEN) or zero != 0:
        raise Malformed(f"not a version {VERSION} or {VERSION_WITH_TOKEN} envelope")
    if suite not in _SUITES or kind not in (COVER, REPORT, TWO_SHARES):
        raise Malformed(f"unknown suite {suite} or kind {kind}")
    return Header(suite, kind, number, key_id, sealed, version)


@dataclass(frozen=True)
class Sizes:
    """How long the parts of an envelope are; they follow from the plan alone."""

    sealed: int
    share: int

    @property
    def envelope(self) -> int:
        return HEADER_BYTES + self.sealed + self.share

    @property
    def released(self) -> int:
        """What the analyzer gets of each envelope: everything but the shuffler's share."""
        return HEADER_BYTES + self.sealed


def sizes(plan: PlanDocument) -> Sizes:
    """The sizes of a plan's envelopes."""
    token = 0 if plan.issuer is None else TOKEN_BYTES
    return sizes_for(plan.suite, plan.encoding, plan.dimension, token)


@lru_cache(maxsize=64)
def sizes_for(suite: int, encoding: int, dimension: int, token: int = 0) -> Sizes:
    """The same, from what it depends on: `suite`, `encoding` and `dimension` of the plan, and the bytes of a `token`,
    if any.

    >>> sizes_for(1, 1, 10).envelope == 24 + 32 + 8 + 40 + 16
    True
    """
    share = 4 * dimension if encoding == SHARES else 0
    payload = payload_bytes(encoding, dimension) + token
    return Sizes(_ENC_BYTES[suite] + payload + TAG_BYTES, share)


# --- keys -----------------------------------------------------------------------------------


def key_id(public_key: bytes) -> bytes:
    """The name of a key: the first eight bytes of its digest."""
    return digest(public_key)[:8]


def new_private_key(suite: int) -> bytes:
    """Raw bytes of a fresh opening key. `suite`: 1 (X25519) or 2 (ML-KEM-768 with X25519)."""
    if suite not in _SUITES:
        raise InvalidParameter("suite", suite, "1 or 2")
    return os.urandom(_PRIVATE_KEY_BYTES[suite])


class OpeningKey:
    """A private opening key, ready for use.

    Raw bytes: `suite` 1 the X25519 scalar (32); suite 2 the ML-KEM-768 seed (64) and the X25519 scalar (32). The public
    key of suite 2 is the ML-KEM encapsulation key (1184) and the X25519 point (32).
    """

    def __init__(self, suite: int, private_key: bytes) -> None:
        if suite not in _SUITES:
            raise InvalidParameter("suite", suite, "1 or 2")
        if len(private_key) != _PRIVATE_KEY_BYTES[suite]:
            allowed = f"{_PRIVATE_KEY_BYTES[suite]} bytes"
            raise InvalidParameter("private_key", f"{len(private_key):,} bytes", allowed)
        self.suite = suite
        self._key: Any
        if suite == 1:
            plain = X25519PrivateKey.from_private_bytes(private_key)
            self._key = plain
            self.public_key = plain.public_key().public_bytes_raw()
        else:
            lattice = MLKEM768PrivateKey.from_seed_bytes(private_key[:_MLKEM_SEED])
            curve = X25519PrivateKey.from_private_bytes(private_key[_MLKEM_SEED:])
            self._key = hpke.MLKEM768X25519PrivateKey(lattice, curve)
            self.public_key = lattice.public_key().public_bytes_raw() + curve.public_key().public_bytes_raw()
        self.key_id = key_id(self.public_key)

    def open(self, envelope: bytes, plan_id: bytes, model_digest: bytes) -> bytes:
        """The payload of an `envelope` that is bound to `plan_id` and `model_digest`; its share, if any, may be cut off
        already."""
        header = read_header(envelope)
        if header.kind == COVER:
            raise Malformed("a cover holds nothing")
        if header.suite != self.suite or header.key_id != self.key_id:
            raise Malformed("sealed to another key")
        end = HEADER_BYTES + header.sealed_bytes
        if len(envelope) < end:
            raise Malformed("an envelope cut short")
        info = bound_to(plan_id, model_digest, envelope[:HEADER_BYTES])
        return self.open_sealed(memoryview(envelope)[HEADER_BYTES:end], info)

    def open_sealed(self, sealed: bytes | memoryview, info: bytes) -> bytes:
        """The payload of a `sealed` part alone, without header and share, given the `info` that it is bound to
        (`bound_to`)."""
        try:
            return _SUITES[self.suite].decrypt(sealed, self._key, info)
        except (InvalidTag, ValueError):
            raise Malformed("the seal does not open") from None


@lru_cache(maxsize=64)
def _public_key(suite: int, raw: bytes) -> Any:
    if len(raw) != PUBLIC_KEY_BYTES[suite]:
        raise Malformed(f"a public key of suite {suite} has {PUBLIC_KEY_BYTES[suite]} bytes")
    try:
        if suite == 1:
            return X25519PublicKey.from_public_bytes(raw)
        return hpke.MLKEM768X25519PublicKey(
            MLKEM768PublicKey.from_public_bytes(raw[:_MLKEM_PUBLIC]),
            X25519PublicKey.from_public_bytes(raw[_MLKEM_PUBLIC:]),
        )
    except ValueError:
        raise Malformed(f"not a public key of suite {suite}") from None


def bound_to(plan_id: bytes, model_digest: bytes, header: bytes) -> bytes:
    """What a sealed report is bound to: `plan_id`, `model_digest` (32 bytes each) and the envelope's `header` with the
    round."""
    if len(plan_id) != 32 or len(model_digest) != 32:
        raise Malformed("plan id and model digest have 32 bytes each")
    return _INFO + plan_id + model_digest + header


# --- sealing --------------------------------------------------------------------------------


def seal(
    plan: PlanDocument, public_key: bytes, round_number: int, model_digest: bytes, payload: bytes, share: bytes = b""
) -> bytes:
    """One envelope for round `round_number` of a `plan`, sealed to its opening key `public_key` and bound to
    `model_digest`.

    `payload` is one of `payloads`, with its token where the plan has an issuer; `share` the shuffler's, where the plan
    wants two.
    """
    expected = sizes(plan)
    if len(payload) != expected.sealed - _ENC_BYTES[plan.suite] - TAG_BYTES:
        raise InvalidParameter("payload", f"{len(payload):,} bytes", "the size the plan prescribes")
    if len(share) != expected.share:
        raise InvalidParameter("share", f"{len(share):,} bytes", f"{expected.share:,} bytes")
    header = header_of(plan, round_number, key_id(public_key))
    sealed = _SUITES[plan.suite].encrypt(
        payload, _public_key(plan.suite, public_key), bound_to(plan.id, model_digest, header)
    )
    return header + sealed + share


def cover(plan: PlanDocument, public_key: bytes, round_number: int) -> bytes:
    """An envelope for round `round_number` of a `plan`, with this `public_key`, that is as large as a report and holds
    nothing."""
    expected = sizes(plan)
    header = header_of(plan, round_number, key_id(public_key), cover=True)
    return header + os.urandom(expected.sealed + expected.share)
