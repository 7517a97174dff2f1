"""The envelope: one report, sealed to the analyzer, at one size per plan. See docs/wire.md.

Here are its header, its size, sealing and opening, payloads and the two additive shares. What a
payload means for the model is the analyzer's business.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric.mlkem import MLKEM768PrivateKey, MLKEM768PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.documents import (
    PUBLIC_KEY_BYTES,
    SHARES,
    SYMBOL,
    VECTOR,
    PlanDocument,
)
from dpcheckin.service.wire.problems import Malformed

MAGIC = b"DPCI"
VERSION = 2
COVER, REPORT, TWO_SHARES = 0, 1, 2
HEADER = struct.Struct(">4sBBBBI8sI")
HEADER_BYTES = HEADER.size
SEED_BYTES = 32
TAG_BYTES = 16
# eight bytes, so that the numbers behind them can be read where they lie
_PAYLOAD = struct.Struct(">B3xI")
PAYLOAD_HEAD_BYTES = _PAYLOAD.size
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

    def to_bytes(self) -> bytes:
        return HEADER.pack(
            MAGIC, VERSION, self.suite, self.kind, 0, self.round, self.key_id, self.sealed_bytes
        )


def read_header(data: bytes | memoryview) -> Header:
    """The header of an envelope; sizes are compared with the plan by `Sizes.check`."""
    if len(data) < HEADER_BYTES:
        raise Malformed(f"an envelope has at least {HEADER_BYTES} bytes")
    magic, version, suite, kind, zero, number, key_id, sealed = HEADER.unpack_from(data)
    if magic != MAGIC or version != VERSION or zero != 0:
        raise Malformed(f"not a version {VERSION} envelope")
    if suite not in _SUITES or kind not in (COVER, REPORT, TWO_SHARES):
        raise Malformed(f"unknown suite {suite} or kind {kind}")
    return Header(suite, kind, number, key_id, sealed)


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
    return sizes_for(plan.suite, plan.encoding, plan.dimension)


@lru_cache(maxsize=64)
def sizes_for(suite: int, encoding: int, dimension: int) -> Sizes:
    """The same, from the three fields it depends on.

    >>> sizes_for(1, VECTOR, 10).envelope == 24 + 32 + 8 + 40 + 16
    True
    """
    data = {VECTOR: 4 * dimension, SYMBOL: 4, SHARES: SEED_BYTES}[encoding]
    share = 4 * dimension if encoding == SHARES else 0
    return Sizes(_ENC_BYTES[suite] + PAYLOAD_HEAD_BYTES + data + TAG_BYTES, share)


# --- keys -----------------------------------------------------------------------------------


def key_id(public_key: bytes) -> bytes:
    """The name of a key: the first eight bytes of its digest."""
    return digest(public_key)[:8]


def new_private_key(suite: int) -> bytes:
    """Raw bytes of a fresh opening key."""
    if suite not in _SUITES:
        raise InvalidParameter("suite", suite, "1 or 2")
    return os.urandom(_PRIVATE_KEY_BYTES[suite])


class OpeningKey:
    """A private opening key, ready for use.

    Raw bytes: suite 1 the X25519 scalar (32); suite 2 the ML-KEM-768 seed (64) and the X25519
    scalar (32). The public key of suite 2 is the ML-KEM encapsulation key (1184) and the X25519
    point (32).
    """

    def __init__(self, suite: int, private_key: bytes) -> None:
        if suite not in _SUITES:
            raise InvalidParameter("suite", suite, "1 or 2")
        if len(private_key) != _PRIVATE_KEY_BYTES[suite]:
            allowed = f"{_PRIVATE_KEY_BYTES[suite]} bytes"
            raise InvalidParameter("private_key", f"{len(private_key)} bytes", allowed)
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
            self.public_key = (
                lattice.public_key().public_bytes_raw() + curve.public_key().public_bytes_raw()
            )
        self.key_id = key_id(self.public_key)

    def open(self, envelope: bytes, plan_id: bytes, model_digest: bytes) -> bytes:
        """The payload of an envelope (its share, if any, may be there or already be cut off)."""
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
        """The payload of a sealed part alone, given what it is bound to."""
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
    """What a sealed report is bound to; the header holds the round."""
    if len(plan_id) != 32 or len(model_digest) != 32:
        raise Malformed("plan id and model digest have 32 bytes each")
    return _INFO + plan_id + model_digest + header


# --- sealing --------------------------------------------------------------------------------


def seal(
    plan: PlanDocument,
    public_key: bytes,
    round_number: int,
    model_digest: bytes,
    payload: bytes,
    share: bytes = b"",
) -> bytes:
    """One envelope holding a report (with the shuffler's share, where the plan wants two)."""
    expected = sizes(plan)
    if len(payload) != expected.sealed - _ENC_BYTES[plan.suite] - TAG_BYTES:
        raise InvalidParameter("payload", f"{len(payload)} bytes", "the size the plan prescribes")
    if len(share) != expected.share:
        raise InvalidParameter("share", f"{len(share)} bytes", f"{expected.share} bytes")
    kind = TWO_SHARES if expected.share else REPORT
    header = Header(plan.suite, kind, round_number, key_id(public_key), expected.sealed).to_bytes()
    sealed = _SUITES[plan.suite].encrypt(
        payload, _public_key(plan.suite, public_key), bound_to(plan.id, model_digest, header)
    )
    return header + sealed + share


def cover(plan: PlanDocument, public_key: bytes, round_number: int) -> bytes:
    """An envelope of the same size that holds nothing."""
    expected = sizes(plan)
    header = Header(plan.suite, COVER, round_number, key_id(public_key), expected.sealed)
    return header.to_bytes() + os.urandom(expected.sealed + expected.share)


# --- payloads -------------------------------------------------------------------------------


def payload_head(encoding: int, dimension: int) -> bytes:
    """What every payload of a plan begins with."""
    return _PAYLOAD.pack(encoding, dimension)


def vector_payload(values: NDArray[Any]) -> bytes:
    """Encoding 1: a float32 vector."""
    flat = np.ascontiguousarray(values, dtype="<f4").reshape(-1)
    return payload_head(VECTOR, flat.size) + flat.tobytes()


def symbol_payload(symbol: int, symbols: int) -> bytes:
    """Encoding 2: one of `symbols` symbols, counted from 0."""
    if not 0 <= symbol < symbols:
        raise InvalidParameter("symbol", symbol, f"an integer from 0 to {symbols - 1}")
    return payload_head(SYMBOL, symbols) + struct.pack(">I", symbol)


def seed_payload(seed: bytes, dimension: int) -> bytes:
    """Encoding 3: the seed of the analyzer's share."""
    if len(seed) != SEED_BYTES:
        raise InvalidParameter("seed", f"{len(seed)} bytes", f"{SEED_BYTES} bytes")
    return payload_head(SHARES, dimension) + seed


def read_payload(plan: PlanDocument, payload: bytes) -> NDArray[Any]:
    """The report in a payload: a float32 vector, one symbol, or the analyzer's share expanded.

    Floats may be NaN or infinite: whether such a report counts is for the caller to decide.
    """
    expected = sizes(plan).sealed - _ENC_BYTES[plan.suite] - TAG_BYTES
    head = payload_head(plan.encoding, plan.dimension)
    if len(payload) != expected or not payload.startswith(head):
        raise Malformed("the payload is not of the plan's kind and dimension")
    if plan.encoding == VECTOR:
        return np.frombuffer(payload, dtype="<f4", offset=PAYLOAD_HEAD_BYTES)
    data = payload[PAYLOAD_HEAD_BYTES:]
    if plan.encoding == SHARES:
        return expand(data, plan.dimension)
    (symbol,) = struct.unpack(">I", data)
    if symbol >= plan.dimension:
        raise Malformed(f"symbol {symbol} of {plan.dimension}")
    return np.array([symbol], dtype=np.uint32)


# --- two shares -----------------------------------------------------------------------------


def expand(seed: bytes, dimension: int) -> NDArray[np.uint32]:
    """A seed as `dimension` little-endian uint32: the keystream of AES-256-CTR, nonce zero."""
    stream = Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(stream.update(bytes(4 * dimension)), dtype="<u4")


def split(report: NDArray[Any], seed: bytes) -> bytes:
    """The shuffler's share of an integer report: report - expand(seed) modulo 2**32.

    >>> seed = bytes(32)
    >>> share = np.frombuffer(split(np.array([5, -3]), seed), dtype="<u4")
    >>> (share + expand(seed, 2)).view(np.int32).tolist()
    [5, -3]
    """
    words = np.asarray(report).astype(np.int64).astype(np.uint32)
    return (words - expand(seed, words.size)).astype("<u4").tobytes()
