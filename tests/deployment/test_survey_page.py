"""The analyzer's page draws a survey's estimate with its intervals, in a real browser."""

import asyncio
import json
import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from deployment.survey_world import simulated, survey_of, values_of
from dpcheckin.service.analyzer import core
from dpcheckin.service.analyzer.batches import Decoded
from dpcheckin.service.analyzer.board import Board
from dpcheckin.service.analyzer.ledger import ChargeReason, Ledger
from dpcheckin.service.analyzer.server import page_app
from dpcheckin.service.pricing import Price
from dpcheckin.service.web.server import listen

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PEOPLE = 400


def board_of(folder: Path, kind: str, rounds: int) -> Board:
    """So many rounds of a simulated survey, each with two hostile reports."""
    task, plan = survey_of(folder, kind, plan={"population": PEOPLE, "rounds": 4, "epsilon_budget": 60.0})
    price = Price(plan)
    state, values = core.begin(plan, task), values_of(kind, PEOPLE)
    with Ledger(folder / "ledger", price) as ledger:
        for index in range(rounds):
            rows = simulated(task, values, index)
            status = core.Status("closed", PEOPLE, len(rows) + 2)
            state = core.count(state, task, Decoded(len(rows), 2, None, rows=rows), status)
            ledger.charge(index, ChargeReason.RELEASE)
            spent = ledger.spent
            line = core.row(
                state, status, "released", epsilon=spent.epsilon, dropped=2, opened=len(rows),
                local_epsilon=spent.local_epsilon, **state.task.metrics,
            )  # fmt: skip
            state = state.with_row(line)
        board = Board(price)
        board.show(state, ledger)
    return board


@contextmanager
def served(board: Board, folder: Path) -> Iterator[str]:
    opened = listen("127.0.0.1", 0)
    app = page_app(board, lambda: True, folder)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", ws="none"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([opened])))
    thread.start()
    try:
        yield f"http://127.0.0.1:{opened.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        opened.close()


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


def look(browser: Any, address: str, rounds: int, name: str, tmp_path: Path, width: int) -> Any:
    page = browser.new_page(viewport={"width": width, "height": 900})
    problems: list[str] = []
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda problem: problems.append(str(problem)))
    page.goto(address)
    page.wait_for_selector(f"body[data-rounds='{rounds}']", timeout=180_000)
    target = Path(os.environ.get("DPCHECKIN_SCREENSHOTS", tmp_path)) / f"survey-{name}.png"
    page.screenshot(path=target, full_page=True)
    assert target.stat().st_size > 10_000
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert problems == []
    assert not page.locator("#learning-card").is_visible()
    assert page.locator("#survey-card").is_visible()
    return page


@pytest.mark.parametrize("width", [1200, 420], ids=["wide", "narrow"])
def test_a_histogram_is_drawn_as_bars_with_intervals(tmp_path: Path, browser: Any, width: int) -> None:
    board = board_of(tmp_path, "histogram", 2)
    with served(board, tmp_path) as address:
        page = look(browser, address, 2, f"histogram-{width}", tmp_path, width)
        shown = board.snapshot()["survey"]
        assert page.inner_text("#survey-title") == "histogram: taste"
        assert page.inner_text("#accuracy") == f"{shown['reports']}"
        assert "4 reports dropped" in page.inner_text("#dropped")
        assert "1 colluding client can move a figure by at most" in page.inner_text("#survey-influence")
        bars, whiskers = page.locator("#survey rect.bar"), page.locator("#survey path.interval")
        assert bars.count() == whiskers.count() == len(shown["rows"]) == 3
        heights = [float(bars.nth(i).get_attribute("height")) for i in range(3)]
        values = [row["value"] for row in shown["rows"]]
        for height, value in zip(heights, values, strict=True):  # heights are in proportion
            assert height / heights[0] == pytest.approx(value / values[0], rel=1e-6)
        ends = re.match(r"M\S+ (\S+)V([^M]+)M", whiskers.nth(0).get_attribute("d"))
        row, unit = shown["rows"][0], heights[0] / values[0]
        reach = float(ends[1]) - float(ends[2])
        assert reach == pytest.approx(unit * (row["upper"] - row["lower"]), rel=1e-6)
        page.close()


def test_a_distribution_is_drawn_as_a_curve_with_its_band(tmp_path: Path, browser: Any) -> None:
    board = board_of(tmp_path, "distribution", 2)
    with served(board, tmp_path) as address:
        page = look(browser, address, 2, "distribution", tmp_path, 1200)
        assert page.locator("#survey path.band").count() == 1
        line = page.locator("#survey path.shares").get_attribute("d")
        heights = [float(part.split()[1]) for part in line[1:].split("L")]
        assert len(heights) == 16
        assert heights == sorted(heights, reverse=True), "a distribution function does not fall"
        page.close()


def test_heavy_hitters_are_a_table_once_all_stages_have_answered(tmp_path: Path, browser: Any) -> None:
    early, late = board_of(tmp_path / "a", "heavy-hitters", 1), None
    assert early.snapshot()["survey"]["waiting"] == "1 of the 2 rounds that make an answer"
    with served(early, tmp_path / "a") as address:
        page = look(browser, address, 1, "heavy-hitters-early", tmp_path, 1200)
        assert page.inner_text("#survey-note").startswith("waiting: 1 of the 2 rounds")
        assert httpx.get(address + "/estimate.json", trust_env=False).status_code == 404
        page.close()
    late = board_of(tmp_path / "b", "heavy-hitters", 2)
    with served(late, tmp_path / "b") as address:
        page = look(browser, address, 2, "heavy-hitters", tmp_path, 1200)
        assert not page.locator("#survey").is_visible()
        assert page.locator("#survey-rows tr td").nth(0).inner_text() == "tea"
        assert "probability at most 0.05" in page.inner_text("#survey-note")
        page.close()


def test_one_figure_is_drawn_as_rounds_arrive(tmp_path: Path, browser: Any) -> None:
    board = board_of(tmp_path, "mean", 4)
    with served(board, tmp_path) as address:
        page = look(browser, address, 4, "mean", tmp_path, 1200)
        assert page.locator("#survey circle").count() == 4
        page.close()
        with httpx.Client(base_url=address, trust_env=False) as http:
            told = http.get("/estimate.json")
            assert told.headers["content-type"] == "application/json"
            assert told.json() == json.loads((tmp_path / "estimate.json").read_text())
            lines = http.get("/estimate.csv").text.splitlines()
            assert lines[0] == "name,estimate,lower,upper,deviation"
            assert float(lines[1].split(",")[1]) == told.json()["estimate"]["values"][0]
            assert "dpcheckin_analyzer_task_answers" in http.get("/metrics").text
