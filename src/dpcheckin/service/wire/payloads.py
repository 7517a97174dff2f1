"""Payloads: what is inside a sealed report, and the two additive shares. See docs/wire.md.

A payload is a head (encoding, dimension) and a float32 vector, a symbol, the seed of a share, or a report as its
randomizer lays it out; in plans with an issuer a token follows (`wire.tokens`). Of two shares the analyzer gets a
32-byte seed, which it expands with AES-256-CTR, and the shuffler the rest, modulo 2^32: each sum is noise to the party
that takes it, their sum is the total, whose price is in `protocols.plan`.
"""

from __future__ import annotations

import math
import os
import struct
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import IntegerVector, SecureSource
from dpcheckin.service.wire.documents import OCTETS, SHARES, SYMBOL, VECTOR, PlanDocument
from dpcheckin.service.wire.problems import Malformed

SEED_BYTES = 32
# eight bytes, so that the numbers behind them can be read where they lie
_HEAD = struct.Struct(">B3xI")
PAYLOAD_HEAD_BYTES = _HEAD.size


def payload_bytes(encoding: int, dimension: int) -> int:
    """The length of a payload without its token, by `encoding` and `dimension` of the plan, in bytes.

    >>> payload_bytes(VECTOR, 10)
    48
    """
    data = {VECTOR: 4 * dimension, SYMBOL: 4, SHARES: SEED_BYTES, OCTETS: dimension}[encoding]
    return PAYLOAD_HEAD_BYTES + data


def payload_head(encoding: int, dimension: int) -> bytes:
    """What every payload of a plan begins with, by its `encoding` and `dimension`."""
    return _HEAD.pack(encoding, dimension)


def vector_payload(values: NDArray[Any]) -> bytes:
    """Encoding 1: a float32 vector; values are flattened and rounded."""
    flat = np.ascontiguousarray(values, dtype="<f4").reshape(-1)
    return payload_head(VECTOR, flat.size) + flat.tobytes()


def symbol_payload(symbol: int, symbols: int) -> bytes:
    """Encoding 2: a `symbol`, one of so many `symbols`, counted from 0."""
    if not 0 <= symbol < symbols:
        raise InvalidParameter("symbol", symbol, f"an integer from 0 to {symbols - 1}")
    return payload_head(SYMBOL, symbols) + struct.pack(">I", symbol)


def seed_payload(seed: bytes, dimension: int) -> bytes:
    """Encoding 3: the `seed` (32 secret bytes) of the analyzer's share, which has this `dimension`."""
    if len(seed) != SEED_BYTES:
        raise InvalidParameter("seed", f"{len(seed):,} bytes", f"{SEED_BYTES} bytes")
    return payload_head(SHARES, dimension) + seed


def octets_payload(report: bytes) -> bytes:
    """Encoding 4: a report as its randomizer lays it out; the plan's dimension is the number of its bytes."""
    return payload_head(OCTETS, len(report)) + report


