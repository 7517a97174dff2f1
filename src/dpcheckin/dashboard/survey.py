"""The survey panels: a question as the page has it, its answers as functions to plain data, and their addresses.

Answers come from worker processes, as those of `answers` do. A question is the options of `dpcheckin survey plan`
that the page offers; the page has no planner of its own.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, fields, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dpcheckin.accounting import Kind
from dpcheckin.dashboard.answers import Answer, answering
from dpcheckin.dashboard.form import read_number
from dpcheckin.dashboard.lines import coarse_first
from dpcheckin.dashboard.readers import Lines, as_answered, for_reader
from dpcheckin.dashboard.workers import Workers
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import rounded_up, written
from dpcheckin.options import DEFAULT_DELTA, options_of
from dpcheckin.survey.options import SurveyOptions
from dpcheckin.survey.questions import KINDS, QUERIES

COMMON = ("population", "epsilon", "delta", "rounds", "rate", "largest_local_epsilon")
DEFAULTS = {
    "kind": "histogram", "categories": "20", "low": "0", "high": "100", "bins": "64",
    "quantiles": "0.25,0.5,0.75", "dimension": "10", "clip": "1", "bits": "24", "top": "50",
    "population": "100000", "epsilon": "1", "delta": f"{DEFAULT_DELTA:g}", "rounds": "1",
    "rate": "1", "largest_local_epsilon": "", "over": "epsilon",
}  # fmt: skip
FIELDS = {kind: tuple(name for name in about.options if name in DEFAULTS) for kind, about in QUERIES.items()}
"""What each kind of question needs besides the fields of all of them."""
CENTRAL: dict[str, Callable[[Any], float]] = {
    "count": lambda options: 1.0,
    "histogram": lambda options: math.sqrt(2.0),
    "mean": lambda options: (options.high - options.low) / options.population,
    "sum": lambda options: float(options.high - options.low),
}
"""How far one client moves the answer of a server that sees every value: the plot's second line, where known."""
AXES = {"epsilon": (1e-3, 20.0), "population": (50.0, 1e9)}
POINTS = 9
_TYPES = {one.name: one.scalar for one in options_of(SurveyOptions)}
MOST_NAMES = 10_000  # characters


@dataclass(frozen=True)
class SurveyForm:
    """A question of one kind with its options of `dpcheckin survey plan`, as the page has them."""

    kind: str
    options: SurveyOptions

    @staticmethod
    def read(given: Mapping[str, str]) -> SurveyForm:
        """The question that a query stands for; what does not matter to its kind is left out."""
        kind = given.get("kind", DEFAULTS["kind"])
        if kind not in KINDS:
            raise InvalidParameter("kind", kind, "one of " + ", ".join(KINDS))
        values: dict[str, Any] = {}
        for name in (*FIELDS[kind], *COMMON):
            text = given.get(name, DEFAULTS[name]).strip()
            if text:
                values[name] = text if _TYPES[name] is str else read_number(name, text, _TYPES[name] is int)
        if len(values.get("categories", "")) > MOST_NAMES:
            raise InvalidParameter("categories", "a long text", f"at most {MOST_NAMES:,} characters")
        if values.get("categories", "").startswith("@"):  # the page reads no files
            raise InvalidParameter("categories", values["categories"], "a number, or names")
        form = SurveyForm(kind, SurveyOptions(**values))
        for name in ("population", "epsilon"):
            if name not in values:
                raise InvalidParameter(name, "", "a number")
        form.options.wish(form.options.query(kind), form.population)  # refuses what cannot be
        return form

    @property
    def population(self) -> int:
        """Clients."""
        assert self.options.population is not None
        return self.options.population

    def at(self, axis: str, x: float) -> SurveyForm:
        """The same question with `x` along an axis."""
        moved: dict[str, Any] = {axis: round(x) if axis == "population" else x}
        return replace(self, options=replace(self.options, **moved))

    def abscissas(self, axis: str, count: int = POINTS) -> list[float]:
        """So many places (`count`) along the axis around where the question is."""
        if axis not in AXES:
            raise InvalidParameter("over", axis, "one of " + ", ".join(AXES))
        here, (least, most) = float(getattr(self.options, axis)), AXES[axis]
        wide = 8.0 if axis == "epsilon" else 10.0
        low, high = max(here / wide, least), min(here * wide, most)
        if not low < here < high:
            raise InvalidParameter(axis, here, f"between {written(least)} and {written(most)} for a plot")
        half = count // 2
        below = [here * (low / here) ** (i / half) for i in range(half, 0, -1)]
        above = [here * (high / here) ** (i / half) for i in range(1, half + 1)]
        places = [*below, here, *above]
        return [float(round(x)) for x in places] if axis == "population" else places

    def shell(self) -> str:
        """The command that plans the same survey."""
        words = ["dpcheckin", "survey", "plan", self.kind]
        for field in fields(self.options):
            value = getattr(self.options, field.name)
            if field.name in (*FIELDS[self.kind], *COMMON) and value is not None:
                shown = value if isinstance(value, str) else f"{value:.12g}"
                words += [f"--{field.name.replace('_', '-')}", shlex.quote(shown)]
        return " ".join(words)


