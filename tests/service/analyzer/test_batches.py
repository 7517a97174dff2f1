"""Batches of envelopes: what good ones add up to, and what becomes of the others."""

import os
from collections import Counter
from typing import Any

import numpy as np
import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import SecureSource, SeededSource
from dpcheckin.service.analyzer.batches import BatchReader, Decoded
from dpcheckin.service.pricing import randomizer_of
from dpcheckin.service.reports import make_envelope, neutral_value
from dpcheckin.service.wire import envelope, payloads
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.documents import PlanDocument, RoundDocument
from dpcheckin.service.wire.envelope import OpeningKey, new_private_key, sizes
from dpcheckin.service.wire.problems import Malformed
from service.plans import DARY, GAUSSIAN, SKELLAM, plan, sealed

MODEL = digest(b"model")


class Batch:
    """A round of a plan, its key, and envelopes for it."""

    def __init__(self, document: PlanDocument) -> None:
        self.plan = document
        self.key = OpeningKey(document.suite, new_private_key(document.suite))
        key_id = self.key.key_id.hex()
        self.round = RoundDocument(document.id.hex(), 3, MODEL.hex(), key_id, 0.0, 1.0)

    def seal(self, count: int, number: int = 3) -> list[bytes]:
        return sealed(self.plan, number, MODEL, self.key.public_key, count)

    def reader(self, shuffler_sum: bytes | None = None) -> BatchReader:
        return BatchReader(self.plan, self.round, self.key, shuffler_sum)

    def read(self, envelopes: list[bytes]) -> tuple[Decoded, Counter[str]]:
        reader = self.reader()
        for one in envelopes:
            reader.add(one)
        return reader.result(), reader.dropped


@pytest.mark.parametrize("suite", [1, 2])
def test_good_reports_add_up_to_the_truth(suite: int) -> None:
    batch = Batch(plan(randomizer={**GAUSSIAN, "noise_multiplier": 0.05}, suite=suite))
    decoded, dropped = batch.read(batch.seal(200))
    assert (decoded.reports, decoded.dropped, dropped) == (200, 0, Counter())
    assert decoded.total is not None
    mean = decoded.total / 200  # clipped to norm 1: each coordinate 1/√20
    assert np.abs(mean - 20**-0.5).max() < 0.05 * 6 / 200**0.5


def test_symbols_are_estimated() -> None:
    batch = Batch(plan(randomizer=DARY))
    decoded, _ = batch.read(batch.seal(400))
    assert decoded.total is not None
    assert decoded.total.sum() == pytest.approx(400)
    assert decoded.total.argmax() == 1


def hostile(batch: Batch) -> dict[str, bytes]:
    """Envelopes that must be dropped, and why."""
    document, key = batch.plan, batch.key.public_key
    good = batch.seal(1)[0]
    other = OpeningKey(1, new_private_key(1))
    nan = np.full(20, np.nan)

    def vector(values: Any, model: bytes = MODEL, number: int = 3) -> bytes:
        return envelope.seal(document, key, number, model, payloads.vector_payload(values))

    wrong_kind = payloads.vector_payload(np.ones(20))
    wrong_kind = b"\2" + wrong_kind[1:]
    return {
        "empty": b"",
        "short": good[:-1],
        "long": good + b"\0",
        "garbage": os.urandom(len(good)),
        "bad magic": b"XXXX" + good[4:],
        "flipped bit": good[:-1] + bytes([good[-1] ^ 1]),
        "another round": batch.seal(1, number=4)[0],
        "another key": sealed(document, 3, MODEL, other.public_key, 1)[0],
        "another model": vector(np.ones(20) / 20**0.5, model=digest(b"other")),
        "another plan": sealed(plan(nonce="33" * 16), 3, MODEL, key, 1)[0],
        "cover": envelope.cover(document, key, 3),
        "nan": vector(nan),
        "infinite": vector(np.full(20, np.inf)),
        "huge": vector(np.full(20, 1e30)),
        "zero": vector(np.zeros(20)),
        "too long a vector": vector(np.full(20, 0.5)),
        "wrong encoding": envelope.seal(document, key, 3, MODEL, wrong_kind),
    }


def test_every_hostile_envelope_is_counted_and_dropped() -> None:
    batch = Batch(plan())
    bad = hostile(batch)
    assert len({*bad}) == 17
    for name, one in bad.items():
        decoded, dropped = batch.read([one])
        assert (decoded.reports, decoded.dropped, sum(dropped.values())) == (0, 1, 1), name
        assert decoded.total is None
    good = batch.seal(5)
    mixed = [e for pair in zip(list(bad.values())[:5], good, strict=True) for e in pair]
    mixed += list(bad.values())[5:]
    decoded, _ = batch.read(mixed)
    clean, _ = batch.read(good)
    assert (decoded.reports, decoded.dropped) == (5, len(bad))
    assert decoded.total == pytest.approx(clean.total)


