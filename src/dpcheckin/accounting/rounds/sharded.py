"""Check-in through many shufflers: each client picks one of them by its own secret coin.

Every shard permutes what it got and hands it to the analyzer under its own name. The shard's name is then part of the
report: it is drawn without looking at the data, so the report's local pair stays what it was, and shuffling the reports
of all clients gives exactly the shards' batches. So sharding costs nothing as long as all shards are honest
(docs/scaling.md, Proposition 3).

A shard that works with the analyzer tells who sent what: with probability rate · corrupted / shards a client's report
of a round is seen under its name, and otherwise it hides among the reports of the honest shards. `sharded` writes that
as rounds that compose (Proposition 4).
"""

from __future__ import annotations

import math

import numpy as np

from dpcheckin.accounting.pairs.local import LocalPair
from dpcheckin.accounting.rounds.base import LocalRound, Round
from dpcheckin.accounting.rounds.shuffled import CheckInRound
from dpcheckin.numerals import count
from dpcheckin.special import binomial

_BEYOND = 1e-38
"""Bernstein: a sum of independent coins passes its mean by 40 deviations and 60 less often."""

_COUNTED = 10_000
_TAIL = 1e-15


def sharded(
    population: int,
    rate: float,
    pair: LocalPair,
    rounds: int,
    *,
    shards: int,
    corrupted: int = 0,
    colluding: float = 0.0,
) -> list[tuple[Round, int]]:
    """What `rounds` rounds over `shards` shufflers come to, `corrupted` of which tell everything.

    The others are as for `CheckInRound`: `population`, `rate`, the reports' `pair` and the fraction `colluding`.

    >>> from dpcheckin.accounting import any_pure, guarantee
    >>> honest = guarantee(sharded(10**6, 0.01, any_pure(2.0), 100, shards=64), 1e-6)
    >>> plain = guarantee([(CheckInRound(10**6, 0.01, any_pure(2.0)), 100)], 1e-6)
    >>> honest.epsilon == plain.epsilon
    True
    """
    count("shards", shards)
    count("corrupted", corrupted, 0, shards)
    whole = CheckInRound(population, rate, pair, colluding)
    if corrupted == 0:
        return [(whole, rounds)]
    exposed = rate * corrupted / shards
    if corrupted == shards or whole.honest == 1 or exposed >= 1.0:
        return [(LocalRound(pair, rate), rounds)]
    hidden = (rate - exposed) / (1 - exposed)  # the rate of those who are not exposed
    crowd, fewer = _crowd(whole.honest, exposed)
    return [
        (CheckInRound(crowd, hidden, pair), rounds),
        # where fewer are left to hide among, the report is reckoned as seen
        (LocalRound(pair, min(1.0, exposed + fewer)), rounds),
    ]


def _crowd(honest: int, exposed: float) -> tuple[int, float]:
    """Clients that are left to hide among (oneself included), and the chance that fewer are.

    The others that are exposed are Bin(honest - 1, exposed).
    """
    others = honest - 1
    if others > _COUNTED:
        mean = others * exposed
        most = math.ceil(mean + 40 * math.sqrt(mean * (1 - exposed)) + 60)
        if most < others:
            return honest - most, _BEYOND
        return 1, 0.0
    chances = binomial.pmf(np.arange(others + 1), others, exposed)
    beyond = np.cumsum(chances[::-1])[::-1] * (1 + 1e-12)  # P(at least j are exposed)
    most = next((j for j in range(others) if beyond[j + 1] <= _TAIL), others)
    return honest - most, float(beyond[most + 1]) if most < others else 0.0
