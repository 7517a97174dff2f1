"""Browsers and Python agents answer side by side, through one shuffler and one issuer; every ledger is right."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from web.conftest import PATIENCE
from web.fleet import LIMITS, Fleet, check_estimate, people, released, say, truth, wait_until

LEDGER = """async () => {
    const storage = await dpcheckin.IndexedStorage.open("owner");
    const ledger = await dpcheckin.Ledger.open(storage);
    storage.base.close();
    const plans = [...ledger.plans].map(([id, one]) => [id, { spent: one.spent, coins: [...one.coins] }]);
    return { plans: Object.fromEntries(plans), outbox: ledger.kept.has("outbox") };
}"""


class Page:
    """One client in a browser context of its own, which has its own ledger."""

    def __init__(self, browser: Any, origin: str, config: dict[str, Any]) -> None:
        self._context, self._origin, self._config = browser.new_context(), origin, config
        self._context.set_default_timeout(PATIENCE)
        self.sent: list[tuple[str, bytes]] = []
        self._open()

    def _open(self) -> None:
        self.page = self._context.new_page()
        self.page.on("request", self._asked)
        self.page.goto(f"{self._origin}/tests/web/client.html")
        self._begin()

    def _begin(self) -> None:
        self.page.wait_for_function("window.ready")
        self.page.evaluate("config => begin(config)", self._config)

    def _asked(self, request: Any) -> None:
        if request.method == "PUT":
            self.sent.append((request.url, request.post_data_buffer or b""))

    def reload(self) -> None:
        self.page.reload()
        self._begin()

    def kill(self) -> None:
        """The tab is closed without a word; another one of the same context takes over."""
        self.page.close(run_before_unload=False)
        self._open()

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = self.page.evaluate("client.state()")
        return found

    def ledger(self) -> dict[str, Any]:
        found: dict[str, Any] = self.page.evaluate(LEDGER)
        return found

    def close(self) -> None:
        self._context.close()


def play(
    folder: Path, browser: Any, origin: str, clients: int, browsers: int, seconds: float, kinds: tuple[str, ...]
) -> dict[str, Any]:
    """All kinds asked one after the other of `clients`, `browsers` of whom are real contexts; two of those are reloaded
    or closed in each plan."""
    found: dict[str, Any] = {}
    with Fleet(folder, origin, clients, poll_seconds=seconds / 15) as fleet:
        everybody = people(clients)
        place = fleet.ask(kinds[0], round_seconds=seconds)
        pages = [Page(browser, origin, fleet.config(number, everybody[number])) for number in range(browsers)]
        if clients > browsers:
            fleet.start_agents(browsers)
        for turn, kind in enumerate(kinds):
            if turn:
                place = fleet.ask(kind, round_seconds=seconds)
            wait_until(partial(anybody_in, pages, turn + 1), 6 * seconds, "a round")
            pages[turn].reload()
            pages[turn + 2].kill()
            shot = wait_until(lambda: over(fleet.shot(), pages), 12 * seconds, f"the {kind}")
            estimate = check_estimate(place, shot)
            far = np.abs(estimate["values"] - truth(kind, clients)) / (estimate["deviation"] + 1e-9)
            say(
                kind,
                "estimate",
                estimate["values"].round(2),
                "truth",
                truth(kind, clients).round(2),
                "deviations",
                far.round(2),
            )
            assert np.all(far < 6)
            found[kind] = {"shot": shot, "estimate": estimate}
        plans = {key for page in pages for key in page.ledger()["plans"]}
        assert len(plans) == len(kinds)
        for page in pages:
            check_ledger(page, len(kinds))
        found["envelopes"] = [sent for page in pages for sent in page.sent]
        for page in pages:
            page.close()
    return found


def anybody_in(pages: list[Page], plans: int) -> bool:
    return any(len(page.ledger()["plans"]) >= plans for page in pages)


def over(shot: dict[str, Any], pages: list[Page]) -> dict[str, Any] | None:
    for page in pages[:3]:
        page.state()  # a page that died is noticed
    return shot if shot.get("finished") and released(shot) else None


def check_ledger(page: Page, plans: int) -> None:
    """Every round that an envelope was sent in is charged, once, and totals are sums over plans."""
    ledger = page.ledger()
    assert len(ledger["plans"]) == plans
    assert not ledger["outbox"]
    paid = {number for plan in ledger["plans"].values() for number, _ in plan["coins"]}
    by_round: dict[tuple[int, bytes], set[bytes]] = {}
    for url, body in page.sent:  # a header names the plan's key
        by_round.setdefault((int(url.split("/")[-2]), body[12:20]), set()).add(body)
    assert {number for number, _ in by_round} <= paid
    assert all(len(bodies) == 1 for bodies in by_round.values()), "two different envelopes in one round"
    totals = page.state()["spent"]
    for name in ("epsilon", "local_epsilon", "delta"):
        assert totals[name] == pytest.approx(sum(plan["spent"][name] for plan in ledger["plans"].values()))
    assert 0 < totals["epsilon"] <= LIMITS["total_epsilon"]


def test_browsers_and_agents_answer_together(tmp_path: Path, browser: Any, files: str) -> None:
    play(tmp_path, browser, files, clients=8, browsers=5, seconds=10.0, kinds=("histogram", "mean"))


@pytest.mark.slow
def test_100_clients_of_whom_44_are_browsers(tmp_path: Path, browser: Any, files: str) -> None:
    found = play(tmp_path, browser, files, clients=100, browsers=44, seconds=60.0, kinds=("histogram", "mean"))
    assert found["histogram"]["estimate"]["reports"] > 30
