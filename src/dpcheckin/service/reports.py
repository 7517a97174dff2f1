"""From a client's value to an envelope, and from a batch of envelopes to a sum of estimates.

`make_envelope` is the client's half: randomize with secure chance, encode, seal. `BatchReader` is
the analyzer's: open, check, decode, add up. Whatever is wrong with an envelope, it is counted and
left out; one bad report never spoils a round of shuffled check-ins. (In a round of shares it does:
the shuffler has added a share whose other half is missing. Such a round gives no estimate.)
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import (
    CategoryRandomizer,
    Gaussian,
    Randomizer,
    SecureSource,
    SkellamVector,
    VectorRandomizer,
)
from dpcheckin.service.documents import SYMBOL, PlanDocument, RoundDocument
from dpcheckin.service.envelope import (
    OpeningKey,
    read_header,
    read_payload,
    seal,
    seed_payload,
    sizes,
    symbol_payload,
    vector_payload,
)
from dpcheckin.service.pricing import randomizer_of
from dpcheckin.service.problems import Malformed
from dpcheckin.service.shares import SumOfShares, make_shares

_BLOCK_BYTES = 1 << 20
_PAYLOAD_HEAD = 5


def make_envelope(
    plan: PlanDocument,
    randomizer: Randomizer,
    round_number: int,
    model_digest: bytes,
    public_key: bytes,
    value: NDArray[Any],
    source: SecureSource,
) -> bytes:
    """Randomize one client's value and seal it."""
    if not source.is_secure:  # a simulation's generator must never make a report that leaves
        raise InvalidParameter("source", type(source).__name__, "SecureSource")
    share = b""
    if isinstance(randomizer, SkellamVector):
        seed, share = make_shares(randomizer, np.asarray(value, np.float64), source)
        payload = seed_payload(seed, plan.dimension)
    elif isinstance(randomizer, CategoryRandomizer):
        symbol = randomizer.randomize(np.asarray(value, np.int64).reshape(1), source)
        payload = symbol_payload(int(symbol[0]), plan.dimension)
    else:
        assert isinstance(randomizer, VectorRandomizer)
        row = np.asarray(value, np.float64).reshape(1, -1)
        if row.shape[1] != plan.dimension:
            raise InvalidParameter("value", row.shape[1], f"{plan.dimension} coordinates")
        payload = vector_payload(randomizer.randomize(row, source)[0])
    return seal(plan, public_key, round_number, model_digest, payload, share)


def dummy_envelope(
    plan: PlanDocument, round_number: int, model_digest: bytes, public_key: bytes
) -> bytes:
    """A report about nothing, made like any other: fills an empty slot of a window."""
    value = np.zeros(1 if plan.encoding == SYMBOL else plan.dimension)
    return make_envelope(
        plan,
        randomizer_of(plan),
        round_number,
        model_digest,
        public_key,
        value,
        SecureSource(),
    )


@dataclass(frozen=True)
class Decoded:
    """What a batch came to."""

    reports: int
    dropped: int
    total: NDArray[np.float64] | None
    """Sum of the estimates (for symbols: estimated counts); None when there is nothing to use."""


class BatchReader:
    """Takes the envelopes of one round one by one, in bounded memory."""

    def __init__(
        self,
        plan: PlanDocument,
        round_document: RoundDocument,
        key: OpeningKey,
        shuffler_sum: bytes | None = None,
    ) -> None:
        self._plan, self._round, self._key = plan, round_document, key
        self._plan_id, self._model = plan.id, round_document.model_digest
        self._size = sizes(plan).released
        self._randomizer = randomizer_of(plan)
        self.reports = 0
        self.dropped: Counter[str] = Counter()
        self._shares: SumOfShares | None = None
        self._vectors: _Vectors | None = None
        self._symbols: Counter[int] = Counter()
        if isinstance(self._randomizer, SkellamVector):
            if shuffler_sum is None:
                raise Malformed("a batch of shares begins with the shuffler's sum")
            self._shares = SumOfShares(self._randomizer, shuffler_sum)
        elif isinstance(self._randomizer, VectorRandomizer):
            self._vectors = _Vectors(self._randomizer, plan.dimension)

    def add(self, envelope: bytes) -> None:
        """One envelope; what cannot be used is counted and forgotten."""
        try:
            self._take(self._opened(envelope))
            self.reports += 1
        except Malformed as problem:
            self.dropped[str(problem)] += 1

    def _opened(self, envelope: bytes) -> bytes:
        if len(envelope) != self._size:
            raise Malformed("not of the plan's size")
        if read_header(envelope).round != self._round.round:
            raise Malformed("made for another round")
        return self._key.open(envelope, self._plan_id, self._model)

    def _take(self, payload: bytes) -> None:
        if self._shares is not None:
            read_payload(self._plan, payload)
            self._shares.add(payload[_PAYLOAD_HEAD:])
        elif self._vectors is not None:
            self._vectors.add(read_payload(self._plan, payload))
        else:
            self._symbols[int(read_payload(self._plan, payload)[0])] += 1

    def result(self) -> Decoded:
        """The sum, once all envelopes are in."""
        if self._vectors is not None:
            odd = self._vectors.flush()
            if odd:
                self.reports -= odd
                self.dropped["not a vector this randomizer can report"] += odd
        return Decoded(self.reports, sum(self.dropped.values()), self._total())

    def _total(self) -> NDArray[np.float64] | None:
        if self.reports == 0:
            return None
        if self._shares is not None:
            return None if self.dropped else self._shares.total()
        if self._vectors is not None:
            return self._vectors.total()
        assert isinstance(self._randomizer, CategoryRandomizer)
        symbols = np.fromiter(self._symbols.elements(), np.int64, self.reports)
        return self._randomizer.estimate(symbols)


class _Vectors:
    """Sums float32 reports in blocks, leaving out those that no honest client could have sent.

    A direction has length one; a Gaussian report is not longer than clip and noise can make it.
    That keeps a single hostile report from outweighing all others.
    """

    def __init__(self, randomizer: VectorRandomizer, dimension: int) -> None:
        self._randomizer = randomizer
        rows = max(1, _BLOCK_BYTES // (4 * dimension))
        self._block = np.zeros((rows, dimension), np.float32)
        self._sum = np.zeros(dimension, np.float64)
        self._filled = 0
        self._odd = 0
        if isinstance(randomizer, Gaussian):
            # ‖noise‖ exceeds σ(√d + t) with probability at most exp(-t²/2)
            longest = randomizer.clip + randomizer.deviation * (math.sqrt(dimension) + 9.0)
            self._squares = (0.0, (longest * 1.0001) ** 2)
        else:
            self._squares = (0.998, 1.002)

    def add(self, vector: NDArray[np.float32]) -> None:
        self._block[self._filled] = vector
        self._filled += 1
        if self._filled == len(self._block):
            self._sum_block()

    def flush(self) -> int:
        """Finish, and say how many reports were left out since the last time."""
        self._sum_block()
        odd, self._odd = self._odd, 0
        return odd

    def total(self) -> NDArray[np.float64]:
        return np.asarray(self._randomizer.sum_estimates(self._sum[None, :]), np.float64)

    def _sum_block(self) -> None:
        rows = self._block[: self._filled]
        low, high = self._squares
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", rows, rows)
            usable = (squares >= low) & (squares <= high)  # NaN is neither
        if not usable.all():
            self._odd += int(np.sum(~usable))
            rows = rows[usable]
        self._sum += np.ones(len(rows), np.float32) @ rows
        self._filled = 0
