"""The page's addresses: the page itself, its answers as JSON, and plots as lines of JSON.

Starlette, on loopback unless told otherwise. Nothing here computes: answers come from `workers`,
runs from `runs`. Nothing is fetched from anywhere else either, and a content policy says so to the
browser.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpcheckin import __version__
from dpcheckin.dashboard import answers
from dpcheckin.dashboard.form import Form, describe
from dpcheckin.dashboard.runs import RunFolder
from dpcheckin.dashboard.workers import Workers
from dpcheckin.errors import DpCheckinError, InvalidParameter

STATIC = Path(__file__).parent / "static"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
PATIENCE = 0.05  # seconds for a preview before a rougher figure is asked for as well
PREVIEW_POINTS, OUR_POINTS, PUBLISHED_POINTS = 9, 13, 7
_LINES = "application/x-ndjson"
_POLICY = "default-src 'self'; img-src 'self' data:; object-src 'none'; frame-ancestors 'none'"


def application(host: str = "127.0.0.1", runs: Path | None = None) -> Starlette:
    """The whole server; it starts its worker processes when it is started itself."""
    folder = None if runs is None else RunFolder(runs)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.workers = Workers()
        app.state.runs = folder
        try:
            yield
        finally:
            app.state.workers.close()

    middleware = [Middleware(_Headers)]
    if host in LOOPBACK:
        # a page elsewhere must not reach us through a name that it made point to this machine
        middleware.insert(0, Middleware(TrustedHostMiddleware, allowed_hosts=["[::1]", *LOOPBACK]))
    return Starlette(
        routes=[
            Route("/", _page),
            Route("/api/describe", _describe),
            Route("/api/preview", _preview),
            Route("/api/statement", _statement),
            Route("/api/lines", _lines),
            Route("/api/solve", _solve),
            Route("/api/runs", _runs),
            Route("/api/run", _run),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=middleware,
        exception_handlers={DpCheckinError: _refused},
        lifespan=lifespan,
    )


class _Headers:
    """Adds what every answer says to the browser."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Content-Security-Policy"] = _POLICY
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Cache-Control"] = "no-cache"  # a new version must not meet old scripts
            await send(message)

        await self._app(scope, receive, with_headers)


async def _refused(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, DpCheckinError)
    # a wrong entry is an ordinary answer: the page shows it at the field
    return JSONResponse(answers.problem_of(problem))


async def _page(request: Request) -> Response:
    return FileResponse(STATIC / "index.html")


async def _describe(request: Request) -> Response:
    bounds = {
        protocol: [
            {
                "key": answers.key_of(bound),
                "name": bound.name,
                "source": f"{bound.paper} {bound.theorem}",
                "citation": bound.citation,
                "statement": bound.statement,
                "kind": bound.kind.value,
                "erratum": bound.erratum,
            }
            for bound in answers.about(protocol)
        ]
        for protocol in describe()["protocols"]
    }
    return JSONResponse(
        {
            **describe(),
            "bounds": bounds,
            "version": __version__,
            "runs": request.app.state.runs is not None,
        }
    )


async def _preview(request: Request) -> Response:
    """A figure at once, a better one, then points of the line for as long as somebody listens."""
    form, over = _asked(request)
    axis, workers = form.axis(over), _workers(request)
    figure = asyncio.ensure_future(workers.soon(answers.quick, form))
    await asyncio.wait([figure], timeout=PATIENCE)
    meanwhile = None if figure.done() else await _meanwhile(workers, form, figure)
    if meanwhile is None and "problem" in await figure:
        return JSONResponse(await figure)

    async def content() -> AsyncIterator[str]:
        if meanwhile is not None:
            yield json.dumps(meanwhile) + "\n"
        yield json.dumps(await figure) + "\n"
        if "problem" in figure.result():
            return
        for x in answers.coarse_first(form.abscissas(axis, PREVIEW_POINTS)):
            point = await workers.soon(answers.quick_at, form, axis, x)
            yield json.dumps({"line": "preview", **point}) + "\n"

    return StreamingResponse(content(), media_type=_LINES)


