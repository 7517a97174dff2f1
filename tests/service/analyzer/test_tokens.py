"""Tokens at the analyzer: a report counts with a good one, once, and never otherwise."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import DaryResponse, SecureSource, described
from dpcheckin.service.analyzer.batches import COPY, FORGED, SPENT, BatchReader, Decoded
from dpcheckin.service.pricing import randomizer_of
from dpcheckin.service.reports import make_envelope
from dpcheckin.service.wire import envelope, payloads
from dpcheckin.service.wire.blind_signatures import finalize
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.documents import PlanDocument, RoundDocument
from dpcheckin.service.wire.envelope import OpeningKey, new_private_key
from dpcheckin.service.wire.problems import Malformed
from dpcheckin.service.wire.tokens import Token, token_message
from service.issuer_world import IssuerWorld, issued_plan, use_pooled_keys
from service.plans import DARY, plan, plan_object

MODEL = digest(b"model")
ROUND = 1


class Batch:
    """A round of a plan with an issuer, and reports for it."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.issuing = IssuerWorld(folder, **changes)
        self.plan = self.issuing.plan
        self.key = OpeningKey(self.plan.suite, new_private_key(self.plan.suite))
        token_key = self.issuing.key(ROUND).to_bytes().hex()
        self.round = RoundDocument(self.plan.id.hex(), ROUND, MODEL.hex(), self.key.key_id.hex(), 0.0, 1.0, token_key)
        self._clients = 0

    def token(self, number: int = ROUND) -> bytes:
        """A fresh client's."""
        self._clients += 1
        return self.issuing.token(self._clients.to_bytes(16, "big"), number).to_bytes()

    def seal(self, token: bytes) -> bytes:
        value = np.array([1]) if self.plan.encoding in (2, 4) else np.ones(20)
        return make_envelope(
            self.plan, randomizer_of(self.plan), ROUND, MODEL, self.key.public_key, value, SecureSource(), token
        )

    def read(self, envelopes: list[bytes], total: bytes | None = None) -> Decoded:
        reader = BatchReader(self.plan, self.round, self.key, total)
        for one in envelopes:
            reader.add(one)
        return reader.result()


@pytest.fixture
def batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Batch]:
    use_pooled_keys(monkeypatch)
    made = Batch(tmp_path)
    yield made
    made.issuing.store.close()


def test_reports_of_surveys_carry_tokens_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_pooled_keys(monkeypatch)
    layout = {"clip": 1.0, "encoding": 4, "dimension": 1}
    batch = Batch(tmp_path, randomizer={**described(DaryResponse(9.0, 5)), **layout})
    decoded = batch.read([batch.seal(batch.token()) for _ in range(3)])
    assert (decoded.reports, decoded.dropped) == (3, 0)
    assert decoded.rows is not None and len(decoded.rows) == 3
    decoded = batch.read([batch.seal(batch.token()), batch.seal(bytes(288))])
    assert decoded.too_few and decoded.rows is None


@pytest.mark.parametrize("changes", [{}, {"randomizer": DARY}, {"suite": 2}], ids=str)
def test_reports_with_good_tokens_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
) -> None:
    use_pooled_keys(monkeypatch)
    batch = Batch(tmp_path, **changes)
    decoded = batch.read([batch.seal(batch.token()) for _ in range(3)])
    assert (decoded.reports, decoded.dropped, decoded.too_few) == (3, 0, False)
    assert decoded.total is not None


def of_another_plan(batch: Batch) -> bytes:
    """Signed with the right round's key, over another plan's id."""
    other = issued_plan(nonce="77" * 16)
    fresh, hidden = batch.issuing.blinded(ROUND, plan_id=other.id)
    (signed,) = batch.issuing.ask(b"x" * 16, [ROUND], [hidden.message])
    assert signed is not None
    message = token_message(other.id, ROUND, fresh)
    key = batch.issuing.key(ROUND)
    return Token(fresh, finalize(key, message, signed, hidden.inverse)).to_bytes()


def changed(token: bytes, place: int) -> bytes:
    return token[:place] + bytes([token[place] ^ 1]) + token[place + 1 :]


@pytest.mark.parametrize(
    "bad",
    [
        lambda batch: batch.token(ROUND + 1),
        lambda batch: batch.token(ROUND - 1),
        of_another_plan,
        lambda batch: os.urandom(288),
        lambda batch: bytes(288),
        lambda batch: changed(batch.token(), 0),  # another number under the same signature
        lambda batch: changed(batch.token(), 287),
        lambda batch: batch.token()[:32] + batch.token()[32:],  # two clients' halves
    ],
    ids=["later round", "earlier round", "plan", "random", "zero", "number", "sign", "halves"],
)
def test_bad_tokens_are_dropped_and_counted(batch: Batch, bad: Any) -> None:
    good = [batch.seal(batch.token()) for _ in range(2)]
    decoded = batch.read([good[0], batch.seal(bad(batch)), good[1]])
    assert decoded.reports == 2
    assert decoded.reasons == {FORGED: 1}
    assert decoded.total is not None and not decoded.too_few


