"""Randomizers whose report is one small number, however many symbols: Hadamard, local hashing.

Hadamard response (Acharya, Sun, Zhang, arXiv 1802.04705v2, section 3) names a column of a matrix
of signs. Local hashing (Wang, Blocki, Li, Jha, USENIX Security 2017) names a hash function and,
by d-ary response, a bucket; the value itself may come from a domain nobody could list.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers.base import Argument, Randomizer, at_least, positive
from dpcheckin.randomizers.formats import IntegerRows
from dpcheckin.randomizers.response import Counts, DaryResponse, FrequencyRandomizer, Reports
from dpcheckin.randomizers.source import RandomSource

if TYPE_CHECKING:
    from dpcheckin.accounting import LocalPair


def _parity(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.bitwise_count(numbers).astype(np.int64) & 1


@dataclass(frozen=True)
class HadamardResponse(FrequencyRandomizer):
    """A column of a Hadamard matrix, likelier where the row of the client's symbol is positive.

    Symbol x has row x + 1; the first row, which is positive everywhere, belongs to nobody. Half of
    all columns support a symbol.

    Args:
        local_epsilon: epsilon of one report, in nats.
        symbols: how many there are, 2 or more.

    >>> HadamardResponse(local_epsilon=1.0, symbols=20).order
    32
    """

    local_epsilon: float
    symbols: int

    name, label = "hadamard", "Hadamard response"
    arguments = (Argument("symbols", "K", 10),)

    def __post_init__(self) -> None:
        positive("local_epsilon", self.local_epsilon)
        at_least("symbols", self.symbols, 2)

    @property
    def order(self) -> int:
        """Columns of the matrix: the power of two above the number of symbols."""
        return 1 << self.symbols.bit_length()

    @property
    def own_support(self) -> float:
        return 1.0 / (1.0 + math.exp(-self.local_epsilon))

    @property
    def other_support(self) -> float:
        return 0.5

    @property
    def pair(self) -> LocalPair:
        from dpcheckin.accounting import hadamard_response

        return hadamard_response(self.local_epsilon, self.symbols)

    @property
    def report_format(self) -> IntegerRows:
        return IntegerRows((self.order,), in_rows=False)

    def describe(self) -> str:
        return (
            f"Hadamard response of {self.symbols:,} symbols, local epsilon {self.local_epsilon:g}"
        )

    def randomize(self, values: NDArray[np.int64], source: RandomSource) -> Reports:
        rows = self.check_symbols(values) + 1
        columns = source.integers(self.order, rows.shape)
        own = source.uniform(rows.shape) < self.own_support
        # flipping one bit that the row has turns a column of one sign into one of the other
        wrong = (_parity(rows & columns) == 0) != own
        return np.asarray(np.where(wrong, columns ^ (rows & -rows), columns))

    def supports(self, reports: Reports, symbol: int) -> NDArray[np.bool_]:
        return np.asarray(_parity(np.asarray(reports) & (symbol + 1)) == 0)

    def support(self, reports: Reports) -> Counts:
        seen = np.bincount(np.asarray(reports), minlength=self.order).astype(np.float64)
        return np.asarray((seen.sum() + signed_sums(seen))[1 : self.symbols + 1] / 2)


def signed_sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The product with a Hadamard matrix (Sylvester's), in n log n steps."""
    total = np.asarray(values, dtype=np.float64).copy()
    half = 1
    while half < len(total):
        pairs = total.reshape(-1, 2, half)
        total = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).ravel()
        half *= 2
    return total


@lru_cache(maxsize=64)
def _coefficients(salt: str, functions: int) -> NDArray[np.uint64]:
    """Three random words a function, the same on every machine."""
    stream = hashlib.shake_256(f"dpcheckin local hashing {salt}".encode())
    words = np.frombuffer(stream.digest(24 * functions), dtype="<u8")
    return words.reshape(functions, 3).astype(np.uint64)


@dataclass(frozen=True)
class LocalHashing(Randomizer):
    """Values of up to 64 bits, hashed by one of `functions` open functions, then d-ary response.

    A report is (function, bucket). The functions are drawn independently of the data, so the local
    pair is that of d-ary response on the buckets, whatever the functions are. Two values share a
    bucket with probability exactly 1/buckets over the draw of the functions (multiply-shift on
    32-bit halves; Dietzfelbinger, Hagerup, Katajainen, Penttonen 1997).

    Args:
        local_epsilon: epsilon of one report, in nats.
        buckets: a power of two, up to 2^24.
        functions: how many hash functions there are.
        salt: what the functions are drawn from.
    """

    local_epsilon: float
    buckets: int
    functions: int = 1024
    salt: str = ""

    name, label = "hash", "local hashing"
    arguments = (Argument("buckets", "BUCKETS", 128),)

    def __post_init__(self) -> None:
        positive("local_epsilon", self.local_epsilon)
        at_least("functions", self.functions, 1)
        at_least("buckets", self.buckets, 2)
        if self.buckets & (self.buckets - 1) or self.buckets > 1 << 24:
            raise InvalidParameter("buckets", self.buckets, "a power of two up to 2**24")

    @property
    def response(self) -> DaryResponse:
        """What is done with the bucket."""
        return DaryResponse(self.local_epsilon, self.buckets)

    @property
    def pair(self) -> LocalPair:
        return self.response.pair

    @property
    def own_support(self) -> float:
        """Probability that a report falls into the bucket of the client's value."""
        return self.response.truth

    @property
    def other_support(self) -> float:
        """The same for another value, over the draw of the hash functions."""
        return 1.0 / self.buckets

    @property
    def report_format(self) -> IntegerRows:
        return IntegerRows((self.functions, self.buckets))

    def describe(self) -> str:
        return f"local hashing to {self.buckets:,} buckets, local epsilon {self.local_epsilon:g}"

    def hashed(
        self, values: NDArray[np.uint64], function: NDArray[np.int64] | int
    ) -> NDArray[np.int64]:
        """The bucket of each value under a function, or each under its own."""
        words = _coefficients(self.salt, self.functions)[function]
        values = np.asarray(values, dtype=np.uint64)
        low, high = values & np.uint64(0xFFFFFFFF), values >> np.uint64(32)
        with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is what is meant
            mixed = words[..., 0] * low + words[..., 2]
            if high.any():
                mixed = mixed + words[..., 1] * high
        shift = np.uint64(64 - (self.buckets.bit_length() - 1))
        return np.asarray(mixed >> shift).astype(np.int64)

    def randomize(self, values: NDArray[np.uint64], source: RandomSource) -> Reports:
        values = np.asarray(values)
        if values.dtype.kind not in "iu":
            raise InvalidParameter("values", values.dtype, "whole numbers of up to 64 bits")
        functions = source.integers(self.functions, len(values))
        buckets = self.hashed(values.astype(np.uint64), functions)
        return np.stack([functions, self.response.randomize(buckets, source)], axis=1)

    def tables(self, reports: Reports) -> NDArray[np.int64]:
        """How many reports fell into each bucket of each function."""
        reports = np.asarray(reports)
        cells = reports[:, 0] * self.buckets + reports[:, 1]
        flat = np.bincount(cells, minlength=self.functions * self.buckets)
        return flat.reshape(self.functions, self.buckets)

    def support(self, tables: NDArray[np.int64], values: NDArray[np.uint64]) -> Counts:
        """How many of the tabled reports fell into the buckets of each value."""
        total = np.zeros(len(values), dtype=np.int64)
        for function in range(self.functions):
            total += tables[function][self.hashed(values, function)]
        return total.astype(np.float64)
