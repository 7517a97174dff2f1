"""Which reports and how many rounds tell the analyzer most, for a target epsilon.

The mean of N reports about vectors of length one strays from their mean by the variance of one report over N in every
coordinate. *Signal* is N over that variance, given as a share of what a trusted server would have that sees everybody's
vector and adds Gaussian noise once, with the same epsilon, delta and adjacency (replace one). It is in units of the
clip, of which epsilon does not depend.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcheckin.accounting import Kind
from dpcheckin.display import Tabular
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import at_least, open_probability, positive
from dpcheckin.options import DEFAULT_DELTA
from dpcheckin.protocols import ShuffledCheckIn
from dpcheckin.randomizers import Gaussian, PrivUnit, VectorRandomizer
from dpcheckin.special.normal import log_ndtr
from dpcheckin.special.roots import root

LOCAL_EPSILONS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0)
NOISE_MULTIPLIERS = (1.6, 2.0, 2.7)
MOST_ROUNDS = 10_000_000
"""Nobody plays more; the search needs an end."""
_FIRST_ROUNDS = 8192  # runs of millions of rounds are slow to account: they are asked for last


def central_signal(epsilon: float, delta: float, population: int) -> float:
    """Signal of one Gaussian mechanism with this `epsilon` and `delta` over the vectors of a whole `population`.

    The two neighbouring sums are 2 apart in units of the clip; the noise is the least that keeps delta (Balle and Wang,
    arXiv 1805.06530v2, Theorem 8).
    """

    def excess(ratio: float) -> float:
        """Delta of shift over noise, less the one allowed."""
        far, near = log_ndtr([-epsilon / ratio - ratio / 2, -epsilon / ratio + ratio / 2])
        return float(math.exp(near) - math.exp(epsilon + far)) - delta

    high = 1.0
    while excess(high) < 0:
        high *= 2
    ratio = root(excess, 1e-9, high, absolute=1e-12)
    return (population * ratio / 2) ** 2


def report_variance(randomizer: VectorRandomizer, dimension: int) -> float:
    """Variance of one report of a `randomizer` about a vector of length `clip`, over clip² and its `dimension`."""
    row = np.zeros((1, dimension))
    row[0, 0] = randomizer.clip
    return float(randomizer.total_variance(row)[0]) / dimension / randomizer.clip**2


@dataclass(frozen=True)
class Choice:
    """One way to spend the budget.

    Args:
        reports: the randomizer in words.
        local_epsilon: epsilon of one report, None for Gaussian reports.
        noise_multiplier: noise over clip, None for others.
        rate: probability that a client checks in to a round.
        rounds: as many as epsilon and passes allow.
        epsilon: certified for these rounds.
        colluding_epsilon: what is left of it if the shuffler tells who sent what.
        signal: share of the trusted server's.
    """

    reports: str
    local_epsilon: float | None
    noise_multiplier: float | None
    rate: float
    rounds: int
    epsilon: float
    colluding_epsilon: float
    signal: float

    @property
    def passes(self) -> float:
        """Check-ins of one client, on average: what it costs the fleet, and a simulation."""
        return self.rate * self.rounds


@dataclass(frozen=True)
class Advice(Tabular):
    """Choices from the largest signal to the smallest.

    Args:
        choices: in that order.
        epsilon: the target.
        delta: of the statements.
        population: number of clients.
        dimension: numbers of a report.
    """

    choices: tuple[Choice, ...]
    epsilon: float
    delta: float
    population: int
    dimension: int

    @property
    def best(self) -> Choice:
        """The choice with the largest signal."""
        return self.choices[0]

    def records(self) -> list[dict[str, Any]]:
        """One row a choice, the best first."""
        columns: tuple[str, ...] = (
            "reports",
            "local_epsilon",
            "noise_multiplier",
            "rate",
            "rounds",
            "passes",
            "epsilon",
        )
        columns += ("colluding_epsilon", "signal")
        return [{column: getattr(choice, column) for column in columns} for choice in self.choices]

    def shown(self) -> list[dict[str, str]]:
        return [
            {
                "reports": c.reports,
                "rate": f"{c.rate:g}",
                "rounds": f"{c.rounds:,}",
                "check-ins": f"{c.passes:,.0f}",
                "ε": Kind.GUARANTEE.figure(c.epsilon),
                "if colluding": Kind.GUARANTEE.figure(c.colluding_epsilon),
                "signal": f"{math.floor(1000 * c.signal) / 10:.1f}%",
            }
            for c in self.choices
        ]

    @property
    def caption(self) -> str:
        return (
            f"{self.population:,} clients, {self.dimension:,} numbers a report, "
            f"δ = {self.delta:g}; check-ins of a client, on average; ε certified, and what is left if the shuffler "
            "colludes; signal: share of what a trusted server has at the same ε (replace one)"
        )


def advise(
    *,
    epsilon: float,
    population: int,
    dimension: int,
    delta: float = DEFAULT_DELTA,
    rates: Sequence[float] = (0.1,),
    passes: float | None = None,
    local_epsilons: Sequence[float] | None = None,
    noise_multipliers: Sequence[float] | None = None,
    on_question: Callable[[str], None] = lambda _: None,
) -> Advice:
    """Compare PrivUnit and Gaussian reports under shuffled check-in by the signal they leave.

    Args:
        epsilon: Target that no choice passes.
        population: Number of clients.
        dimension: Numbers of a report: the model's parameters.
        delta: Of the statement.
        rates: Check-in rates to try.
        passes: Most check-ins of one client on average; None for no limit but epsilon.
        local_epsilons: PrivUnit reports to try.
        noise_multipliers: Gaussian reports to try; without either, both kinds with the usual values.
        on_question: Told what is tried.

    >>> advice = advise(epsilon=1.0, population=60_000, dimension=3010, local_epsilons=[2, 4], noise_multipliers=[2])
    >>> [(choice.noise_multiplier or choice.local_epsilon, choice.rounds) for choice in advice.choices]
    [(2.0, 23928), (2.0, 5820), (4.0, 518)]
    """
    _check(epsilon, delta, population, dimension, passes)
    reference = central_signal(epsilon, delta, population)
    if local_epsilons is None and noise_multipliers is None:
        local_epsilons, noise_multipliers = LOCAL_EPSILONS, NOISE_MULTIPLIERS
    randomizers: list[VectorRandomizer] = [PrivUnit(float(e), dimension) for e in local_epsilons or ()]
    randomizers += [Gaussian(float(noise)) for noise in noise_multipliers or ()]
    if not randomizers or not rates:
        raise InvalidParameter("local_epsilons", [], "at least one randomizer and one rate")
    choices: list[Choice] = []
    for randomizer in randomizers:
        variance = report_variance(randomizer, dimension)
        for rate in rates:
            on_question(f"{randomizer.describe()}, rate {rate:g}")
            most = MOST_ROUNDS if passes is None else math.floor(passes / rate + 1e-9)
            if most < 1:
                raise InvalidParameter("passes", passes, f"at least the rate {rate:g}: one round")
            plan = ShuffledCheckIn(population, rate, most, randomizer)
            rounds = _most_rounds(plan, epsilon, delta)
            if rounds == 0:
                continue
            stated = plan.guarantee(delta, rounds)
            assert stated.local is not None  # there is a shuffler to collude
            choice = Choice(
                reports=randomizer.describe(),
                local_epsilon=getattr(randomizer, "local_epsilon", None),
                noise_multiplier=getattr(randomizer, "noise_multiplier", None),
                rate=rate,
                rounds=rounds,
                epsilon=stated.epsilon.upper,
                colluding_epsilon=stated.local.epsilon,
                signal=rounds * rate * population / variance / reference,
            )
            choices.append(choice)
    if not choices:
        raise InvalidParameter("epsilon", epsilon, "more than the first round of any choice costs")
    ordered = tuple(sorted(choices, key=lambda choice: -choice.signal))
    return Advice(ordered, epsilon, delta, population, dimension)


def _most_rounds(plan: ShuffledCheckIn, epsilon: float, delta: float) -> int:
    """Rounds of the plan that epsilon allows, looked for among few before many."""
    tried = _FIRST_ROUNDS
    while tried < plan.rounds:
        rounds = replace(plan, rounds=tried).rounds_within(epsilon, delta)
        if rounds < tried:
            return rounds
        tried *= 8
    return plan.rounds_within(epsilon, delta)


def _check(epsilon: float, delta: float, population: int, dimension: int, passes: float | None) -> None:
    positive("epsilon", epsilon)
    open_probability("delta", delta)
    at_least("population", population, 2)
    at_least("dimension", dimension, 2)
    if passes is not None and not 0 < passes < math.inf:
        raise InvalidParameter("passes", passes, "a finite number above 0")
