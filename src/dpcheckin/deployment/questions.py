"""A survey as the three parties see it: settings, the plan's task, the question of each round.

`[task]` of the analyzer's settings names the kind of question and its parameters; the plan carries the question, its
randomizer and how often a client answers at most. What a round asks is the round's "model": a document whose digest
stands in the signed round. No path is in any of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols import FullShuffle
from dpcheckin.randomizers import described
from dpcheckin.randomizers.formats import Reports
from dpcheckin.service.analyzer.settings import AnalyzerSettings
from dpcheckin.service.wire.canonical import canonical, parse
from dpcheckin.service.wire.documents import OCTETS
from dpcheckin.service.wire.problems import Malformed
from dpcheckin.survey.planning import Wish, plan_survey
from dpcheckin.survey.questions import KINDS
from dpcheckin.survey.questions.query import Query
from dpcheckin.survey.surveys import Survey

_OF_CLIENTS = ("about", "answers")
_OF_ANALYZER = ("confidence", "simultaneous")
_NEEDED: Mapping[str, tuple[type, ...]] = {
    "population": (int,),
    "rounds": (int,),
    "delta": (float,),
    "epsilon_budget": (float, int),
}
_SPARE_ANSWERS = 2
"""Answers a client may give beyond the plan's rounds, unless told: void rounds are asked again."""


def is_survey(task: Mapping[str, Any]) -> bool:
    """Whether a plan's or the settings' task is a question. `task`: the table."""
    return task.get("kind") in KINDS


@dataclass(frozen=True)
class Question:
    """What is asked, about what topic (by which an owner's configuration finds the answer), and how often of one
    client."""

    query: Query
    about: str
    answers: int

    def __post_init__(self) -> None:
        if type(self.answers) is not int or self.answers < 1:
            raise InvalidParameter("task.answers", self.answers, "a whole number of at least 1")
        if not isinstance(self.about, str):
            raise InvalidParameter("task.about", self.about, "a name")

    def as_task(self) -> dict[str, Any]:
        """The task of the plan document."""
        return {**self.query.as_document(), "about": self.about, "answers": self.answers}


def read_question(task: Mapping[str, Any], rounds: int) -> Question:
    """The question of a task. `task`: of a plan, or the settings; `rounds`: of the plan."""
    own = {k: v for k, v in task.items() if k not in _OF_CLIENTS + _OF_ANALYZER}
    about, answers = task.get("about", ""), task.get("answers", rounds + _SPARE_ANSWERS)
    return Question(Query.from_document(own), about, answers)


def survey_of(settings: AnalyzerSettings) -> Survey:
    """The survey that `[task]` of the settings asks; what `[randomizer]` leaves open is chosen for the budget."""
    plan, randomizer = settings.plan, dict(settings.randomizer)
    for name, kinds in _NEEDED.items():
        if type(plan.get(name)) not in kinds:
            raise InvalidParameter(f"plan.{name}", plan.get(name, "missing"), "a number")
    query = read_question(settings.task, plan["rounds"]).query
    mechanism, local = randomizer.pop("name", None), randomizer.pop("local_epsilon", None)
    randomizer.pop("clip", None)
    if randomizer:
        raise InvalidParameter("randomizer", sorted(randomizer), "name and local_epsilon")
    rate = float(plan.get("rate", 1.0))
    if local is not None:
        return Survey(query, plan["population"], local, mechanism, rate, plan["rounds"])
    wish = Wish(
        query, plan["population"], plan["delta"], epsilon=plan["epsilon_budget"],
        rounds=plan["rounds"], rate=rate, mechanism=mechanism,
    )  # fmt: skip
    return plan_survey(wish).survey


def with_survey(settings: AnalyzerSettings, survey: Survey) -> tuple[AnalyzerSettings, int]:
    """The `settings` with plan, randomizer and task of their `survey` spelled out, and the bytes of a report."""
    everybody = isinstance(survey.plan, FullShuffle)
    plan = {
        "protocol": "shuffled-check-in",
        **({"minimum_batch": survey.population} if everybody else {}),
        **settings.plan,
        "rate": 1.0 if isinstance(survey.plan, FullShuffle) else survey.plan.rate,
    }
    randomizer = {"clip": 1.0, **described(survey.randomizer), "encoding": OCTETS}
    task = read_question(settings.task, plan["rounds"]).as_task()
    return replace(settings, plan=plan, randomizer=randomizer, task=task), survey.report_bytes


def round_question(survey: Survey, finished: Sequence[Reports]) -> bytes:
    """What a `survey` asks after the `finished` rounds: the document that the signed round names by its digest."""
    details = survey.query.round_details(finished, survey.plan)
    return canonical({"type": "question", "index": len(finished), **details})


def asked_index(model: bytes) -> int:
    """Which round of the survey a question belongs to. `model`: as `round_question` made it."""
    try:
        question = parse(model)
    except Malformed as problem:
        raise InvalidParameter("question", str(problem), "a question document") from None
    index = question.get("index") if isinstance(question, dict) else None
    if not isinstance(question, dict) or question.get("type") != "question" or type(index) is not int:
        raise InvalidParameter("question", "another document", "a question document")
    if index < 0:
        raise InvalidParameter("question.index", index, "0 or more")
    return index
