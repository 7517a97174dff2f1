"""Analytics over a fleet: questions, estimators with intervals, a planner and a simulator.

A query says what is asked, a `Survey` who answers and how, `plan_survey` finds the survey of least error at a certified
epsilon, and `simulate` plays it on given values. NumPy in, NumPy out; a pandas Series may be given wherever values are.
The names below are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from dpcheckin.lazy import offered

if TYPE_CHECKING:
    from dpcheckin.survey.estimates import Estimate as Estimate
    from dpcheckin.survey.options import SurveyOptions as SurveyOptions
    from dpcheckin.survey.planning import SurveyPlan as SurveyPlan
    from dpcheckin.survey.planning import Wish as Wish
    from dpcheckin.survey.planning import plan_survey as plan_survey
    from dpcheckin.survey.questions.distribution import Distribution as Distribution
    from dpcheckin.survey.questions.distribution import Quantiles as Quantiles
    from dpcheckin.survey.questions.heavy_hitters import HeavyHitters as HeavyHitters
    from dpcheckin.survey.questions.histogram import Count as Count
    from dpcheckin.survey.questions.histogram import Histogram as Histogram
    from dpcheckin.survey.questions.means import Mean as Mean
    from dpcheckin.survey.questions.means import Sum as Sum
    from dpcheckin.survey.questions.means import VectorMean as VectorMean
    from dpcheckin.survey.questions.query import Query as Query
    from dpcheckin.survey.simulation import Outcome as Outcome
    from dpcheckin.survey.simulation import one_round as one_round
    from dpcheckin.survey.simulation import simulate as simulate
    from dpcheckin.survey.surveys import Survey as Survey
    from dpcheckin.survey.together import Questionnaire as Questionnaire
    from dpcheckin.survey.together import plan_together as plan_together

__all__, __getattr__, __dir__ = offered(__name__)
