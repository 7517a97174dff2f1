"""The lines of the plot: their points, in which order the workers are asked for them, and what is drawn."""

from __future__ import annotations

import json
import math
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from dpcheckin.accounting import Kind, epsilon_by_rounds
from dpcheckin.accounting.composition.lower_bounds import lower_by_rounds
from dpcheckin.dashboard import answers
from dpcheckin.dashboard.answers import Answer, answering
from dpcheckin.dashboard.form import Form
from dpcheckin.dashboard.readers import as_answered
from dpcheckin.dashboard.workers import Workers
from dpcheckin.errors import DpCheckinError, OutsideTheorem

OUR_POINTS = 13  # and those of published bounds where they share their work
PUBLISHED_POINTS = 7  # where every point is a computation of its own
NEEDED_POINTS = 6  # of ours that are drawn however long they take: here, the ends, the quarters
DEAR = 0.7  # seconds of CPU time for a point above which no more than those are asked for

# CPU time that the points of one published bound may take; what is left out is drawn straight
MOST_SECONDS = 3.0

Question = tuple[str, Callable[..., Any], tuple[Any, ...]]


@answering
def quick_at(form: Form, axis: str, x: float) -> Answer:
    """One point of our own line, at `x` along the form's axis, as quickly."""
    there = form.at(axis, x)
    # along rounds every point is made from the same curve of one round
    most = answers.decade(form.windows) if axis == "rounds" else answers.decade(there.windows)
    return _point(x, answers.quick_epsilon(there, most), Kind.GUARANTEE)


@answering
def guarantee_at(form: Form, axis: str, x: float) -> Answer:
    """One point of our own line, at `x` along the form's axis."""
    began = time.process_time()
    point = _point(x, answers.exact_epsilon(form.at(axis, x)).upper, Kind.GUARANTEE)
    return {**point, "seconds": time.process_time() - began}


@answering
def lower_at(form: Form, axis: str, x: float) -> Answer:
    """One point of the lower bound, at `x` along the form's axis."""
    there = form.at(axis, x)
    if not there.about.bounded:
        raise OutsideTheorem("no lower bound of ours for this protocol")
    return _point(x, there.question().lower_bound(there.delta).epsilon.lower, Kind.LOWER_BOUND)


@answering
def guarantee_along(form: Form, counts: Sequence[float]) -> Answer:
    """Our own line along rounds, at these counts: the curve of the form's one round serves them all."""
    one = form.one_round()
    asked = [round(x) for x in counts]
    found = epsilon_by_rounds(one, asked, form.delta, near=form.windows).upper.tolist()
    reached = ((x, y) for x, y in zip(counts, found, strict=True) if math.isfinite(y))
    return {"points": [_point(x, y, Kind.GUARANTEE) for x, y in reached]}


@answering
def lower_along(form: Form, counts: Sequence[float]) -> Answer:
    """The line of the form's lower bound along rounds, at these counts."""
    one = form.one_round()
    found = lower_by_rounds(one, [round(x) for x in counts], form.delta)
    pairs = zip(counts, found, strict=True)
    return {"points": [_point(x, y, Kind.LOWER_BOUND) for x, y in pairs]}


def shares_rounds(form: Form) -> bool:
    """Whether runs of any number of rounds are composed from one curve of one round."""
    try:
        one = form.one_round()
    except DpCheckinError:  # every point says so
        return False
    return not one.is_function and one.renyi is None


@answering
def published_at(form: Form, key: str, axis: str, xs: Sequence[float]) -> Answer:
    """The published bound of that key at places `xs` along the form's axis; what they share is computed once."""
    (bound,) = (b for b in answers.about(form.protocol) if answers.key_of(b) == key)
    points: list[Answer] = []
    reason: str | None = None
    times: list[float] = []
    here = float(getattr(form, axis))
    for x in coarse_first(xs, here):
        if _too_dear(times):
            reason = f"{len(points):,} of {len(xs):,} points: each takes long"
            break
        began = time.process_time()
        try:
            value = bound.evaluate(form.at(axis, x).setting())
        except (ArithmeticError, ValueError) as problem:
            reason = f"cannot be evaluated here ({problem})"
            continue
        if value.epsilon is not None and math.isfinite(value.epsilon):
            points.append(_point(x, value.epsilon, bound.kind))
        else:
            reason = value.reason or "infinite here"
        times.append(time.process_time() - began)
    else:
        return {"points": points, "reason": reason}
    return {"points": points, "reason": reason, "partial": True}


