"""A real server and a real browser: the page is tested as people meet it.

Tests that need the browser skip when no Chromium is installed; those of the server run anyway.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.log import write_run

pytest.importorskip("starlette", reason="the page needs the extra `ui`")
pytest.importorskip("uvicorn", reason="the page needs the extra `ui`")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 375, "height": 812}
PATIENCE = 120_000  # milliseconds; a busy machine is no failure


def chromium() -> str | None:
    """The system's Chromium."""
    named = os.environ.get("CHROMIUM")
    found = [named] if named else [shutil.which(x) for x in ("chromium", "chromium-browser")]
    return next((path for path in found if path), None)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run and one that goes on."""
    folder = tmp_path_factory.mktemp("runs")
    write_run(folder / "finished", rounds=40, finished=True)
    write_run(folder / "going-on", rounds=5, finished=False)
    return folder


@pytest.fixture(scope="session")
def server(runs: Path) -> Iterator[str]:
    """`dpcheckin ui` as its own process, on a free port."""
    program = "from dpcheckin.cli import main; main()"
    arguments = ["ui", "--no-browser", "--port", "0", "--runs", str(runs)]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"},
    )
    assert process.stdout is not None and process.stderr is not None
    said = process.stdout.readline()
    address = re.search(r"http://127\.0\.0\.1:\d+", said)
    if address is None:
        process.kill()
        pytest.fail(f"the server said {said!r} and {process.stderr.read()!r}")
    yield address[0]
    process.terminate()
    _, complaints = process.communicate(timeout=PATIENCE / 1000)
    assert "Traceback" not in complaints, complaints


# Playwright keeps an event loop running while it is open, and other modules want their own.
@pytest.fixture(scope="module")
def browser() -> Iterator["sync_api.Browser"]:
    path = chromium()
    if path is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=PATIENCE)
        yield started
        started.close()


class Desk:
    """Opens pages on the server and remembers every complaint of theirs."""

    def __init__(self, browser: "sync_api.Browser", server: str) -> None:
        self._browser, self.server = browser, server
        self._contexts: list[sync_api.BrowserContext] = []
        self.complaints: list[str] = []

    def open(self, query: str = "", *, phone: bool = False, dark: bool = False) -> "sync_api.Page":
        context = self._browser.new_context(
            viewport=PHONE if phone else DESKTOP,
            is_mobile=phone,
            has_touch=phone,
            color_scheme="dark" if dark else "light",
            permissions=["clipboard-read", "clipboard-write"],
        )
        context.set_default_timeout(PATIENCE)
        self._contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: self._heard(said.type, said.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._asked(request.url))
        page.goto(f"{self.server}/{query}")
        page.wait_for_selector("html[data-ready=true]")
        return page

    def _heard(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(f"{kind}: {text}")

    def _asked(self, url: str) -> None:
        if not url.startswith((self.server, "data:")):
            self.complaints.append(f"asked for {url}")

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def desk(browser: "sync_api.Browser", server: str) -> Iterator[Desk]:
    """Pages to work at; afterwards none of them may have complained or called out."""
    sync_api.expect.set_options(timeout=PATIENCE)
    made = Desk(browser, server)
    yield made
    made.close()
    assert made.complaints == []
