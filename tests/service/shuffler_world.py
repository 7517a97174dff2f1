"""What the shuffler's tests share: a clock that is moved, seeded chance, an analyzer and clients.

Nothing here asserts; tests do.
"""

from __future__ import annotations

import dataclasses
import os
import struct
from typing import Any

import numpy as np

from dpcheckin.service.shuffler.chance import Ids
from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.wire import envelope, signing
from dpcheckin.service.wire.canonical import canonical, digest
from dpcheckin.service.wire.documents import KeyDocument, PlanDocument, RoundDocument
from service import wire_vectors

IDENTITY = signing.identity_from_seed(bytes(range(32)))
CHARGE = canonical({"charge": "ab" * 32})


class Clock:
    """Time as a test wants it."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class SeededChance:
    """Repeatable, and of another type than the service's."""

    def __init__(self, seed: int = 0) -> None:
        self._generator = np.random.default_rng(seed)

    def ids(self, count: int) -> list[int]:
        return [int(i) for i in self._generator.integers(2**63, size=count)]

    def permutation(self, count: int) -> Ids:
        return self._generator.permutation(count)


@dataclasses.dataclass
class Analyzer:
    """Publishes and signs; knows what it opened."""

    plan: PlanDocument
    key: envelope.OpeningKey

    @classmethod
    def of(cls, **changes: Any) -> Analyzer:
        """A plan without cover, in which `attend` is all it takes to be counted."""
        given = {"nonce": os.urandom(16).hex(), "cover": False, **changes}
        value = wire_vectors.plan_object(**given)
        plan = PlanDocument.from_object(value)
        return cls(plan, envelope.OpeningKey(plan.suite, envelope.new_private_key(plan.suite)))

    def signed_plan(self) -> bytes:
        return signing.signed_bytes(self.plan, IDENTITY)

    def signed_key(self, from_round: int = 0) -> bytes:
        plan = self.plan
        document = KeyDocument(plan.id.hex(), plan.suite, self.key.public_key.hex(), from_round)
        return signing.signed_bytes(document, IDENTITY)

    def signed_round(self, number: int, opens: float, closes: float, model: bytes = b"m") -> bytes:
        document = RoundDocument(self.plan.id.hex(), number, digest(model).hex(), self.key.key_id.hex(), opens, closes)
        return signing.signed_bytes(document, IDENTITY)

    def publish(self, core: Shuffler, model: bytes = b"m") -> None:
        core.publish_plan(self.signed_plan())
        core.publish_key(self.key.key_id, self.signed_key())
        core.publish_model(digest(model), model)

    def open(self, core: Shuffler, number: int, seconds: float = 10.0) -> None:
        now = core.clock()
        core.publish_model(digest(b"m"), b"m")
        core.open_round(number, self.signed_round(number, now, now + seconds))

    def report(self, number: int, mark: int = 0) -> bytes:
        """A well-formed envelope with a mark in its sealed part; it is not really sealed."""
        sizes = envelope.sizes(self.plan)
        kind = envelope.TWO_SHARES if sizes.share else envelope.REPORT
        header = envelope.Header(self.plan.suite, kind, number, self.key.key_id, sizes.sealed).to_bytes()
        body = struct.pack(">Q", mark).ljust(sizes.sealed, b"\xa5")
        share = np.full(sizes.share // 4, mark, dtype="<u4").tobytes()
        return header + body + share

    def cover(self, number: int) -> bytes:
        return envelope.cover(self.plan, self.key.public_key, number)

    def marks(self, batch: bytes) -> list[int]:
        """The marks of a released batch, in order; a sum of shares is left out."""
        return [struct.unpack_from(">Q", r, 24)[0] for r in records(batch)[self._skipped :]]

    @property
    def _skipped(self) -> int:
        return 1 if envelope.sizes(self.plan).share else 0


def records(batch: bytes) -> list[bytes]:
    found, place = [], 0
    while place < len(batch):
        (length,) = struct.unpack_from(">I", batch, place)
        found.append(batch[place + 4 : place + 4 + length])
        assert len(found[-1]) == length
        place += 4 + length
    return found


def client(number: int) -> bytes:
    return digest(b"client %d" % number)[:16]


def core_over(store: Store, clock: Clock, seed: int = 0, **more: Any) -> Shuffler:
    core = Shuffler(store, clock=clock, chance=SeededChance(seed), **more)
    core.refresh()
    return core


def attend(core: Shuffler, count: int) -> None:
    """So many clients fetch the round."""
    assert core.mark_present(core.current().serial, [client(i) for i in range(count)])


def send(core: Shuffler, analyzer: Analyzer, number: int, *clients: int) -> list[Any]:
    """These clients send reports marked with their own number."""
    return core.accept([core.examine(client(c), number, analyzer.report(number, c)) for c in clients])


def batch_of(core: Shuffler, number: int) -> bytes:
    release = core.batch(number)
    data = b"".join(release.chunks)
    assert len(data) == release.length
    return data
