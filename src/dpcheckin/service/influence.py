"""What clients that lie can do to the result of a round: how far they move it, unnoticed.

Privacy does not depend on it; whoever uses the result does. A pure or Gaussian report is checked by
itself, so the influence of c clients is c times that of one. Of two shares nothing can be checked:
each is uniformly random alone, and only the length of the whole sum tells. So one client can do
there what all of them together can.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcheckin.accounting.figures import rounded_up
from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import CategoryRandomizer, Gaussian, IntegerVector, VectorRandomizer
from dpcheckin.service.pricing import randomizer_of
from dpcheckin.service.wire.documents import OCTETS, PlanDocument
from dpcheckin.service.wire.shares import FALSE_ALARM, longest_sum

UNIT_SQUARES = (0.998, 1.002)
"""Squared lengths of a direction that are taken for one, in float32."""


def longest_gaussian(randomizer: Gaussian, dimension: int) -> float:
    """No honest Gaussian report is longer, except with probability exp(-9²/2).

    Args:
        randomizer: of the plan.
        dimension: of a report.
    """
    # ‖noise‖ exceeds σ(√d + t) with probability at most exp(-t²/2)
    return (randomizer.clip + randomizer.deviation * (math.sqrt(dimension) + 9.0)) * 1.0001


@dataclass(frozen=True)
class Influence:
    """How far hostile clients can move the sum of a round, beside what an honest one gives."""

    hostile: int
    reports: int
    moved: float
    """Largest move of the sum that no check notices, in l2."""
    honest: float
    """What one honest client adds to it on average, at the most: its clip, or one count."""
    sentence: str


def influence(plan: PlanDocument, reports: int, hostile: int = 1) -> Influence:
    """What so many hostile clients can do to the sum of a round.

    Args:
        plan: names the randomizer.
        reports: in the round, hostile ones included.
        hostile: how many of them lie, at least 1.
    """
    if not 1 <= hostile <= reports:
        raise InvalidParameter("hostile", hostile, f"from 1 to the {reports:,} reports")
    if plan.encoding == OCTETS:
        raise InvalidParameter("plan", "a survey", "a plan whose reports are added up")
    randomizer = randomizer_of(plan)
    clip = float(plan.randomizer["clip"])
    who = "one client that lies" if hostile == 1 else f"{hostile:,} clients that lie"
    if isinstance(randomizer, IntegerVector):
        moved = 2 * longest_sum(randomizer, reports)
        checked = (
            f"only the length of the sum is checked (false alarms: at most {FALSE_ALARM:.1e} "
            "a round), so that any number of them can do what one can"
        )
    elif isinstance(randomizer, VectorRandomizer):
        moved = hostile * 2 * _longest_estimate(randomizer, plan.dimension)
        checked = "the length of every report is checked"
    else:
        assert isinstance(randomizer, CategoryRandomizer)
        first, second = (randomizer.estimate(np.array([symbol])) for symbol in (0, 1))
        moved, clip = hostile * float(np.linalg.norm(first - second)), 1.0
        checked = "every report is one symbol"
    sentence = (
        f"Of {reports:,} reports, {who} can move the sum by at most "
        f"{rounded_up(moved / clip)} times what one honest client may add: {checked}."
    )
    return Influence(hostile, reports, moved, clip, sentence)


def _longest_estimate(randomizer: VectorRandomizer, dimension: int) -> float:
    """Length of the longest estimate that a single report which passes the checks can give."""
    if isinstance(randomizer, Gaussian):
        longest = longest_gaussian(randomizer, dimension)
    else:
        longest = math.sqrt(UNIT_SQUARES[1])
    unit = np.zeros((1, dimension))
    unit[0, 0] = 1.0
    return longest * float(np.linalg.norm(randomizer.sum_estimates(unit)))
