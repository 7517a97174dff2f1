"""The shuffler as a state machine: any order of events, against a model that fits on a page.

The same machine runs over every store. Between any two steps the process may be replaced by a new
one over the same store; a second front end takes every other step where the store allows two.
"""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.shuffler.stores.postgres import PostgresStore
from dpcheckin.service.shuffler.stores.sqlite import MemoryStore, SqliteStore
from dpcheckin.service.wire.canonical import canonical
from dpcheckin.service.wire.problems import Problem, Refusal
from service.postgres_server import PostgresServer
from service.shuffler_world import Analyzer, Clock, batch_of, client, core_over

POPULATION, MINIMUM, ROUNDS = 3, 2, 3
CLIENTS = st.integers(0, 4)


class ModelRound:
    """What is known of a round from outside."""

    def __init__(self, number: int, closes: float, cover: bool) -> None:
        self.number, self.closes, self.cover = number, closes, cover
        self.fetched: set[int] = set()
        self.served: set[int] = set()
        self.reports: set[int] = set()
        self.state = "open"
        self.reason: str | None = None
        self.charge: bytes | None = None
        self.batch: bytes | None = None

    @property
    def present(self) -> set[int]:
        """With covers everybody sends: then only who has sent in time was there."""
        return self.served if self.cover else self.fetched

    def close(self) -> None:
        if len(self.present) < POPULATION:
            self.state, self.reason = "void", "population"
        elif len(self.reports) < MINIMUM:
            self.state, self.reason = "void", "batch"
        else:
            self.state = "closed"

    @property
    def charged(self) -> bool:
        return self.state in ("claimed", "done") or self.reason == "batch"

    def status(self) -> dict[str, Any]:
        told = self.state != "open"
        counted = told and self.reason != "population"
        return {
            "state": self.state,
            "present": len(self.present) if told else None,
            "reports": len(self.reports) if counted else None,
            "reason": self.reason,
        }


