"""A client's tokens: fetched in advance, never lost, never used twice, of nobody's own key."""

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import SecureSource
from dpcheckin.service.analyzer.batches import BatchReader
from dpcheckin.service.client.config import Limits
from dpcheckin.service.client.connection import IssuerUnreachable, TokenKeeper
from dpcheckin.service.client.core import Action, Refused
from dpcheckin.service.client.daemon import Clock, Daemon
from dpcheckin.service.client.timekeeping import Timekeeper
from dpcheckin.service.client.tokens import SECRET_FILE, TOKENS_FILE, TokenWallet
from dpcheckin.service.issuer.http import IssuerFront, issuer_app
from dpcheckin.service.settings import IssuerAccess
from dpcheckin.service.wire.credentials import new_token, token_digest
from dpcheckin.service.wire.documents import RoundDocument
from dpcheckin.service.wire.problems import Problem
from dpcheckin.service.wire.signing import identity_from_seed, signed_bytes
from dpcheckin.service.wire.tokens import Token, TokenKeysDocument
from service.client_world import WIDE, Coin, World
from service.issuer_world import ISSUER, ISSUER_IDENTITY, IssuerWorld, issued_plan, use_pooled_keys
from service.plans import plan

ACCESS = new_token()
ADDRESS = "http://127.0.0.1:2"


