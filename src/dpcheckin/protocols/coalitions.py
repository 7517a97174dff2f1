"""Who could work with whom in a deployment, and the epsilon that is left against each.

A run of shuffled check-ins has three parties beside the clients: shuffler, analyzer and, where reports carry tokens,
the issuer. Everybody also reads what the analyzer publishes. Against the analyzer the guarantee of the run holds. The
shuffler knows who checked in, so sampling is worth nothing against it; and it decides whose reports reach the analyzer.
With tokens it can drop reports but neither copy nor invent them, and a round with fewer than `minimum_batch` is void: a
client is hidden among at least so many reports. Without tokens it can hide a client among reports of its own, subtract
them, and only the client's own noise is left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpcheckin.accounting import CheckInRound, any_pure, compose, guarantee
from dpcheckin.accounting.composition.guarantees import local_guarantee
from dpcheckin.accounting.rounds.shuffled import ShuffleRound
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import rounded_up
from dpcheckin.special import binomial, intervals

RUN = "the run's guarantee"
LOCAL = "the client's own noise only"


@dataclass(frozen=True)
class Coalition:
    """Some parties that work together, and what is left against them.

    Args:
        parties: who, in words.
        epsilon: at the delta of the question, over all rounds, rounded to the safe side.
        basis: what it rests on.
    """

    parties: str
    epsilon: float
    basis: str

    def to_json(self) -> dict[str, Any]:
        finite = self.epsilon if math.isfinite(self.epsilon) else None
        return {"parties": self.parties, "epsilon": finite, "basis": self.basis}

    @staticmethod
    def from_json(facts: Mapping[str, Any]) -> Coalition:
        """What `to_json` gave."""
        epsilon = math.inf if facts["epsilon"] is None else float(facts["epsilon"])
        return Coalition(str(facts["parties"]), epsilon, str(facts["basis"]))

    @property
    def figure(self) -> str:
        """Epsilon as it is printed: never below what was computed."""
        return rounded_up(self.epsilon)


def coalitions(
    one: CheckInRound | ShuffleRound, rounds: int, delta: float, minimum_batch: int, *, tokens: bool
) -> tuple[Coalition, ...]:
    """What is left at `delta`, after so many `rounds` like `one`, against every coalition of parties, weakest first.

    A round is used from `minimum_batch` reports on; `tokens` says whether these carry tokens of an issuer, which
    colluding clients may hold too.

    >>> priced = coalitions(CheckInRound(1000, 0.1, any_pure(1.0)), 10, 1e-5, 50, tokens=True)
    >>> [coalition.parties for coalition in priced if coalition.basis == LOCAL]
    ['shuffler and issuer', 'shuffler and analyzer', 'all three']
    """
    if rounds < 1:
        raise InvalidParameter("rounds", rounds, "1 or more")
    if minimum_batch < 0:
        raise InvalidParameter("minimum_batch", minimum_batch, "0 or more")
    stated = guarantee([(one, rounds)], delta)
    assert stated.local is not None
    run, local = stated.charge(), stated.local.epsilon
    if not tokens:
        return (
            Coalition("analyzer", run, RUN),
            Coalition("shuffler", local, f"{LOCAL}: it can invent all other reports"),
            Coalition("shuffler and analyzer", local, LOCAL),
        )
    alone, basis = shuffler_alone(one, rounds, delta, minimum_batch)
    return (
        Coalition("analyzer", run, RUN),
        Coalition("issuer", run, RUN),
        Coalition("analyzer and issuer", run, f"{RUN}: blind signatures name nobody"),
        Coalition("shuffler", alone, basis),
        Coalition("shuffler and issuer", local, LOCAL),
        Coalition("shuffler and analyzer", local, LOCAL),
        Coalition("all three", local, LOCAL),
    )


def shuffler_alone(
    one: CheckInRound | ShuffleRound, rounds: int, delta: float, minimum_batch: int
) -> tuple[float, str]:
    """Epsilon against a shuffler that reads what is published and drops whom it likes; its basis.

    The shuffler sees in which rounds a client reports: how often follows a binomial law, whose tail is given half of
    delta. In each of those rounds the published figures are a function of the multiset of at least `minimum_batch`
    reports, one for each valid token; those of colluding clients are taken out. That is full shuffling, proved for
    every pure randomizer; for others, and where it is not better, the client's own noise is what is left. The `rounds`
    are like `one`, `delta` is that of the statement.
    """
    local = local_guarantee([(one.pair, one.participation, rounds)], delta).epsilon
    crowd = minimum_batch - (one.population - one.honest)
    if crowd < 2 or not one.pair.pure:
        return local, LOCAL
    most = intervals.upper_quantile(delta / 2, rounds, one.participation)
    most += bool(binomial.sf(most, rounds, one.participation) > delta / 2 * (1 - 1e-9))
    shuffled = ShuffleRound(crowd, any_pure(one.pair.local_epsilon))
    hidden = compose([(shuffled, most)]).epsilon(delta / 2).upper
    if hidden >= local:
        return local, LOCAL
    return hidden, f"hidden among {crowd:,} reports, in the at most {most:,} rounds it reports in"
