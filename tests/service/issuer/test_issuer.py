"""The issuer's rules: one token for each client and round, durable, and nothing for strangers."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.issuer.core import Issuer
from dpcheckin.service.issuer.store import Asked, IssuerStore
from dpcheckin.service.storage.database import StorageBusy, StorageFailure
from dpcheckin.service.wire.canonical import canonical
from dpcheckin.service.wire.problems import Malformed, Problem, Refusal
from dpcheckin.service.wire.signing import identity_from_seed, read_signed_bytes, signed_bytes
from dpcheckin.service.wire.tokens import CrowdDocument, Token, TokenKeysDocument, TokenRequest
from service.issuer_world import ANALYZER, ISSUER, ISSUER_IDENTITY, IssuerWorld, issued_plan, use_pooled_keys
from service.plans import plan

ANN, BEN = b"a" * 16, b"b" * 16


@pytest.fixture
def world(tmp_path: Path) -> Iterator[IssuerWorld]:
    made = IssuerWorld(tmp_path)
    yield made
    made.store.close()


def refused(problem: Problem) -> "pytest.RaisesExc[Refusal]":
    return pytest.raises(Refusal, match=problem.slug)


def test_a_token_holds_for_its_round_and_plan_and_for_no_other(world: IssuerWorld) -> None:
    token = world.token(ANN, 1)
    token.check(world.key(1), world.plan.id, 1)
    assert Token.from_bytes(token.to_bytes()) == token
    other = issued_plan(nonce="11" * 16)
    for key, plan_id, number in (
        (world.key(0), world.plan.id, 1),  # another round's key
        (world.key(1), world.plan.id, 0),  # said to be of another round
        (world.key(1), other.id, 1),  # of another plan
    ):
        with pytest.raises(Malformed, match="does not hold"):
            token.check(key, plan_id, number)


def test_tokens_cannot_be_saved_up_for_one_round(world: IssuerWorld) -> None:
    """A client that has a token for round 1 signed in the place of round 0's has nothing."""
    fresh, hidden = world.blinded(1, key=world.key(0))
    (signed,) = world.ask(ANN, [0], [hidden.message])
    assert signed is not None
    root = int.from_bytes(signed, "big") * hidden.inverse % world.key(0).modulus
    with pytest.raises(Malformed, match="does not hold"):
        Token(fresh, root.to_bytes(256, "big")).check(world.key(1), world.plan.id, 1)


def test_a_second_token_for_one_round_is_refused(world: IssuerWorld) -> None:
    first, second = world.blinded(0)[1].message, world.blinded(0)[1].message
    answer = world.ask(ANN, [0], [first])
    assert world.ask(ANN, [0], [first]) == answer, "the same question has the same answer"
    with refused(Problem.CONFLICT):
        world.ask(ANN, [0], [second])
    later = world.blinded(1)[1].message
    assert [one is None for one in world.ask(ANN, [0, 1], [second, later])] == [True, False]
    assert world.ask(BEN, [0], [second])[0] is not None, "another client has its own"


def test_what_was_issued_survives_a_crash(world: IssuerWorld) -> None:
    _, hidden = world.blinded(0)
    before, keys = world.ask(ANN, [0], [hidden.message]), world.keys()
    world.restart()
    assert world.keys() == keys
    assert world.ask(ANN, [0], [hidden.message]) == before
    with refused(Problem.CONFLICT):
        world.ask(ANN, [0], [world.blinded(0)[1].message])