def test_a_token_counts_once(batch: Batch) -> None:
    token = batch.token()
    twice = [batch.seal(token) for _ in range(2)]
    decoded = batch.read([*twice, batch.seal(batch.token())])
    assert decoded.reports == 2
    assert decoded.reasons == {SPENT: 1}


def test_a_truncated_token_or_none_does_not_fit_into_an_envelope(batch: Batch) -> None:
    for cut in (0, 32, 287):
        with pytest.raises(InvalidParameter, match="payload"):
            batch.seal(batch.token()[:cut])
    # sealed as a plan without an issuer would have it, under this plan's key
    plain = PlanDocument.from_object({k: v for k, v in batch.plan.to_object().items() if k != "issuer"})
    payload = payloads.vector_payload(np.eye(20)[0])
    bare = envelope.seal(plain, batch.key.public_key, ROUND, MODEL, payload)
    assert bare[4] == 2 and batch.seal(batch.token())[4] == 3
    padded = bare + bytes(288)
    decoded = batch.read([bare, padded])
    assert decoded.reports == 0
    assert sum(decoded.reasons.values()) == 2
    assert set(decoded.reasons) == {"not of the plan's size", "not a report of this round, sealed to its key"}


@pytest.mark.parametrize("good", [0, 1])
def test_fewer_good_tokens_than_the_minimum_make_the_round_void(batch: Batch, good: int) -> None:
    reports = [batch.seal(batch.token()) for _ in range(good)]
    decoded = batch.read([*reports, *(batch.seal(os.urandom(288)) for _ in range(5))])
    assert decoded.too_few
    assert decoded.total is None
    assert (decoded.reports, decoded.dropped) == (good, 5)


@pytest.mark.parametrize("suite", [1, 2])
def test_copies_count_once_with_and_without_an_issuer(suite: int) -> None:
    document = plan(suite=suite, minimum_batch=2)
    key = OpeningKey(suite, new_private_key(suite))
    found = RoundDocument(document.id.hex(), 0, MODEL.hex(), key.key_id.hex(), 0.0, 1.0)
    one, two = (
        make_envelope(document, randomizer_of(document), 0, MODEL, key.public_key, np.ones(20), SecureSource())
        for _ in range(2)
    )
    reader = BatchReader(document, found, key)
    for copy in [one] * 100:
        reader.add(copy)
    alone = reader.result()
    assert (alone.reports, alone.dropped, alone.too_few) == (1, 99, True)
    assert alone.reasons == {COPY: 99}
    mauled = bytearray(one)
    mauled[24 + 31] ^= 0x80  # X25519 ignores this bit, HPKE does not
    reader = BatchReader(document, found, key)
    for report in (bytes(mauled), one, two, one):
        reader.add(report)
    both = reader.result()
    assert both.reports == 2
    assert not both.too_few
    assert both.reasons == {COPY: 1, "the seal does not open": 1}


def test_a_round_of_shares_with_a_forged_token_gives_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_pooled_keys(monkeypatch)
    batch = Batch(tmp_path, protocol="distributed-check-in")
    made = [batch.seal(batch.token()) for _ in range(3)]
    size = envelope.sizes(batch.plan)

    def total(envelopes: list[bytes]) -> bytes:
        shares = [np.frombuffer(one[size.released :], "<u4") for one in envelopes]
        return np.sum(shares, axis=0, dtype=np.uint32).astype("<u4").tobytes()

    def cut(envelopes: list[bytes]) -> list[bytes]:
        return [one[: size.released] for one in envelopes]

    assert batch.read(cut(made), total(made)).total is not None
    bad = [*made, batch.seal(os.urandom(288))]
    decoded = batch.read(cut(bad), total(bad))
    assert decoded.total is None
    assert decoded.spoiled is not None


def test_a_round_without_a_token_key_cannot_be_read(batch: Batch) -> None:
    fields = batch.round.to_object()
    del fields["token_key"]
    with pytest.raises(Malformed, match="token key"):
        BatchReader(batch.plan, RoundDocument.from_object(fields), batch.key)


def test_plans_with_an_issuer_are_read_strictly() -> None:
    named = issued_plan()
    assert PlanDocument.from_object(named.to_object()) == named
    assert "issuer" not in plan().to_object()
    for changes, said in (
        ({"issuer": "00"}, "plan.issuer"),
        ({"issuer": None}, "plan.issuer"),
        ({"issuer": "00" * 32, "cover": False}, "plan.cover"),
    ):
        with pytest.raises(Malformed, match=said):
            PlanDocument.from_object(plan_object(**changes))
    for protocol in ("random-check-in-fixed", "random-check-in-sliding"):
        with pytest.raises(Malformed, match="it has no tokens"):
            PlanDocument.from_object(plan_object(protocol, issuer="00" * 32))
