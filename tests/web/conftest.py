"""Node and Chromium for the module that browsers load; what needs one of them skips where it is not there."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "clients" / "web" / "dpcheckin.js"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE = 120_000  # milliseconds; a busy machine is no failure


@pytest.fixture(scope="session")
def node() -> str:
    """Node 20 or newer: WebCrypto with X25519 and Ed25519."""
    path = shutil.which("node")
    if path is None:
        pytest.skip("no Node on this machine (Debian: apt-get install nodejs)")
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.removeprefix("v").split(".")[0]) < 20:
        pytest.skip(f"Node {version.strip()} is older than 20")
    return path


def run_node(node: str, script: str, *arguments: str) -> Any:
    """What a script of this folder prints, as JSON."""
    command = [node, "--no-warnings", str(Path(__file__).parent / script), *arguments]
    said = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert said.returncode == 0, said.stderr[-4000:]
    return json.loads(said.stdout)


class Quiet(SimpleHTTPRequestHandler):
    """Files of the repository, without a word."""

    def guess_type(self, path: Any) -> str:
        return "text/javascript" if str(path).endswith(("js", "mjs")) else super().guess_type(path)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="session")
def files() -> Iterator[str]:
    """The repository on a loopback port, for pages."""
    opened = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(ROOT)))
    threading.Thread(target=opened.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{opened.server_address[1]}"
    opened.shutdown()
    opened.server_close()


# Playwright keeps an event loop running while it is open, and other modules want their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if path is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=PATIENCE)
        yield started
        started.close()
