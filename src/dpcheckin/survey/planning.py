"""Which randomizer, which local epsilon, how many rounds: least error at a certified epsilon, or the other way round.

Candidates are first ranked by the large-population limit, in which a round's loss depends on one number of the local
pair; the best few are then certified in full. A wanted error fixes each candidate's local epsilon instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpcheckin.accounting import Guarantee, Round, local_guarantee
from dpcheckin.accounting.composition.solve import solve
from dpcheckin.display import Tabular
from dpcheckin.errors import DpCheckinError, InvalidParameter, Unreachable
from dpcheckin.numerals import LARGEST_LOCAL_EPSILON, rounded_up
from dpcheckin.options import check_values
from dpcheckin.special.roots import switch, whole_switch
from dpcheckin.survey.estimates import COLLUDING_CLIENTS, FAILURE, check_clients, critical_value, gaussian_mu
from dpcheckin.survey.questions.query import Query
from dpcheckin.survey.surveys import Survey

FINALISTS = 2
ROUNDS = (1, 2, 4, 8)
WORTH = 0.9  # twice the rounds must lower the error to this part of it, or less
_LEAST = 1e-3


@dataclass(frozen=True)
class SurveyPlan(Tabular):
    """The survey that was chosen, what is certified of it, and the errors to be expected.

    The `error` is the root of the mean squared one in the query's unit, `half_width` that of an interval at
    `confidence`. `rivals` were certified too, each with its error, or its epsilon if the plan is one `for_error`. The
    influence of so many `colluding_clients` is stated.
    """

    survey: Survey
    guarantee: Guarantee
    error: float
    half_width: float
    confidence: float
    rivals: tuple[tuple[Survey, float], ...] = ()
    colluding_clients: tuple[int, ...] = ()
    for_error: bool = False

    def records(self) -> list[dict[str, Any]]:
        """One row: what was chosen, its error, and what is certified of it."""
        return [
            {
                "mechanism": self.survey.mechanism,
                "rounds": self.survey.rounds,
                "local_epsilon": self.survey.local_epsilon,
                "error": self.error,
                "half_width": self.half_width,
                "epsilon": self.guarantee.epsilon.upper,
                "delta": self.guarantee.delta,
            }
        ]

    def shown(self) -> list[dict[str, str]]:
        (row,) = super().shown()
        row["epsilon"] = rounded_up(self.guarantee.epsilon.upper)
        return [row]

    @property
    def caption(self) -> str:
        return str(self.guarantee)

    def as_document(self) -> dict[str, Any]:
        """Plain data: the survey, both trust figures, errors and bytes."""
        local = self.guarantee.local
        return {
            **self.survey.as_document(),
            "randomizer": self.survey.randomizer.describe(),
            "error": self.error,
            "half_width": self.half_width,
            "confidence": self.confidence,
            "unit": self.survey.query.unit,
            "figure_error": self.error * self.survey.query.figure_scale,
            "figure_half_width": self.half_width * self.survey.query.figure_scale
            + self.survey.query.figure_rounding,
            "figure_unit": self.survey.query.figure_unit or self.survey.query.unit,
            "report_bytes": self.survey.report_bytes,
            "client_bytes": self.survey.report_bytes * self.survey.sample.reports
            / self.survey.population,
            "epsilon": self.guarantee.epsilon.upper,
            "delta": self.guarantee.delta,
            "colluding_epsilon": None if local is None else local.epsilon,
            "statement": str(self.guarantee),
            "influence": {str(c): self.survey.influence(c) for c in self.colluding_clients},
            "influence_fails_with_probability": FAILURE,
            "rivals": [
                {"mechanism": rival.mechanism, "rounds": rival.rounds, "score": score,
                 "local_epsilon": rival.local_epsilon}
                for rival, score in self.rivals
            ],
        }  # fmt: skip


@dataclass(frozen=True)
class Wish:
    """A query to a population, and what a plan for it must keep to.

    Either a certified `epsilon` at this `delta`, or a wanted `error`, the root of the mean squared one. Rounds,
    rate (the probability that a client reports in a round; else 1) and mechanism are chosen where they are left out.
    `largest_local_epsilon` caps what is left, over all rounds, if the shuffler colludes; `confidence` is that of the
    intervals; a share `colluding` of the clients tells all it knows. The influence of so many lying clients
    (`colluding_clients`) is stated, of 1, 10 and 100 if left out.
    """

    query: Query
    population: int
    delta: float
    epsilon: float | None = None
    error: float | None = None
    rounds: int | None = None
    rate: float | None = None
    mechanism: str | None = None
    largest_local_epsilon: float | None = None
    confidence: float = 0.95
    colluding: float = 0.0
    colluding_clients: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.error is None):
            raise InvalidParameter("epsilon", self.epsilon, "given, or a wanted error, not both")
        limits = ("epsilon", "error", "largest_local_epsilon")
        check_values(self, limits, lambda x: math.isfinite(x) and x > 0, "a finite number above 0")
        check_values(self, ("delta",), lambda x: 0 < x < 1, "strictly between 0 and 1")
        critical_value(self.confidence)
        for clients in self.colluding_clients or ():
            check_clients(clients, self.population, "colluding_clients")

    @property
    def liars(self) -> tuple[int, ...]:
        """Numbers of colluding clients whose influence is stated."""
        if self.colluding_clients is not None:
            return self.colluding_clients
        return tuple(clients for clients in COLLUDING_CLIENTS if clients < self.population)

    def most_local(self, rounds: int) -> float:
        """An epsilon that a report of so many rounds may have in any case."""
        return min((self.largest_local_epsilon or math.inf) / rounds, LARGEST_LOCAL_EPSILON)

    def candidates(self) -> list[Survey]:
        """Every mechanism with every number of rounds, at some local epsilon."""
        ways: Sequence[str] = [self.mechanism] if self.mechanism else self.query.mechanisms()
        stages = self.query.stages
        rounds = [self.rounds] if self.rounds else [stages * r for r in ROUNDS]
        rate = 1.0 if self.rate is None else self.rate
        return [
            Survey(self.query, self.population, self.most_local(r), way, rate, r, self.colluding)
            for r in rounds
            for way in ways
        ]


def plan_survey(wish: Wish) -> SurveyPlan:
    """The survey of least error at the certified epsilon of a wish, or of least epsilon at its error.

    >>> from dpcheckin.survey.questions.histogram import Histogram
    >>> found = plan_survey(Wish(Histogram(10), 10_000, 1e-6, epsilon=1.0))
    >>> found.survey.mechanism, found.guarantee.epsilon.upper <= 1.0
    ('dary', True)
    """
    if wish.epsilon is not None:
        return _least_error(wish, wish.epsilon)
    return _least_epsilon(wish, wish.error or 0.0)


def _least_error(wish: Wish, epsilon: float) -> SurveyPlan:
    mu = gaussian_mu(epsilon, wish.delta)

    def rough(survey: Survey) -> float:
        """The local epsilon of the large-population limit."""

        def within(local_epsilon: float) -> bool:
            return limit_mu(replace(survey, local_epsilon=local_epsilon)) <= mu

        most = wish.most_local(survey.rounds)
        return most if within(most) else switch(within, _LEAST, most, absolute=1e-3)[0]

    ranked = _ranked(wish.candidates(), rough, Survey.predicted_error)
    certified = [_calibrated(survey, wish, epsilon) for survey in _finalists(ranked)]
    errors = {survey: survey.predicted_error() for survey in certified if survey is not None}
    if not errors:
        raise Unreachable(f"epsilon = {epsilon:g} cannot be met by {wish.population:,} clients")
    return _planned(errors, wish)


def _least_epsilon(wish: Wish, error: float) -> SurveyPlan:
    def needed(survey: Survey) -> float:
        """The smallest local epsilon that reaches the error."""

        def reaches(local_epsilon: float) -> bool:
            return replace(survey, local_epsilon=local_epsilon).predicted_error() <= error

        most = wish.most_local(survey.rounds)
        return switch(reaches, most, _LEAST, absolute=1e-4)[0] if reaches(most) else math.nan

    ranked = _ranked(wish.candidates(), needed, limit_mu)
    if not ranked:
        cap = wish.largest_local_epsilon or LARGEST_LOCAL_EPSILON
        raise Unreachable(f"error = {error:g} {wish.query.unit} cannot be reached with local epsilon {cap:g}")
    return _planned({survey: survey.guarantee(wish.delta).epsilon.upper for survey in _finalists(ranked)}, wish)


def limit_mu(survey: Survey) -> float:
    """The survey's mu in the limit of many clients; a guide, not a guarantee."""
    moment = survey.randomizer.pair.second_moment
    return math.sqrt(2.0 * survey.sample.reports * moment) / survey.population


