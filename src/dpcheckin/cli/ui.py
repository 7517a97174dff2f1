"""`dpcheckin ui`: the planner page, served on this machine and opened in the browser."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated

import typer

from dpcheckin.errors import InvalidParameter


def ui(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 0,
    runs: Annotated[Path | None, typer.Option(help="Folder with training runs to show, live.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
) -> None:
    """Open the planner page: move a slider, see what is guaranteed."""
    import uvicorn

    from dpcheckin.dashboard.server import application

    if not 0 <= port <= 65535:
        raise InvalidParameter("port", port, "a whole number from 0 to 65535")
    app = application(host, runs)
    listening = _listen(host, port)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}/"
    typer.echo(f"The planner is at {address} (Ctrl-C stops it)")
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    if browser:
        import threading
        import webbrowser

        # the socket listens already: a browser that is quicker than the server waits for it
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    server.run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as problem:
        listening.close()
        reason = problem.strerror or str(problem)
        raise InvalidParameter("port", f"{host}:{port}", f"free and ours ({reason})") from None
    listening.listen(128)
    return listening
