"""The live page: rounds, check-ins against what coins predict, budget, accuracy or estimate.

One self-contained HTML file, one JSON snapshot that it asks for every second, health and metrics.
It shows nothing that the analyzer may not publish, loads nothing from anywhere else, and its policy
forbids it to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from dpcheckin.service.analyzer.board import Board

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def _what_is_wrong(board: Board, alive: bool) -> str | None:
    if not alive and board.snapshot()["finished"] is None:
        return "the conductor has stopped"
    away = " and ".join(board.away())
    return f"{away} not reached" if away else None


def page_app(board: Board, alive: Callable[[], bool], results: Path | None = None) -> Starlette:
    """The application; `alive` says whether the conductor is at work.

    Args:
        board: what is shown.
        alive: whether the conductor is at work.
        results: folder with the files of an estimate; None: there are none.
    """
    html = (files("dpcheckin.service.analyzer") / "page.html").read_text(encoding="utf-8")

    async def page(_: Request) -> Response:
        return HTMLResponse(html, headers=_HEADERS)

    async def status(_: Request) -> Response:
        return JSONResponse(board.snapshot(), headers=_HEADERS)

    async def health(_: Request) -> Response:
        wrong = _what_is_wrong(board, alive())
        return PlainTextResponse(f"{wrong or 'ok'}\n", 503 if wrong else 200)

    async def metrics(_: Request) -> Response:
        return PlainTextResponse(board.prometheus(), media_type="text/plain; version=0.0.4")

    def result(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(_: Request) -> Response:
            try:
                content = b"" if results is None else (results / name).read_bytes()
            except FileNotFoundError:
                content = b""
            if not content:
                return PlainTextResponse("no estimate\n", status_code=404, headers=_HEADERS)
            return Response(content, media_type=kind, headers=_HEADERS)

        return answer

    return Starlette(
        routes=[
            Route("/", page),
            Route("/status.json", status),
            Route("/healthz", health),
            Route("/metrics", metrics),
            Route("/estimate.json", result("estimate.json", "application/json")),
            Route("/estimate.csv", result("estimate.csv", "text/csv")),
        ]
    )