async def _meanwhile(
    workers: Workers, form: Form, figure: asyncio.Future[Any]
) -> dict[str, Any] | None:
    """A rougher figure, unless the better one comes first or there is none."""
    rough = asyncio.ensure_future(workers.first(answers.rough, form))
    await asyncio.wait([figure, rough], return_when=asyncio.FIRST_COMPLETED)
    if figure.done() or "problem" in rough.result():
        return None
    found: dict[str, Any] = rough.result()
    return found


async def _statement(request: Request) -> Response:
    form, _ = _asked(request)
    return JSONResponse(await _workers(request).later(answers.statement, form))


async def _solve(request: Request) -> Response:
    form, over = _asked(request)
    text = request.query_params.get("target", "")
    try:
        target = float(text)
    except ValueError:
        raise InvalidParameter("target", text, "a number above 0") from None
    quick = request.query_params.get("quick") == "1"
    workers = _workers(request)
    ask = workers.soon if quick else workers.later
    return JSONResponse(await ask(answers.solve, form, over, target, quick))


async def _lines(request: Request) -> Response:
    """Every line of the plot, point by point as they are computed."""
    form, over = _asked(request)
    axis = form.axis(over)
    wanted = request.query_params.getlist("bound")
    known = {answers.key_of(bound) for bound in answers.about(form.protocol)}
    for key in wanted:
        if key not in known:
            raise InvalidParameter("bound", key, "a published bound about the protocol")
    return StreamingResponse(_points(_workers(request), form, axis, wanted), media_type=_LINES)


Question = tuple[str, Callable[..., Any], tuple[Any, ...]]


def _questions(form: Form, axis: str, xs: list[float], wanted: list[str]) -> list[Question]:
    """What the workers are asked, in this order."""
    questions: list[Question] = []
    for x in answers.coarse_first(xs):
        questions.append(("guarantee", answers.guarantee_at, (form, axis, x)))
        if form.about.bounded:
            questions.append(("lower bound", answers.lower_at, (form, axis, x)))
    few = form.abscissas(axis, PUBLISHED_POINTS)
    for key in wanted:
        if axis == "rounds":  # all at once: most of the work is the same for every count
            questions.append((key, answers.published_at, (form, key, axis, tuple(few))))
        else:
            for x in few:
                questions.append((key, answers.published_at, (form, key, axis, (x,))))
    return questions


async def _points(workers: Workers, form: Form, axis: str, wanted: list[str]) -> AsyncIterator[str]:
    """Our own lines first, coarse before fine; then the published ones.

    No more questions are put to the workers than they can take up at once: when the browser turns
    away, as it does when a slider moves, the rest is never asked.
    """
    xs = form.abscissas(axis, OUR_POINTS)
    questions = _questions(form, axis, xs, wanted)
    yield (
        json.dumps({"axis": axis, "from": xs[0], "to": xs[-1], "questions": len(questions)}) + "\n"
    )

    async def ask(line: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        return line, await workers.later(function, *arguments)

    waiting: set[asyncio.Task[Any]] = set()
    try:
        while questions or waiting:
            while questions and len(waiting) < workers.width:
                waiting.add(asyncio.create_task(ask(*questions.pop(0))))
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                line, answer = task.result()
                yield json.dumps({"line": line, **answer}) + "\n"
    finally:
        for task in waiting:
            task.cancel()


async def _runs(request: Request) -> Response:
    """The runs of the folder; nothing when the version is the one that is known already."""
    folder: RunFolder | None = request.app.state.runs
    if folder is None:
        return JSONResponse({"folder": None, "runs": [], "version": ""})
    version = folder.version()
    if request.query_params.get("version") == version:
        return Response(status_code=204)
    return JSONResponse({"folder": str(folder.root), "runs": folder.overview(), "version": version})


async def _run(request: Request) -> Response:
    folder: RunFolder | None = request.app.state.runs
    name = request.query_params.get("name", "")
    if folder is None:
        raise InvalidParameter("run", name, "started with --runs DIR")
    return JSONResponse(folder.run(name))


def _asked(request: Request) -> tuple[Form, str]:
    form = Form.read(request.query_params)
    return form, request.query_params.get("over", form.about.over[0])


def _workers(request: Request) -> Workers:
    workers = request.app.state.workers
    assert isinstance(workers, Workers)
    return workers
