"""The common language: published vectors, canonical JSON, documents, signatures, envelopes."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.wire import credentials, envelope, payloads, signing
from dpcheckin.service.wire.blind_signatures import PublicKey
from dpcheckin.service.wire.canonical import canonical, digest, parse
from dpcheckin.service.wire.documents import KeyDocument, PlanDocument, RoundDocument
from dpcheckin.service.wire.problems import Malformed, Problem, Refusal, problem_in, refuse
from dpcheckin.service.wire.tokens import Token
from service import wire_vectors

VECTORS = Path(__file__).parents[2] / "vectors"
KINDS = {"plan": PlanDocument, "key": KeyDocument, "round": RoundDocument}
IDENTITY = signing.identity_from_seed(wire_vectors.IDENTITY_SEED)
PUBLIC = signing.public_identity(IDENTITY)
MODEL = digest(wire_vectors.MODEL)


def read(kind: str) -> list[dict]:
    found = sorted(VECTORS.glob(f"{kind}-*.json"))
    assert len(found) == len(wire_vectors.PLANS)
    return [json.loads(file.read_text(encoding="utf-8")) for file in found]


def plan(**changes: object) -> PlanDocument:
    return PlanDocument.from_object(wire_vectors.plan_object(**changes))


# --- vectors --------------------------------------------------------------------------------


@pytest.mark.parametrize("vector", read("documents"))
def test_the_published_documents_are_read_and_written_to_the_same_bytes(vector: dict) -> None:
    for said in vector["documents"]:
        value = parse(said["signed"].encode())
        kind = KINDS[value["document"]["type"]]
        document = signing.read_signed(kind, value, bytes.fromhex(vector["identity"]))
        assert document.to_bytes().decode() == said["canonical"]
        assert document.id.hex() == said["id"]
        assert signing.signed_bytes(document, IDENTITY).decode() == said["signed"]


@pytest.mark.parametrize("vector", read("envelope"))
def test_the_published_envelopes_open_to_the_published_reports(vector: dict) -> None:
    document = PlanDocument.from_object(vector["plan"])
    key = envelope.OpeningKey(document.suite, bytes.fromhex(vector["private_key"]))
    assert key.public_key.hex() == vector["public_key"]
    assert key.key_id.hex() == vector["key_id"]
    sealed = bytes.fromhex(vector["envelope"])
    assert len(sealed) == envelope.sizes(document).envelope
    header = envelope.read_header(sealed)
    assert (header.round, header.key_id) == (vector["round"], key.key_id)
    payload = key.open(sealed, document.id, bytes.fromhex(vector["model_digest"]))
    token = bytes.fromhex(vector.get("token", ""))
    assert payload.hex() == vector["payload"] + token.hex()
    assert header.version == (3 if token else 2)
    report = payload.removesuffix(token)
    assert payloads.read_payload(document, report).tolist() == vector["report"]
    if token:
        issuer = PublicKey.from_bytes(bytes.fromhex(vector["token_key"]))
        Token.from_bytes(token).check(issuer, document.id, vector["round"])
    if document.encoding == 3:
        size = envelope.sizes(document)
        share = np.frombuffer(sealed[size.released :], dtype="<u4")
        whole = (share + payloads.read_payload(document, payload)).view(np.int32)
        assert whole.tolist() == vector["values"]


def test_the_header_lies_byte_by_byte_as_the_wire_page_says() -> None:
    vector = read("envelope")[-1]
    raw = bytes.fromhex(vector["envelope"])
    assert raw[:4] == b"DPCI"
    assert raw[4] == 2
    assert raw[5] == vector["plan"]["suite"]
    assert raw[6] == 1
    assert raw[7] == 0
    assert struct.unpack(">I", raw[8:12]) == (vector["round"],)
    assert raw[12:20] == digest(bytes.fromhex(vector["public_key"]))[:8]
    assert struct.unpack(">I", raw[20:24]) == (len(raw) - 24,)


def test_a_payload_lies_byte_by_byte_as_the_wire_page_says() -> None:
    for vector in read("envelope"):
        raw, randomizer = bytes.fromhex(vector["payload"]), vector["plan"]["randomizer"]
        assert raw[:4] == bytes([randomizer["encoding"], 0, 0, 0])
        assert struct.unpack(">I", raw[4:8]) == (randomizer["dimension"],)
        if randomizer["encoding"] == 1:
            assert list(struct.unpack(f"<{randomizer['dimension']}f", raw[8:])) == vector["report"]


# --- canonical JSON -------------------------------------------------------------------------

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@given(JSON)
def test_canonical_bytes_are_a_fixed_point(value: object) -> None:
    try:
        data = canonical(value)
    except Malformed:  # keys with lone surrogates
        return
    assert canonical(parse(data)) == data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"NaN",
        b"[Infinity]",
        b"1e999",
        b'{"a":1,"a":2}',
        b'"\\ud800"',
        b"\xff",
        b"[" * 100_000,
        b"1" * 5000,
        b"9" * 400,
        b"-" + b"9" * 31,
        b'{"a":[1,{"b":' + b"1" + b"0" * 400 + b"}]}",
        b"0." + b"1" * 100,
        b'"' + b"a" * (1 << 20) + b'"',
    ],
    ids=lambda data: repr(data[:12]),
)
def test_what_has_no_canonical_form_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed):
        parse(data)


def test_integers_of_thirty_digits_are_read() -> None:
    assert parse(b"[" + b"9" * 30 + b",-" + b"9" * 30 + b"]") == [10**30 - 1, 1 - 10**30]


@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_a_field_that_no_float_can_hold_is_malformed_and_nothing_else(value: int) -> None:
    """Also where the value never went through the parser."""
    for field in ("epsilon_budget", "round_seconds", "delta", "population"):
        with pytest.raises(Malformed, match=rf"plan\.{field} = "):
            plan(**{field: value})


def test_a_value_that_is_not_json_is_malformed() -> None:
    with pytest.raises(Malformed):
        canonical({"a": float("nan")})
    with pytest.raises(Malformed):
        canonical(b"bytes")


# --- documents ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"format": True},
        {"type": "round"},
        {"protocol": "full-shuffle"},
        {"protocol": "distributed-check-in"},
        {"population": 1},
        {"population": 100.0},
        {"population": True},
        {"minimum_batch": -1},
        {"rate": 0.0},
        {"rate": 1.5},
        {"rate": "0.1"},
        {"rate": None},
        {"slots": 3},
        {"rounds": 0},
        {"rounds": 2**32},
        {"delta": 0},
        {"epsilon_budget": -1.0},
        {"suite": 3},
        {"cover": 1},
        {"task": []},
        {"nonce": "00"},
        {"nonce": "0F" * 16},
        {"randomizer": {}},
        {"randomizer": 3},
        {"randomizer": wire_vectors.randomizer(1, 0)},
        {"randomizer": wire_vectors.randomizer(5, 1)},
        {"randomizer": wire_vectors.randomizer(3, 1)},
        {"randomizer": wire_vectors.randomizer(1, 1, name="")},
        {"randomizer": wire_vectors.randomizer(1, 1) | {"clip": 0}},
        {"randomizer": wire_vectors.randomizer(1, 1) | {"odd": []}},
        {"extra": 1},
    ],
    ids=str,
)
def test_a_plan_with_a_wrong_field_is_malformed(changes: dict) -> None:
    with pytest.raises(Malformed):
        plan(**changes)


@given(st.sampled_from(sorted(wire_vectors.PLANS)), st.data())
def test_a_plan_reads_back_as_itself_and_lacks_nothing(name: str, data: st.DataObject) -> None:
    value = wire_vectors.PLANS[name]
    document = PlanDocument.from_object(value)
    assert document.to_object() == value
    assert PlanDocument.from_object(document.to_object()) == document
    field = data.draw(st.sampled_from(sorted(value.keys() - {"issuer"})))
    with pytest.raises(Malformed):
        PlanDocument.from_object({k: v for k, v in value.items() if k != field})


def test_protocols_say_how_their_rounds_are_released() -> None:
    slots = PlanDocument.from_object(wire_vectors.PLANS["slots"])
    assert slots.keeps_one
    assert slots.numbered_slots
    assert not plan().keeps_one
    assert not plan().numbered_slots


def test_rounds_and_keys_are_checked_too() -> None:
    good = {
        "type": "round",
        "plan": "00" * 32,
        "round": 0,
        "model": "11" * 32,
        "key": "22" * 8,
        "opens": 0.0,
        "closes": 1.0,
    }
    document = RoundDocument.from_object(good)
    assert document.model_digest == b"\x11" * 32
    assert document.key_id == b"\x22" * 8
    for changes in ({"closes": 0.0}, {"opens": 2.0}, {"opens": -1.0}, {"model": "11"}, {"x": 1}):
        with pytest.raises(Malformed):
            RoundDocument.from_object(good | changes)
    key = {"type": "key", "plan": "00" * 32, "suite": 1, "key": "33" * 32, "from_round": 0}
    assert KeyDocument.from_object(key).key_id == digest(b"\x33" * 32)[:8]
    for changes in ({"suite": 2}, {"key": 5}, {"key": "zz" * 32}, {"from_round": -1}):
        with pytest.raises(Malformed):
            KeyDocument.from_object(key | changes)
    with pytest.raises(Malformed):
        KeyDocument.from_object([key])


# --- signatures -----------------------------------------------------------------------------


def test_a_changed_document_or_signature_or_identity_is_refused() -> None:
    value = signing.signed(plan(), IDENTITY)
    other = signing.public_identity(signing.identity_from_seed(bytes(32)))
    flipped = f"{int(value['signature'][:2], 16) ^ 1:02x}" + value["signature"][2:]
    for bad, identity in [
        (value | {"document": value["document"] | {"rounds": 11}}, PUBLIC),
        (value | {"signature": flipped}, PUBLIC),
        (value | {"signature": value["signature"].upper()}, PUBLIC),
        (value | {"signature": "zz" * 64}, PUBLIC),
        (value | {"signature": 5}, PUBLIC),
        (value | {"more": 1}, PUBLIC),
        ([value], PUBLIC),
        (value, other),
    ]:
        with pytest.raises(Malformed):
            signing.read_signed(PlanDocument, bad, identity)
    assert signing.read_signed(PlanDocument, value, PUBLIC) == plan()
    assert signing.read_signed(PlanDocument, value | {"signature": flipped}, None) == plan()


def test_one_kind_of_document_cannot_pass_for_another() -> None:
    value = signing.signed(plan(), IDENTITY)
    with pytest.raises(Malformed):
        signing.read_signed(RoundDocument, value, PUBLIC)


# --- envelopes ------------------------------------------------------------------------------


@pytest.fixture(params=[1, 2], ids=["x25519", "hybrid"])
def sealed(request: pytest.FixtureRequest) -> tuple[PlanDocument, envelope.OpeningKey, bytes]:
    document = plan(suite=request.param)
    key = envelope.OpeningKey(request.param, envelope.new_private_key(request.param))
    payload = payloads.vector_payload(np.arange(5))
    return document, key, envelope.seal(document, key.public_key, 7, MODEL, payload)


Sealed = tuple[PlanDocument, envelope.OpeningKey, bytes]


def test_an_envelope_opens_to_what_was_sealed(sealed: Sealed) -> None:
    document, key, data = sealed
    payload = key.open(data, document.id, MODEL)
    assert payloads.read_payload(document, payload).tolist() == [0, 1, 2, 3, 4]


def test_a_report_is_bound_to_plan_model_and_every_byte_of_the_envelope(sealed: Sealed) -> None:
    document, key, data = sealed
    with pytest.raises(Malformed):
        key.open(data, digest(b"another plan"), MODEL)
    with pytest.raises(Malformed):
        key.open(data, document.id, digest(b"another model"))
    with pytest.raises(Malformed):
        key.open(data, document.id, b"short")
    for position in [*range(24), 24, 60, len(data) - 1]:
        changed = bytearray(data)
        changed[position] ^= 1
        with pytest.raises(Malformed):
            key.open(bytes(changed), document.id, MODEL)


def test_cut_envelopes_covers_and_other_keys_do_not_open(sealed: Sealed) -> None:
    document, key, data = sealed
    for length in (0, 10, 23, 24, 40, len(data) - 1):
        with pytest.raises(Malformed):
            key.open(data[:length], document.id, MODEL)
    with pytest.raises(Malformed):
        key.open(envelope.cover(document, key.public_key, 7), document.id, MODEL)
    other = envelope.OpeningKey(document.suite, envelope.new_private_key(document.suite))
    with pytest.raises(Malformed):
        other.open(data, document.id, MODEL)


@pytest.mark.parametrize("name", sorted(wire_vectors.PLANS))
def test_covers_and_reports_of_a_plan_have_one_size(name: str) -> None:
    document = PlanDocument.from_object(wire_vectors.PLANS[name])
    vector = json.loads((VECTORS / f"envelope-{name}.json").read_text(encoding="utf-8"))
    made = envelope.cover(document, bytes.fromhex(vector["public_key"]), 3)
    assert len(made) == len(bytes.fromhex(vector["envelope"]))
    assert envelope.read_header(made).kind == envelope.COVER
    assert made != envelope.cover(document, bytes.fromhex(vector["public_key"]), 3)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_header_or_malformed(data: bytes) -> None:
    for candidate in (data, b"DPCI\x02" + data):
        try:
            header = envelope.read_header(candidate)
        except Malformed:
            continue
        assert header.to_bytes() == candidate[:24]


@given(st.sampled_from(sorted(wire_vectors.PLANS)), st.binary(max_size=60))
def test_any_payload_is_a_report_of_the_plan_or_malformed(name: str, data: bytes) -> None:
    document = PlanDocument.from_object(wire_vectors.PLANS[name])
    prefix = struct.pack(">B3xI", document.encoding, document.dimension)
    for candidate in (data, prefix + data):
        try:
            report = payloads.read_payload(document, candidate)
        except Malformed:
            continue
        assert report.size == (1 if document.encoding == 2 else document.dimension)


def test_a_symbol_outside_the_alphabet_is_malformed() -> None:
    document = PlanDocument.from_object(wire_vectors.PLANS["symbol"])
    good = payloads.symbol_payload(6, 7)
    assert payloads.read_payload(document, good).tolist() == [6]
    with pytest.raises(Malformed):
        payloads.read_payload(document, good[:-1] + b"\x07")


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1), st.binary(min_size=32, max_size=32))
def test_two_shares_add_up_to_the_report(values: list[int], seed: bytes) -> None:
    share = np.frombuffer(payloads.split(np.array(values), seed), dtype="<u4")
    assert (share + payloads.expand(seed, len(values))).view(np.int32).tolist() == values


def test_wrong_arguments_are_named() -> None:
    key = envelope.OpeningKey(1, envelope.new_private_key(1))
    for call in (
        lambda: envelope.new_private_key(3),
        lambda: envelope.OpeningKey(3, bytes(32)),
        lambda: envelope.OpeningKey(1, bytes(31)),
        lambda: payloads.symbol_payload(7, 7),
        lambda: payloads.seed_payload(b"", 3),
        lambda: envelope.seal(plan(), key.public_key, 0, MODEL, b"short"),
        lambda: envelope.seal(plan(), key.public_key, 0, MODEL, payloads.vector_payload(np.zeros(5)), b"share"),
    ):
        with pytest.raises(InvalidParameter):
            call()
    with pytest.raises(Malformed):
        envelope.seal(plan(), b"short", 0, MODEL, payloads.vector_payload(np.zeros(5)))
    with pytest.raises(Malformed):
        hybrid = plan(suite=2)
        envelope.seal(hybrid, b"\xff" * 1216, 0, MODEL, payloads.vector_payload(np.zeros(5)))


# --- problems and credentials ---------------------------------------------------------------


def test_the_wire_page_lists_exactly_these_problems() -> None:
    page = (Path(__file__).parents[3] / "docs" / "wire.md").read_text(encoding="utf-8")
    paragraph = page.split("Problem types", 1)[1].split("\n\n", 1)[0]
    for problem in Problem:
        assert f"`{problem.slug}`" in paragraph
    assert paragraph.count("`") == 2 * (len(Problem) + 1)  # the prefix, and nothing else


@pytest.mark.parametrize("problem", Problem)
def test_a_problem_is_told_by_its_body(problem: Problem) -> None:
    assert problem_in(problem.body()) is problem
    assert json.loads(problem.body())["status"] == problem.status
    with pytest.raises(Refusal, match=problem.slug):
        refuse(problem)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"type":5}', b'{"type":"urn:x"}', b"[" * 100000])
def test_other_bodies_are_no_problem_of_ours(body: bytes) -> None:
    assert problem_in(body) is None


def test_tokens_are_recognised_by_their_digest_only() -> None:
    token = credentials.new_token()
    stored = credentials.token_digest(token)
    found = credentials.bearer_digest(b"bEARER " + token.encode())
    assert found is not None
    assert found == stored
    assert credentials.token_digest(credentials.new_token()) != stored
    for header in (None, b"", b"Bearer", b"Bearer short", b"Token " + token.encode()):
        assert credentials.bearer_digest(header) is None
