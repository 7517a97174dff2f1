"""From a batch of envelopes to a sum of estimates: open, check tokens, decode, add up.

What is wrong with an envelope, or was there before, is counted and left out: one bad report never spoils a round of
shuffled check-ins. In a round of shares it does, since the shuffler has added the share's other half: that is found
out, and such a round gives no estimate. Nor does one with fewer reports left than the plan's minimum: a crowd that
small hides nobody. Who invents reports has no tokens of this round for them, whoever it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.randomizers import CategoryRandomizer, Gaussian, IntegerVector, Randomizer, VectorRandomizer
from dpcheckin.service.pricing import randomizer_of
from dpcheckin.service.reports import UNIT_SQUARES, longest_gaussian
from dpcheckin.service.wire.blind_signatures import PublicKey
from dpcheckin.service.wire.documents import OCTETS, PlanDocument, RoundDocument
from dpcheckin.service.wire.envelope import HEADER_BYTES, OpeningKey, bound_to, header_of, sizes
from dpcheckin.service.wire.payloads import PAYLOAD_HEAD_BYTES, SumOfShares, payload_bytes, payload_head, read_payload
from dpcheckin.service.wire.problems import Malformed
from dpcheckin.service.wire.tokens import Token

FORGED = "the token is not one of this round"
SPENT = "the token was used before"


class TokenChecker:
    """Checks the tokens of one round, each once."""

    def __init__(self, plan: PlanDocument, round_document: RoundDocument) -> None:
        if round_document.token_key is None:
            raise Malformed("a round of a plan with an issuer names its token key")
        self._key = PublicKey.from_bytes(bytes.fromhex(round_document.token_key))
        self._plan, self._round = plan.id, round_document.round
        self._used: set[bytes] = set()

    def use(self, raw: bytes) -> None:
        """Use a token up; `Malformed` if it is not good. `raw`: what stands at the end of an opened payload."""
        token = Token.from_bytes(raw)
        try:
            token.check(self._key, self._plan, self._round)
        except Malformed:
            raise Malformed(FORGED) from None
        if token.number in self._used:
            raise Malformed(SPENT)
        self._used.add(token.number)


COPY = "a copy of another report"
OUT_OF_RANGE = "not a report this randomizer can make"
_AT_ONCE = 1 << 16
"""Reports that are decoded together."""
_CARRY = 64
_SEAL_NAME = slice(HEADER_BYTES, HEADER_BYTES + 16)
"""Of a sealed report: the beginning of its random `enc`. HPKE binds all of it, so a copy that was
changed does not open, and one that was not has the same sixteen bytes."""
_CACHE_LINE = 64


class ReportRows:
    """Opened reports as rows of numbers, for tasks that count reports; memory is that of the rows.

    Rows that the randomizer could not have made are left out and counted: a hostile report weighs as much as an honest
    one, or nothing.
    """

    def __init__(self, randomizer: Randomizer) -> None:
        self._randomizer, self._format = randomizer, randomizer.report_format
        self._waiting: list[bytes] = []
        self._rows: list[NDArray[Any]] = []
        self.dropped = 0

    def take(self, payload: bytes) -> None:
        """One opened payload of the plan's kind and size."""
        self._waiting.append(payload[PAYLOAD_HEAD_BYTES : PAYLOAD_HEAD_BYTES + self._format.size])
        if len(self._waiting) == _AT_ONCE:
            self._decode()

    def rows(self) -> NDArray[Any]:
        """The rows that can be counted, in the order of the batch."""
        self._decode()
        return np.concatenate(self._rows)

    def _decode(self) -> None:
        rows, odd = self._format.decode(self._waiting)
        good = self._randomizer.well_formed(rows)
        self._rows.append(rows[good])
        self.dropped += odd + len(good) - int(good.sum())
        self._waiting = []


