"""Small surveys for tests: settings as an analyzer reads them, plans, and reports to count."""

from pathlib import Path
from typing import Any

import numpy as np

from dpcheckin.deployment.survey_tasks import SurveyAnalyzerTask
from dpcheckin.deployment.tasks import analyzer_task
from dpcheckin.service.analyzer.settings import AnalyzerSettings
from dpcheckin.service.wire.documents import PlanDocument
from dpcheckin.survey import one_round

COLOURS = ["red", "green", "blue"]
KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "count": ({}, "dary"),
    "histogram": ({"categories": COLOURS}, "subset:1"),
    "mean": ({"low": 0.0, "high": 10.0}, "levels:4"),
    "sum": ({"low": 0.0, "high": 10.0}, "levels:2"),
    "vector-mean": ({"dimension": 3, "clip": 1.0}, "privunit"),
    "quantiles": ({"low": 0.0, "high": 10.0, "bins": 16}, "flat"),
    "distribution": ({"low": 0.0, "high": 10.0, "bins": 16}, "tree:4"),
    "heavy-hitters": ({"bits": 20, "top": 5, "alphabet": "abcdefghijklmnopqrstuvwxyz"}, "hash:6"),
}
"""Parameters and a mechanism for every kind of question."""


def values_of(kind: str, people: int) -> list[Any]:
    """One plausible value a person."""
    draw = np.random.default_rng(5)
    if kind == "count":
        return list(draw.integers(2, size=people))
    if kind == "histogram":
        return list(draw.choice(COLOURS, size=people, p=(0.6, 0.3, 0.1)))
    if kind == "vector-mean":
        return [list(row) for row in draw.normal(0.2, 0.2, size=(people, 3))]
    if kind == "heavy-hitters":
        return list(draw.choice(["tea", "cola", "milk", "beer"], size=people, p=(0.5, 0.3, 0.1, 0.1)))
    return list(draw.uniform(0, 10, size=people))


def settings_of(folder: Path, kind: str, **changes: Any) -> AnalyzerSettings:
    """What `analyzer.toml` of a small survey says."""
    task, mechanism = KINDS[kind]
    plan = {"population": 40, "rounds": 2, "rate": 0.5, "delta": 1e-5, "epsilon_budget": 40.0}
    plan |= {"round_seconds": 1.0, **changes.pop("plan", {})}
    tables: dict[str, Any] = {
        "plan": plan,
        "randomizer": {"name": mechanism, "local_epsilon": 4.0},
        "task": {"kind": kind, "about": "taste", **task},
        **changes,
    }
    return AnalyzerSettings(folder, "http://127.0.0.1:1", "token", None, **tables)


def survey_of(folder: Path, kind: str, **changes: Any) -> tuple[SurveyAnalyzerTask, PlanDocument]:
    """The analyzer's task and the plan it announces."""
    settings, task, size = analyzer_task(settings_of(folder, kind, **changes))
    assert isinstance(task, SurveyAnalyzerTask)
    return task, settings.plan_document(size)


def simulated(task: SurveyAnalyzerTask, values: list[Any], index: int) -> Any:
    """The reports of one round, as the simulator makes them."""
    survey = task.survey
    return one_round(survey, survey.query.encode(values[: survey.population]), 3, index)
