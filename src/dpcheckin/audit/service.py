"""Black-box audit of the deployed parties: real agents, real envelopes, the real shuffler. Needs the `service` extra.

Every run is a small deployment in this process; network and clock are the only things left out. All chance is the
operating system's, so runs cannot be paired; what the audit sees is what an analyzer sees. Stores may hand out a
round's reports as they arrived (PostgreSQL's does), so the one here does, and the target is the first who enrolled and
the first, or the last, whose report arrives: only the shuffler's own order hides it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.audit.examination import Check
from dpcheckin.audit.plans import DEFAULT_CONFIDENCE, attack_on, rounds_text
from dpcheckin.audit.statistics import LikelihoodRatio, NumberOfReports
from dpcheckin.audit.systems import Neighbours, Released, System, gathered
from dpcheckin.errors import InvalidParameter, ServiceError
from dpcheckin.protocols import Plan, ShuffledCheckIn
from dpcheckin.randomizers import DaryResponse, SecureSource
from dpcheckin.service.analyzer.parties import records
from dpcheckin.service.client.config import ClientConfig, Limits
from dpcheckin.service.client.core import Action, Agent
from dpcheckin.service.client.ledger import ClientLedger
from dpcheckin.service.pricing import Price, protocol_of
from dpcheckin.service.shuffler.chance import Ids, SecureChance
from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.records import Entry
from dpcheckin.service.shuffler.stores.sqlite import MemoryStore
from dpcheckin.service.wire import envelope, payloads, signing
from dpcheckin.service.wire.canonical import canonical, digest
from dpcheckin.service.wire.documents import KeyDocument, PlanDocument, RoundDocument
from dpcheckin.service.wire.problems import Problem

_MODEL = b"audited"
_CHARGE = canonical({"charge": "00" * 32})
_SECONDS = 10.0
_WIDE = Limits(
    rate=1.0, clip=1.0, local_epsilon=100.0, total_epsilon=1e4, total_local_epsilon=1e6, total_delta=0.9
)  # fmt: skip


ARRIVALS = ("first", "last", "anywhere")
"""When the target's report reaches the shuffler; it enrolled first in any case."""


class ArrivalStore(MemoryStore):
    """The least helpful store that the shuffler must live with: ids in the order of arrival, not random keys."""

    def __init__(self) -> None:
        super().__init__()
        self._arrived: dict[int, list[int]] = {}

    def accept(self, serial: int, entries: Sequence[Entry]) -> list[Problem | None]:
        taken = super().accept(serial, entries)
        kept = zip(entries, taken, strict=True)
        there = [e.id for e, t in kept if t is None and e.id >= 0]
        self._arrived.setdefault(serial, []).extend(there)
        return taken

    def report_ids(self, serial: int) -> Ids:
        return np.array(self._arrived.get(serial, []), dtype=np.int64)


@dataclass(frozen=True)
class Deployed(System):
    """The services: d-ary response in shuffled check-in, the target's report arriving as one of `ARRIVALS` says."""

    population: int
    rate: float
    rounds: int
    local_epsilon: float
    symbols: int
    delta: float
    arrival: str = "first"

    paired = False

    def __post_init__(self) -> None:
        if self.arrival not in ARRIVALS:
            raise InvalidParameter("arrival", self.arrival, ", ".join(ARRIVALS))

    block = 16

    @property
    def played(self) -> str:
        return f"deployed agents and shuffler, the target's report arriving {self.arrival}"

    def audited_plan(self) -> Plan:
        return protocol_of(self.document())

    def document(self) -> PlanDocument:
        """The plan that clients are asked to join."""
        randomizer = {
            "name": "d-ary", "local_epsilon": self.local_epsilon, "dimension": self.symbols,
            "clip": 1.0, "encoding": 2,
        }  # fmt: skip
        return PlanDocument.from_object(
            {
                "type": "plan",
                "format": 1,
                "protocol": "shuffled-check-in",
                "population": self.population,
                "minimum_present": self.population,
                "colluding": 0.0,
                "dropout": 0.0,
                "minimum_batch": 0,
                "rounds": self.rounds,
                "rate": self.rate,
                "randomizer": randomizer,
                "delta": self.delta,
                "epsilon_budget": 1e3,
                "round_seconds": _SECONDS,
                "compute_seconds": 0.3 * _SECONDS,
                "suite": 1,
                "cover": True,
                "task": {},
                "nonce": os.urandom(16).hex(),
            }
        )

    def play(self, data: Neighbours, which: int, seed: tuple[int, ...], runs: int) -> Released:
        # ledgers are written durably; in memory that takes microseconds, and nobody needs them
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
        with tempfile.TemporaryDirectory(prefix="dpcheckin-audit-", dir=memory) as folder:
            return gathered([self._run(data, which, Path(folder) / str(run)) for run in range(runs)])

    def _run(self, data: Neighbours, which: int, folder: Path) -> list[NDArray[Any]]:
        deployment = _Deployment(self.document(), folder, self.arrival)
        try:
            clients = np.arange(self.population)
            values = [data.values(clients, which, t) for t in range(self.rounds)]
            return [deployment.round(t, values[t]) for t in range(self.rounds)]
        finally:
            deployment.close()