def read_payload(plan: PlanDocument, payload: bytes) -> NDArray[Any]:
    """The report in a `payload` of a `plan`: a float32 vector, one symbol, a share expanded, or plain bytes. Floats may
    be NaN or infinite: whether such a report counts is for the caller to decide."""
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
    """A `seed` of 32 bytes as `dimension` little-endian uint32: the keystream of AES-256-CTR, nonce zero."""
    stream = Cipher(algorithms.AES(seed), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(stream.update(bytes(4 * dimension)), dtype="<u4")


def split(report: NDArray[Any], seed: bytes) -> bytes:
    """The shuffler's share of a `report` of integers: report - expand(seed) modulo 2**32; each needs a fresh `seed`.

    >>> seed = bytes(32)
    >>> share = np.frombuffer(split(np.array([5, -3]), seed), dtype="<u4")
    >>> (share + expand(seed, 2)).view(np.int32).tolist()
    [5, -3]
    """
    words = np.asarray(report).astype(np.int64).astype(np.uint32)
    return (words - expand(seed, words.size)).astype("<u4").tobytes()


def make_shares(noise: IntegerVector, values: NDArray[np.float64], source: SecureSource) -> tuple[bytes, bytes]:
    """The analyzer's seed and the shuffler's share of one client's `values`, clipped and with `noise` from a secure
    `source`."""
    report = noise.randomize(values.reshape(1, -1), source)[0]
    seed = os.urandom(SEED_BYTES)
    return seed, split(report, seed)


FALSE_ALARM = 2.0**-40
"""Largest probability that a sum of honest reports alone is taken for a spoiled one."""
_CUT_BITS = 60


def longest_sum(noise: IntegerVector, reports: int) -> float:
    """No sum of so many honest `reports` with this `noise` is longer, except with probability `FALSE_ALARM`.

    The length of the clients' own vectors, each at its bound, and that of their noise. Whatever hostile clients send,
    what passes for a sum is within twice this length of the honest one.
    """
    integers = reports * math.sqrt(noise.largest_square)
    return (integers + _noise_norm(noise, reports)) * noise.clip / noise.steps * (1 + 1e-9)


def _noise_norm(noise: IntegerVector, reports: int) -> float:
    """‖noise‖ of the sum, in integers, exceeds this with probability below `FALSE_ALARM`.

    Let N be Skellam of variance v (a discrete Gaussian has a smaller moment generating function, that of the normal law
    at most), cut off at R = r√v, where its tail is below 2^-60/d. For a standard normal z, exp(λN²) = E exp(sN) with s
    = √(2λ) z. Where |z| ≤ a, the moment generating function of N is exp(v(cosh s - 1)) ≤ exp(c v s²/2) with c = 2(cosh
    s₀ - 1)/s₀² at the largest s₀ = a/√v; that part of E exp(λN²) is at most (1 - 2cvλ)^(-1/2), as for a normal variable
    of variance cv. Beyond a there is at most e^(r²/2 - (a - r)²/2), which `a` makes as small as e^(-30)/d, so that d
    coordinates multiply the whole by less than 1 + 1e-12. Then P(‖N‖ > √(cv)(√d + t)) ≤ exp(-t²/2), as for normal noise
    (Laurent and Massart, 2000, lemma 1).
    """
    if not reports:
        return 0.0
    d, deviation = noise.dimension, math.sqrt(reports * noise.variance)
    log = (_CUT_BITS + 1) * math.log(2.0) + math.log(d)
    r = (log / 3 + math.sqrt(log * log / 9 + 2 * deviation**2 * log)) / deviation  # Bernstein
    every_coordinate_at_its_cut = math.sqrt(d) * r * deviation
    a = r + math.sqrt(r * r + 2 * math.log(d) + 60.0)
    if a > 20.0 * deviation:  # hardly any noise
        return every_coordinate_at_its_cut
    farthest = a / deviation
    inflated = 2 * (math.cosh(farthest) - 1) / farthest**2
    t = math.sqrt(2 * (1e-12 - math.log(FALSE_ALARM - 2.0**-_CUT_BITS)))
    return min(every_coordinate_at_its_cut, math.sqrt(inflated) * deviation * (math.sqrt(d) + t))


class SumOfShares:
    """The analyzer's side: expand every seed, add the shuffler's sum, read off the total. `shuffler_sum`: little-endian
    uint32, one a coordinate, the shuffler's shares added modulo 2**32."""

    def __init__(self, noise: IntegerVector, shuffler_sum: bytes) -> None:
        if len(shuffler_sum) != 4 * noise.dimension:
            raise Malformed("the shuffler's sum does not have the plan's dimension")
        self._noise, self._reports = noise, 0
        self._total = np.frombuffer(shuffler_sum, dtype="<u4").astype(np.uint32)

    def take(self, payload: bytes) -> None:
        """One client's seed, in an opened payload."""
        seed = payload[PAYLOAD_HEAD_BYTES : PAYLOAD_HEAD_BYTES + SEED_BYTES]
        self._total += expand(seed, self._total.size)  # uint32 wraps around, as it should
        self._reports += 1

    def total(self) -> NDArray[np.float64]:
        """The sum of the clients' vectors, with the noise of all of them.

        Two parts that do not belong together add up to anything modulo 2^32: a vector longer than `longest_sum` is no
        sum of honest reports, and raises `Malformed`.
        """
        noise = self._noise
        total = np.asarray(noise.estimate(self._total.astype(np.int64)), np.float64)
        if not float(np.linalg.norm(total)) <= longest_sum(noise, self._reports):
            raise Malformed("the sum is longer than honest shares can make it: one was malformed")
        return total
