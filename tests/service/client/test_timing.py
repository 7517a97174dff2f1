"""The coin does not show in time, however long the task takes.

Somebody on the network sees when each client fetches the model and when it sends. Over 50 rounds
of 20 clients the area under the curve of "sent later" against the coin has deviation 0.018 when
nothing shows, so 0.5 ± 0.05 is 2.7 deviations (coins and moments are drawn from a seed), and a leak
with an area of 0.6 is found with probability 0.996.
"""

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import uvicorn
from scipy.stats import norm

from dpcheckin.deployment.processes import start_shuffler
from dpcheckin.service.client.core import Agent
from dpcheckin.service.client.daemon import LEDGER
from dpcheckin.service.client.ledger import ClientLedger
from dpcheckin.service.shuffler.server import open_store
from dpcheckin.service.storage.identity import TOKEN_FILE, analyzer_token
from dpcheckin.service.web.server import listen
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.credentials import bearer_header, new_token, token_digest
from service.client.timing_world import Seen, Watched, auc, deviation
from service.shuffler_world import Analyzer

CLIENTS, ROUNDS, BAND, LEAK = 20, 50, 0.05, 0.6
ALLOWANCE = 3.0


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Ledgers are not looked at again: no need to wait for the disk."""
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr("os.fsync", lambda handle: None)


def areas(seen: list[Seen]) -> dict[str, float]:
    heads = [one.heads for one in seen]
    return {
        "sent": auc([one.sent for one in seen], heads),
        "after the model": auc([one.sent - one.fetched for one in seen], heads),
        "fetched": auc([one.fetched for one in seen], heads),
        "size": auc([one.size for one in seen], heads),
        "requests": auc([one.requests for one in seen], heads),
    }


def check(seen: list[Seen]) -> None:
    spread = deviation([one.heads for one in seen])
    power = norm.cdf((LEAK - 0.5 - BAND) / spread)
    found = areas(seen)
    print(f"{len(seen)} envelopes, power {power:.4f} against {LEAK}: {found}")
    assert power > 0.99
    assert all(abs(area - 0.5) <= BAND for area in found.values()), found


@pytest.mark.parametrize("failing", [0.0, 0.5])
@pytest.mark.parametrize("share", [0.05, 0.95, 1.6])
def test_the_coin_does_not_show_whatever_the_task_takes_and_whether_it_fails(
    tmp_path: Path, share: float, failing: float
) -> None:
    """A twentieth of the allowance, nearly all of it, and more; half of the clients' tasks fail."""
    watched = Watched(
        tmp_path,
        clients=CLIENTS,
        rounds=ROUNDS,
        task_seconds=share * ALLOWANCE,
        failing=failing,
        seed=2 if failing else 1,
    )
    seen = watched.play()
    check(seen)
    failures = sum(agent.counts.failures for agent in watched.agents)
    assert (failures > 0) == (failing > 0)
    assert len(seen) >= 0.98 * CLIENTS * ROUNDS
    lost = sum(agent.counts.lost for agent in watched.agents)
    reports = sum(agent.counts.reports for agent in watched.agents)
    assert reports == sum(one.heads for one in seen)  # also of those that were lost or failed
    assert (lost > 0) == (share > 1)
    assert min(one.sent - one.fetched for one in seen) >= ALLOWANCE  # nobody before


def test_a_task_longer_than_a_round_sends_neutral_reports(tmp_path: Path) -> None:
    """The next rounds of a client whose computation hangs look like everybody's."""
    watched = Watched(tmp_path, clients=6, rounds=8, task_seconds=25.0)
    seen = watched.play()
    assert len(seen) == 6 * 8
    assert sum(agent.counts.reports for agent in watched.agents) == sum(one.heads for one in seen)
    assert sum(agent.counts.lost for agent in watched.agents) == sum(one.heads for one in seen)


