"""What a deployed survey found: plain data for the live page, and the files of `survey run`.

`estimate.json` and `estimate.csv` are written after every round, picture and page at the end.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.service.journal import replace_file
from dpcheckin.survey.estimates import Estimate, Figures
from dpcheckin.survey.questions.heavy_hitters import HeavyHitters
from dpcheckin.survey.report import (
    MOST_BARS,
    answer_table,
    document,
    influence,
    write_csv,
    write_picture,
)
from dpcheckin.survey.surveys import Survey

MOST_POINTS, MOST_ROWS = 256, 12
JSON, CSV, PICTURE, PAGE = "estimate.json", "estimate.csv", "estimate.png", "report.html"


def shown(survey: Survey, estimate: Estimate) -> dict[str, Any]:
    """What the live page draws, however many figures there are.

    Args:
        survey: of those who were there.
        estimate: of all rounds so far.
    """
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
    if not isinstance(survey.query, HeavyHitters):
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
    """All figures so far, as JSON and CSV; each file is replaced as a whole.

    Args:
        folder: the analyzer's.
        survey: of those who were there.
        estimate: of all rounds so far.
        facts: what else is known, such as the topic and what was dropped.
    """
    found = {
        "survey": survey.as_document(),
        "about": facts["about"],
        "rounds": facts["rounds"],
        "estimate": estimate.as_document(),
        "influence": facts["influence"],
        "influence_of_each": {
            clients: survey.moves(int(clients), estimate).tolist() for clients in facts["influence"]
        },
    }
    replace_file(folder / JSON, (json.dumps(found, indent=1) + "\n").encode())
    fresh = folder / (CSV + ".new")
    write_csv(fresh, estimate)
    fresh.replace(folder / CSV)


def write_pictures(
    folder: Path, survey: Survey, found: Estimate, about: str, statement: str
) -> None:
    """Picture and page of a survey that is over.

    Args:
        folder: the analyzer's.
        survey: of those who were there.
        found: the last estimate.
        about: the topic.
        statement: what is guaranteed for the rounds that were charged.
    """
    write_picture(folder / PICTURE, survey, found)
    rows: dict[str, object] = {
        "question": survey.query.kind,
        "about": about,
        "randomizer": survey.randomizer.describe(),
        "rate": f"{survey.rate:g}",
        "reports dropped": f"{found.dropped:,}",
        "bytes of a report": f"{survey.report_bytes:,}",
    }
    figures = {
        "clients present": f"{survey.population:,}",
        "reports counted": f"{found.reports:,}",
        "confidence": f"{100 * found.confidence:g}%",
    }
    moved = influence(survey, found)
    title = f"{survey.query.kind.capitalize()}: {about}"
    page = document(
        folder / PICTURE, statement, answer_table(found), rows, moved, title, "charged", figures
    )
    page.write(folder / PAGE)