@answering
def survey_plan(form: SurveyForm) -> Answer:
    """The survey of least error: its randomizer, errors, bytes and both trust figures."""
    from dpcheckin.survey import plan_survey

    wish = form.options.wish(form.options.query(form.kind), form.population)
    plan = plan_survey(wish)
    facts = plan.as_document()
    shuffled, colluding = plan.guarantee.sentences()
    spread = ", if the numbers are spread evenly" if facts["figure_unit"] != facts["unit"] else ""
    scale = plan.survey.query.figure_scale
    local, client_bytes = plan.guarantee.local, math.ceil(facts["client_bytes"])
    return {
        "randomizer": facts["randomizer"].partition(", local epsilon")[0],
        "local_epsilon": f"{facts['local_epsilon']:g}",
        "rounds": facts["rounds"],
        "rate": f"{facts['rate']:g}",
        "error": {"value": facts["figure_error"], "text": written(facts["figure_error"], 4)},
        "half_width": written(facts["figure_half_width"], 4) + spread,
        "confidence": f"{plan.confidence:.0%}",
        "unit": facts["figure_unit"],
        "moved_unit": facts["unit"],
        "bytes": f"{facts['report_bytes']:,} a report, {client_bytes:,} a client",
        "epsilon": Kind.GUARANTEE.figure(plan.guarantee.epsilon.upper),
        "local": None if local is None else Kind.GUARANTEE.figure(local.epsilon),
        "trusted": shuffled,
        "untrusted": colluding,
        "influence": [[f"{int(clients):,}", rounded_up(b)] for clients, b in facts["influence"].items()],
        "rivals": [
            f"{rival['mechanism']}, {rival['rounds']:,} × {facts['rate']:g}: {written(rival['score'] * scale, 4)}"
            for rival in facts["rivals"]
        ],
        "shell": form.shell(),
    }


@answering
def survey_error_at(form: SurveyForm, axis: str, x: float) -> Answer:
    """The least error of the form's question with `x` along the axis, as the planner finds it."""
    from dpcheckin.survey import plan_survey

    there = form.at(axis, x)
    options = there.options
    found = plan_survey(options.wish(options.query(form.kind), there.population))
    error = found.error * found.survey.query.figure_scale
    return {"x": x, "y": error, "text": written(error, 4), "by": found.survey.mechanism}


@answering
def survey_central_at(form: SurveyForm, axis: str, x: float) -> Answer:
    """The error of the central Gaussian mechanism of the form's epsilon and delta, with `x` along the axis."""
    from dpcheckin.survey.estimates import gaussian_mu

    there = form.at(axis, x)
    options = there.options
    assert options.epsilon is not None
    if form.kind not in CENTRAL:
        raise InvalidParameter("kind", form.kind, "count, histogram, mean or sum for a centre")
    error = CENTRAL[form.kind](options) / gaussian_mu(options.epsilon, options.delta)
    return {"x": x, "y": error, "text": written(error, 4)}


async def _describe(request: Request) -> Response:
    return JSONResponse(
        {
            "kinds": {kind: list(names) for kind, names in FIELDS.items()},
            "labels": {kind: about.label for kind, about in QUERIES.items()},
            "common": list(COMMON),
            "defaults": DEFAULTS,
            "axes": list(AXES),
        }
    )


async def _plan(request: Request) -> Response:
    form = SurveyForm.read(request.query_params)
    return await for_reader(request, request.app.state.workers.next(survey_plan, form))


async def _error(request: Request) -> Response:
    """The line of the plot, point by point, coarse before fine."""
    form = SurveyForm.read(request.query_params)
    axis = request.query_params.get("over", DEFAULTS["over"])
    return Lines(_points(request.app.state.workers, form, axis, form.abscissas(axis)))


async def _points(workers: Workers, form: SurveyForm, axis: str, places: list[float]) -> AsyncGenerator[str, None]:
    yield json.dumps({"axis": axis, "from": places[0], "to": places[-1]}) + "\n"
    if form.kind in CENTRAL:
        for x in places:
            yield json.dumps({"line": "centre", **survey_central_at(form, axis, x)}) + "\n"

    async def ask(x: float) -> Any:
        return await workers.later(survey_error_at, form, axis, x)

    questions = [(x,) for x in coarse_first(places)]
    async with aclosing(as_answered(ask, questions, workers.width)) as answered:
        async for point in answered:
            yield json.dumps({"line": "ours", **point}) + "\n"


ROUTES = [
    Route("/api/survey/describe", _describe),
    Route("/api/survey/plan", _plan),
    Route("/api/survey/error", _error),
]