class Fetching:
    """A real issuer behind its real application, and one client of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "state"
        self.issuing = IssuerWorld(folder, ahead=4)
        self.plan = self.issuing.plan
        self.issuing.store.enroll([token_digest(ACCESS)])
        front = IssuerFront(self.issuing.issuer, b"analyzer")
        front.refresh_clients()
        self.app = issuer_app(front)
        self.requests: list[str] = []

    def access(self, token: str = ACCESS, identity: str = ISSUER_IDENTITY) -> IssuerAccess:
        return IssuerAccess(ADDRESS, token, bytes.fromhex(identity))

    def wallet(self) -> TokenWallet:
        return TokenWallet(self.folder)

    def transport(self) -> httpx.AsyncBaseTransport:
        real, seen = httpx.ASGITransport(self.app), self.requests

        class Watched(httpx.AsyncBaseTransport):
            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                seen.append(f"{request.method} {request.url.path.split('/')[-1]}")
                return await real.handle_async_request(request)

        return Watched()

    def run(
        self,
        work: Callable[[TokenKeeper], Any],
        wallet: TokenWallet | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Clock | None = None,
        **access: str,
    ) -> Any:
        async def inside() -> Any:
            time = Timekeeper(clock or Clock(), SecureSource())
            async with httpx.AsyncClient(transport=transport or self.transport()) as http:
                return await work(TokenKeeper(self.access(**access), wallet or self.wallet(), http, time, 1.0))

        return asyncio.run(inside())

    def round(self, number: int, key: str | None = None) -> RoundDocument:
        key = key or self.issuing.keys().key_of(number)
        named = (self.plan.id.hex(), number, "00" * 32, "00" * 8, 0.0, 1.0)
        return RoundDocument(*named, token_key=key)


@pytest.fixture
def fetching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fetching]:
    use_pooled_keys(monkeypatch)
    made = Fetching(tmp_path)
    yield made
    made.issuing.store.close()


def test_tokens_of_all_rounds_ahead_are_fetched_at_once_and_hold(fetching: Fetching) -> None:
    wallet, plan_id = fetching.wallet(), fetching.plan.id.hex()
    fetching.run(lambda fetcher: fetcher.refill(fetching.plan, 0), wallet)
    assert fetching.requests == ["GET keys", "POST tokens"]
    keys = fetching.issuing.keys()
    for number in range(4):
        raw = wallet.token(plan_id, number, keys.key_of(number))
        assert raw is not None
        token = Token.from_bytes(raw)
        token.check(fetching.issuing.key(number), fetching.plan.id, number)
    assert wallet.count_from(plan_id, 1) == 3
    assert wallet.count_from("00" * 32, 0) == 0


def test_a_filled_wallet_asks_again_when_half_is_gone(fetching: Fetching) -> None:
    async def work(fetcher: TokenKeeper) -> list[int]:
        asked = []
        for number in range(4):
            await fetcher.refill(fetching.plan, number)
            asked.append(len(fetching.requests))
        return asked

    assert fetching.run(work) == [2, 2, 3, 4], "nothing is missing: only the keys are looked at"


def test_a_killed_client_asks_in_the_same_words_and_gets_the_same_token(fetching: Fetching) -> None:
    """Killed after the issuer signed and before the answer came: no token is lost."""
    keys = fetching.issuing.keys()
    before = fetching.wallet().request(keys, [0, 1])
    answers = fetching.issuing.ask(next(iter(fetching.issuing.store.clients().values())), before.rounds, before.blinded)
    again = fetching.wallet()
    assert again.request(keys, [0, 1]) == before
    assert again.take_in(keys, [0, 1], answers) == 2
    reopened = fetching.wallet()
    for number in (0, 1):
        held = reopened.token(keys.plan, number, keys.key_of(number))
        assert held == again.token(keys.plan, number, keys.key_of(number)) is not None


def test_two_clients_and_two_rounds_have_nothing_in_common(fetching: Fetching, tmp_path: Path) -> None:
    keys = fetching.issuing.keys()
    one, other = fetching.wallet(), TokenWallet(tmp_path / "other")
    seen = [*one.request(keys, [0, 1]).blinded, *other.request(keys, [0, 1]).blinded]
    assert len(set(seen)) == 4


async def token_for(keeper: TokenKeeper, announced: RoundDocument) -> bytes | None:
    await keeper.look_for(announced)
    assert announced.token_key is not None
    return keeper.wallet.token(announced.plan, announced.round, announced.token_key)


def test_a_token_of_another_key_is_not_used(fetching: Fetching) -> None:
    """By a key of its own a client could be told from all others."""
    wallet = fetching.wallet()
    fetching.run(lambda fetcher: fetcher.fetch(fetching.plan.id.hex()), wallet)
    other = fetching.issuing.keys().key_of(1)
    found = fetching.round(0, key=other)
    assert fetching.run(lambda fetcher: token_for(fetcher, found), wallet) is None


def test_after_the_issuer_changed_its_keys_new_tokens_are_fetched(fetching: Fetching) -> None:
    wallet = fetching.wallet()
    fetching.run(lambda fetcher: fetcher.fetch(fetching.plan.id.hex()), wallet)
    old = fetching.issuing.keys()
    fetching.issuing.store.forget_keys()
    found = fetching.round(0)
    assert found.token_key != old.key_of(0)
    token = fetching.run(lambda fetcher: token_for(fetcher, found), wallet)
    assert token is not None
    Token.from_bytes(token).check(fetching.issuing.key(0), fetching.plan.id, 0)
    assert wallet.token(old.plan, 0, old.key_of(0)) is None


def test_past_rounds_and_other_plans_are_forgotten(fetching: Fetching) -> None:
    wallet, plan_id = fetching.wallet(), fetching.plan.id.hex()
    fetching.run(lambda fetcher: fetcher.fetch(plan_id), wallet)
    fetching.issuing.issuer.open_round(fetching.plan.id, 2)
    fetching.run(lambda fetcher: fetcher.fetch(plan_id), wallet)
    assert wallet.count_from(plan_id, 0) == 4
    kept = json.loads((fetching.folder / TOKENS_FILE).read_text())
    assert [one["round"] for one in kept["tokens"]] == [2, 3, 4, 5]
    other = TokenKeysDocument("11" * 32, 0, [fetching.issuing.keys().key_of(2)])
    wallet.take_in(other, [], [])
    assert wallet.count_from(plan_id, 0) == 0


def test_wrong_answers_are_no_tokens(fetching: Fetching) -> None:
    wallet, keys = fetching.wallet(), fetching.issuing.keys()
    assert wallet.take_in(keys, [0, 1, 2], [bytes(256), None, b"short"]) == 0
    assert wallet.missing(keys) == [0, 1, 2, 3]


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"plan":"00"}', b'{"plan":"' + b"00" * 32 + b'"}', b"\xff"])
def test_a_damaged_file_of_tokens_is_fetched_again(fetching: Fetching, content: bytes) -> None:
    plan_id = fetching.plan.id.hex()
    fetching.run(lambda fetcher: fetcher.fetch(plan_id))
    (fetching.folder / TOKENS_FILE).write_bytes(content)
    wallet = fetching.wallet()
    assert wallet.count_from(plan_id, 0) == 0
    assert fetching.run(lambda fetcher: fetcher.fetch(plan_id), wallet) == 4


@pytest.mark.parametrize("content", ["", "zz", "00"])
def test_a_damaged_secret_is_an_error(fetching: Fetching, content: str) -> None:
    fetching.wallet()
    assert (fetching.folder / SECRET_FILE).stat().st_mode & 0o077 == 0
    (fetching.folder / SECRET_FILE).write_text(content)
    with pytest.raises(InvalidParameter, match=r"tokens\.key"):
        fetching.wallet()


# --- an issuer that cannot be believed --------------------------------------------------------


def test_an_issuer_that_refuses_is_asked_later(fetching: Fetching) -> None:
    plan_id = fetching.plan.id.hex()
    with pytest.raises(IssuerUnreachable, match="does not know this client"):
        fetching.run(lambda fetcher: fetcher.fetch(plan_id), token=new_token())
    with pytest.raises(IssuerUnreachable, match="not-found"):
        fetching.run(lambda fetcher: fetcher.fetch("00" * 32))
    with pytest.raises(IssuerUnreachable, match="signature"):
        fetching.run(lambda fetcher: fetcher.fetch(plan_id), identity="00" * 31 + "01")


def hostile(keys: Any, tokens: Any = None) -> httpx.MockTransport:
    def answer(request: httpx.Request) -> httpx.Response:
        if isinstance(keys, Exception):
            raise keys
        body = keys if request.method == "GET" else tokens
        return httpx.Response(200 if isinstance(body, bytes) else body, content=body)

    return httpx.MockTransport(answer)


def test_answers_that_are_none_are_not_believed(fetching: Fetching) -> None:
    plan_id, page = fetching.plan.id.hex(), fetching.issuing.issuer.keys_page(fetching.plan.id)
    even = TokenKeysDocument(plan_id, 0, ["ff" * 255 + "fe"])
    for transport, said in (
        (hostile(httpx.ConnectError("away")), "ConnectError"),
        (hostile(b"<html>"), "exactly the fields"),
        (hostile(signed_bytes(TokenKeysDocument("00" * 32, 0, even.keys), ISSUER)), "another plan"),
        (hostile(signed_bytes(even, identity_from_seed(b"x" * 32))), "signature"),
        (hostile(signed_bytes(even, ISSUER)), "modulus"),
        (hostile(page, b"[]"), "one signature for each"),
        (hostile(page, b'{"signatures":["00"]}'), "one signature for each"),
        (hostile(page, b'{"signatures":["00",null,null,null]}'), "256 bytes"),
        (hostile(page, b"\xff"), "JSON"),
    ):
        with pytest.raises(IssuerUnreachable, match=said):
            fetching.run(lambda fetcher: fetcher.fetch(plan_id), transport=transport)


@pytest.mark.parametrize(
    ("answer", "said", "pauses"),
    [
        (
            httpx.Response(401, content=Problem.UNAUTHORIZED.body()),
            "the issuer does not know this client's access token; asking again in about 60 seconds",
            (60.0, 3600.0),
        ),
        (httpx.ConnectError("refused"), "trying again in about 1.0 seconds: ConnectError", (1, 30)),
        (httpx.Response(502, content=b"<html>"), "trying again in about 1.0 seconds: 502", (1, 30)),
    ],
    ids=["unknown", "away", "another"],
)
def test_an_issuer_that_has_no_tokens_for_us_is_asked_later_and_later(
    fetching: Fetching,
    answer: httpx.Response | Exception,
    said: str,
    pauses: tuple[float, float],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A day of looks, one a second: few requests, and the first good answer ends the pauses."""
    now, real = [0.0], fetching.transport()
    asked: list[float] = []

    class Issuer(httpx.AsyncBaseTransport):
        away = True

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if not self.away:
                return await real.handle_async_request(request)
            asked.append(now[0])
            if isinstance(answer, Exception):
                raise answer
            return httpx.Response(answer.status_code, content=answer.content)

    issuer, found = Issuer(), fetching.round(0)

    async def work(keeper: TokenKeeper) -> None:
        for second in range(86_400):
            now[0] = float(second)
            await keeper.refill(fetching.plan, 0)
            await keeper.look_for(found)
        issuer.away, now[0] = False, now[0] + 2 * pauses[1]
        await keeper.refill(fetching.plan, 0)
        assert keeper.wallet.count_from(fetching.plan.id.hex(), 0) == 4

    fetching.run(work, transport=issuer, clock=Clock(lambda: now[0]))
    between = np.diff(asked)
    assert said in caplog.text
    assert between[0] <= 1.5 * pauses[0] + 2
    assert np.all(between[20:] >= pauses[1] / 2), "never more often than that"
    assert len(asked) <= 86_400 / (pauses[1] / 2) + 12
    assert ACCESS not in caplog.text


