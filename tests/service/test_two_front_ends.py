"""Two honest front ends over one PostgreSQL behind a balancer that sends every request to the other one.

What one of them has seen the other hears of a moment later: a plan page may lack the key of the round, a round may be
unknown. Nobody ends for that.
"""

import asyncio
import itertools
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from dpcheckin.deployment.processes import Party, start, start_shuffler
from dpcheckin.service.analyzer import state
from dpcheckin.service.client.daemon import LEDGER
from dpcheckin.service.client.ledger import ClientLedger
from dpcheckin.service.shuffler.server import open_store
from dpcheckin.service.storage.identity import TOKEN_FILE, analyzer_token
from dpcheckin.service.web.server import listen
from dpcheckin.service.wire.credentials import new_token, token_digest
from service.plans import PRIVUNIT, plan_object

CLIENTS = 8
KEPT = ("authorization", "content-type", "accept-encoding")


class Balancer:
    """One address for several; the next request always goes to the next of them."""

    def __init__(self, *addresses: str) -> None:
        self._next, self.served = itertools.cycle(addresses), dict.fromkeys(addresses, 0)
        opened = listen("127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{opened.getsockname()[1]}"
        app = Starlette()
        app.add_route("/{path:path}", self._pass_on, methods=["GET", "PUT", "POST", "DELETE"])
        self._server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", ws="none"))
        self._thread = threading.Thread(target=lambda: asyncio.run(self._server.serve([opened])))
        self._thread.start()

    async def _pass_on(self, request: Request) -> Response:
        where = next(self._next)
        self.served[where] += 1
        url = where + request.url.path + (f"?{request.url.query}" if request.url.query else "")
        headers = {name: request.headers[name] for name in KEPT if name in request.headers}
        async with httpx.AsyncClient(trust_env=False, timeout=60.0) as http:
            got = await http.request(request.method, url, content=await request.body(), headers=headers)
        kept = {name: value for name, value in got.headers.items() if name in ("content-type", "date")}
        return Response(got.content, got.status_code, kept)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Party | Balancer]]:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent), prepend=os.pathsep)
    made: list[Party | Balancer] = []
    yield made
    for one in reversed(made):
        one.stop()


def outcomes_in(folder: Path) -> Counter[str]:
    """How the rounds ended so far. On a busy machine some are void: before everybody is there, for one."""
    kept = state.load(folder)
    return Counter() if kept is None else Counter(row["state"] for row in kept.log)


@pytest.mark.parametrize("rounds", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_no_client_ends_between_two_front_ends(
    tmp_path: Path, postgres_address: str, rounds: int, stopped: list[Party | Balancer]
) -> None:
    """Keys rotate every other round, so that pages and rounds are often out of step."""
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in (*folders, tmp_path / "analyzer", tmp_path / "clients"):
        folder.mkdir(mode=0o700)
    analyzer_token(folders[0])
    (folders[1] / TOKEN_FILE).write_bytes((folders[0] / TOKEN_FILE).read_bytes())
    (folders[1] / TOKEN_FILE).chmod(0o600)
    tokens = [new_token() for _ in range(CLIENTS)]
    store = open_store(postgres_address)
    store.enroll([token_digest(token) for token in tokens])
    store.close()
    fronts = [start_shuffler(folder, postgres_address) for folder in folders]
    stopped.extend(fronts)
    balancer = Balancer(*(str(front.listening["address"]) for front in fronts))
    stopped.append(balancer)
    settings = {
        "shuffler": balancer.address,
        "analyzer_token": (folders[0] / TOKEN_FILE).read_text().strip(),
        "tokens": tokens,
        "rotate_every": 2,
        "plan": plan_object(
            population=3,
            rate=0.5,
            rounds=2 * rounds,
            epsilon_budget=1e5,
            round_seconds=4.0,
            randomizer={**PRIVUNIT, "local_epsilon": 1.0},
        ),
    }
    (tmp_path / "parties.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "service.minimal_parties"]
    analyzer = start("analyzer", [*command, "analyzer", tmp_path], tmp_path / "analyzer.log")
    agents = start("agents", [*command, "agents", tmp_path], tmp_path / "agents.log", ready="ready")
    stopped.extend([analyzer, agents])
    limit = time.monotonic() + 60 + 40 * rounds
    while (outcomes := outcomes_in(tmp_path / "analyzer")).total() < rounds or outcomes["released"] < 0.5 * rounds:
        assert analyzer.process.poll() is None, analyzer.log.read_text()[-2000:]
        assert time.monotonic() < limit, analyzer.log.read_text()[-2000:]
        time.sleep(0.5)
    assert agents.process.poll() is None, agents.log.read_text()[-2000:]
    agents.stop()
    taken = []
    for number in range(CLIENTS):
        ledger = ClientLedger(tmp_path / "clients" / str(number) / LEDGER, look=True)
        taken.append(ledger.taken)
    log = agents.log.read_text()
    behind = log.count("does not show the key of the round")
    print(f"{dict(outcomes)}, {balancer.served} requests, rounds taken by each client {taken}, pages behind: {behind}")
    assert min(balancer.served.values()) > 0.45 * sum(balancer.served.values())
    assert min(taken) >= 0.5 * outcomes["released"], "everybody goes on to the end"
