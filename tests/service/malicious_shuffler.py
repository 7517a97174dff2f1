"""The real shuffler with a release of its own: `python -m service.malicious_shuffler shuffler …`.

It knows which envelope is whose, as every shuffler does, and keeps the one of `VICTIM` (a client's
id in hex). Round 0, 3, 6, … is released as it is; of round 1, 4, … the analyzer gets the victim's
envelope again and again; of round 2, 5, … the victim's, among reports that the shuffler made up and
sealed itself, with random bytes for the tokens that it cannot have.
"""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.records import RoundRecord, Submission
from dpcheckin.service.wire.canonical import parse
from dpcheckin.service.wire.documents import TOKEN_BYTES, KeyDocument, RoundDocument
from dpcheckin.service.wire.envelope import Sizes, seal
from dpcheckin.service.wire.payloads import vector_payload

ATTACKS = ("nothing", "copies", "fakes")
FAKE_COORDINATE = 0
_examine, _chunks = Shuffler.examine, Shuffler._chunks
_victims: dict[int, bytes] = {}


def fake_report(dimension: int) -> "np.ndarray[Any, Any]":
    """A report that the analyzer's checks let pass, and that its maker knows."""
    return np.eye(dimension)[FAKE_COORDINATE]


def examine(self: Shuffler, client: bytes, number: int, body: bytes) -> Submission:
    found = _examine(self, client, number, body)
    if client.hex() == os.environ["VICTIM"]:
        _victims[number] = body
    return found


def release(self: Shuffler, record: RoundRecord, sizes: Sizes) -> Iterator[bytes]:
    attack = ATTACKS[record.number % len(ATTACKS)]
    if attack == "nothing" or record.number not in _victims:
        yield from _chunks(self, record, sizes)
        return
    assert record.reports is not None
    others = [_victims[record.number]] * (record.reports - 1)
    if attack == "fakes":
        others = [_fake(self, record) for _ in others]
    for body in [*others[::2], _victims[record.number], *others[1::2]]:
        yield len(body).to_bytes(4, "big") + body


def _fake(self: Shuffler, record: RoundRecord) -> bytes:
    plan = self.planned().plan
    found = RoundDocument.from_object(parse(record.document)["document"])
    with self.store.transaction() as transaction:
        held = [parse(key)["document"] for key in transaction.keys(record.plan)]
    keys = [KeyDocument.from_object(key) for key in held]
    public = next(key.public_key for key in keys if key.key_id == found.key_id)
    token = b"" if plan.issuer is None else os.urandom(TOKEN_BYTES)
    payload = vector_payload(fake_report(plan.dimension)) + token
    return seal(plan, public, record.number, found.model_digest, payload)


if __name__ == "__main__":
    Shuffler.examine = examine  # type: ignore[method-assign]
    Shuffler._chunks = release  # type: ignore[method-assign]
    from dpcheckin.cli import main

    main()
