"""The analyzer's page in a real browser: what it shows, in light and dark, without any network."""

import asyncio
import os
import random
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
import uvicorn

from dpcheckin.service.analyzer import core, state
from dpcheckin.service.analyzer.board import Board
from dpcheckin.service.analyzer.ledger import ChargeReason, Ledger
from dpcheckin.service.analyzer.server import page_app
from dpcheckin.service.analyzer.state import AnalyzerState
from dpcheckin.service.pricing import Price
from dpcheckin.service.tasks import TaskState
from dpcheckin.service.web.hosts import KnownHosts
from dpcheckin.service.web.server import listen
from service.plans import plan

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]


class Still:
    """A task that does nothing."""

    def start(self) -> TaskState:
        return TaskState(b"model", b"", {"accuracy": 0.1})

    def step(self, *_: Any) -> TaskState:
        raise NotImplementedError


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    """Twenty rounds of a plausible run: one void by population, one by batch, one odd count."""
    document = plan(population=270, rate=0.3, rounds=30, epsilon_budget=9.0)
    price = Price(document)
    ledger = Ledger(tmp_path_factory.mktemp("page") / "ledger", price)
    found: AnalyzerState = core.begin(document, Still())
    chance = np.random.default_rng(3)
    for number in range(20):
        what, more = "released", {"dropped": 0}
        count: int | None = int(chance.binomial(300, 0.3))
        if number == 4:
            what, count, more = "void by population", None, {}
        elif number == 9:
            count, more = 140, {"dropped": 2}
        elif number == 12:
            more |= {"spoiled": "one share was malformed"}
        if count is not None:
            ledger.charge(number, ChargeReason.RELEASE)
            more |= {"opened": count, "accuracy": 0.9 - 0.8 * 0.8**number}
        spent = ledger.spent
        status = core.Status("closed", 200 if number == 4 else 300, count)
        row = core.row(found, status, what, epsilon=spent.epsilon, local_epsilon=spent.local_epsilon, **more)
        metrics = {"accuracy": 0.9 - 0.8 * 0.8**number}
        found = found.with_row(row, task=TaskState(b"model", b"", metrics))
    made = Board(price)
    made.show(found, ledger)
    ledger.close()
    assert state.AnalyzerState.from_bytes(found.to_bytes()).round == 20
    return made


@pytest.fixture(scope="module")
def address(board: Board) -> Iterator[str]:
    opened = listen("127.0.0.1", 0)
    config = uvicorn.Config(page_app(board, lambda: True), log_config=None, lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([opened])))
    thread.start()
    yield f"http://127.0.0.1:{opened.getsockname()[1]}"
    server.should_exit = True
    thread.join()
    opened.close()


def test_page_health_metrics_and_status_answer(address: str, board: Board) -> None:
    with httpx.Client(base_url=address, trust_env=False) as http:
        page = http.get("/")
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "http://" not in page.text.replace("http://www.w3.org/2000/svg", "")
        assert "https://" not in page.text
        assert http.get("/healthz").text == "ok\n"
        assert http.get("/status.json").json()["spent"]["charged"] == 19
        metrics = http.get("/metrics")
        assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert 'rounds_total{outcome="released"} 19' in metrics.text
        assert "rounds_spoiled_total 1\n" in metrics.text
        assert http.get("/nothing").status_code == 404


def test_health_tells_when_the_conductor_is_gone(board: Board) -> None:
    async def ask() -> int:
        through = httpx.ASGITransport(page_app(board, lambda: False))
        async with httpx.AsyncClient(transport=through, base_url="http://page") as http:
            return (await http.get("/healthz")).status_code

    assert asyncio.run(ask()) == 503


def test_health_status_and_metrics_tell_whom_the_analyzer_cannot_reach(tmp_path: Path) -> None:
    shuffler = SimpleNamespace(party="shuffler", away=None)
    price = Price(plan(rounds=3, epsilon_budget=50.0))
    made = Board(price, [shuffler, SimpleNamespace(party="issuer", away=None)])
    with Ledger(tmp_path / "ledger", price) as ledger:
        made.show(core.begin(price.document, Still()), ledger)

    async def ask(path: str) -> tuple[int, str]:
        through = httpx.ASGITransport(page_app(made, lambda: True))
        async with httpx.AsyncClient(transport=through, base_url="http://page") as http:
            answer = await http.get(path)
            return answer.status_code, answer.text

    assert asyncio.run(ask("/healthz")) == (200, "ok\n")
    assert 'analyzer_reached{party="shuffler"} 1\n' in made.prometheus()
    shuffler.away = "ConnectError"
    assert asyncio.run(ask("/healthz")) == (503, "shuffler not reached\n")
    assert '"away":{"shuffler":"ConnectError"}' in asyncio.run(ask("/status.json"))[1]
    assert 'analyzer_reached{party="shuffler"} 0\n' in made.prometheus()
    assert 'analyzer_reached{party="issuer"} 1\n' in made.prometheus()
    made.finish("stopped")  # nobody is asked any more
    assert asyncio.run(ask("/healthz")) == (200, "ok\n")
    assert made.snapshot()["away"] == {}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium on this machine")
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=chromium, args=FLAGS, timeout=180_000)
        yield found
        found.close()