@dataclass(frozen=True)
class Decoded:
    """What a batch came to."""

    reports: int
    dropped: int
    total: NDArray[np.float64] | None
    """Sum of the estimates (for symbols: estimated counts); None when there is nothing to use."""
    spoiled: str | None = None
    """Why the sum of a whole round of shares cannot be used."""
    rows: NDArray[Any] | None = None
    """The reports themselves, in plans whose task counts them."""
    too_few: bool = False
    """Fewer reports than the plan's minimum are left: the round is void."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """How many reports were dropped, and why."""


class BatchReader:
    """Takes the envelopes of one round one by one; remembers sixteen bytes of each, to know copies. In rounds of shares
    `shuffler_sum` is the first record of the batch."""

    def __init__(
        self, plan: PlanDocument, round_document: RoundDocument, key: OpeningKey, shuffler_sum: bytes | None = None
    ) -> None:
        self._plan, self._key = plan, key
        part = sizes(plan)
        self._size = part.released
        # all reports of a round begin alike, sealed and opened: one comparison checks everything
        self._header = header_of(plan, round_document.round, key.key_id)
        self._info = bound_to(plan.id, round_document.model_digest, self._header)
        self._head = payload_head(plan.encoding, plan.dimension)
        self._data_ends = payload_bytes(plan.encoding, plan.dimension)
        self.reports = 0
        self.dropped: Counter[str] = Counter()
        self._opened: set[bytes] = set()
        self._tokens = None if plan.issuer is None else TokenChecker(plan, round_document)
        self._sum = _sum_of(plan, shuffler_sum)

    def add(self, envelope: bytes) -> None:
        """One envelope; what cannot be used is counted and forgotten."""
        try:
            if len(envelope) != self._size:
                raise Malformed("not of the plan's size")
            if not envelope.startswith(self._header):
                raise Malformed("not a report of this round, sealed to its key")
            name = envelope[_SEAL_NAME]
            if name in self._opened:
                raise Malformed(COPY)
            payload = self._key.open_sealed(memoryview(envelope)[HEADER_BYTES:], self._info)
            self._opened.add(name)
            if not payload.startswith(self._head):
                raise Malformed("the payload is not of the plan's kind and dimension")
            if self._tokens is not None:
                self._tokens.use(payload[self._data_ends :])
            self._sum.take(payload)
            self.reports += 1
        except Malformed as problem:
            self.dropped[str(problem)] += 1

    def result(self) -> Decoded:
        """The sum, or the reports, once all envelopes are in."""
        rows, total, spoiled = None, None, None
        if isinstance(self._sum, ReportRows):  # which the task counts; what no client could have made is dropped here
            rows = self._sum.rows()
            self.dropped += Counter({OUT_OF_RANGE: self._sum.dropped})
            self.reports = len(rows)
        dropped, reasons = sum(self.dropped.values()), dict(self.dropped)
        if self.reports < self._plan.minimum_batch:
            return Decoded(self.reports, dropped, None, too_few=True, reasons=reasons)
        try:
            if isinstance(self._sum, SumOfShares) and dropped:
                raise Malformed("of a dropped report the shuffler's share is in the sum")
            if not isinstance(self._sum, ReportRows) and self.reports:
                total = self._sum.total()
        except Malformed as problem:
            spoiled = str(problem)
        return Decoded(self.reports, dropped, total, spoiled, rows, reasons=reasons)


def _sum_of(plan: PlanDocument, shuffler_sum: bytes | None) -> ReportRows | SumOfShares | _VectorSum | _SymbolSum:
    """What takes the payloads of a plan; of what follows the data, a token, none takes notice."""
    randomizer = randomizer_of(plan)
    if plan.encoding == OCTETS:
        return ReportRows(randomizer)
    if isinstance(randomizer, IntegerVector):
        if shuffler_sum is None:
            raise Malformed("a batch of shares begins with the shuffler's sum")
        return SumOfShares(randomizer, shuffler_sum)
    if isinstance(randomizer, VectorRandomizer):
        return _VectorSum(randomizer, plan.dimension)
    assert isinstance(randomizer, CategoryRandomizer)
    return _SymbolSum(randomizer, plan)


class _SymbolSum:
    """Counts symbols; the estimate is that of their counts."""

    def __init__(self, randomizer: CategoryRandomizer, plan: PlanDocument) -> None:
        self._randomizer, self._plan = randomizer, plan
        self._symbols: Counter[int] = Counter()

    def take(self, payload: bytes) -> None:
        data = payload[: payload_bytes(self._plan.encoding, self._plan.dimension)]
        self._symbols[int(read_payload(self._plan, data)[0])] += 1

    def total(self) -> NDArray[np.float64]:
        return self._randomizer.estimate(np.fromiter(self._symbols.elements(), np.int64))


def _aligned_zeros(size: int, kind: str) -> NDArray[Any]:
    """Zeros that vector instructions can read without crossing from one cache line to the next."""
    wanted = np.dtype(kind)
    raw = np.zeros(size * wanted.itemsize + _CACHE_LINE, np.uint8)
    start = -raw.ctypes.data % _CACHE_LINE
    return raw[start : start + size * wanted.itemsize].view(wanted)


class _VectorSum:
    """Sums float32 reports, refusing those that no honest client could have sent.

    A direction has length one; a Gaussian report is not longer than clip and noise can make it. That keeps a single
    hostile report from outweighing all others. Rows are added in float32 and carried over to float64 every few rows:
    opening, not adding, is what takes time.
    """

    def __init__(self, randomizer: VectorRandomizer, dimension: int) -> None:
        self._randomizer = randomizer
        self._partial = _aligned_zeros(dimension, "f4")
        self._sum = np.zeros(dimension, np.float64)
        self._rows = 0
        if isinstance(randomizer, Gaussian):
            self._squares = (0.0, longest_gaussian(randomizer, dimension) ** 2)
        else:
            self._squares = UNIT_SQUARES

    def take(self, payload: bytes) -> None:
        partial = self._partial
        row = np.frombuffer(payload, "<f4", partial.size, PAYLOAD_HEAD_BYTES)  # a token may follow
        # of NumPy's products the one that warns neither of NaN nor of overflow; both fail here
        if not self._squares[0] <= np.vdot(row, row) <= self._squares[1]:
            raise Malformed("not a vector this randomizer can report")
        np.add(partial, row, partial)
        self._rows += 1
        if self._rows == _CARRY:
            self._carry()

    def total(self) -> NDArray[np.float64]:
        self._carry()
        return np.asarray(self._randomizer.sum_estimates(self._sum[None, :]), np.float64)

    def _carry(self) -> None:
        self._sum += self._partial
        self._partial[:] = 0.0
        self._rows = 0