def test_a_gaussian_report_longer_than_its_noise_allows_is_dropped() -> None:
    batch = Batch(plan(randomizer=GAUSSIAN))
    payload = payloads.vector_payload(np.full(20, 100.0))
    one = envelope.seal(batch.plan, batch.key.public_key, 3, MODEL, payload)
    assert batch.read([one, *batch.seal(3)])[0].reports == 3


def test_random_bytes_never_stop_a_reader() -> None:
    batch = Batch(plan())
    size = sizes(batch.plan).released
    source = np.random.default_rng(5)
    reader = batch.reader()
    good = batch.seal(1)[0]
    for i in range(3000):
        noise = bytearray(source.bytes(size) if i % 2 else good)
        if i % 2 == 0:
            where = int(source.integers(size))
            noise[where] ^= 1 << int(source.integers(8))
        reader.add(bytes(noise))
    assert reader.result().dropped == 3000


def test_shares_add_up_and_a_bad_one_spoils_only_the_round() -> None:
    batch = Batch(plan("distributed-check-in", randomizer={**SKELLAM, "noise_multiplier": 0.05}))
    sealed_reports = batch.seal(50)
    cut = sizes(batch.plan).released
    shares = [np.frombuffer(e[cut:], dtype="<u4") for e in sealed_reports]
    total = np.sum(shares, axis=0, dtype=np.uint32).astype("<u4").tobytes()
    reader = batch.reader(total)
    for one in sealed_reports:
        reader.add(one[:cut])
    decoded = reader.result()
    assert decoded.reports == 50
    assert decoded.total is not None
    assert np.abs(decoded.total / 50 - 20**-0.5).max() < 0.05
    broken = batch.reader(total)
    for one in sealed_reports[1:]:
        broken.add(one[:cut])
    broken.add(os.urandom(cut))
    found = broken.result()
    assert (found.total, found.reports, found.dropped) == (None, 49, 1)
    assert found.spoiled == "of a dropped report the shuffler's share is in the sum"
    with pytest.raises(Malformed, match="begins with the shuffler's sum"):
        batch.reader()
    with pytest.raises(Malformed, match="dimension"):
        batch.reader(b"\0" * 8)


@pytest.mark.parametrize("wrong", ["one coordinate", "another seed's share"])
def test_a_share_that_is_not_the_other_half_is_found_out(wrong: str) -> None:
    """Both parts are well formed, so each side takes its own; together they are no report."""
    batch = Batch(plan("distributed-check-in", randomizer=SKELLAM))
    sealed_reports = batch.seal(5)
    cut = sizes(batch.plan).released
    shares = np.array([np.frombuffer(e[cut:], dtype="<u4") for e in sealed_reports])
    if wrong == "one coordinate":
        shares[2, 7] ^= 1 << 30
    else:
        shares[2] = np.frombuffer(batch.seal(1)[0][cut:], dtype="<u4")
    reader = batch.reader(shares.sum(axis=0, dtype=np.uint32).astype("<u4").tobytes())
    for one in sealed_reports:
        reader.add(one[:cut])
    found = reader.result()
    assert (found.total, found.reports, found.dropped) == (None, 5, 0)
    assert found.spoiled is not None and "one was malformed" in found.spoiled


@pytest.mark.parametrize("randomizer", [None, DARY], ids=["vector", "symbol"])
def test_a_dummy_looks_like_a_report(randomizer: Any) -> None:
    changes = {} if randomizer is None else {"randomizer": randomizer}
    batch = Batch(plan("random-check-in-fixed", epsilon_budget=50.0, **changes))
    made = randomizer_of(batch.plan)
    one = make_envelope(
        batch.plan, made, 3, MODEL, batch.key.public_key, neutral_value(batch.plan, made), SecureSource()
    )
    assert len(one) == sizes(batch.plan).envelope
    assert batch.read([one])[0].reports == 1


def test_a_seeded_source_cannot_make_a_report() -> None:
    batch = Batch(plan())
    with pytest.raises(InvalidParameter, match="SecureSource"):
        make_envelope(
            batch.plan,
            randomizer_of(batch.plan),
            3,
            MODEL,
            batch.key.public_key,
            np.ones(20),
            SeededSource(1),  # type: ignore[arg-type]
        )
