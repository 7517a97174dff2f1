"""Which pages may ask a party: those on the operator's list, and no other, as a browser would find out."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.issuer import settings as issuer_settings
from dpcheckin.service.shuffler import settings as shuffler_settings
from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.http import ShufflerFront, shuffler_app
from dpcheckin.service.shuffler.stores.sqlite import MemoryStore
from dpcheckin.service.web.origins import CrossOrigin, read_origins
from dpcheckin.service.wire.credentials import token_digest
from service.asgi import Reply, ask
from service.shuffler_world import Analyzer, Clock, SeededChance
from service.web.test_front import CLIENT, TOKEN

OURS, FOREIGN = b"https://survey.example", b"https://survey.example.evil"
ASKING = [(b"access-control-request-method", b"PUT"), (b"access-control-request-headers", b"authorization")]


def answer(app: Any, method: str, path: str, *headers: tuple[bytes, bytes]) -> Reply:
    found = asyncio.run(ask(app, method, path, headers))
    assert found is not None
    return found


@pytest.fixture
def app() -> Any:
    store = MemoryStore()
    store.enroll([token_digest(CLIENT)])
    core = Shuffler(store, clock=Clock(), chance=SeededChance(), needs_identity=False)
    front = ShufflerFront(core, token_digest(TOKEN))
    front.refresh_clients()
    core.publish_plan(Analyzer.of().signed_plan())
    return shuffler_app(front)


def test_a_page_on_the_list_may_ask_and_read(app: Any) -> None:
    allowed = CrossOrigin(app, frozenset([OURS]))
    before = answer(allowed, "OPTIONS", "/v1/rounds/3/report", (b"origin", OURS), *ASKING)
    assert (before.status, before.body) == (204, b"")
    assert before.headers[b"access-control-allow-origin"] == OURS
    assert before.headers[b"access-control-allow-methods"] == b"GET, PUT, POST"
    assert before.headers[b"vary"] == b"origin"
    plan = answer(allowed, "GET", "/v1/plan", (b"origin", OURS), (b"authorization", f"Bearer {CLIENT}".encode()))
    assert plan.status == 200
    assert plan.headers[b"access-control-allow-origin"] == OURS
    assert b"date" in plan.headers[b"access-control-expose-headers"]


def test_a_page_reads_refusals_too(app: Any) -> None:
    """It has to see that a round is closed, or that its token is not known."""
    allowed = CrossOrigin(app, frozenset([OURS]))
    for method, path in (("GET", "/v1/plan"), ("PUT", "/v1/rounds/3/report")):
        refused = answer(allowed, method, path, (b"origin", OURS))
        assert refused.status == 401
        assert refused.headers[b"access-control-allow-origin"] == OURS


@pytest.mark.parametrize("origin", [FOREIGN, b"null", b"http://survey.example", b"https://survey.example:8443", b""])
def test_no_other_page_is_told_anything(app: Any, origin: bytes) -> None:
    allowed = CrossOrigin(app, frozenset([OURS]))
    for method, path, more in (("OPTIONS", "/v1/plan", ASKING), ("GET", "/v1/plan", [])):
        told = answer(
            allowed, method, path, (b"origin", origin), (b"authorization", f"Bearer {CLIENT}".encode()), *more
        )
        assert not [name for name in told.headers if name.startswith(b"access-control-")]
        bare = answer(app, method, path, (b"origin", origin), (b"authorization", f"Bearer {CLIENT}".encode()), *more)
        assert told == bare


def test_without_a_list_nothing_is_added(app: Any) -> None:
    found = answer(app, "OPTIONS", "/v1/plan", (b"origin", OURS), *ASKING)
    assert found.status == 404
    assert not [name for name in found.headers if name.startswith(b"access-control-")]


def test_report_and_cover_are_asked_about_alike(app: Any) -> None:
    """What is answered before a body is sent cannot depend on the body."""
    allowed = CrossOrigin(app, frozenset([OURS]))
    asked = [answer(allowed, "OPTIONS", f"/v1/rounds/{n}/report", (b"origin", OURS), *ASKING) for n in (0, 3, 9)]
    assert asked[0] == asked[1] == asked[2]


def test_a_list_is_read_strictly() -> None:
    assert read_origins("") == frozenset()
    assert read_origins("https://a.example, http://localhost:8080,http://127.0.0.1:1") == {
        b"https://a.example", b"http://localhost:8080", b"http://127.0.0.1:1",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["*", "null", "https://*.example", "https://a.example/", "https://A.example", "http://a.example", "a.example"],
)
def test_wildcards_paths_and_plain_http_are_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match="origins"):
        read_origins(f"https://fine.example,{text}")


def test_both_parties_take_the_list_from_their_own_settings(tmp_path: Path) -> None:
    (tmp_path / "shuffler.toml").write_text('origins = "https://a.example"\n', encoding="utf-8")
    (tmp_path / "issuer.toml").write_text('[issuer]\norigins = "https://b.example"\n', encoding="utf-8")
    assert shuffler_settings.load(tmp_path, {"dev": True}, {}).origins == "https://a.example"
    assert issuer_settings.load(tmp_path, {"dev": True}).origins == "https://b.example"
    assert shuffler_settings.Settings(tmp_path, dev=True).origins == ""