# --- the agent --------------------------------------------------------------------------------


def test_tokens_are_the_owners_decision(tmp_path: Path) -> None:
    access = IssuerAccess(ADDRESS, ACCESS, bytes.fromhex(ISSUER_IDENTITY))
    without = World(tmp_path / "a")
    with pytest.raises(Refused, match="the plan has no issuer"):
        without.agent(issuer=access).read_plan(without.page())
    named = World(tmp_path / "b", issued_plan())
    with pytest.raises(Refused, match="this client's configuration none"):
        named.agent().read_plan(named.page())
    other = World(tmp_path / "c", issued_plan(issuer="22" * 32))
    with pytest.raises(Refused, match="issuer 2222"):
        other.agent(issuer=access).read_plan(other.page())


def test_tokens_that_bind_nobody_are_refused_unless_the_owner_says_otherwise(
    fetching: Fetching, tmp_path: Path
) -> None:
    """A shuffler may drop all but one of the reports of a plan that releases any number."""
    loose = World(tmp_path / "a", issued_plan(minimum_batch=1))
    access = fetching.access()
    with pytest.raises(Refused, match="rounds of 1 reports, this client wants at least 2"):
        loose.agent(issuer=access).read_plan(loose.page())
    bold = World(tmp_path / "b", loose.plan)
    own = Limits(**{**WIDE.__dict__, "minimum_batch": 0})
    bold.agent(own, issuer=access).read_plan(bold.page())


