"""A survey through the services: the analyzer's counting, and the owner's answers. No torch.

The estimate is the library's, from the reports of all rounds: the same as a simulation's from the
same reports. Reports are kept in the analyzer's folder, a file a round, so that an estimate can be
made again; a crash between file and checkpoint writes the same file again.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.deployment.answers import Answer
from dpcheckin.deployment.questions import Question, asked_index, read_question, round_question
from dpcheckin.deployment.survey_results import shown, write_pictures, write_results
from dpcheckin.errors import InvalidParameter, ServiceError
from dpcheckin.randomizers.formats import Reports
from dpcheckin.service.analyzer import state
from dpcheckin.service.journal import replace_file
from dpcheckin.service.pricing import Price
from dpcheckin.service.tasks import TaskState
from dpcheckin.service.wire.documents import PlanDocument
from dpcheckin.survey.estimates import Estimate
from dpcheckin.survey.questions.query import Query
from dpcheckin.survey.surveys import Survey

ROUNDS = "rounds"


class NotAnswered(ServiceError):
    """The owner has no answer to this question."""


@dataclass(frozen=True)
class _Counted:
    """What the checkpoint keeps of the rounds: sizes of the crowds, and what was dropped."""

    present: tuple[int, ...] = ()
    dropped: int = 0

    def to_bytes(self) -> bytes:
        return json.dumps({"present": self.present, "dropped": self.dropped}).encode()

    @staticmethod
    def from_bytes(content: bytes) -> _Counted:
        found = json.loads(content)
        return _Counted(tuple(found["present"]), found["dropped"])


@dataclass(frozen=True)
class SurveyAnalyzerTask:
    """Counts reports, estimates after every round, asks the next question.

    Args:
        survey: as it was planned.
        folder: for reports and results.
        about: the topic, for the page.
        confidence: of the intervals.
        simultaneous: whether all intervals are to hold at once.
    """

    survey: Survey
    folder: Path
    about: str = ""
    confidence: float = 0.95
    simultaneous: bool = False

    @property
    def dimension(self) -> int:
        """Bytes of a report."""
        return self.survey.report_bytes

    def start(self) -> TaskState:
        first = round_question(self.survey, [])
        return TaskState(first, _Counted().to_bytes(), {}, self._shown(None, [], _Counted()))

    def count(
        self, state: TaskState, rows: NDArray[Any], index: int, present: int, dropped: int
    ) -> TaskState:
        before = _Counted.from_bytes(state.private)
        after = _Counted(before.present, before.dropped + dropped)
        rounds = [self.reports(i) for i in range(len(before.present))]
        if len(rows):
            self._keep(index, rows)
            after = replace(after, present=(*after.present, present))
            rounds.append(rows)
        estimate, why = self._estimate(rounds, after)
        seen = self._shown(estimate, rounds, after, why)
        if estimate is not None:
            write_results(self.folder, self._asked(after), estimate, seen)
        model = round_question(self.survey, rounds)
        return TaskState(model, after.to_bytes(), _metrics(rounds, estimate), seen)

    def reports(self, index: int) -> Reports:
        """The reports of a counted round.

        Args:
            index: from 0; void rounds do not count.
        """
        found: Reports = np.load(self._file(index), allow_pickle=False)
        return found

    def finish(self) -> bool:
        """Write picture and page of what the checkpoint holds; whether there was an answer."""
        kept = state.load(self.folder)
        counted = _Counted() if kept is None else _Counted.from_bytes(kept.task.private)
        if kept is None or not counted.present:
            return False
        rounds = [self.reports(i) for i in range(len(counted.present))]
        estimate, _ = self._estimate(rounds, counted)
        if estimate is None:
            return False
        price = Price(PlanDocument.from_object(kept.plan))
        statement = str(price.statement(max(row["charged"] for row in kept.log)))
        write_pictures(self.folder, self._asked(counted), estimate, self.about, statement)
        return True

    def _asked(self, counted: _Counted) -> Survey:
        """The survey of those who were there: figures are about them, not the plan's floor."""
        return replace(self.survey, population=max(counted.present))

    def _estimate(self, rounds: list[Reports], counted: _Counted) -> tuple[Estimate | None, str]:
        stages = self.survey.query.stages
        if len(rounds) < stages:
            return None, f"{len(rounds)} of the {stages} rounds that make an answer"
        whole = len(rounds) - len(rounds) % stages  # a stage begun is not an answer yet
        try:
            survey = self._asked(counted)
            found = survey.estimate(rounds[:whole], self.confidence, self.simultaneous)
        except InvalidParameter as problem:  # too few reports for this question so far
            return None, str(problem)
        return replace(found, dropped=counted.dropped), ""

    def _shown(
        self, estimate: Estimate | None, rounds: list[Reports], counted: _Counted, why: str = ""
    ) -> dict[str, Any]:
        facts = {
            "kind": self.survey.query.kind,
            "about": self.about,
            "unit": self.survey.query.unit,
            "rounds": len(rounds),
            "stages": self.survey.query.stages,
            "reports": sum(map(len, rounds)),
            "dropped": counted.dropped,
            "waiting": why or None,
        }
        if estimate is None:
            return facts | {"waiting": why or "no reports yet"}
        return facts | shown(self._asked(counted), estimate)

    def _keep(self, index: int, rows: Reports) -> None:
        file = self._file(index)
        file.parent.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        np.save(buffer, rows)
        replace_file(file, buffer.getvalue())

    def _file(self, index: int) -> Path:
        return self.folder / ROUNDS / f"round-{index:04}.npy"


def _metrics(rounds: list[Reports], estimate: Estimate | None) -> dict[str, float]:
    """What the log of the rounds keeps: answers so far, and the figure if there is one only."""
    found = {"answers": float(sum(map(len, rounds)))}
    if estimate is not None and len(estimate.names) == 1:
        found["estimate"] = float(estimate.values[0])
        found["lower"], found["upper"] = float(estimate.lower[0]), float(estimate.upper[0])
    return found


class AnsweringTask:
    """One owner's answers, by topic; the owner's table says which.

    Args:
        answers: by topic; the topic "" answers questions about anything.
    """

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self._answers = dict(answers)
        self._asked: tuple[Query, Answer] | None = None

    def join(self, plan: PlanDocument) -> int | None:
        """The most rounds it takes part in; raises `NotAnswered` when it has no answer at all.

        Nothing here depends on the owner's value: that a client stays away is seen.
        """
        try:
            question = read_question(plan.task, plan.rounds)
        except InvalidParameter as problem:
            raise NotAnswered(f"the plan asks nothing that can be answered: {problem}") from None
        answer = self._answer_to(question)
        self._asked = (question.query, answer)
        return question.answers

    def _answer_to(self, question: Question) -> Answer:
        found = self._answers.get(question.about) or self._answers.get("")
        if found is None:
            raise NotAnswered(f"this client answers nothing about {question.about!r}")
        if question.query.kind not in found.kinds:
            raise NotAnswered(f"this client answers no {question.query.kind} here")
        return found

    def value(self, model: bytes) -> NDArray[Any]:
        """The owner's value as this round asks for it, not yet randomized."""
        if self._asked is None:
            raise NotAnswered("no question has been accepted yet")
        query, answer = self._asked
        try:
            found = answer.value()
        except InvalidParameter:  # no file, row or value: nothing is an answer too
            found = None
        encoded = query.encode_any(found)
        return np.asarray(query.asked(encoded, asked_index(model)))
