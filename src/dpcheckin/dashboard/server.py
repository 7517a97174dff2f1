"""The page's addresses: the page itself, its answers as JSON, and plots as lines of JSON.

Starlette, on loopback unless told otherwise. Nothing here computes: answers come from `workers`, runs from `runs`.
Nothing is fetched from anywhere else either, and a content policy says so to the browser.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpcheckin import __version__
from dpcheckin.dashboard import answers, survey
from dpcheckin.dashboard.form import Form, describe
from dpcheckin.dashboard.lines import coarse_first, points, quick_at
from dpcheckin.dashboard.readers import Lines, for_reader
from dpcheckin.dashboard.runs import RunFolder
from dpcheckin.dashboard.workers import Workers
from dpcheckin.document import PALETTE
from dpcheckin.errors import DpCheckinError, InvalidParameter
from dpcheckin.service.settings import is_loopback
from dpcheckin.service.web.hosts import KnownHosts

STATIC = Path(__file__).parent / "static"
PATIENCE = 0.05  # seconds for a preview before a rougher figure is asked for as well
PREVIEW_POINTS = 9
MOST_PARTS = 20  # kinds of rounds in one run
Handler = Callable[[Request], Awaitable[Response]]
_POLICY = "default-src 'self'; img-src 'self' data:; object-src 'none'; frame-ancestors 'none'"


def application(host: str = "127.0.0.1", runs: Path | None = None) -> Starlette:
    """The whole server, with the runs in a folder; it starts its worker processes when it is started itself.

    Bound to a loopback `host`, it answers to no other name.
    """
    folder = None if runs is None else RunFolder(runs)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.workers = Workers()
        app.state.runs = folder
        try:
            yield
        finally:
            app.state.workers.close()

    middleware = [Middleware(_headers)]
    if is_loopback(host):
        # a page elsewhere must not reach us through a name that it made point to this machine
        middleware.insert(0, Middleware(KnownHosts, names=()))
    return Starlette(
        routes=[
            Route("/", _file(STATIC / "index.html")),
            Route("/bounds", _file(STATIC / "bounds.html")),
            Route("/api/describe", _describe),
            Route("/api/preview", _preview),
            Route("/api/statement", _statement),
            Route("/api/lines", _lines),
            Route("/api/solve", _solve),
            Route("/api/tradeoff", _answer(answers.trade_off)),
            Route("/api/mixed", _mixed),
            Route("/api/certificate", _answer(answers.certificate)),
            Route("/api/runs", _runs),
            Route("/api/run", _run),
            *survey.ROUTES,
            Route("/static/palette.css", _file(PALETTE)),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=middleware,
        exception_handlers={DpCheckinError: _refused},
        lifespan=lifespan,
    )


def _headers(app: ASGIApp) -> ASGIApp:
    """The application, with what every answer says to the browser."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Content-Security-Policy"] = _POLICY
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Cache-Control"] = "no-cache"  # a new version must not meet old scripts
            await send(message)

        await app(scope, receive, with_headers)

    return application


async def _refused(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, DpCheckinError)
    # a wrong entry is an ordinary answer: the page shows it at the field
    return JSONResponse(answers.problem_of(problem))


def _file(path: Path) -> Handler:
    async def file(request: Request) -> Response:
        return FileResponse(path)

    return file


def _answer(function: Callable[[Form], Any]) -> Handler:
    """What the function says of the plan that is asked about, once nothing more urgent waits."""

    async def answer(request: Request) -> Response:
        form, _ = _asked(request)
        return await for_reader(request, _workers(request).later(function, form))

    return answer


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
        {**describe(), "bounds": bounds, "version": __version__, "runs": request.app.state.runs is not None}
    )


async def _preview(request: Request) -> Response:
    """A figure at once, a better one, then points of the line for as long as somebody listens."""
    form, over = _asked(request)
    axis, workers = form.axis(over), _workers(request)

    async def content() -> AsyncGenerator[str, None]:
        figure = asyncio.ensure_future(workers.soon(answers.quick, form))
        try:
            await asyncio.wait([figure], timeout=PATIENCE)
            meanwhile = None if figure.done() else await _meanwhile(workers, form, figure)
            if meanwhile is not None:
                yield json.dumps(meanwhile) + "\n"
            yield json.dumps(await figure) + "\n"
        finally:
            figure.cancel()
        if "problem" in figure.result():
            return
        for x in coarse_first(form.abscissas(axis, PREVIEW_POINTS)):
            point = await workers.soon(quick_at, form, axis, x)
            yield json.dumps({"line": "preview", **point}) + "\n"

    return Lines(content())


async def _meanwhile(workers: Workers, form: Form, figure: asyncio.Future[Any]) -> dict[str, Any] | None:
    """A rougher figure, unless the better one comes first or there is none."""
    rough = asyncio.ensure_future(workers.first(answers.rough, form))
    try:
        await asyncio.wait([figure, rough], return_when=asyncio.FIRST_COMPLETED)
        if figure.done() or "problem" in rough.result():
            return None
        found: dict[str, Any] = rough.result()
        return found
    finally:
        rough.cancel()


async def _statement(request: Request) -> Response:
    form, _ = _asked(request)
    workers = _workers(request)

    async def both() -> dict[str, Any]:
        # the lower bound comes from another process meanwhile: it is not what is waited for
        found = asyncio.gather(workers.next(answers.statement, form), workers.next(answers.least, form))
        return answers.with_least(form, *await found)

    return await for_reader(request, both())


async def _solve(request: Request) -> Response:
    form, over = _asked(request)
    text = request.query_params.get("target", "")
    try:
        target = float(text)
    except ValueError:
        raise InvalidParameter("target", text, "a number above 0") from None
    quick = request.query_params.get("quick") == "1"
    workers = _workers(request)
    ask = workers.soon if quick else workers.next
    return await for_reader(request, ask(answers.solve, form, over, target, quick))


async def _mixed(request: Request) -> Response:
    """Several kinds of rounds in one run; every `part` is a plan as the other addresses take it."""
    parts = [dict(parse_qsl(text)) for text in request.query_params.getlist("part")]
    if not 0 < len(parts) <= MOST_PARTS:
        raise InvalidParameter("part", len(parts), f"1 to {MOST_PARTS} kinds of rounds")
    delta = request.query_params.get("delta", str(Form.delta))
    forms = tuple(Form.read({**part, "delta": delta}) for part in parts)
    return await for_reader(request, _workers(request).next(answers.mixed, forms))


async def _lines(request: Request) -> Response:
    """Every line of the plot, point by point as they are computed."""
    form, over = _asked(request)
    axis = form.axis(over)
    wanted = request.query_params.getlist("bound")
    known = {answers.key_of(bound) for bound in answers.about(form.protocol)}
    for key in wanted:
        if key not in known:
            raise InvalidParameter("bound", key, "a published bound about the protocol")
    return Lines(points(_workers(request), form, axis, wanted))


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
