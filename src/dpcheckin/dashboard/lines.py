"""The lines of the plot: what the workers are asked for them, in which order, and what is drawn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

from dpcheckin.dashboard import answers
from dpcheckin.dashboard.form import Form
from dpcheckin.dashboard.workers import Workers

OUR_POINTS = 13  # and those of published bounds where they share their work
PUBLISHED_POINTS = 7  # where every point is a computation of its own
NEEDED_POINTS = 6  # of ours that are drawn however long they take: here, the ends, the quarters
DEAR = 0.7  # seconds of CPU time for a point above which no more than those are asked for

Question = tuple[str, Callable[..., Any], tuple[Any, ...]]


def _questions(form: Form, axis: str, wanted: list[str]) -> tuple[list[Question], list[Question]]:
    """What the workers are asked, in this order: first what a line needs, then what refines it."""
    here = float(getattr(form, axis))
    xs = form.abscissas(axis, OUR_POINTS)
    needed, finer = (
        (_along_rounds(form, [x for x in xs if x != here]), list[Question]())
        if axis == "rounds" and answers.shares_rounds(form)
        else _point_by_point(form, axis, answers.coarse_first(xs, here))
    )
    for key in wanted:
        if axis == "rounds":  # all at once: most of the work is the same for every count
            needed.append((key, answers.published_at, (form, key, axis, tuple(xs))))
        else:
            for x in answers.coarse_first(form.abscissas(axis, PUBLISHED_POINTS), here):
                needed.append((key, answers.published_at, (form, key, axis, (x,))))
    return needed, finer


def _along_rounds(form: Form, others: list[float]) -> list[Question]:
    """Our lines at once. The figure of the plan itself is known: the page has just asked for it."""
    asked: list[Question] = [
        ("guarantee", answers.statement, (form,)),
        ("guarantee", answers.guarantee_along, (form, tuple(others))),
    ]
    if form.about.bounded:
        asked.insert(1, ("lower bound", answers.least, (form,)))
        asked.append(("lower bound", answers.lower_along, (form, tuple(others))))
    return asked


def _point_by_point(
    form: Form, axis: str, places: list[float]
) -> tuple[list[Question], list[Question]]:
    """Our lines where every point is a computation of its own."""
    needed: list[Question] = []
    finer: list[Question] = []
    for place, x in enumerate(places):
        ours = needed if place < NEEDED_POINTS else finer
        ours.append(("guarantee", answers.guarantee_at, (form, axis, x)))
        if form.about.bounded:
            ours.append(("lower bound", answers.lower_at, (form, axis, x)))
    return needed, finer


def _drawn(form: Form, function: Callable[..., Any], answer: dict[str, Any]) -> dict[str, Any]:
    """An answer as the plot takes it: the statement and its lower bound are points of lines."""
    name = {answers.statement: "epsilon", answers.least: "lower"}.get(function)
    if name is None or "problem" in answer or answer[name] is None:
        return answer
    return {"x": float(form.rounds), "y": answer[name]["value"], "text": answer[name]["text"]}


async def points(
    workers: Workers, form: Form, axis: str, wanted: list[str]
) -> AsyncGenerator[str, None]:
    """Our own lines first, coarse before fine; then the published ones; then what refines ours.

    No more questions are put to the workers than they can take up at once: when the browser turns
    away, as it does when a slider moves, the rest is never asked. A line whose points are dear is
    left coarse.
    """
    xs = form.abscissas(axis, OUR_POINTS)
    questions, finer = _questions(form, axis, wanted)
    count = len(questions) + len(finer)
    first = next((x for x in xs if x > 0), xs[0])  # the axis is logarithmic
    yield json.dumps({"axis": axis, "from": first, "to": xs[-1], "questions": count}) + "\n"

    async def ask(line: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        return line, _drawn(form, function, await workers.later(function, *arguments))

    waiting: set[asyncio.Task[Any]] = set()
    dearest = 0.0
    try:
        while questions or waiting or finer:
            if not questions and finer:
                questions, finer = ([] if dearest > DEAR else finer), []
            while questions and len(waiting) < workers.width:
                waiting.add(asyncio.create_task(ask(*questions.pop(0))))
            if not waiting:
                break
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                line, answer = task.result()
                dearest = max(dearest, answer.get("seconds", 0.0))
                yield json.dumps({"line": line, **answer}) + "\n"
    finally:
        for task in waiting:
            task.cancel()