def _ranked(
    surveys: Iterable[Survey], local_epsilon: Callable[[Survey], float], score: Callable[[Survey], float]
) -> list[tuple[float, Survey]]:
    tried = [replace(survey, local_epsilon=e) for survey in surveys if not math.isnan(e := local_epsilon(survey))]
    return sorted(((score(survey), survey) for survey in tried), key=lambda pair: pair[0])


def _finalists(ranked: list[tuple[float, Survey]]) -> list[Survey]:
    """The best of every number of rounds, and more of the fewest: the limit does not see tails."""
    fewest = min((survey.rounds for _, survey in ranked), default=0)
    kept = []
    for rounds in sorted({survey.rounds for _, survey in ranked}):
        same = [survey for _, survey in ranked if survey.rounds == rounds]
        kept += same[: FINALISTS if rounds == fewest else 1]
    return kept


def _calibrated(survey: Survey, wish: Wish, epsilon: float) -> Survey | None:
    """The survey with the largest local epsilon that is certified to meet the target."""

    def build(value: float) -> tuple[Round, int]:
        return replace(survey, local_epsilon=value).plan.accounting_round(), survey.rounds

    try:
        value = solve("local_epsilon", build, epsilon=epsilon, delta=wish.delta)
    except DpCheckinError:
        return None
    # a fifth digit: of a large local epsilon four are too few to use what may be spent
    unit = 10.0 ** (math.floor(math.log10(value)) - 4)

    def certified(digit: int) -> bool:
        finer = round(value + digit * unit, 12)
        return replace(survey, local_epsilon=finer).plan.epsilon(wish.delta).upper <= epsilon

    value = round(value + whole_switch(certified, 0, 10) * unit, 12)
    if wish.largest_local_epsilon is not None:
        value = min(value, _allowed(survey, wish, wish.largest_local_epsilon))
    return replace(survey, local_epsilon=value)


