"""A shuffler in memory with the analyzer's view of it, that can lose its caller at any moment.

`calls` counts every effect; at call number `die_at` the caller is interrupted, before or after the
effect. The rules of the real one that matter here are checked: nothing is claimed without a charge,
no number is used twice, only claimed batches are given out.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dpcheckin.service.analyzer.core import Status
from dpcheckin.service.wire.canonical import digest, parse
from dpcheckin.service.wire.problems import Problem, refuse


class Died(BaseException):
    """kill -9, as far as the analyzer can tell."""


class FakeShuffler:
    party = "shuffler"
    away: str | None = None

    def __init__(self, batch_of: Callable[[int, dict], tuple[Status, list[bytes]]]) -> None:
        self._batch_of = batch_of
        self.plan: bytes | None = None
        self.keys: dict[str, bytes] = {}
        self.models: dict[str, bytes] = {}
        self.rounds: dict[int, bytes] = {}
        self.status_of: dict[int, Status] = {}
        self.batches: dict[int, list[bytes]] = {}
        self.claims: dict[int, str] = {}
        self.deleted: list[int] = []
        self.on_claim: Callable[[int, str], None] = lambda number, charge: None
        self.calls = 0
        self.die_at: tuple[int, bool] | None = None
        self.failures = 0

    def effect(self, change: Callable[[], None]) -> None:
        self.calls += 1
        if self.die_at == (self.calls, False):
            raise Died
        change()
        if self.die_at == (self.calls, True):
            raise Died

    def put_plan(self, signed: bytes) -> None:
        assert self.plan in (None, signed)
        self.effect(lambda: setattr(self, "plan", signed))

    def put_key(self, key_id: bytes, signed: bytes) -> None:
        assert self.keys.get(key_id.hex(), signed) == signed
        self.effect(lambda: self.keys.__setitem__(key_id.hex(), signed))

    def put_model(self, model: bytes) -> None:
        self.effect(lambda: self.models.__setitem__(digest(model).hex(), model))

    def put_round(self, number: int, signed: bytes) -> None:
        def change() -> None:
            if number in self.rounds:
                if self.rounds[number] != signed:
                    refuse(Problem.CONFLICT)
                return
            assert all(old < number for old in self.rounds)
            document = parse(signed)["document"]
            assert document["model"] in self.models
            assert document["key"] in self.keys
            self.rounds[number] = signed
            self.status_of[number], self.batches[number] = self._batch_of(number, document)

        self.effect(change)

    def status(self, number: int) -> Status | None:
        return self.status_of.get(number)

    def claim(self, number: int, charge: str) -> None:
        def change() -> None:
            self.on_claim(number, charge)
            assert self.claims.setdefault(number, charge) == charge, "charged twice"
            if self.status_of[number].state == "closed":
                old = self.status_of[number]
                self.status_of[number] = Status("claimed", old.present, old.reports)

        self.effect(change)

    @contextmanager
    def batch(self, number: int, largest: int) -> Iterator[Iterator[bytes]]:
        if self.status_of[number].state != "claimed":
            refuse(Problem.NOT_CLAIMED)
        self.effect(lambda: None)
        yield iter(self.batches[number])

    def delete(self, number: int) -> None:
        def change() -> None:
            old = self.status_of[number]
            self.status_of[number] = Status("done", old.present, old.reports)
            self.batches[number] = []
            self.deleted.append(number)

        self.effect(change)

    def close(self) -> None:
        pass
