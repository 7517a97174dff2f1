"""A survey at the analyzer: reports are counted and estimated, and shown on the page and in files. No torch.

The estimate is the library's, from the reports of all rounds: the same as a simulation's from the same reports. Reports
are kept in the analyzer's folder, a file a round, so that an estimate can be made again; a crash between file and
checkpoint writes the same file again. `estimate.json` and `estimate.csv` are written after every round, picture and
page at the end.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting import Guarantee
from dpcheckin.deployment.questions import round_question
from dpcheckin.document import Document
from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers.formats import Reports
from dpcheckin.service.analyzer import state
from dpcheckin.service.pricing import Price
from dpcheckin.service.storage.files import replace_file
from dpcheckin.service.tasks import TaskState
from dpcheckin.service.wire.documents import PlanDocument
from dpcheckin.survey.drawing import MOST_BARS
from dpcheckin.survey.estimates import Estimate, Figures
from dpcheckin.survey.report import answer_table, influence, run_rows, survey_card, tables, write_csv, write_picture
from dpcheckin.survey.surveys import Survey

MOST_POINTS, MOST_ROWS = 256, 12
JSON, CSV, PICTURE, PAGE = "estimate.json", "estimate.csv", "estimate.png", "report.html"


def shown(survey: Survey, estimate: Estimate) -> dict[str, Any]:
    """What the live page draws of an `estimate` of a `survey`, however many figures there are."""
    facts: dict[str, Any] = {
        "confidence": estimate.confidence,
        "simultaneous": estimate.simultaneous,
        "population": estimate.population,
        "counted": estimate.reports,
        "influence": influence(survey, estimate),
        "figures": len(estimate.names),
    }
    if "edges" in estimate.more:
        facts |= {"form": "curve", "curve": _curve(estimate)}
        last = len(estimate.names) - 1
        some = np.unique(np.linspace(0, last, min(last + 1, MOST_ROWS)).round().astype(int))
        return facts | {"rows": _rows(estimate, some)}
    largest = np.argsort(-estimate.values, kind="stable")[:MOST_BARS]
    if "false_positives" not in estimate.more:
        largest = np.sort(largest)  # categories stay in their order
        return facts | {"form": "bars", "rows": _rows(estimate, largest)}
    more = {name: estimate.more[name] for name in ("false_positives", "smallest_listed")}
    return facts | {"form": "table", "rows": _rows(estimate, largest), **more}


def _rows(estimate: Estimate, which: NDArray[np.int64]) -> list[dict[str, Any]]:
    return [
        {
            "name": estimate.names[i],
            "value": float(estimate.values[i]),
            "lower": float(estimate.lower[i]),
            "upper": float(estimate.upper[i]),
        }
        for i in which.tolist()
    ]


def _curve(estimate: Estimate) -> dict[str, list[float]]:
    """The distribution function with its band, at some hundred edges at most."""
    more, edges = estimate.more, np.asarray(estimate.more["edges"])
    last = len(edges) - 1
    thin = np.unique(np.linspace(0, last, min(len(edges), MOST_POINTS)).round().astype(int))

    def some(figures: Figures) -> list[float]:
        return [float(value) for value in np.asarray(figures)[thin]]

    return {
        "edges": some(edges),
        "shares": some(more.get("shares", estimate.values)),
        "lower": some(more.get("shares_lower", estimate.lower)),
        "upper": some(more.get("shares_upper", estimate.upper)),
    }


def write_results(folder: Path, survey: Survey, estimate: Estimate, facts: dict[str, Any]) -> None:
    """All figures of the `estimate` of a `survey`, and `facts` such as the topic, as JSON and CSV in a `folder`; each
    file is replaced as a whole."""
    content = {
        "survey": survey.as_document(),
        "about": facts["about"],
        "rounds": facts["rounds"],
        "estimate": estimate.as_document(),
        "influence": facts["influence"],
        "influence_of_each": {clients: survey.moves(int(clients), estimate).tolist() for clients in facts["influence"]},
    }
    replace_file(folder / JSON, (json.dumps(content, indent=1) + "\n").encode())
    fresh = folder / (CSV + ".new")
    write_csv(fresh, estimate)
    fresh.replace(folder / CSV)


def write_pictures(folder: Path, survey: Survey, found: Estimate, about: str, stated: Guarantee) -> None:
    """Picture and page, in a `folder`, of a `survey` `about` a topic that is over: what was `found`, and the
    guarantee `stated` for the rounds that were charged."""
    write_picture(folder / PICTURE, survey, found)
    card = survey_card(folder, stated, survey)
    rows = {**run_rows(survey, found), "about": about, "privacy card": card}
    figures = {
        "clients present": f"{survey.population:,}",
        "reports counted": f"{found.reports:,}",
        "confidence": f"{100 * found.confidence:g}%",
    }
    title = f"{survey.query.kind.capitalize()}: {about}"
    tabled = tables(answer_table(found), rows, influence(survey, found), survey.query.figure_unit or survey.query.unit)
    pictures = {folder / PICTURE: "Estimate with intervals"}
    page = Document("Survey report", title, "charged", str(stated), figures, pictures, tabled)
    page.write(folder / PAGE)


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
    """Counts reports, keeps them in a folder, estimates after every round, asks the next question."""

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

    def count(self, state: TaskState, rows: NDArray[Any], index: int, present: int, dropped: int) -> TaskState:
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
        """The reports of a counted round. `index`: from 0; void rounds do not count."""
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
        stated = price.statement(max(row["charged"] for row in kept.log))
        write_pictures(self.folder, self._asked(counted), estimate, self.about, stated)
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
        return self.folder / state.ROUNDS / f"round-{index:04}.npy"


def _metrics(rounds: list[Reports], estimate: Estimate | None) -> dict[str, float]:
    """What the log of the rounds keeps: answers so far, and the figure if there is one only."""
    found = {"answers": float(sum(map(len, rounds)))}
    if estimate is not None and len(estimate.names) == 1:
        found["estimate"] = float(estimate.values[0])
        found["lower"], found["upper"] = float(estimate.lower[0]), float(estimate.upper[0])
    return found