class Machine(RuleBasedStateMachine):
    """Rules are what can happen; each says what must come of it."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.stores: list[Store] = []
        self.cores = [core_over(self.open_store(), self.clock, seed) for seed in range(2)]
        self.turn = 0
        self.rounds: dict[int, ModelRound] = {}

    @initialize(cover=st.booleans())
    def a_plan_is_published(self, cover: bool) -> None:
        self.analyzer = Analyzer.of(population=POPULATION, minimum_batch=MINIMUM, rounds=ROUNDS, cover=cover)
        self.analyzer.publish(self.core)

    def open_store(self) -> Store:
        raise NotImplementedError

    def teardown(self) -> None:
        for store in self.stores:
            store.close()

    @property
    def core(self) -> Any:
        """The two front ends take turns; each hears of the other's work first, as by its tick."""
        self.turn += 1
        core = self.cores[self.turn % 2]
        core.tick()
        return core

    @property
    def last(self) -> ModelRound | None:
        return self.rounds[max(self.rounds)] if self.rounds else None

    def refused(self, call: Any, *arguments: Any) -> Problem | None:
        try:
            call(*arguments)
        except Refusal as refusal:
            return refusal.problem
        return None

    # --- what can happen --------------------------------------------------------------------

    @rule(seconds=st.sampled_from([1.0, 5.0, 10.0, 1000.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.now += seconds
        self._close_due()

    def _close_due(self) -> None:
        last = self.last
        if last is not None and last.state == "open" and self.clock.now >= last.closes:
            last.close()

    @rule()
    def the_clock_is_set_back(self) -> None:
        for core in self.cores:
            core.tick()
        self.clock.now -= 7.0

    @rule()
    def a_process_is_replaced(self) -> None:
        self.cores[self.turn % 2] = core_over(self.open_store(), self.clock, self.turn)

    @rule()
    def a_round_is_opened(self) -> None:
        number = 0 if self.last is None else self.last.number + 1
        problem = self.refused(self.analyzer.open, self.core, number)
        used = sum(r.charged or r.state == "closed" for r in self.rounds.values())
        if self.last is not None and self.last.state == "open":
            assert problem is Problem.ROUND_OPEN
        elif used >= ROUNDS:
            assert problem is Problem.PLAN_EXHAUSTED
        else:
            assert problem is None
            self.rounds[number] = ModelRound(number, self.clock.now + 10, self.analyzer.plan.cover)

    @rule(who=CLIENTS)
    def a_client_is_present(self, who: int) -> None:
        core = self.core
        problem = self.refused(core.current)
        if not self._takes():
            assert problem is Problem.NO_ROUND
            return
        assert problem is None
        assert core.mark_present(core.current().serial, [client(who)])
        assert self.last is not None
        self.last.fetched.add(who)

    def _takes(self) -> bool:
        """Is the last round open at this moment of the clock?"""
        last = self.last
        return last is not None and last.state == "open" and self.clock.now >= last.closes - 10

    @rule(there=st.integers(2, 4), reporting=st.integers(1, 3))
    def a_whole_round_passes(self, there: int, reporting: int) -> None:
        """Makes the later parts of a round's life as likely as the earlier ones."""
        before = self.last
        self.a_round_is_opened()
        if self.last is before:
            return
        for who in range(there):
            self.a_client_is_present(who)
        for who in range(reporting):
            self.a_client_sends(who, cover=False)
        if self.analyzer.plan.cover:
            for who in range(reporting, there):
                self.a_client_sends(who, cover=True)
        self.time_passes(10.0)

    @precondition(lambda self: self.rounds)
    @rule(who=CLIENTS, cover=st.booleans())
    def a_client_sends(self, who: int, cover: bool) -> None:
        core, last = self.core, self.last
        assert last is not None
        body = self.analyzer.cover(last.number) if cover else self.analyzer.report(last.number, who)
        problem = self.refused(core.examine, client(who), last.number, body)
        if not self._takes():
            expected = Problem.NO_ROUND if last.state == "open" else Problem.ROUND_CLOSED
            assert problem is expected
            return
        assert problem is None
        (answer,) = core.accept([core.examine(client(who), last.number, body)])
        assert answer is (Problem.DUPLICATE if who in last.served else None)
        if answer is None:
            last.served.add(who)
            if not cover:
                last.reports.add(who)

    @precondition(lambda self: self.rounds)
    @rule(data=st.data(), charge=st.sampled_from([b"a" * 32, b"b" * 32]))
    def a_round_is_claimed(self, data: st.DataObject, charge: bytes) -> None:
        one = self.rounds[data.draw(st.sampled_from(sorted(self.rounds)))]
        body = canonical({"charge": charge.hex()})
        problem = self.refused(self.core.claim, one.number, body)
        if one.state == "open":
            assert problem is Problem.ROUND_OPEN
        elif one.state in ("void", "done"):
            assert problem is Problem.NOT_CLAIMED
        elif one.state == "claimed":
            assert problem is (None if charge == one.charge else Problem.CONFLICT)
        else:
            assert problem is None
            one.state, one.charge = "claimed", charge

    @precondition(lambda self: self.rounds)
    @rule(data=st.data())
    def a_batch_is_fetched(self, data: st.DataObject) -> None:
        one = self.rounds[data.draw(st.sampled_from(sorted(self.rounds)))]
        core = self.core
        if one.state != "claimed":
            assert self.refused(core.batch, one.number) is Problem.NOT_CLAIMED
            return
        batch = batch_of(core, one.number)
        assert sorted(self.analyzer.marks(batch)) == sorted(one.reports)
        assert one.batch in (None, batch)
        one.batch = batch

    @precondition(lambda self: self.rounds)
    @rule(data=st.data())
    def a_batch_is_destroyed(self, data: st.DataObject) -> None:
        one = self.rounds[data.draw(st.sampled_from(sorted(self.rounds)))]
        problem = self.refused(self.core.finish, one.number)
        if one.state in ("claimed", "done"):
            assert problem is None
            one.state = "done"
        else:
            assert problem is Problem.NOT_CLAIMED

    # --- what always holds ------------------------------------------------------------------

    @invariant()
    def every_front_end_tells_the_same(self) -> None:
        for core in self.cores:
            for number, one in self.rounds.items():
                assert core.status(number) == one.status()

    @invariant()
    def no_more_is_charged_than_planned(self) -> None:
        assert sum(one.charged for one in self.rounds.values()) <= ROUNDS


_SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck), "stateful_step_count": 25}


def machine_over(opened: Any) -> type[Machine]:
    """The machine with a way of opening its store; `opened(key)` is the same store for one key."""
    keys = itertools.count()

    class Over(Machine):
        def __init__(self) -> None:
            self._key = next(keys)
            super().__init__()

        def open_store(self) -> Store:
            store: Store = opened(self._key)
            self.stores.append(store)
            return store

    return Over


@pytest.mark.parametrize("examples", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_any_order_of_events_in_memory(examples: int) -> None:
    stores: dict[int, MemoryStore] = {}
    machine = machine_over(lambda key: stores.setdefault(key, MemoryStore()))
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, **_SETTINGS))


@pytest.mark.parametrize("examples", [8, pytest.param(150, marks=pytest.mark.slow)])
def test_any_order_of_events_in_sqlite(examples: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        machine = machine_over(lambda key: SqliteStore(Path(folder) / f"{key}.db", reserve=0))
        run_state_machine_as_test(machine, settings=settings(max_examples=examples, **_SETTINGS))


@pytest.mark.parametrize("examples", [5, pytest.param(100, marks=pytest.mark.slow)])
def test_any_order_of_events_in_postgresql(postgres: PostgresServer, examples: int) -> None:
    addresses: dict[int, str] = {}

    def opened(key: int) -> Store:
        if key not in addresses:
            addresses[key] = postgres.new_schema(f"machine_{examples}_{key}")
        return PostgresStore(addresses[key])

    machine = machine_over(opened)
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, **_SETTINGS))