class _Deployment:
    """One plan from its publication to its last batch."""

    def __init__(self, plan: PlanDocument, folder: Path, arrival: str = "first") -> None:
        self.plan, self.arrival, self.now = plan, arrival, 1e6
        self.identity = signing.identity_from_seed(os.urandom(32))
        self.key = envelope.OpeningKey(plan.suite, envelope.new_private_key(plan.suite))
        self.shuffler = Shuffler(ArrivalStore(), clock=lambda: self.now, chance=SecureChance())
        self.shuffler.refresh()
        key = KeyDocument(plan.id.hex(), plan.suite, self.key.public_key.hex(), 0)
        self.shuffler.publish_plan(signing.signed_bytes(plan, self.identity))
        self.shuffler.publish_key(self.key.key_id, signing.signed_bytes(key, self.identity))
        price = Price(plan)
        self.agents = [self._agent(folder / str(i), price) for i in range(plan.population)]
        self.names = [i.to_bytes(16) for i in range(plan.population)]  # in the order of enrolment

    def _agent(self, folder: Path, price: Price) -> Agent:
        known = signing.public_identity(self.identity)
        config = ClientConfig("http://127.0.0.1:1", "token", known, _WIDE, folder)
        folder.mkdir(parents=True)
        agent = Agent(config, ClientLedger(folder / "ledger"), SecureSource(), lambda _: price)
        agent.read_plan(self.shuffler.plan_page())
        return agent

    def round(self, number: int, values: NDArray[Any]) -> NDArray[Any]:
        """Play one round and open its batch as the analyzer would."""
        core, now = self.shuffler, self.now
        document = RoundDocument(
            self.plan.id.hex(), number, digest(_MODEL).hex(), self.key.key_id.hex(), now, now + _SECONDS
        )
        signed = signing.signed_bytes(document, self.identity)
        core.publish_model(digest(_MODEL), _MODEL)
        core.open_round(number, signed)
        core.mark_present(core.current().serial, self.names)
        for client in self._arriving():
            agent, name, value = self.agents[client], self.names[client], values[client]
            part = agent.take_part(agent.read_round(signed), partial(np.array, [value]))
            if part.failed and value < self.plan.dimension:
                raise ServiceError("an agent could not make its report")
            if part.action is not Action.NOTHING:
                core.accept([core.examine(name, number, part.envelope)])
        self.now += _SECONDS + 1
        core.tick()
        core.claim(number, _CHARGE)
        opened = list(records(core.batch(number).chunks, envelope.sizes(self.plan).released))
        core.finish(number)
        return np.array([self._symbol(record) for record in opened], dtype=np.int64)

    def _arriving(self) -> list[int]:
        """Clients in the order in which their reports arrive; the target is client 0."""
        clients = list(range(len(self.agents)))
        if self.arrival == "anywhere":
            SystemRandom().shuffle(clients)
        return clients[::-1] if self.arrival == "last" else clients

    def _symbol(self, record: bytes) -> int:
        payload = self.key.open(record, self.plan.id, digest(_MODEL))
        return int(payloads.read_payload(self.plan, payload)[0])

    def close(self) -> None:
        for agent in self.agents:
            agent.ledger.close()


def check_service(system: Deployed, confidence: float = DEFAULT_CONFIDENCE, *, epsilon: float | None = None) -> Check:
    """Attack what a system certifies for its own plan document, or a claimed epsilon, with this confidence."""
    document = system.document()
    plan = protocol_of(document)
    assert isinstance(plan, ShuffledCheckIn) and isinstance(plan.randomizer, DaryResponse)
    data, statistics = attack_on(plan)
    claimed = Price(document).statement(system.rounds).epsilon.upper
    return Check(
        name=f"deployed services; {plan.describe()}; {plan.randomizer.describe()}; " + rounds_text(system.rounds),
        system=system,
        data=data,
        statistics=tuple(statistics),
        epsilon=claimed if epsilon is None else epsilon,
        delta=system.delta,
        confidence=confidence,
    )


def check_failure(system: Deployed, confidence: float = DEFAULT_CONFIDENCE, *, epsilon: float | None = None) -> Check:
    """Attack by a value that is none: the target's task fails in one of two datasets.

    Whoever writes the plan chooses which values fail. What a failing client sends must be a report like any other: the
    neutral one, so that the two datasets are as near as any others are. `system`, `confidence` and `epsilon` are as in
    `check_service`.
    """
    check, neutral, others = (check_service(system, confidence, epsilon=epsilon), 0, system.symbols - 1)
    seen = Neighbours(others=others, first=1, second=neutral)
    randomizer = DaryResponse(system.local_epsilon, system.symbols)
    return replace(
        check,
        name=f"data-dependent failure; {check.name}",
        data=replace(seen, second=system.symbols),
        statistics=(NumberOfReports(), LikelihoodRatio(randomizer, seen, system.population)),
    )


def default_service() -> Deployed:
    """Few clients and a large delta (sealing is slow), yet enough that hiding among them matters more than noise."""
    return Deployed(population=12, rate=0.75, rounds=1, local_epsilon=3.0, symbols=3, delta=0.1)
