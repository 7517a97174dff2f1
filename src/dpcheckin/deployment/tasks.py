"""From the tables of settings files to tasks: a question or a model, whichever is named.

Analyzer: `[task] kind = "histogram"` (or another kind of `dpcheckin.survey`) is a question,
anything else is training. Client: `[data.answers.TOPIC]` are answers, `[data]` itself records to
train on; an owner may have both. Libraries for training are loaded only where models are trained.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dpcheckin.deployment.answers import Answer, read_answer
from dpcheckin.deployment.questions import is_survey, read_question, survey_of, with_survey
from dpcheckin.deployment.survey_tasks import AnsweringTask, NotAnswered, SurveyAnalyzerTask
from dpcheckin.errors import InvalidParameter
from dpcheckin.service.analyzer.settings import AnalyzerSettings
from dpcheckin.service.tasks import ClientTask, Task
from dpcheckin.service.wire.documents import PlanDocument


def analyzer_task(settings: AnalyzerSettings) -> tuple[AnalyzerSettings, Task, int]:
    """The settings with everything spelled out, the task, and the dimension of a report.

    Args:
        settings: of the analyzer's folder.
    """
    if is_survey(settings.task):
        return _survey_task(settings)
    from dpcheckin.deployment.tasks_by_name import analyzer_task as training

    made = training(settings.task, float(settings.randomizer.get("clip", 1.0)))
    return settings, made, made.dimension


def _survey_task(settings: AnalyzerSettings) -> tuple[AnalyzerSettings, Task, int]:
    survey = survey_of(settings)
    question = read_question(settings.task, survey.rounds)
    confidence = settings.task.get("confidence", 0.95)
    simultaneous = settings.task.get("simultaneous", False)
    if not isinstance(confidence, float) or not 0 < confidence < 1:
        raise InvalidParameter("task.confidence", confidence, "strictly between 0 and 1")
    if not isinstance(simultaneous, bool):
        raise InvalidParameter("task.simultaneous", simultaneous, "true or false")
    task = SurveyAnalyzerTask(survey, settings.folder, question.about, confidence, simultaneous)
    found, size = with_survey(settings, survey)
    return found, task, size


class OwnerTask:
    """What one owner gives: answers, gradients or both; each plan says which it wants.

    Args:
        answers: by topic.
        training: the owner's records, None: this owner does not train.
    """

    def __init__(self, answers: dict[str, Answer], training: ClientTask | None) -> None:
        self._answering, self._training = AnsweringTask(answers), training
        self._current: ClientTask | None = None

    def join(self, plan: PlanDocument) -> int | None:
        if is_survey(plan.task):
            self._current = self._answering
            return self._answering.join(plan)
        if self._training is None:
            raise NotAnswered("this client has no records to train on")
        self._current = self._training
        return None

    def value(self, model: bytes) -> NDArray[Any]:
        assert self._current is not None, "a plan is joined before its first round"
        return self._current.value(model)


def client_task(table: dict[str, Any], folder: Path) -> ClientTask:
    """The client's task, with the owner's data.

    Args:
        table: `[data]` of the client's settings.
        folder: to which files are relative.
    """
    rest = dict(table)
    named = rest.pop("answers", {})
    if not isinstance(named, dict) or not all(isinstance(one, dict) for one in named.values()):
        raise InvalidParameter("data.answers", named, "tables, one a topic")
    answers = {topic: read_answer(one, folder) for topic, one in named.items()}
    if "column" in rest:  # one file, one answer, whatever a question is about
        return OwnerTask({**answers, "": read_answer(rest, folder)}, None)
    if not rest and answers:
        return OwnerTask(answers, None)
    from dpcheckin.deployment.tasks_by_name import client_task as training

    return OwnerTask(answers, training(rest, folder))