def test_no_token_no_part_in_the_round(fetching: Fetching, tmp_path: Path) -> None:
    """Who cannot report must neither send a cover: it would count as one of the crowd."""
    world = World(tmp_path / "w", fetching.plan)
    agent = world.agent(issuer=fetching.access(), coin=Coin([0.0]))
    agent.read_plan(world.page())
    with pytest.raises(Refused, match="token key exactly when"):
        agent.read_round(world.round())
    key = fetching.issuing.keys().key_of(0)
    found = agent.read_round(world.round(token_key=key))
    assert not agent.has_token(found)
    with pytest.raises(Refused, match="no token for round 0"):
        agent.take_part(found, lambda: np.ones(20))
    assert not agent.is_done(found), "no coin was thrown"
    fetching.run(lambda fetcher: fetcher.fetch(fetching.plan.id.hex()), agent.wallet)
    part = agent.take_part(found, lambda: np.ones(20))
    assert part.action is Action.REPORT
    reader = BatchReader(fetching.plan, found, world.key)
    reader.add(part.envelope)
    assert (reader.reports, dict(reader.dropped)) == (1, {})
    plain = World(tmp_path / "p", plan())
    agent = plain.agent()
    agent.read_plan(plain.page())
    with pytest.raises(Refused, match="token key exactly when"):
        agent.read_round(plain.round(token_key=key))


def test_a_daemon_without_a_token_leaves_the_round_out(fetching: Fetching, tmp_path: Path) -> None:
    """It fetches in advance, joins when it has a token, and sends nothing when it has none."""
    world = World(tmp_path / "w", fetching.plan)
    keys = fetching.issuing.keys()
    rounds = {"now": world.round(0, token_key=keys.key_of(1), opens=0.0, closes=1e9)}
    sent: list[str] = []

    async def shuffler(request: httpx.Request) -> httpx.Response:
        sent.append(request.method)
        path = request.url.path
        pages = {"/v1/plan": world.page(), "/v1/round": rounds["now"]}
        return httpx.Response(202 if request.method == "PUT" else 200, content=pages.get(path, b"a model"))

    async def work() -> Any:
        async with (
            httpx.AsyncClient(transport=httpx.MockTransport(shuffler)) as http,
            httpx.AsyncClient(transport=fetching.transport()) as issuer_http,
        ):
            config = world.agent(issuer=fetching.access()).config

            async def no_sleep(seconds: float) -> None:
                return None

            daemon = Daemon(
                replace(config, state=tmp_path / "d"),
                type("Task", (), {"value": lambda self, model: np.ones(20)})(),
                http,
                Clock(lambda: 10.0, no_sleep),
                issuer_http,
            )
            await daemon.once()
            assert daemon.counts.without_token == 1
            assert "PUT" not in sent and daemon.counts.rounds == 0
            rounds["now"] = world.round(0, token_key=keys.key_of(0), opens=0.0, closes=1e9)
            await daemon.once()
            assert daemon.counts.rounds == 1
            assert sent.count("PUT") == 1
            daemon.close()

    asyncio.run(work())
    assert fetching.requests[:2] == ["GET keys", "POST tokens"], "before any coin"


