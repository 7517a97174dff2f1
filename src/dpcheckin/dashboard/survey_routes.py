"""The addresses of the survey panels; `server` mounts them, `survey_answers` computes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dpcheckin.dashboard import survey_answers as answers
from dpcheckin.dashboard.answers import coarse_first
from dpcheckin.dashboard.readers import Lines, for_reader


async def _describe(request: Request) -> Response:
    return JSONResponse(
        {
            "kinds": {kind: list(names) for kind, names in answers.FIELDS.items()},
            "common": list(answers.COMMON),
            "defaults": answers.DEFAULTS,
            "axes": list(answers.AXES),
        }
    )


async def _plan(request: Request) -> Response:
    form = answers.SurveyForm.read(request.query_params)
    return await for_reader(request, request.app.state.workers.next(answers.survey_plan, form))


async def _error(request: Request) -> Response:
    """The line of the plot, point by point, coarse before fine."""
    form = answers.SurveyForm.read(request.query_params)
    axis = request.query_params.get("over", answers.DEFAULTS["over"])
    places = form.abscissas(axis)
    points = _points(request.app.state.workers, form, axis, places)
    return Lines(points)


async def _points(
    workers: Any, form: answers.SurveyForm, axis: str, places: list[float]
) -> AsyncGenerator[str, None]:
    """No more is asked at once than the workers can take up: who turns away asks no further."""
    yield json.dumps({"axis": axis, "from": places[0], "to": places[-1]}) + "\n"
    if answers.has_centre(form.kind):
        for x in places:
            point = answers.survey_central_at(form, axis, x)
            yield json.dumps({"line": "centre", **point}) + "\n"
    waiting: set[asyncio.Task[Any]] = set()
    left = coarse_first(places)
    try:
        while left or waiting:
            while left and len(waiting) < workers.width:
                asked = workers.later(answers.survey_error_at, form, axis, left.pop(0))
                waiting.add(asyncio.ensure_future(asked))
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield json.dumps({"line": "ours", **task.result()}) + "\n"
    finally:
        for task in waiting:
            task.cancel()


ROUTES = [
    Route("/api/survey/describe", _describe),
    Route("/api/survey/plan", _plan),
    Route("/api/survey/error", _error),
]