def test_it_is_written_down_before_it_is_signed(world: IssuerWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash while signing leaves the row: a second, different token stays refused."""

    class Crash(BaseException):
        pass

    def crash(*_: object) -> bytes:
        raise Crash

    _, hidden = world.blinded(0)
    with monkeypatch.context() as patch:
        patch.setattr("dpcheckin.service.issuer.private_keys.PrivateKey.blind_sign", crash)
        with pytest.raises(Crash):
            world.ask(ANN, [0], [hidden.message])
    world.restart()
    with refused(Problem.CONFLICT):
        world.ask(ANN, [0], [world.blinded(0)[1].message])
    assert world.ask(ANN, [0], [hidden.message])[0] is not None


def test_the_window_moves_forward_and_past_keys_are_destroyed(world: IssuerWorld) -> None:
    plan_id, third = world.plan.id, world.key(2).to_bytes()
    assert world.keys().rounds == range(0, 3)
    assert world.issuer.open_round(plan_id, 0) == world.key(0).to_bytes()
    past = world.blinded(0)[1].message
    assert world.issuer.open_round(plan_id, 2) == third, "a key that was announced stays"
    assert world.keys().rounds == range(2, 5)
    with refused(Problem.NOT_FOUND):
        world.issuer.open_round(plan_id, 1)
    with refused(Problem.CONFLICT):
        world.ask(ANN, [0], [past])
    with sqlite3.connect(world.file) as raw:
        assert raw.execute("SELECT min(round) FROM keys").fetchone() == (2,)
    raw.close()


def test_rounds_beyond_the_window_have_no_tokens_yet(world: IssuerWorld) -> None:
    with refused(Problem.CONFLICT):
        world.ask(ANN, [3], [bytes(256)])


def test_new_keys_make_old_tokens_worthless_and_new_ones_possible(world: IssuerWorld) -> None:
    token, old = world.token(ANN, 0), world.key(0)
    assert world.store.forget_keys(b"?" * 32) == 0
    assert world.store.forget_keys(world.plan.id) == 3
    assert world.key(0) != old
    with pytest.raises(Malformed):
        token.check(world.key(0), world.plan.id, 0)
    world.token(ANN, 0).check(world.key(0), world.plan.id, 0)
    assert world.store.forget_keys() == 3


def test_only_plans_of_this_issuer_signed_by_the_analyzer_are_served(world: IssuerWorld) -> None:
    stranger = identity_from_seed(b"s" * 32)
    for body, problem in (
        (signed_bytes(world.plan, stranger), Problem.MALFORMED),
        (signed_bytes(plan(), ANALYZER), Problem.CONFLICT),
        (signed_bytes(issued_plan(issuer="00" * 32), ANALYZER), Problem.CONFLICT),
        (b"{", Problem.MALFORMED),
    ):
        with refused(problem):
            world.issuer.register(body)
    unknown = issued_plan(nonce="22" * 16).id
    for ask in (
        lambda: world.issuer.keys_page(unknown),
        lambda: world.issuer.open_round(unknown, 0),
        lambda: world.issuer.issue(ANN, unknown, canonical({"rounds": [0], "blinded": ["00" * 256]})),
    ):
        with refused(Problem.NOT_FOUND):
            ask()


@pytest.mark.parametrize(
    "request_",
    [
        [],
        {"rounds": [0]},
        {"rounds": [0], "blinded": []},
        {"rounds": [0], "blinded": ["00"]},
        {"rounds": [0, 0], "blinded": ["00" * 256] * 2},
        {"rounds": [-1], "blinded": ["00" * 256]},
        {"rounds": [True], "blinded": ["00" * 256]},
        {"rounds": [2**32], "blinded": ["00" * 256]},
        {"rounds": 0, "blinded": ["00" * 256]},
        {"rounds": [0], "blinded": ["FF" * 256]},
        {"rounds": [0], "blinded": ["ff" * 256]},  # not below the modulus
        {"rounds": [0] * 1025, "blinded": ["00" * 256] * 1025},
    ],
)
def test_malformed_requests_are_refused(world: IssuerWorld, request_: object) -> None:
    with refused(Problem.MALFORMED):
        world.issuer.issue(ANN, world.plan.id, canonical(request_))


def test_documents_and_requests_are_read_strictly() -> None:
    request = TokenRequest([3, 1], [b"a" * 256, b"b" * 256])
    assert TokenRequest.from_object(request.to_object()) == request
    good = {"type": "token-keys", "plan": "00" * 32, "first": 0, "keys": ["00" * 256]}
    assert TokenKeysDocument.from_object(good).to_object() == good
    for bad in (
        {"keys": []},
        {"keys": ["00"]},
        {"keys": "00"},
        {"first": 2**32 - 1, "keys": ["00" * 256] * 2},
        {"more": 1},
    ):
        with pytest.raises(Malformed):
            TokenKeysDocument.from_object({**good, **bad})
    with pytest.raises(Malformed, match="288 bytes"):
        Token.from_bytes(bytes(287))


def test_clients_come_and_go(world: IssuerWorld) -> None:
    before = world.store.clients_version()
    (client,) = world.store.enroll([b"d" * 32])
    assert world.store.clients() == {b"d" * 32: client}
    assert world.store.clients_version() != before
    assert world.store.revoke(client) and not world.store.revoke(client)
    assert world.store.clients() == {}


def test_a_store_that_cannot_be_used_says_so_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(StorageFailure, match="cannot open"):
        IssuerStore(tmp_path / "missing" / "issuer.db")
    newer = tmp_path / "newer.db"
    IssuerStore(newer).close()
    with sqlite3.connect(newer) as raw:
        raw.execute("UPDATE about SET value = '9' WHERE name = 'version'")
    raw.close()
    with pytest.raises(StorageFailure, match="version 9"):
        IssuerStore(newer)
    (tmp_path / "junk.db").write_bytes(b"junk" * 2000)
    with pytest.raises(StorageFailure, match="not a database"):
        IssuerStore(tmp_path / "junk.db")


def test_a_busy_store_says_busy(world: IssuerWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.store._database.writer.execute("PRAGMA busy_timeout = 10")
    other = sqlite3.connect(world.file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageBusy):
        world.store.issue(world.plan.id, ANN, [Asked(0, b"x")])
    other.close()


def test_the_window_has_a_size(world: IssuerWorld) -> None:
    for ahead in (0, 1025):
        with pytest.raises(InvalidParameter, match="rounds_ahead"):
            Issuer(world.store, ISSUER, ahead=ahead)
    assert json.loads(world.issuer.keys_page(world.plan.id))["document"]["first"] == 0


def test_the_crowd_of_a_round_is_who_may_have_a_token_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signed; who was revoked with a token counts in that round, so that nobody honest is called one too many."""
    use_pooled_keys(monkeypatch)
    world = IssuerWorld(tmp_path)
    first, _, third = world.store.enroll([bytes([number]) * 32 for number in range(3)])
    world.issuer.open_round(world.plan.id, 1)
    world.token(first, 1)
    world.store.revoke(first)

    def crowd(number: int) -> int:
        body = world.issuer.crowd(world.plan.id, number)
        said = read_signed_bytes(CrowdDocument, body, bytes.fromhex(ISSUER_IDENTITY))
        assert (said.plan, said.round) == (world.plan.id.hex(), number)
        return said.clients

    assert (crowd(1), crowd(2)) == (3, 2)
    world.store.revoke(third)
    assert (crowd(1), crowd(2)) == (2, 1)
    with pytest.raises(Refusal, match="not-found"):
        world.issuer.crowd(world.plan.id, 0)
    world.store.close()