# --- a folder that was put back in time --------------------------------------------------------


def test_a_folder_put_back_in_time_gets_no_token_and_uses_none(
    fetching: Fetching, caplog: pytest.LogCaptureFixture
) -> None:
    """The issuer knows how far this client had come; a copy of its folder has forgotten what was spent."""
    wallet, plan_id, key = fetching.wallet(), fetching.plan.id.hex(), fetching.issuing.keys().key_of(1)

    def keeper(taken: int) -> Callable[[TokenKeeper], Any]:
        async def work(fetcher: TokenKeeper) -> None:
            fetcher._taken = lambda: taken
            await fetcher.refill(fetching.plan, 0)

        return work

    fetching.run(keeper(7), wallet)
    assert wallet.token(plan_id, 1, key) is not None
    copied = fetching.wallet()  # with all its tokens, as they lay in the folder
    assert copied.token(plan_id, 1, key) is not None

    def away(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("away")

    fetching.run(keeper(6), copied, httpx.MockTransport(away))
    assert copied.token(plan_id, 1, key) is None, "nor while the issuer cannot be asked"
    fetching.run(keeper(6), copied)
    assert copied.token(plan_id, 1, key) is None
    assert "older copy, which has forgotten what was spent; asking again in about 60 seconds" in caplog.text
    fetching.run(keeper(7), copied)  # the right folder again
    assert copied.token(plan_id, 1, key) is not None
    fetching.issuing.restart()
    assert not fetching.issuing.store.has_taken(next(iter(fetching.issuing.store.clients().values())), 6)


def test_a_copy_of_a_client_that_took_part_since_is_stopped_when_it_starts(fetching: Fetching, tmp_path: Path) -> None:
    """The whole client: three rounds, then its folder of before, then its own again."""
    world = World(tmp_path / "w", fetching.plan)
    keys, shown, config = fetching.issuing.keys(), {"round": 0}, world.agent(issuer=fetching.access()).config

    async def shuffler(request: httpx.Request) -> httpx.Response:
        number = shown["round"]
        body = world.round(number, token_key=keys.key_of(number), opens=0.0, closes=1e9)
        pages = {"/v1/plan": world.page(), "/v1/round": body}
        return httpx.Response(202 if request.method == "PUT" else 200, content=pages.get(request.url.path, b"a model"))

    def life(folder: Path, *rounds: int) -> int:
        async def work() -> int:
            async with (
                httpx.AsyncClient(transport=httpx.MockTransport(shuffler)) as http,
                httpx.AsyncClient(transport=fetching.transport()) as issuer_http,
            ):

                async def no_sleep(seconds: float) -> None:
                    return None

                task = type("Task", (), {"value": lambda self, model: np.ones(20)})()
                own = replace(config, state=folder)
                daemon = Daemon(own, task, http, Clock(lambda: 10.0, no_sleep), issuer_http)
                for number in rounds:
                    shown["round"] = number
                    await daemon.once()
                daemon.close()
                return daemon.counts.rounds

        return asyncio.run(work())

    own, copy = tmp_path / "own", tmp_path / "copy"
    assert life(own, 0) == 1
    shutil.copytree(own, copy)
    assert life(own, 1) == 1, "the new life tells of round 0"
    assert life(own) == 0
    assert life(own, 2) == 1, "and this one of 1"
    assert life(copy, 3) == 0, "the copy knows of round 0 only"
    assert life(own, 3) == 1
