"""Analytics over a fleet: questions, estimators with intervals, a planner and a simulator.

A query says what is asked, a `Survey` who answers and how, `plan_survey` finds the survey of least
error at a certified epsilon, and `simulate` plays it on given values. NumPy in, NumPy out; a pandas
Series may be given wherever values are. The names below are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcheckin.survey.estimates import Estimate
    from dpcheckin.survey.options import SurveyOptions
    from dpcheckin.survey.planning import SurveyPlan, Wish, plan_survey
    from dpcheckin.survey.questions.distribution import Distribution, Quantiles
    from dpcheckin.survey.questions.heavy_hitters import HeavyHitters
    from dpcheckin.survey.questions.histogram import Count, Histogram
    from dpcheckin.survey.questions.numbers import Mean, Sum
    from dpcheckin.survey.questions.query import Query
    from dpcheckin.survey.questions.vectors import VectorMean
    from dpcheckin.survey.simulation import Outcome, one_round, simulate
    from dpcheckin.survey.surveys import Survey

__all__ = [
    "Count",
    "Distribution",
    "Estimate",
    "HeavyHitters",
    "Histogram",
    "Mean",
    "Outcome",
    "Quantiles",
    "Query",
    "Sum",
    "Survey",
    "SurveyOptions",
    "SurveyPlan",
    "VectorMean",
    "Wish",
    "one_round",
    "plan_survey",
    "simulate",
]

_HOMES = {
    "questions.distribution": ("Distribution", "Quantiles"),
    "estimates": ("Estimate",),
    "questions.heavy_hitters": ("HeavyHitters",),
    "questions.histogram": ("Count", "Histogram"),
    "questions.numbers": ("Mean", "Sum"),
    "options": ("SurveyOptions",),
    "planning": ("SurveyPlan", "Wish", "plan_survey"),
    "questions.query": ("Query",),
    "simulation": ("Outcome", "one_round", "simulate"),
    "surveys": ("Survey",),
    "questions.vectors": ("VectorMean",),
}
"""Which module each name is in; the imports above say the same to type checkers."""

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