def _too_dear(times: Sequence[float]) -> bool:
    """Whether more points would take too long; the first may have paid for what all share."""
    if sum(times) <= MOST_SECONDS:
        return False
    return times[-1] > 0.5 if len(times) > 1 else times[0] > 3 * MOST_SECONDS


def _point(x: float, value: float, kind: Kind) -> Answer:
    return {"x": x, "y": value, "text": kind.figure(value)}


def coarse_first(values: Sequence[float], here: float | None = None) -> list[float]:
    """Both ends of ascending values, the middle, the quarters, …; `here`, one of them, comes before all others."""
    order = [0, len(values) - 1]
    if here is not None and here in values:
        order.insert(0, values.index(here))
    step = 1 << len(values).bit_length()
    while step >= 1:
        order += range(0, len(values), step)
        step //= 2
    return [values[i] for i in dict.fromkeys(order)]


def _questions(form: Form, axis: str, wanted: list[str]) -> tuple[list[Question], list[Question]]:
    """What the workers are asked, in this order: first what a line needs, then what refines it."""
    here = float(getattr(form, axis))
    xs = form.abscissas(axis, OUR_POINTS)
    needed, finer = (
        (_along_rounds(form, [x for x in xs if x != here]), list[Question]())
        if axis == "rounds" and shares_rounds(form)
        else _point_by_point(form, axis, coarse_first(xs, here))
    )
    for key in wanted:
        if axis == "rounds":  # all at once: most of the work is the same for every count
            needed.append((key, published_at, (form, key, axis, tuple(xs))))
        else:
            for x in coarse_first(form.abscissas(axis, PUBLISHED_POINTS), here):
                needed.append((key, published_at, (form, key, axis, (x,))))
    return needed, finer


def _along_rounds(form: Form, others: list[float]) -> list[Question]:
    """Our lines at once. The figure of the plan itself is known: the page has just asked for it."""
    asked: list[Question] = [
        ("guarantee", answers.statement, (form,)),
        ("guarantee", guarantee_along, (form, tuple(others))),
    ]
    if form.about.bounded:
        asked.insert(1, ("lower bound", answers.least, (form,)))
        asked.append(("lower bound", lower_along, (form, tuple(others))))
    return asked


def _point_by_point(form: Form, axis: str, places: list[float]) -> tuple[list[Question], list[Question]]:
    """Our lines where every point is a computation of its own."""
    needed: list[Question] = []
    finer: list[Question] = []
    for place, x in enumerate(places):
        ours = needed if place < NEEDED_POINTS else finer
        ours.append(("guarantee", guarantee_at, (form, axis, x)))
        if form.about.bounded:
            ours.append(("lower bound", lower_at, (form, axis, x)))
    return needed, finer


def _drawn(form: Form, function: Callable[..., Any], answer: dict[str, Any]) -> dict[str, Any]:
    """An answer as the plot takes it: the statement and its lower bound are points of lines."""
    name = {answers.statement: "epsilon", answers.least: "lower"}.get(function)
    if name is None or "problem" in answer or answer[name] is None:
        return answer
    return {"x": float(form.rounds), "y": answer[name]["value"], "text": answer[name]["text"]}


async def points(workers: Workers, form: Form, axis: str, wanted: list[str]) -> AsyncGenerator[str, None]:
    """Our lines along the form's axis, coarse before fine; then the published ones `wanted`; then what refines ours.

    When the browser turns away, as it does when a slider moves, the rest is never put to the workers. A line whose
    points are dear is left coarse.
    """
    xs = form.abscissas(axis, OUR_POINTS)
    questions, finer = _questions(form, axis, wanted)
    count = len(questions) + len(finer)
    first = next((x for x in xs if x > 0), xs[0])  # the axis is logarithmic
    yield json.dumps({"axis": axis, "from": first, "to": xs[-1], "questions": count}) + "\n"

    async def ask(line: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        return line, _drawn(form, function, await workers.later(function, *arguments))

    dearest = 0.0
    async with aclosing(as_answered(ask, questions, workers.width)) as answered:
        async for line, answer in answered:
            dearest = max(dearest, answer.get("seconds", 0.0))
            yield json.dumps({"line": line, **answer}) + "\n"
            if not questions:
                questions += finer if dearest <= DEAR else []
                finer = []