def _allowed(survey: Survey, wish: Wish, cap: float) -> float:
    """The largest local epsilon of which no more than the cap is left if the shuffler colludes."""

    def allowed(value: float) -> bool:
        there = replace(survey, local_epsilon=value)
        pair, exposed = there.randomizer.pair, there.plan.accounting_round().exposed_participation
        return local_guarantee([(pair, exposed, survey.rounds)], wish.delta).epsilon <= cap

    return switch(allowed, wish.most_local(survey.rounds), min(cap, LARGEST_LOCAL_EPSILON), relative=1e-3)[0]


def _planned(scores: dict[Survey, float], wish: Wish) -> SurveyPlan:
    """The smallest score wins; more rounds must be worth it."""
    fewest = min(survey.rounds for survey in scores)
    chosen = min((s for s in scores if s.rounds == fewest), key=scores.__getitem__)
    for rounds in sorted({survey.rounds for survey in scores}):
        rival = min((s for s in scores if s.rounds == rounds), key=scores.__getitem__)
        if scores[rival] < WORTH ** math.log2(rounds / chosen.rounds) * scores[chosen]:
            chosen = rival
    error = chosen.predicted_error()
    return SurveyPlan(
        chosen,
        chosen.guarantee(wish.delta),
        error,
        critical_value(wish.confidence) * error,
        wish.confidence,
        tuple((survey, score) for survey, score in scores.items() if survey != chosen),
        wish.liars,
        wish.error is not None,
    )