def test_no_page_may_be_framed(address: str) -> None:
    for path in ("/", "/status.json", "/estimate.json"):
        assert "frame-ancestors 'none'" in httpx.get(address + path, trust_env=False).headers["content-security-policy"]


@pytest.mark.parametrize("requests", [300, pytest.param(10_500, marks=pytest.mark.slow)])
def test_no_request_makes_the_page_fail(board: Board, tmp_path: Path, requests: int) -> None:
    """Damaged methods, paths, queries, headers and bodies: every answer is one of a few, and no failure."""
    chance, found = random.Random(requests), Counter[int]()
    app = KnownHosts(page_app(board, lambda: True, tmp_path), {"analyzer.example"})
    odd = ("", "/", "//", "/%00", "/..", "/../../etc/passwd", "?x=" + "9" * 3000, "?x=\u0660", "/" + "a" * 5000)
    odd += ("%ff", "?a&b=%zz", ";x", "#")
    hosts = ("127.0.0.1", "analyzer.example", "evil.example", "[::1", "", "a" * 300, "127.0.0.1:99999")

    async def ask() -> None:
        through = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=through, base_url="http://127.0.0.1") as http:
            for _ in range(requests):
                path = chance.choice(("/", "/status.json", "/healthz", "/metrics", "/estimate.json", "/estimate.csv"))
                method = chance.choice(("GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE"))
                headers = {"host": chance.choice(hosts)} if chance.random() < 0.3 else {}
                headers |= {"range": "bytes=9-1"} if chance.random() < 0.1 else {}
                body = chance.randbytes(chance.choice((0, 0, 10, 3000)))
                answer = await http.request(method, path + chance.choice(odd), headers=headers, content=body)
                assert answer.status_code < 500, (method, path, headers, answer.text[:200])
                found[answer.status_code] += 1

    asyncio.run(ask())
    print(f"{sum(found.values())} answers: {dict(sorted(found.items()))}")
    assert {200, 404, 405, 421} <= set(found)


def test_an_outage_is_shown_as_one(address: str, board: Board, browser: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In words and in the colour of what is wrong; when it is over, as before."""
    page = browser.new_page(color_scheme="light")
    page.goto(address)
    page.wait_for_selector("#state:not(.trouble)", timeout=180_000)
    away = SimpleNamespace(party="shuffler", away="ConnectError")
    monkeypatch.setattr(board, "_parties", [away])
    page.wait_for_selector("#state.trouble", timeout=60_000)
    assert page.inner_text("#state") == "shuffler not reached (ConnectError)"
    assert page.evaluate("getComputedStyle(document.querySelector('#state')).color") == "rgb(179, 38, 30)"
    away.away = None
    page.wait_for_selector("#state:not(.trouble)", timeout=60_000)
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 420], ids=["wide", "narrow"])
def test_the_page_shows_the_run(
    address: str, board: Board, browser: Any, tmp_path: Path, scheme: str, width: int
) -> None:
    page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 900})
    problems: list[str] = []
    asked: list[str] = []
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda problem: problems.append(str(problem)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.wait_for_selector("body[data-rounds='20']", timeout=180_000)
    shot = board.snapshot()
    assert page.inner_text("#charged") == f"19 of {shot['spent']['allowed']}"
    shown = float(page.inner_text("#epsilon"))
    assert shot["spent"]["epsilon"] <= shown < shot["spent"]["epsilon"] * 1.001
    assert float(page.inner_text("#local")) >= shot["spent"]["local_epsilon"]
    assert page.inner_text("#accuracy") == "88.8%"
    assert "2 reports dropped" in page.inner_text("#dropped")
    assert "differentially private" in page.inner_text("#statement")
    assert page.locator("#rows tr").count() == 20
    assert page.locator("#rows td", has_text="released, spoiled").count() == 1
    assert page.locator("#checkins circle").count() == 19
    outside = page.locator("#checkins circle[fill='var(--limit)']")
    assert outside.count() == 1  # the odd round, and no other
    assert page.locator("#privacy circle").count() == 2 * 20
    assert page.locator("#learning circle").count() == 19
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, "the page scrolls sideways"
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(18, 22, 28)") == (scheme == "dark")
    assert problems == []
    assert all(url.startswith(address) for url in asked)
    target = Path(os.environ.get("DPCHECKIN_SCREENSHOTS", tmp_path)) / f"{scheme}-{width}.png"
    page.screenshot(path=target, full_page=True)
    assert target.stat().st_size > 10_000
    page.close()
