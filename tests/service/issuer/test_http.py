"""The issuer's HTTP interface: who may ask for what, and what strangers and failures look like."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from dpcheckin.service.issuer.core import Issuer
from dpcheckin.service.issuer.http import IssuerFront, issuer_app
from dpcheckin.service.settings import Limits
from dpcheckin.service.storage.database import StorageBusy, StorageFailure
from dpcheckin.service.web.front import admin_app
from dpcheckin.service.wire.canonical import canonical
from dpcheckin.service.wire.credentials import new_token, token_digest
from dpcheckin.service.wire.problems import Problem, Refusal, problem_in
from dpcheckin.service.wire.signing import signed_bytes
from service.issuer_world import ANALYZER, ISSUER, IssuerWorld, issued_plan

CLIENT, OWNER = new_token(), new_token()


class Service:
    """The application over a real issuer."""

    def __init__(self, folder: Path, monotonic: Callable[[], float] = time.monotonic, **limits: Any) -> None:
        self.world = IssuerWorld(folder)
        self.world.store.enroll([token_digest(CLIENT)])
        self.front = IssuerFront(self.world.issuer, token_digest(OWNER), Limits(**limits), monotonic)
        self.front.maintain()
        self.app, self.admin = issuer_app(self.front), admin_app(self.front)
        self.plan = f"/v1/plans/{self.world.plan.id.hex()}"

    def ask(self, method: str, path: str, token: str | None = CLIENT, content: bytes | None = None) -> httpx.Response:
        return self._ask(self.app, method, path, token, content)

    def look(self, path: str) -> httpx.Response:
        return self._ask(self.admin, "GET", path, None, None)

    @staticmethod
    def _ask(app: Any, method: str, path: str, token: str | None, content: bytes | None) -> httpx.Response:
        async def inside() -> httpx.Response:
            headers = {} if token is None else {"authorization": f"Bearer {token}"}
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://issuer") as http:
                return await http.request(method, path, headers=headers, content=content)

        return asyncio.run(inside())

    def request(self, number: int = 0) -> bytes:
        blinded = self.world.blinded(number)[1].message
        return canonical({"rounds": [number], "blinded": [blinded.hex()]})


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path)
    yield made
    made.world.store.close()


def test_the_whole_way(service: Service) -> None:
    plan = signed_bytes(service.world.plan, ANALYZER)
    assert service.ask("PUT", "/v1/plan", OWNER, plan).status_code == 201
    key = service.ask("POST", f"{service.plan}/rounds/0", OWNER).json()["key"]
    keys = service.ask("GET", f"{service.plan}/keys").json()["document"]["keys"]
    assert keys[0] == key
    body = service.request()
    answer = service.ask("POST", f"{service.plan}/tokens", content=body)
    assert answer.status_code == 200
    assert len(answer.json()["signatures"][0]) == 512
    again = service.ask("POST", f"{service.plan}/tokens", content=body)
    assert again.content == answer.content
    second = service.ask("POST", f"{service.plan}/tokens", content=service.request())
    assert problem_in(second.content) is Problem.CONFLICT
    text = service.look("/metrics").text
    assert "dpcheckin_issuer_issued_total 2\n" in text
    assert "dpcheckin_issuer_refused_total 1\n" in text
    assert "dpcheckin_issuer_clients 1\n" in text


def test_strangers_get_nothing_and_roles_do_not_mix(service: Service) -> None:
    plan = signed_bytes(service.world.plan, ANALYZER)
    for method, path, token, content in (
        ("GET", f"{service.plan}/keys", None, None),
        ("GET", f"{service.plan}/keys", new_token(), None),
        ("GET", f"{service.plan}/keys", OWNER, None),
        ("POST", f"{service.plan}/tokens", OWNER, service.request()),
        ("POST", f"{service.plan}/rounds/0", CLIENT, None),
        ("PUT", "/v1/plan", CLIENT, plan),
        ("PUT", "/v1/plan", None, plan),
    ):
        answer = service.ask(method, path, token, content)
        assert answer.status_code == 401, path
        assert answer.content == Problem.UNAUTHORIZED.body()


def test_paths_and_bodies_are_checked(service: Service) -> None:
    other = issued_plan(nonce="33" * 16).id.hex()
    for method, path, token, content, problem in (
        ("GET", f"/v1/plans/{other}/keys", CLIENT, None, Problem.NOT_FOUND),
        ("GET", "/v1/plans/00/keys", CLIENT, None, Problem.NOT_FOUND),
        ("GET", "/v2/keys", CLIENT, None, Problem.NOT_FOUND),
        ("DELETE", f"{service.plan}/keys", CLIENT, None, Problem.NOT_FOUND),
        ("POST", f"{service.plan}/rounds/-1", OWNER, None, Problem.NOT_FOUND),
        ("POST", f"{service.plan}/tokens", CLIENT, b"{", Problem.MALFORMED),
        ("POST", f"{service.plan}/tokens", CLIENT, bytes(2 << 20), Problem.TOO_LARGE),
        ("PUT", "/v1/plan", OWNER, b"9" * 5000, Problem.MALFORMED),
    ):
        answer = service.ask(method, path, token, content)
        assert problem_in(answer.content) is problem, (method, path, answer.content)


def test_new_clients_are_known_and_old_ones_forgotten_after_a_look(service: Service) -> None:
    fresh = new_token()
    (client,) = service.world.store.enroll([token_digest(fresh)])
    assert service.ask("GET", f"{service.plan}/keys", fresh).status_code == 401
    service.front.maintain()
    assert service.ask("GET", f"{service.plan}/keys", fresh).status_code == 200
    service.world.store.revoke(client)
    service.front.maintain()
    assert service.ask("GET", f"{service.plan}/keys", fresh).status_code == 401


def test_who_asks_too_often_waits(tmp_path: Path) -> None:
    service = Service(tmp_path, burst=2, requests_per_second=1e-9, failure_burst=1)
    codes = [service.ask("GET", f"{service.plan}/keys").status_code for _ in range(3)]
    assert codes == [200, 200, 429]
    codes = [service.ask("GET", f"{service.plan}/keys", None).status_code for _ in range(2)]
    assert codes == [401, 429]
    service.world.store.close()


@pytest.mark.parametrize(
    ("failure", "problem", "healthy"),
    [
        (StorageFailure("no disk"), Problem.STORAGE, 503),
        (StorageBusy("locked"), Problem.BUSY, 200),
        (RuntimeError("a bug"), Problem.BUSY, 200),
    ],
)
def test_failures_have_an_answer_and_show(
    service: Service, monkeypatch: pytest.MonkeyPatch, failure: Exception, problem: Problem, healthy: int
) -> None:
    def fail(*_: object) -> Any:
        raise failure

    assert service.look("/healthz").status_code == 200
    monkeypatch.setattr(service.world.store, "next_round", fail)
    answer = service.ask("GET", f"{service.plan}/keys")
    assert problem_in(answer.content) is problem
    if not isinstance(failure, RuntimeError):
        monkeypatch.setattr(service.world.store, "clients_version", fail)
        service.front.maintain()
    assert service.look("/healthz").status_code == healthy


def test_health_tells_the_truth_while_tokens_get_507(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that takes nothing can still be read: only something written ends a failure."""
    now = [0.0]
    service = Service(tmp_path, monotonic=lambda: now[0])
    store, path = service.world.store, f"{service.plan}/tokens"
    healthy = "dpcheckin_issuer_storage_ok"

    def full(*_: object) -> Any:
        raise StorageFailure("SQLite: database or disk is full")

    with monkeypatch.context() as patched:
        for name in ("issue", "probe"):
            patched.setattr(store, name, full)
        assert service.ask("POST", path, content=service.request()).status_code == 507
        for seconds in (0.0, 1.0, 10.0, 20.0):  # looks at the store, and attempts to write
            now[0] = seconds
            service.front.maintain()
            assert service.look("/healthz").status_code == 503
            assert f"{healthy} 0\n" in service.look("/metrics").text
    service.front.maintain()
    assert service.look("/healthz").status_code == 503  # too soon after the last failure
    now[0] = 30.0
    service.front.maintain()
    assert service.look("/healthz").status_code == 200
    service.front.failed(StorageFailure("again"))
    assert service.ask("POST", path, content=service.request()).status_code == 200
    assert f"{healthy} 1\n" in service.look("/metrics").text
    store.close()


def test_a_running_issuer_looks_for_new_clients_itself(service: Service) -> None:
    fresh = new_token()

    async def inside() -> int:
        app = issuer_app(service.front, tick_seconds=0.01)
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://issuer") as http,
        ):
            service.world.store.enroll([token_digest(fresh)])
            for _ in range(1000):
                await asyncio.sleep(0.02)
                answer = await http.get(f"{service.plan}/keys", headers={"authorization": f"Bearer {fresh}"})
                if answer.status_code == 200:
                    break
            return answer.status_code

    assert asyncio.run(inside()) == 200


def test_an_issuer_that_knows_no_analyzer_serves_no_plan(tmp_path: Path) -> None:
    world = IssuerWorld(tmp_path)
    wary = Issuer(world.store, ISSUER, needs_analyzer=True)
    with pytest.raises(Refusal, match="unknown-analyzer"):
        wary.register(signed_bytes(world.plan, ANALYZER))
    world.store.close()