def test_this_test_finds_the_leak_of_a_moment_without_an_allowance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same fleet when moments begin at once and late reports go out when they are ready."""
    monkeypatch.setattr(Agent, "allowance", lambda self, found: 0.0)
    watched = Watched(tmp_path, clients=CLIENTS, rounds=12, task_seconds=5.0)
    late = watched.task_seconds
    seen = [
        Seen(one.fetched, max(one.sent, one.fetched + late) if one.heads else one.sent, one.heads)
        for one in watched.play()
    ]
    assert areas(seen)["sent"] > LEAK


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.8, 1.6])
def test_the_coin_does_not_show_in_real_time_either(tmp_path: Path, share: float) -> None:
    """With threads, sleeping and whatever else this machine is doing."""
    watched = Watched(
        tmp_path,
        clients=2 * CLIENTS,  # threads draw in any order, so the seed does not help here
        rounds=ROUNDS,
        task_seconds=share * 0.6,
        seconds=1.8,
        virtual=False,
    )
    seen = watched.play()
    assert len(seen) > CLIENTS * ROUNDS, "this machine is too busy to play rounds at all"
    check(seen)


@pytest.mark.slow
def test_the_shufflers_answer_takes_as_long_for_a_cover_as_for_a_report(tmp_path: Path) -> None:
    """A real shuffler over SQLite, one envelope of 100 kB after the other in random order."""
    clients, chance = 1600, np.random.default_rng(5)
    randomizer = {"name": "gaussian", "noise_multiplier": 2.0, "dimension": 25_000}
    randomizer |= {"clip": 1.0, "encoding": 1}
    analyzer = Analyzer.of(population=2, minimum_batch=0, cover=True, randomizer=randomizer)
    folder = tmp_path / "shuffler"
    folder.mkdir()
    analyzer_token(folder)
    tokens = [new_token() for _ in range(clients)]
    store = open_store(f"sqlite:{folder / 'shuffler.db'}")
    store.enroll([token_digest(token) for token in tokens])
    store.close()
    party = start_shuffler(folder)
    try:
        with httpx.Client(base_url=party.listening["address"], trust_env=False) as http:
            own = bearer_header((folder / TOKEN_FILE).read_text().strip())
            now = time.time()
            for path, body in (
                ("/v1/plan", analyzer.signed_plan()),
                (f"/v1/keys/{analyzer.key.key_id.hex()}", analyzer.signed_key()),
                (f"/v1/model/{digest(b'm').hex()}", b"m"),
                ("/v1/rounds/0", analyzer.signed_round(0, now, now + 1800)),
            ):
                assert http.put(path, content=body, headers=own, timeout=60).status_code == 201
            heads = chance.random(clients) < 0.5
            # made before: who has just sealed a report finds another processor than who has drawn a cover
            bodies = [[make(0) for _ in range(16)] for make in (analyzer.cover, analyzer.report)]
            took = [
                _seconds(http, token, bodies[int(one)][place % 16])
                for place, (token, one) in enumerate(zip(tokens, heads, strict=True))
            ]
    finally:
        party.stop()
    area, spread = auc(took, heads), deviation(heads)
    power = norm.cdf((0.59 - 0.5 - BAND) / spread)
    print(f"area {area:.4f} of {clients} answers, deviation {spread:.4f}, power {power:.4f}")
    assert power > 0.99
    assert abs(area - 0.5) <= BAND


def _seconds(http: httpx.Client, token: str, body: bytes) -> float:
    began = time.perf_counter()
    answer: Any = http.put("/v1/rounds/0/report", content=body, headers=bearer_header(token), timeout=60)
    took = time.perf_counter() - began
    assert answer.status_code == 202
    return took


# --- over real connections --------------------------------------------------------------------


class Rewritten(httpx.AsyncBaseTransport):
    """Real connections of one device's own, to the port where the shuffler is."""

    def __init__(self, port: int) -> None:
        self._port, self._inner = port, httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.url = request.url.copy_with(port=self._port)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


class Connected(Watched):
    """The same fleet over sockets: the watcher also sees which connection each request takes."""

    def __init__(self, folder: Path, **fleet: Any) -> None:
        super().__init__(folder, virtual=False, **fleet)
        self.ports: dict[tuple[str, int], list[int]] = {}
        self.before: dict[int, int] = {}
        self.connections: dict[tuple[str, int], tuple[int, int, int]] = {}
        """By client and round: connections used, whether the envelope took the model's, requests on it before."""

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        path, port = scope["path"], scope["client"][1]
        request = httpx.Request(scope["method"], f"http://x{path}", headers=scope["headers"], content=body)
        who = request.headers["authorization"], self._round()
        used = self.ports.setdefault(who, [])
        used.append(port)
        if path.endswith("/report"):
            self.connections[who] = len(set(used)), int(used[-1] == used[-2]), self.before.get(port, 0)
        self.before[port] = self.before.get(port, 0) + 1
        answer = self._answer(request)
        length = [(b"content-length", str(len(answer.content)).encode())]
        await send({"type": "http.response.start", "status": answer.status_code, "headers": length})
        await send({"type": "http.response.body", "body": answer.content})

    async def _play(self) -> None:
        opened = listen("127.0.0.1", 0)
        config = uvicorn.Config(
            self._app, timeout_keep_alive=1, log_config=None, lifespan="off", ws="none", interface="asgi3"
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([opened]))
        self.began = self.now() + 0.5
        async with contextlib.AsyncExitStack() as lines:
            for number in range(self.clients):
                own = httpx.AsyncClient(transport=Rewritten(opened.getsockname()[1]))
                self.agents.append(self._agent(number, await lines.enter_async_context(own)))
            running = [asyncio.create_task(agent.run()) for agent in self.agents]
            await asyncio.sleep(1.2 * self.seconds * self.rounds + self.seconds)
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        server.should_exit = True
        await serving


@pytest.mark.slow
def test_connections_do_not_show_the_coin_or_who_fails(tmp_path: Path) -> None:
    """Real sockets, one pool a device, half of the tasks failing; connections close after a second without use."""
    fleet = {"clients": 2 * CLIENTS, "rounds": ROUNDS // 2, "failing": 0.5}
    watched = Connected(tmp_path, task_seconds=0.1, seconds=4.0, **fleet)
    watched.play()
    heads, kept = [], []
    for agent in watched.agents:
        coins = _coins(watched, agent)
        for number, coin in enumerate(coins):
            who = f"Bearer {agent.config.token}", number
            if coin is not None and who in watched.connections:
                heads.append(coin)
                kept.append((*watched.connections[who], watched.sizes[who], watched.times[who][-1]))
    names = ("connections", "same as the model's", "requests before", "size", "sent")
    found = {name: auc([one[place] for one in kept], heads) for place, name in enumerate(names)}
    spread = deviation(heads)
    power = norm.cdf((LEAK - 0.5 - BAND) / spread)
    print(f"{len(kept)} envelopes, deviation {spread:.4f}, power {power:.4f} against {LEAK}: {found}")
    assert sum(agent.counts.failures for agent in watched.agents) > 0
    assert power > 0.99
    assert all(abs(area - 0.5) <= BAND for area in found.values()), found


def _coins(watched: Watched, agent: Any) -> list[bool | None]:
    ledger, plan_id = ClientLedger(agent.config.state / LEDGER, look=True), watched.world.plan.id.hex()
    return [ledger.reported(plan_id, number) for number in range(watched.rounds)]
