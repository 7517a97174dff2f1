"""Payloads: what is inside a sealed report, and the two additive shares. See docs/wire.md.

A payload is a head (encoding, dimension) and a float32 vector, a symbol, the seed of a share, or
a report as its randomizer lays it out; in plans with an issuer a token follows (`wire.tokens`).
What it means for the model is the analyzer's business.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.wire.documents import OCTETS, SHARES, SYMBOL, VECTOR, PlanDocument
from dpcheckin.service.wire.problems import Malformed

SEED_BYTES = 32
# eight bytes, so that the numbers behind them can be read where they lie
_HEAD = struct.Struct(">B3xI")
PAYLOAD_HEAD_BYTES = _HEAD.size


def payload_bytes(encoding: int, dimension: int) -> int:
    """The length of a payload without its token, in bytes.

    Args:
        encoding: `VECTOR`, `SYMBOL`, `SHARES` or `OCTETS`.
        dimension: coordinates of a report, number of symbols, or bytes of a report.

    >>> payload_bytes(VECTOR, 10)
    48
    """
    data = {VECTOR: 4 * dimension, SYMBOL: 4, SHARES: SEED_BYTES, OCTETS: dimension}[encoding]
    return PAYLOAD_HEAD_BYTES + data


def payload_head(encoding: int, dimension: int) -> bytes:
    """What every payload of a plan begins with.

    Args:
        encoding: `VECTOR`, `SYMBOL`, `SHARES` or `OCTETS`.
        dimension: coordinates of a report, number of symbols, or bytes of a report.
    """
    return _HEAD.pack(encoding, dimension)


def vector_payload(values: NDArray[Any]) -> bytes:
    """Encoding 1: a float32 vector.

    Args:
        values: the randomized report, of any shape; it is flattened and rounded to float32.
    """
    flat = np.ascontiguousarray(values, dtype="<f4").reshape(-1)
    return payload_head(VECTOR, flat.size) + flat.tobytes()


def symbol_payload(symbol: int, symbols: int) -> bytes:
    """Encoding 2: one of `symbols` symbols, counted from 0.

    Args:
        symbol: from 0 to `symbols` - 1.
        symbols: how many there are.
    """
    if not 0 <= symbol < symbols:
        raise InvalidParameter("symbol", symbol, f"an integer from 0 to {symbols - 1}")
    return payload_head(SYMBOL, symbols) + struct.pack(">I", symbol)


def seed_payload(seed: bytes, dimension: int) -> bytes:
    """Encoding 3: the seed of the analyzer's share.

    Args:
        seed: 32 secret bytes.
        dimension: coordinates of the share it expands to.
    """
    if len(seed) != SEED_BYTES:
        raise InvalidParameter("seed", f"{len(seed):,} bytes", f"{SEED_BYTES} bytes")
    return payload_head(SHARES, dimension) + seed


def octets_payload(report: bytes) -> bytes:
    """Encoding 4: a report as its randomizer lays it out.

    Args:
        report: bytes of the randomized report; the plan's dimension is their number.
    """
    return payload_head(OCTETS, len(report)) + report


def read_payload(plan: PlanDocument, payload: bytes) -> NDArray[Any]:
    """The report in a payload: a float32 vector, one symbol, a share expanded, or plain bytes.

    Floats may be NaN or infinite: whether such a report counts is for the caller to decide.

    Args:
        plan: fixes encoding and dimension.
        payload: an opened payload.
    """
    expected = payload_bytes(plan.encoding, plan.dimension)
    head = payload_head(plan.encoding, plan.dimension)
    if len(payload) != expected or not payload.startswith(head):
        raise Malformed("the payload is not of the plan's kind and dimension")
    if plan.encoding == VECTOR:
        return np.frombuffer(payload, dtype="<f4", offset=PAYLOAD_HEAD_BYTES)
    data = payload[PAYLOAD_HEAD_BYTES:]
    if plan.encoding == OCTETS:
        return np.frombuffer(data, dtype=np.uint8)
    if plan.encoding == SHARES:
        return expand(data, plan.dimension)
    (symbol,) = struct.unpack(">I", data)
    if symbol >= plan.dimension:
        raise Malformed(f"symbol {symbol:,} of {plan.dimension:,}")
    return np.array([symbol], dtype=np.uint32)


# --- two shares -----------------------------------------------------------------------------


def expand(seed: bytes, dimension: int) -> NDArray[np.uint32]:
    """A seed as `dimension` little-endian uint32: the keystream of AES-256-CTR, nonce zero.

    Args:
        seed: 32 bytes.
        dimension: how many integers.
    """
    stream = Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(stream.update(bytes(4 * dimension)), dtype="<u4")


def split(report: NDArray[Any], seed: bytes) -> bytes:
    """The shuffler's share of an integer report: report - expand(seed) modulo 2**32.

    Args:
        report: integers; taken modulo 2**32.
        seed: 32 bytes, fresh for every report.

    >>> seed = bytes(32)
    >>> share = np.frombuffer(split(np.array([5, -3]), seed), dtype="<u4")
    >>> (share + expand(seed, 2)).view(np.int32).tolist()
    [5, -3]
    """
    words = np.asarray(report).astype(np.int64).astype(np.uint32)
    return (words - expand(seed, words.size)).astype("<u4").tobytes()
