"""Signatures are checked on the bytes as they came; what nobody signed is never parsed."""

import json
from typing import Any

import pytest

from dpcheckin.service.wire import signing
from dpcheckin.service.wire.canonical import canonical, digest
from dpcheckin.service.wire.documents import KeyDocument, PlanDocument, RoundDocument
from dpcheckin.service.wire.problems import Malformed
from dpcheckin.service.wire.signing import (
    identity_from_seed,
    public_identity,
    read_plan_page,
    read_signed_bytes,
    signed,
    signed_bytes,
)
from service.plans import plan

ANALYZER, STRANGER = identity_from_seed(bytes(32)), identity_from_seed(b"\1" * 32)
WHO = public_identity(ANALYZER)
PLAN = plan(task={"model": '}],"plan":{', "list": [1, {"deep": {}}]})
KEYS = [KeyDocument(PLAN.id.hex(), 1, digest(bytes([i])).hex(), i) for i in range(3)]
ROUND = RoundDocument(PLAN.id.hex(), 1, "00" * 32, "11" * 8, 1.0, 2.5)


def page(keys: list[KeyDocument], by: Any = ANALYZER) -> bytes:
    return canonical({"plan": signed(PLAN, by), "keys": [signed(key, by) for key in keys]})


def test_what_was_signed_is_read_back() -> None:
    assert read_signed_bytes(RoundDocument, signed_bytes(ROUND, ANALYZER), WHO) == ROUND
    for keys in ([], KEYS[:1], KEYS):
        assert read_plan_page(page(keys), WHO) == (PLAN, keys)


def test_nothing_that_is_not_signed_reaches_the_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise AssertionError("parsed")

    monkeypatch.setattr(signing, "parse", fail)
    bomb = b'{"document":' + b"[" * 100_000 + b',"signature":"' + b"0" * 128 + b'"}'
    for body in (bomb, signed_bytes(ROUND, STRANGER), b"", b"{}", b"\xff" * 300):
        with pytest.raises(Malformed):
            read_signed_bytes(RoundDocument, body, WHO)
    for body in (page(KEYS, STRANGER), b'{"keys":[],"plan":' + bomb + b"}", b"[]", b"", b"{}"):
        with pytest.raises(Malformed):
            read_plan_page(body, WHO)


@pytest.mark.parametrize("place", range(0, 380, 7))
def test_a_signed_round_with_one_changed_byte_is_refused(place: int) -> None:
    body = bytearray(signed_bytes(ROUND, ANALYZER))
    body[place % len(body)] ^= 1
    with pytest.raises(Malformed):
        read_signed_bytes(RoundDocument, bytes(body), WHO)


def test_one_kind_of_document_is_not_another() -> None:
    with pytest.raises(Malformed, match="does not hold"):
        read_signed_bytes(PlanDocument, signed_bytes(ROUND, ANALYZER), WHO)


def test_signed_bytes_that_are_not_canonical_are_refused() -> None:
    """Ids are digests of canonical bytes: two texts of one document would have two ids."""
    said = json.dumps(ROUND.to_object(), indent=1).encode()
    signature = ANALYZER.sign(b"dpcheckin/1 round\0" + said).hex().encode()
    with pytest.raises(Malformed, match="canonical"):
        read_signed_bytes(RoundDocument, b'{"document":' + said + b',"signature":"' + signature + b'"}', WHO)


def test_a_page_that_is_too_long_or_cut_short_is_refused() -> None:
    whole = page(KEYS)
    for body in (whole + b" " * (1 << 20), whole[:-1], whole[:200], whole.replace(b"],", b",],")):
        with pytest.raises(Malformed):
            read_plan_page(body, WHO)
