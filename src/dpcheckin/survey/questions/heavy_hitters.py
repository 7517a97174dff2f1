"""The most frequent values of a domain too large to list, found prefix by prefix.

Every stage asks for a longer prefix of the client's value, hashed and randomized. Prefixes that
look frequent are kept and extended; the last stage asks for the whole value, and only its reports,
which the choice of candidates does not depend on, decide what is listed and how often it occurs.
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
from dpcheckin.protocols.plan import Plan
from dpcheckin.randomizers import LocalHashing, Randomizer
from dpcheckin.randomizers.base import at_least
from dpcheckin.randomizers.formats import Reports
from dpcheckin.survey.estimates import Estimate
from dpcheckin.survey.questions.histogram import ShareLaw
from dpcheckin.survey.questions.query import Query, Values, number_between, plain_values
from dpcheckin.survey.questions.words import Alphabet
from dpcheckin.survey.received import Received
from dpcheckin.survey.sampling import Sample, sample_of, score_interval

FIRST_BITS, MORE_BITS = 16, 10
FUNCTIONS = 1024
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class HeavyHitters(Query):
    """The `top` most frequent values, each with its count.

    A value that nobody holds is listed with probability at most `false_positives` (any of them;
    hash functions are taken as random).

    Args:
        bits: of a value, from 8 to 64.
        top: values to list at most.
        false_positives: probability that anything is listed that nobody holds.
        alphabet: characters of strings; empty if values are numbers from 0 to 2^bits - 1.
        salt: what hash functions are drawn from.

    >>> HeavyHitters(bits=24).prefixes, HeavyHitters(bits=64).prefixes
    ((14, 24), (14, 24, 34, 44, 54, 64))
    """

    kind = "heavy-hitters"
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
            Alphabet(self.alphabet, self.bits)

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
            return Alphabet(self.alphabet, self.bits).encode(given)
        try:
            words = np.array([int(value) for value in given], dtype=np.uint64)
        except (OverflowError, ValueError):
            words = np.full(1, np.iinfo(np.uint64).max)
        if self.bits < 64 and len(words) and int(words.max()) >= 1 << self.bits:
            raise InvalidParameter("values", "some", f"numbers from 0 to 2**{self.bits} - 1")
        return words

    def nearest(self, value: Any) -> Any:
        """Without the characters that are not in the alphabet; of numbers the nearest."""
        if self.alphabet:
            known = "" if value is None else str(value)
            return "".join(one for one in known if one in self.alphabet)
        return min(int(number_between(value, 0, 2.0**self.bits)), (1 << self.bits) - 1)

    def asked(self, values: Values, round_index: int) -> Values:
        wanted = self.prefixes[round_index % self.stages]
        return np.asarray(values, np.uint64) >> np.uint64(self.bits - wanted)

    def mechanisms(self) -> Sequence[str]:
        return [f"hash:{k}" for k in range(18, 3, -1)]

    def randomizer(self, local_epsilon: float, mechanism: str | None = None) -> LocalHashing:
        name, _, bits = (mechanism or self.mechanisms()[0]).partition(":")
        if name != LocalHashing.name or not bits.isdecimal() or not 1 <= int(bits) <= 24:
            raise InvalidParameter("mechanism", mechanism, "hash:BITS, BITS from 1 to 24")
        return LocalHashing(local_epsilon, 1 << int(bits), FUNCTIONS, self.salt)

    def answer(self, received: Received) -> Estimate:
        kept, plan = received.rounds, received.plan
        made = _hashing(plan.randomizer)
        candidates = self.candidates(kept[: self.stages - 1], plan, kept)
        last = [some for i, some in enumerate(kept) if i % self.stages == self.stages - 1]
        sample = sample_of(plan.population, [len(some) for some in last])
        tables = made.tables(np.concatenate(last))
        support = made.support(tables, candidates)
        least = self._threshold(tables, len(candidates))
        best = np.argsort(-support, kind="stable")[: self.top]
        best = best[support[best] >= least]
        shared = self._shared(tables, made, sample)
        return self._listed(
            candidates[best], support[best], len(candidates), least, (sample, shared), received
        )

    def _listed(
        self, words: Words, support: NDArray[np.float64], tried: int, least: float,
        drawn: tuple[Sample, float], received: Received,
    ) -> Estimate:  # fmt: skip
        sample, shared = drawn
        made, people = _hashing(received.plan.randomizer), received.plan.population
        p, q = made.own_support, made.other_support
        shares = (support / sample.reports - q) / (p - q)
        law = ShareLaw(p, q, sample, shared)
        lower, upper = score_interval(shares, law.moments, received.deviations(max(tried, 1)))
        return received.estimate(
            names=self.names_of(words),
            values=shares * people,
            lower=lower * people,
            upper=upper * people,
            deviation=law.deviation(np.clip(shares, 0.0, 1.0)) * people,
            more={
                "false_positives": self.false_positives,
                "candidates": tried,
                "smallest_listed": max((least / sample.reports - q) / (p - q) * people, 0.0),
            },
            parts=(int(sample.reports),),
        )

    def names_of(self, words: Words) -> tuple[str, ...]:
        """Values as people write them."""
        if self.alphabet:
            return Alphabet(self.alphabet, self.bits).decode(words)
        return tuple(str(int(word)) for word in words)

    def candidates(
        self, finished: Sequence[Reports], plan: Plan, every: Sequence[Reports] | None = None
    ) -> Words:
        """What the next stage distinguishes: extensions of the prefixes that look frequent.

        Args:
            finished: reports of the first rounds, one array each; at most one for each stage but
                the last.
            plan: of the survey.
            every: reports of all rounds, where later rounds repeat the stages.
        """
        found = np.arange(1 << self.prefixes[0], dtype=np.uint64)
        made = _hashing(plan.randomizer)
        for stage, reports in enumerate(finished):
            same = [reports] if every is None else list(every[stage :: self.stages])
            support = made.support(made.tables(np.concatenate(same)), found)
            best = np.sort(np.argsort(-support, kind="stable")[: self.kept])
            more = np.uint64(self.prefixes[stage + 1] - self.prefixes[stage])
            ends = np.arange(1 << int(more), dtype=np.uint64)
            found = ((found[best] << more)[:, None] | ends).ravel()
        return found

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
        """Of the count of a value a tenth as frequent as the last one listed could be."""
        made = _hashing(randomizer)
        last = Sample(sample.population, sample.sizes[:: self.stages])
        law = ShareLaw(made.own_support, made.other_support, last)
        share = np.array([1.0 / (10 * self.top)])
        return float(law.deviation(share)[0]) * sample.population

    def reach(self, plan: Plan) -> NDArray[np.float64]:
        """Of any count, which only the last stage makes: a report falls into a bucket or not."""
        made = _hashing(plan.randomizer)
        return np.array([[plan.population / (made.own_support - made.other_support)]])

    def truth_of(self, values: Values, estimate: Estimate) -> NDArray[np.float64]:
        words, counts = np.unique(values, return_counts=True)
        seen = dict(zip(self.names_of(words), counts.tolist(), strict=True))
        return np.array([seen.get(name, 0) for name in estimate.names], dtype=np.float64)


def _hashing(randomizer: Randomizer) -> LocalHashing:
    if not isinstance(randomizer, LocalHashing):
        raise InvalidParameter("randomizer", randomizer.describe(), "local hashing")
    return randomizer
