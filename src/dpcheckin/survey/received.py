"""What came back from a fleet, and how sure the intervals about it are to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcheckin.protocols.plan import Plan
from dpcheckin.randomizers.formats import Reports
from dpcheckin.survey.estimates import Estimate, Figures
from dpcheckin.survey.sampling import Sample, critical_value, sample_of


@dataclass(frozen=True)
class Received:
    """The reports of all rounds that a client can have made.

    Args:
        rounds: the reports of each round.
        dropped: reports that no client could have made.
        plan: who was asked, and by which randomizer.
        confidence: of the intervals.
        simultaneous: whether all intervals are to hold at once.
    """

    rounds: tuple[Reports, ...]
    dropped: int
    plan: Plan
    confidence: float
    simultaneous: bool

    @property
    def together(self) -> Reports:
        """All reports."""
        return np.concatenate(self.rounds)

    @property
    def sample(self) -> Sample:
        """How many of how many clients were heard."""
        return sample_of(self.plan.population, [len(some) for some in self.rounds])

    def deviations(self, figures: int) -> float:
        """Half the width of an interval, in standard deviations.

        Args:
            figures: how many intervals there are.
        """
        return critical_value(self.confidence, figures if self.simultaneous else 1)

    def estimate(
        self,
        names: tuple[str, ...],
        values: Figures,
        lower: Figures,
        upper: Figures,
        deviation: Figures,
        **more: Any,
    ) -> Estimate:
        """The answer with its intervals.

        Args:
            names: of the figures.
            values: the figures.
            lower: lower ends of the intervals.
            upper: upper ends.
            deviation: standard deviations.
            more: what else an `Estimate` can say.
        """
        return Estimate(
            names, values, lower, upper, deviation, self.confidence, self.simultaneous,
            population=self.plan.population,
            reports=sum(map(len, self.rounds)),
            dropped=self.dropped,
            **more,
        )  # fmt: skip
