"""A question put to a fleet: the query, its randomizer, and who answers when.

A survey is a frozen description. It is accounted for, simulated and deployed as it stands, and it travels as a plain
document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from dpcheckin.accounting import Guarantee, LowerBound
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import at_least, positive
from dpcheckin.protocols import FullShuffle, ShuffledCheckIn
from dpcheckin.randomizers import Randomizer
from dpcheckin.randomizers.formats import Reports
from dpcheckin.survey.estimates import Estimate, Figures, Sample
from dpcheckin.survey.questions.query import Query


@dataclass(frozen=True)
class Survey:
    """A query to a population, with everything that its guarantee depends on.

    A report has `local_epsilon` and is made by a `mechanism` of the query, by name, or by its first. A client reports
    in a round with probability `rate`; 1 asks everybody. There are so many `rounds`, a multiple of the query's stages;
    a share `colluding` of the clients tells all it knows.
    """

    query: Query
    population: int
    local_epsilon: float
    mechanism: str | None = None
    rate: float = 1.0
    rounds: int = 1
    colluding: float = 0.0

    def __post_init__(self) -> None:
        at_least("population", self.population, 2)
        at_least("rounds", self.rounds, 1)
        positive("rate", self.rate, 1.0)
        if self.rounds % self.query.stages:
            raise InvalidParameter("rounds", self.rounds, f"a multiple of the query's {self.query.stages} stages")
        self.query.randomizer(self.local_epsilon, self.mechanism)  # refuses what it does not know

    @cached_property
    def randomizer(self) -> Randomizer:
        """What makes a report."""
        return self.query.randomizer(self.local_epsilon, self.mechanism)

    @cached_property
    def plan(self) -> FullShuffle | ShuffledCheckIn:
        """Who answers when, for accounting, simulation and deployment."""
        if self.rate == 1.0:
            return FullShuffle(self.population, self.rounds, self.randomizer, self.colluding)
        return ShuffledCheckIn(
            population=self.population,
            rate=self.rate,
            rounds=self.rounds,
            randomizer=self.randomizer,
            colluding=self.colluding,
        )

    @property
    def sample(self) -> Sample:
        """The reports to be expected."""
        rate = 1.0 if isinstance(self.plan, FullShuffle) else self.plan.rate
        return Sample(self.population, (rate * self.population,) * self.rounds)

    @property
    def report_bytes(self) -> int:
        """Bytes of one report before it is sealed."""
        return self.randomizer.report_format.size

    def guarantee(self, delta: float) -> Guarantee:
        """The certified statement: with an honest shuffler, and with one that colludes."""
        return self.plan.guarantee(delta)

    def lower_bound(self, delta: float) -> LowerBound:
        """What no guarantee about the survey can be smaller than."""
        return self.plan.lower_bound(delta)

    def predicted_error(self) -> float:
        """Root of the mean squared error to be expected, in the query's unit."""
        return self.query.predicted_error(self.randomizer, self.sample)

    def estimate(
        self, reports: Sequence[Reports] | Reports, confidence: float = 0.95, simultaneous: bool = False
    ) -> Estimate:
        """The answer, from the reports of all rounds, with intervals of this confidence (all at once: simultaneous)."""
        return self.query.estimate(reports, self.plan, confidence, simultaneous)

    def influence(self, clients: int, answer: Estimate | int | None = None) -> float:
        """The most by which so many colluding clients can move any figure, in the query's unit.

        Proved in docs/survey.md. Of an estimate (the `answer`, or the number of reports that it counts) it holds in any
        case; before there is one, but with probability 10⁻⁹ over the coins of honest clients.
        """
        return float(self.query.influence(self.plan, clients, answer).max(initial=0.0))

    def moves(self, clients: int, estimate: Estimate) -> Figures:
        """The most by which so many colluding clients have moved each figure of an estimate, in its own unit."""
        bounds = self.query.influence(self.plan, clients, estimate)
        lower, upper = self.query.moved(estimate, bounds)
        return np.asarray(np.maximum(upper - estimate.values, estimate.values - lower))

    def as_document(self) -> dict[str, Any]:
        """The survey as plain data."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**own, "query": self.query.as_document(), "mechanism": self.mechanism or self.query.mechanisms()[0]}

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> Survey:
        """The survey that a document of `as_document` describes."""
        given = {name: value for name, value in document.items() if name != "query"}
        if not isinstance(document.get("query"), Mapping):
            raise InvalidParameter("query", document.get("query"), "a query's document")
        try:
            return Survey(Query.from_document(document["query"]), **given)
        except TypeError as problem:
            raise InvalidParameter("survey", sorted(given), f"its fields ({problem})") from None
