"""Black-box audit of the deployed parties: real agents, real envelopes, the real shuffler.

Every run is a small deployment in this process: a fresh store and shuffler, an agent with a ledger
of its own for every client, signed documents, sealed envelopes, a charge, a release, and an
analyzer's key that opens it. Network and clock are the only things left out. All chance is the
operating system's, so runs cannot be paired; what the audit sees is what an analyzer sees.
Needs the `service` extra.
"""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.audit.attacks.likelihood import worst_neighbours
from dpcheckin.audit.attacks.statistics import standard_statistics
from dpcheckin.audit.checks.plans import DEFAULT_CONFIDENCE, rounds_text
from dpcheckin.audit.examination import Check
from dpcheckin.audit.systems.base import System
from dpcheckin.audit.systems.batches import Neighbours, Released, gathered
from dpcheckin.protocols import ShuffledCheckIn
from dpcheckin.randomizers import DaryResponse, SecureSource
from dpcheckin.service.client.config import ClientConfig, Limits
from dpcheckin.service.client.core import Action, Agent
from dpcheckin.service.client.ledger import ClientLedger
from dpcheckin.service.pricing import Price, protocol_of
from dpcheckin.service.shuffler.chance import Chance, SecureChance
from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.stores.memory import MemoryStore
from dpcheckin.service.wire import envelope, payloads, signing
from dpcheckin.service.wire.canonical import canonical, digest
from dpcheckin.service.wire.documents import KeyDocument, PlanDocument, RoundDocument

_MODEL = b"audited"
_CHARGE = canonical({"charge": "00" * 32})
_SECONDS = 10.0
_WIDE = Limits(
    rate=1.0, clip=1.0, local_epsilon=100.0, total_epsilon=1e4, total_local_epsilon=1e6,
    total_delta=0.9,
)  # fmt: skip


class _Clock:
    def __init__(self) -> None:
        self.now = 1e6

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Deployed(System):
    """Runs of the services; `chance` is where the shuffler gets its order from.

    Args:
        population: number of clients.
        rate: check-in rate of a round.
        rounds: number of rounds.
        local_epsilon: epsilon of one report, in nats.
        symbols: of the response.
        delta: the delta of claim and audit, strictly between 0 and 1.
        chance: where the shuffler gets its order from.
    """

    population: int
    rate: float
    rounds: int
    local_epsilon: float
    symbols: int
    delta: float
    chance: Callable[[], Chance] = SecureChance

    paired = False

    @property
    def block(self) -> int:
        return 16

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
                "minimum_batch": 0,
                "rounds": self.rounds,
                "rate": self.rate,
                "randomizer": randomizer,
                "delta": self.delta,
                "epsilon_budget": 1e3,
                "round_seconds": _SECONDS,
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
            return gathered(
                [self._run(data, which, Path(folder) / str(run)) for run in range(runs)]
            )

    def _run(self, data: Neighbours, which: int, folder: Path) -> list[NDArray[Any]]:
        deployment = _Deployment(self.document(), self.chance(), folder)
        try:
            clients = np.arange(self.population)
            values = [data.values(clients, which, t) for t in range(self.rounds)]
            return [deployment.round(t, values[t]) for t in range(self.rounds)]
        finally:
            deployment.close()


class _Deployment:
    """One plan from its publication to its last batch."""

    def __init__(self, plan: PlanDocument, chance: Chance, folder: Path) -> None:
        self.plan, self.clock = plan, _Clock()
        self.identity = signing.identity_from_seed(os.urandom(32))
        self.key = envelope.OpeningKey(plan.suite, envelope.new_private_key(plan.suite))
        self.shuffler = Shuffler(MemoryStore(), clock=self.clock, chance=chance)
        self.shuffler.refresh()
        key = KeyDocument(plan.id.hex(), plan.suite, self.key.public_key.hex(), 0)
        self.shuffler.publish_plan(signing.signed_bytes(plan, self.identity))
        self.shuffler.publish_key(self.key.key_id, signing.signed_bytes(key, self.identity))
        price = Price(plan)
        self.agents = [self._agent(folder / str(i), price) for i in range(plan.population)]
        self.names = [digest(b"client %d" % i)[:16] for i in range(plan.population)]

    def _agent(self, folder: Path, price: Price) -> Agent:
        known = signing.public_identity(self.identity)
        config = ClientConfig("http://127.0.0.1:1", "token", known, _WIDE, folder)
        folder.mkdir(parents=True)
        agent = Agent(config, ClientLedger(folder / "ledger"), SecureSource(), lambda _: price)
        agent.read_plan(self.shuffler.plan_page())
        return agent

    def round(self, number: int, values: NDArray[Any]) -> NDArray[Any]:
        """Play one round and open its batch as the analyzer would."""
        core, now = self.shuffler, self.clock.now
        document = RoundDocument(
            self.plan.id.hex(), number, digest(_MODEL).hex(), self.key.key_id.hex(), now,
            now + _SECONDS,
        )  # fmt: skip
        signed = signing.signed_bytes(document, self.identity)
        core.publish_model(digest(_MODEL), _MODEL)
        core.open_round(number, signed)
        core.mark_present(core.current().serial, self.names)
        for agent, name, value in zip(self.agents, self.names, values, strict=True):
            part = agent.take_part(agent.read_round(signed), partial(np.array, [value]))
            if part.failure is not None:
                raise part.failure
            if part.action is not Action.NOTHING:
                core.accept([core.examine(name, number, part.envelope)])
        self.clock.now += _SECONDS + 1
        core.tick()
        core.claim(number, _CHARGE)
        batch = b"".join(core.batch(number).chunks)
        core.finish(number)
        opened = [self._symbol(record) for record in _records(batch)]
        return np.array(opened, dtype=np.int64)

    def _symbol(self, record: bytes) -> int:
        payload = self.key.open(record, self.plan.id, digest(_MODEL))
        return int(payloads.read_payload(self.plan, payload)[0])

    def close(self) -> None:
        for agent in self.agents:
            agent.ledger.close()


def _records(batch: bytes) -> list[bytes]:
    """A released batch is records of four bytes of length and as many bytes."""
    found, place = [], 0
    while place < len(batch):
        (length,) = struct.unpack_from(">I", batch, place)
        found.append(batch[place + 4 : place + 4 + length])
        place += 4 + length
    return found


def check_service(
    system: Deployed, confidence: float = DEFAULT_CONFIDENCE, *, epsilon: float | None = None
) -> Check:
    """Attack what the services certify for their own plan document.

    Args:
        system: the deployment.
        confidence: of the lower bound, in [0.5, 1).
        epsilon: a claimed epsilon, None for the certified one.
    """
    document = system.document()
    plan = protocol_of(document)
    assert isinstance(plan, ShuffledCheckIn) and isinstance(plan.randomizer, DaryResponse)
    data = worst_neighbours(plan.randomizer)
    claimed = Price(document).statement(system.rounds).epsilon.upper
    return Check(
        name=f"deployed services; {plan.describe()}; {plan.randomizer.describe()}; "
        + rounds_text(system.rounds),
        system=system,
        data=data,
        statistics=tuple(standard_statistics(plan.randomizer, data, plan.population)),
        epsilon=claimed if epsilon is None else epsilon,
        delta=system.delta,
        confidence=confidence,
    )


def default_service() -> Deployed:
    """Few clients and a large delta: sealing is slow, and unpaired runs need a visible loss."""
    return Deployed(population=4, rate=0.5, rounds=1, local_epsilon=3.0, symbols=3, delta=0.05)
