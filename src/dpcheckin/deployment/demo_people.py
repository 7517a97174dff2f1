"""Who is asked in the demonstration: made-up people, one for every client, and what is asked.

The people are drawn from a seed, so that the demonstration can show the truth beside the estimate.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dpcheckin.survey.estimates import Estimate
from dpcheckin.survey.questions.distribution import Distribution
from dpcheckin.survey.questions.histogram import Histogram
from dpcheckin.survey.questions.query import Query

COLOURS = ("blue", "green", "red", "yellow", "violet", "orange")
WORDS = ("tea", "cola", "milk", "mate", "soda", "wine", "beer", "rum")
_SEED = 7


@dataclass(frozen=True)
class DemoQuestion:
    """What the demonstration asks for a kind of question.

    Args:
        column: of the made-up people; several for vectors.
        mechanism: of the query, one that suits some hundred people.
        task: parameters of the query.
    """

    column: str | list[str]
    mechanism: str
    task: Mapping[str, Any] = field(default_factory=dict)

    @property
    def about(self) -> str:
        """The topic."""
        return self.column if isinstance(self.column, str) else "home"


_AGES = {"low": 18.0, "high": 90.0}
QUESTIONS: Mapping[str, DemoQuestion] = {
    "count": DemoQuestion("cycles", "dary"),
    "histogram": DemoQuestion("colour", "dary", {"categories": list(COLOURS)}),
    "mean": DemoQuestion("age", "levels:4", _AGES),
    "sum": DemoQuestion("age", "levels:4", _AGES),
    "vector-mean": DemoQuestion(["east", "north"], "privunit", {"dimension": 2, "clip": 2.0}),
    "quantiles": DemoQuestion("age", "flat", {**_AGES, "bins": 24}),
    "distribution": DemoQuestion("age", "flat", {**_AGES, "bins": 24}),
    "heavy-hitters": DemoQuestion(
        "drink", "hash:6", {"bits": 20, "top": 8, "alphabet": "abcdefghijklmnopqrstuvwxyz"}
    ),
}
"""Every kind of question, about the made-up people."""


def people(clients: int) -> list[dict[str, Any]]:
    """As many made-up people.

    Args:
        clients: how many.
    """
    draw = np.random.default_rng(_SEED)
    colours = draw.choice(COLOURS, size=clients, p=(0.35, 0.25, 0.2, 0.1, 0.06, 0.04))
    words = draw.choice(WORDS, size=clients, p=(0.4, 0.3, 0.1, 0.08, 0.05, 0.04, 0.02, 0.01))
    ages = np.clip(draw.normal(45.0, 16.0, size=clients), 18, 90).astype(int)
    homes = draw.normal((0.5, -0.3), 0.4, size=(clients, 2)).round(3)
    cycles = draw.random(clients) < 0.4
    return [
        {
            "colour": str(colours[i]),
            "age": int(ages[i]),
            "cycles": "yes" if cycles[i] else "no",
            "drink": str(words[i]),
            "east": float(homes[i, 0]),
            "north": float(homes[i, 1]),
        }
        for i in range(clients)
    ]


def write_people(path: Path, clients: int) -> None:
    """The people as a CSV file, a client a line.

    Args:
        path: of the file.
        clients: how many.
    """
    rows = people(clients)
    with path.open("w", newline="", encoding="utf-8") as stream:
        out = csv.DictWriter(stream, fieldnames=list(rows[0]))
        out.writeheader()
        out.writerows(rows)


def answers_table(kind: str, path: Path) -> dict[str, dict[str, Any]]:
    """What the agents' configuration says about this question.

    Args:
        kind: of question.
        path: of the people's file.
    """
    asked = QUESTIONS[kind]
    return {asked.about: {"file": str(path.resolve()), "column": asked.column, "row": 1}}


def truth_of(kind: str, clients: int, survey: Mapping[str, Any]) -> dict[str, float]:
    """The figures without noise, by name.

    Args:
        kind: of question.
        clients: how many people there are.
        survey: what the page shows; its rows name the figures.
    """
    asked, everybody = QUESTIONS[kind], people(clients)
    column = asked.column
    values: list[Any] = [
        row[column] if isinstance(column, str) else [row[name] for name in column]
        for row in everybody
    ]
    query = Query.from_document({"kind": kind, **asked.task})
    names = tuple(row["name"] for row in survey.get("rows", ()))
    none = np.zeros(len(names))
    wanted = Estimate(names, none, none, none, none, 0.95, False, clients, clients)
    figures = query.truth(values, wanted)
    if isinstance(query, Histogram) and kind == "histogram":
        known = query.names
    elif isinstance(query, Distribution) and kind == "distribution":
        known = tuple(f"{edge:.6g}" for edge in query.edges[1:])
    else:
        known = names
    return {name: float(value) for name, value in zip(known, figures, strict=True)}
