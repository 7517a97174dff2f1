"""The most frequent values of a domain too large to list, found prefix by prefix.

Every stage asks for a longer prefix of the client's value, hashed and randomized. Prefixes that look frequent are kept
and extended; the last stage asks for the whole value, and only its reports, which the choice of candidates does not
depend on, decide what is listed and how often it occurs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import at_least
from dpcheckin.protocols.plan import Plan
from dpcheckin.randomizers import LocalHashing, Randomizer
from dpcheckin.randomizers.formats import Reports
from dpcheckin.survey.estimates import Estimate, Figures, Received, Sample, sample_of
from dpcheckin.survey.questions import ANY
from dpcheckin.survey.questions.histogram import ShareLaw
from dpcheckin.survey.questions.query import Query, Values, no_value, number_between, plain_values
from dpcheckin.survey.questions.strings import strings

FIRST_BITS, MORE_BITS = 16, 10
FUNCTIONS = 1024
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class HeavyHitters(Query):
    """The `top` most frequent values, each with its count.

    A value has so many `bits`, from 8 to 64: it is a number from 0 to 2^bits - 1, or a string: of characters of the
    `alphabet`, or any string if that is "any". With probability at most `false_positives` anything is listed that
    nobody holds (hash functions, drawn from the `salt`, are taken as random).

    >>> HeavyHitters(bits=24).prefixes, HeavyHitters(bits=64).prefixes
    ((14, 24), (14, 24, 34, 44, 54, 64))
    """

    kind = "heavy-hitters"
    reads = LocalHashing, "local hashing"
    bits: int = 24
    top: int = 50
    false_positives: float = 0.05
    alphabet: str = ""
    salt: str = ""

    def __post_init__(self) -> None:
        at_least("bits", self.bits, 8)
        at_least("top", self.top, 1)
        if self.bits > 64:
            raise InvalidParameter("bits", self.bits, "at most 64")
        if not 0 < self.false_positives < 1:
            allowed = "strictly between 0 and 1"
            raise InvalidParameter("false_positives", self.false_positives, allowed)
        if self.alphabet:
            strings(self.alphabet, self.bits)

    @cached_property
    def prefixes(self) -> tuple[int, ...]:
        """Bits that each stage asks for."""
        more = max(-(-(self.bits - FIRST_BITS) // MORE_BITS), 0)
        return tuple(self.bits - MORE_BITS * left for left in range(more, -1, -1))

    @property
    def stages(self) -> int:  # type: ignore[override]
        return len(self.prefixes)

    @property
    def kept(self) -> int:
        """Prefixes that are extended."""
        return max(4 * self.top, 64)

    def encode(self, values: Any) -> Values:
        given = plain_values(values)
        if self.alphabet:
            return strings(self.alphabet, self.bits).encode(given)
        numbers = [_whole(value) for value in given]
        strange = next((i for i, number in enumerate(numbers) if not 0 <= number < 1 << self.bits), None)
        if strange is not None:
            allowed = f"numbers from 0 to 2**{self.bits} - 1, or strings with alphabet = any"
            raise no_value(given[strange], strange, allowed)
        return np.array(numbers, dtype=np.uint64)

    def clipped(self, values: Any) -> tuple[int, str]:
        if not self.alphabet:
            return super().clipped(values)
        given = plain_values(values)
        kept = dict.fromkeys(map(str, given))
        texts = strings(self.alphabet, self.bits)
        kept |= dict(zip(kept, texts.decode(texts.encode(np.array(list(kept), dtype=object))), strict=True))
        return sum(kept[text] != text for text in map(str, given)), f"longer than {self.bits} bits hold"

    def nearest(self, value: Any) -> Any:
        """Without the characters that are not in the alphabet; of numbers the nearest."""
        if self.alphabet:
            known = "" if value is None else str(value)
            return known if self.alphabet == ANY else "".join(sign for sign in known if sign in self.alphabet)
        return min(int(number_between(value, 0, 2.0**self.bits)), (1 << self.bits) - 1)

    def asked(self, values: Values, round_index: int) -> Values:
        """The prefixes of the values that the stage of this round (round_index) asks for."""
        wanted = self.prefixes[round_index % self.stages]
        return np.asarray(values, np.uint64) >> np.uint64(self.bits - wanted)

    def mechanisms(self) -> Sequence[str]:
        return [f"hash:{k}" for k in range(18, 3, -1)]

    def randomizer(self, local_epsilon: float, mechanism: str | None = None) -> LocalHashing:
        """Hashing at this local_epsilon into as many buckets as the mechanism says (None: the first one)."""
        name, _, bits = (mechanism or self.mechanisms()[0]).partition(":")
        if name != LocalHashing.name or not bits.isdecimal() or not 1 <= int(bits) <= 24:
            raise InvalidParameter("mechanism", mechanism, "hash:BITS, BITS from 1 to 24")
        return LocalHashing(local_epsilon, 1 << int(bits), FUNCTIONS, self.salt)

    def answer(self, received: Received) -> Estimate:
        rounds, plan = received.rounds, received.plan
        made: LocalHashing = self.readable(plan.randomizer)
        words = self.candidates(rounds[: self.stages - 1], plan, rounds)
        last = [reports for i, reports in enumerate(rounds) if i % self.stages == self.stages - 1]
        sample = sample_of(plan.population, [len(reports) for reports in last])
        tables = made.tables(np.concatenate(last))
        support = made.support(tables, words)
        least = self._threshold(tables, len(words))
        best = np.argsort(-support, kind="stable")[: self.top]
        best = best[support[best] >= least]
        p, q = made.own_support, made.other_support
        law = ShareLaw(p, q, sample, self._shared(tables, made, sample))
        smallest = (least / sample.reports - q) / (p - q) * plan.population
        return law.counts(
            received,
            self.names_of(words[best]),
            support[best],
            max(len(words), 1),
            more={
                "false_positives": self.false_positives,
                "candidates": len(words),
                "smallest_listed": max(smallest, 0.0),
            },
            parts=(int(sample.reports),),
        )

    def names_of(self, words: Words) -> tuple[str, ...]:
        """Values as people write them."""
        if self.alphabet:
            return strings(self.alphabet, self.bits).decode(words)
        return tuple(str(int(word)) for word in words)

    def candidates(self, finished: Sequence[Reports], plan: Plan, every: Sequence[Reports] | None = None) -> Words:
        """What the next stage distinguishes: extensions of the prefixes that look frequent.

        `finished` are the reports of the first rounds of the plan, at most one for each stage but the last; `every`
        those of all rounds, where later rounds repeat the stages.
        """
        words = np.arange(1 << self.prefixes[0], dtype=np.uint64)
        made: LocalHashing = self.readable(plan.randomizer)
        for stage, reports in enumerate(finished):
            same = [reports] if every is None else list(every[stage :: self.stages])
            support = made.support(made.tables(np.concatenate(same)), words)
            best = np.sort(np.argsort(-support, kind="stable")[: self.kept])
            more = np.uint64(self.prefixes[stage + 1] - self.prefixes[stage])
            ends = np.arange(1 << int(more), dtype=np.uint64)
            words = ((words[best] << more)[:, None] | ends).ravel()
        return words

    def round_details(self, finished: Sequence[Reports], plan: Plan) -> dict[str, Any]:
        stage = len(finished) % self.stages
        details: dict[str, Any] = {"bits": self.prefixes[stage], "prefixes": []}
        if stage:
            tried = self.candidates(list(finished[:stage]), plan, finished)
            more = np.uint64(self.prefixes[stage] - self.prefixes[stage - 1])
            details["prefixes"] = [f"{int(prefix):x}" for prefix in np.unique(tried >> more)]
            details["prefix_bits"] = self.prefixes[stage - 1]
        return details

    @staticmethod
    def _shared(tables: NDArray[np.int64], made: LocalHashing, sample: Sample) -> float:
        """Variance of a share that comes of frequent values in the same buckets, all rounds alike.

        What the buckets of the tables differ by, beyond what coins make them differ.
        """
        q, n = made.other_support, sample.reports
        excess = float(tables.var(axis=1).sum()) - n * q * (1 - q)
        return max(excess, 0.0) / (n * (made.own_support - q)) ** 2

    def _threshold(self, tables: NDArray[np.int64], tried: int) -> float:
        """Reports that none of so many values held by nobody has, but with that probability.

        Such a value falls into a random bucket of every table: Chernoff's bound on the sum.
        """
        largest = int(tables.max())
        height = largest + 1
        flat = np.arange(len(tables))[:, None] * height + tables
        law = np.bincount(flat.ravel(), minlength=len(tables) * height).reshape(-1, height)
        law = law / tables.shape[1]
        needed = math.log(max(tried, 1) / self.false_positives)
        best = math.inf
        for tilt in np.geomspace(1e-3, 8.0, 60):
            weights = np.exp(tilt * (np.arange(height) - largest))
            logs = np.log(law @ weights) + tilt * largest
            best = min(best, (float(logs.sum()) + needed) / tilt)
        return best

    def predicted_error(self, randomizer: Randomizer, sample: Sample) -> float:
        """That of the randomizer and sample, of a value a tenth as frequent as the last one listed could be."""
        made: LocalHashing = self.readable(randomizer)
        last = Sample(sample.population, sample.sizes[:: self.stages])
        law = ShareLaw(made.own_support, made.other_support, last)
        share = np.array([1.0 / (10 * self.top)])
        return float(law.deviation(share)[0]) * sample.population

    def reach(self, plan: Plan) -> Figures:
        """Of any count, which only the last stage makes: a report falls into a bucket or not."""
        made: LocalHashing = self.readable(plan.randomizer)
        return np.array([[plan.population / (made.own_support - made.other_support)]])

    def truth_of(self, values: Values, estimate: Estimate) -> Figures:
        words, counts = np.unique(values, return_counts=True)
        seen = dict(zip(self.names_of(words), counts.tolist(), strict=True))
        return np.array([seen.get(name, 0) for name in estimate.names], dtype=np.float64)


def _whole(value: Any) -> int:
    """A value as a whole number; -1 if it is none."""
    try:
        return int(value)
    except (OverflowError, TypeError, ValueError):
        return -1
