"""Figures in the tables of the pages are what is computed, rounded to their safe side.

A guarantee in a document is never below the certified one, a lower bound never above; both are as
close as the digits shown allow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

from dpcheckin.accounting import CheckInRound, WindowRound, any_pure, compose, gaussian, lower_bound
from dpcheckin.papers.others import bounds as check_in_alone
from dpcheckin.papers.others import clones
from dpcheckin.papers.p1.homogeneous_pair import check_in_epsilon
from dpcheckin.papers.p2 import bounds as p2
from dpcheckin.papers.p4 import bounds as p4

DOCS = Path(__file__).resolve().parents[2] / "docs"
RUN = (10_000, 0.05, 2.0, 200, 1e-5)
UP, DOWN = True, False


def window(e0: float) -> float:
    return compose([(WindowRound(1000, any_pure(e0)), 1)]).epsilon(1e-6).upper


def composed(e0: float) -> float:
    return p2.composed_epsilon(p2.fixed_window_posteriors(1000, 1.0, e0), e0, 1e-6).upper


def crowd(population: int, p: float) -> WindowRound:
    return WindowRound(1000, any_pure(1.0), p, others=population - 1)


def with_crowd(population: int, p: float) -> float:
    return compose([(crowd(population, p), 1)]).epsilon(1e-6).upper


def crowd_lower(population: int, p: float) -> float:
    return lower_bound([(crowd(population, p), 1)], 1e-6).epsilon.lower


# page, beginning of the row, column (from 0), direction, what is computed
FIGURES: list[tuple[str, str, int, bool, Callable[[], float]]] = [
    (
        "gaussian-reports.md",
        "| empty-seat theorem |",
        2,
        UP,
        lambda: compose([(CheckInRound(10_000, 0.05, gaussian(2.0)), 200)]).epsilon(1e-5).upper,
    ),
    (
        "gaussian-reports.md",
        "| empty-seat theorem, one law for all |",
        2,
        UP,
        lambda: compose([(CheckInRound(10_000, 0.05, gaussian(2.0).without_types()), 200)]).epsilon(1e-5).upper,
    ),
    ("gaussian-reports.md", "| homogeneous pair", 2, DOWN, lambda: check_in_epsilon(*RUN).lower),
    ("gaussian-reports.md", "| check-in alone", 2, UP, lambda: check_in_alone.gaussian_epsilon(*RUN).upper),
    ("gaussian-reports.md", "| (ε₀, δ₀)-clones", 2, UP, lambda: clones.gaussian_check_in(*RUN)),
    ("gaussian-reports.md", "| P4 Theorem 3", 2, DOWN, lambda: p4.theorem_3(*RUN)),
]
for _e0 in (0.5, 1.0, 2.0):
    _row = f"| {_e0:g} |"
    _closed = partial(p2.fixed_window, 1000, 1.0, _e0, 1e-6)
    FIGURES += [
        ("random-check-ins.md", _row, 1, UP, lambda closed=_closed: closed().epsilon),  # type: ignore[misc]
        ("random-check-ins.md", _row, 2, UP, partial(composed, _e0)),
        ("random-check-ins.md", _row, 3, UP, partial(window, _e0)),
    ]
for _start, _population, _p in (
    ("| n = 1,000, p = 1 |", 1_000, 1.0),
    ("| n = 10,000, p = 1/2 |", 10_000, 0.5),
    ("| n = 100,000, p = 1 |", 100_000, 1.0),
):
    FIGURES += [
        ("random-check-ins.md", _start, 2, UP, partial(with_crowd, _population, _p)),
        ("random-check-ins.md", _start, 3, DOWN, partial(crowd_lower, _population, _p)),
    ]


@pytest.mark.parametrize(
    ("page", "row", "column", "up", "compute"),
    FIGURES,
    ids=[f"{page[:-3]} {row.strip('| ')} {column}" for page, row, column, *_ in FIGURES],
)
def test_figures_are_on_the_safe_side(page: str, row: str, column: int, up: bool, compute: Callable[[], float]) -> None:
    lines = [x for x in (DOCS / page).read_text(encoding="utf-8").splitlines() if x.startswith(row)]
    assert len(lines) == 1, f"{page}: {len(lines)} rows begin with {row}"
    shown = Decimal(lines[0].split("|")[column + 1].strip())
    unit = float(Decimal(1).scaleb(int(shown.as_tuple().exponent)))
    gap = (float(shown) - compute()) * (1 if up else -1)
    assert gap >= -1e-12 * math.fabs(float(shown)), f"{shown} is on the wrong side"
    assert gap < unit * 1.0001, f"{shown} could be closer"
