"""Several questions to the same people on one budget: each in rounds of its own, all of them accounted as one run.

The budget is parted by weight as squares of mu add up (Gaussian differential privacy); then the whole is certified and
the parts are scaled until it is used up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpcheckin.accounting import Guarantee, Round, guarantee
from dpcheckin.display import Tabular
from dpcheckin.errors import InvalidParameter, Unreachable
from dpcheckin.numerals import positive
from dpcheckin.special.normal import gaussian_profile_at
from dpcheckin.special.roots import switch
from dpcheckin.survey.estimates import gaussian_mu
from dpcheckin.survey.planning import SurveyPlan, Wish, plan_survey

TRIES = 8
ENOUGH = 0.99  # of the budget
_LEAST = 1e-6


@dataclass(frozen=True)
class Questionnaire(Tabular):
    """Surveys of the same people, by name, and what is certified of all of them together."""

    plans: Mapping[str, SurveyPlan]
    guarantee: Guarantee

    def records(self) -> list[dict[str, Any]]:
        """A row for each question: what was chosen and what it costs alone."""
        return [{"question": name, **plan.records()[0]} for name, plan in self.plans.items()]

    @property
    def caption(self) -> str:
        return str(self.guarantee)

    def as_document(self) -> dict[str, Any]:
        """Plain data: every survey, and both trust figures of all together."""
        local = self.guarantee.local
        return {
            "questions": {name: plan.as_document() for name, plan in self.plans.items()},
            "epsilon": self.guarantee.epsilon.upper,
            "delta": self.guarantee.delta,
            "colluding_epsilon": None if local is None else local.epsilon,
            "statement": str(self.guarantee),
        }


def plan_together(wishes: Mapping[str, Wish], epsilon: float, weights: Sequence[float] = ()) -> Questionnaire:
    """Surveys that answer all wishes, by name, at this certified epsilon together.

    All wishes have one delta, that of the whole; their own epsilon does not matter, and what may be left if the
    shuffler colludes is of all of them. By `weights`, alike if left out, questions get their parts of the budget.

    >>> from dpcheckin.survey import Count, Histogram, Wish
    >>> asked = {"way": Histogram(5), "smokes": Count()}
    >>> wishes = {name: Wish(query, 10_000, 1e-6, epsilon=1.0, rounds=1) for name, query in asked.items()}
    >>> together = plan_together(wishes, 1.0)
    >>> 0.99 < together.guarantee.epsilon.upper <= 1.0
    True
    """
    parts = np.array([positive("weights", weight) for weight in weights or [1.0] * len(wishes)])
    deltas = {wish.delta for wish in wishes.values()}
    caps = {wish.largest_local_epsilon for wish in wishes.values()}
    if len(parts) != len(wishes) or not len(parts):
        raise InvalidParameter("weights", len(parts), f"a weight for each of {len(wishes):,} questions, at least one")
    for name, values in (("delta", deltas), ("largest_local_epsilon", caps)):
        if len(values) > 1:
            raise InvalidParameter(name, str(sorted(map(str, values))), "the same in every question")
    parts /= parts.sum()
    (delta,), (cap,) = deltas, caps
    mu, scale, best = gaussian_mu(positive("epsilon", epsilon), delta), 1.0, None
    for _ in range(TRIES):
        each = [_epsilon_of(scale * mu * part**0.5, delta) for part in parts]
        plans = {
            name: plan_survey(replace(wish, epsilon=own, error=None, largest_local_epsilon=cap and cap * part))
            for (name, wish), own, part in zip(wishes.items(), each, parts.tolist(), strict=True)
        }
        found = Questionnaire(plans, guarantee([_rounds(plan) for plan in plans.values()], delta))
        reached = found.guarantee.epsilon.upper
        if reached <= epsilon:
            best = found
            if reached >= ENOUGH * epsilon or cap is not None:
                break
        scale *= 0.9995 * mu / gaussian_mu(reached, delta)
    if best is None:
        raise Unreachable(f"epsilon = {epsilon:g} cannot be met by these questions together")
    return best


def _rounds(plan: SurveyPlan) -> tuple[Round, int]:
    return plan.survey.plan.accounting_round(), plan.survey.rounds


def _epsilon_of(mu: float, delta: float) -> float:
    """The epsilon of this mu at this delta."""

    def within(epsilon: float) -> bool:
        return float(gaussian_profile_at(mu, np.array([epsilon]))[0]) > delta

    high = 1.0
    while within(high):
        high *= 2.0
    return max(switch(within, _LEAST, high, relative=1e-6)[1], _LEAST)
