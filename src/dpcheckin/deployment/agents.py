"""Many client agents in one process, for demonstrations and tests: `python -m …agents SPEC`.

Each agent is the one that `dpcheckin client run` runs, with its own token, data, coin and ledger; only the connection
pool, the model's architecture and the price of the plan are shared. The specification is a JSON file; see
`Specification`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx

from dpcheckin.deployment.answers import Answer, read_answer
from dpcheckin.deployment.tasks import OwnerTask
from dpcheckin.service import tls
from dpcheckin.service.client.config import ClientConfig, Limits, Refused
from dpcheckin.service.client.daemon import Daemon
from dpcheckin.service.pricing import Price
from dpcheckin.service.settings import IssuerAccess
from dpcheckin.service.tasks import ClientTask
from dpcheckin.service.wire.documents import PlanDocument

log = logging.getLogger("dpcheckin.client")

_CONNECTIONS = 6


@dataclass(frozen=True)
class Specification:
    """A share of a fleet: agents `first`, `first + 1`, … of `clients`, one for each token."""

    shuffler: str
    identity: str
    tokens: list[str]
    first: int
    clients: int
    state: str
    data: str | None
    """What the agents train on; None: they only answer."""
    model: str
    limits: dict[str, Any]
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By topic: file and column, of which agent i has row i + 1."""
    authority: str | None = None
    shuffler_identity: str | None = None
    poll_seconds: float = 0.5
    issuer: str | None = None
    issuer_identity: str | None = None
    issuer_tokens: list[str] = field(default_factory=list)
    """Access tokens for the issuer, one for each agent; none without an issuer."""

    def write(self, path: Path) -> None:
        """As JSON, for a process of agents."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def read(path: Path) -> Specification:
        """What `write` wrote."""
        return Specification(**json.loads(path.read_text(encoding="utf-8")))


@lru_cache(maxsize=4)  # once for all agents of a process
def _price(plan_bytes: bytes) -> Price:
    return Price(PlanDocument.from_object(json.loads(plan_bytes)))


def agents_of(spec: Specification, http: httpx.AsyncClient) -> list[Daemon]:
    """The agents of `spec` on the connection `http`; agent i of n holds the training records i, i + n, i + 2n, …"""
    numbers = range(spec.first, spec.first + len(spec.tokens))
    training = _training_tasks(spec, numbers)
    answers = {topic: read_answer(table, Path()) for topic, table in spec.answers.items()}
    made = []
    for number, token in zip(numbers, spec.tokens, strict=True):
        config = ClientConfig(
            shuffler=spec.shuffler,
            token=token,
            identity=bytes.fromhex(spec.identity),
            limits=Limits(**spec.limits),
            state=Path(spec.state) / f"client-{number:06d}",
            authority=None if spec.authority is None else Path(spec.authority),
            arrival=number,
            shuffler_identity=None if spec.shuffler_identity is None else bytes.fromhex(spec.shuffler_identity),
            poll_seconds=spec.poll_seconds,
            issuer=_issuer_of(spec, number - spec.first),
        )
        own: dict[str, Answer] = {topic: replace(one, row=number + 1) for topic, one in answers.items()}
        task = OwnerTask(own, training.get(number))
        made.append(Daemon(config, task, http, price=lambda plan: _price(plan.to_bytes())))
    return made


def _training_tasks(spec: Specification, numbers: range) -> dict[int, ClientTask]:
    """The training tasks of all agents, on one module; none, and no torch, without data."""
    if spec.data is None:
        return {}
    import torch

    from dpcheckin.deployment.torch_tasks import TorchClientTask, make_module
    from dpcheckin.learning import load_dataset

    torch.set_num_threads(1)
    data = load_dataset(spec.data)
    shared: TorchClientTask | None = None
    made: dict[int, ClientTask] = {}
    for number in numbers:
        own = slice(number, None, spec.clients)
        inputs, targets = data.train_inputs[own], data.train_targets[own]
        if shared is None:
            shared = TorchClientTask(make_module(spec.model, data, 0), inputs, targets)
        made[number] = shared.sharing(inputs, targets)
    return made


def _issuer_of(spec: Specification, offset: int) -> IssuerAccess | None:
    if spec.issuer is None or spec.issuer_identity is None:
        return None
    identity = bytes.fromhex(spec.issuer_identity)
    return IssuerAccess(spec.issuer, spec.issuer_tokens[offset], identity)


class LimitedAsyncClient(httpx.AsyncClient):
    """Hundreds of agents on a few connections: the pool's own queue is slow when it is long."""

    def __init__(self, **options: Any) -> None:
        super().__init__(limits=httpx.Limits(max_connections=_CONNECTIONS), **options)
        self._gate = asyncio.Semaphore(_CONNECTIONS)

    async def send(self, request: httpx.Request, **options: Any) -> httpx.Response:
        async with self._gate:
            return await super().send(request, **options)


async def run(spec: Specification) -> dict[str, Any]:
    """Run the agents until SIGTERM, or until all of them refuse to go on."""
    authority = None if spec.authority is None else Path(spec.authority)
    verify = tls.verification(spec.shuffler, authority)
    async with LimitedAsyncClient(verify=verify, timeout=30.0, trust_env=False) as http:
        agents = agents_of(spec, http)
        print(json.dumps({"event": "ready", "agents": len(agents)}), file=sys.stderr, flush=True)
        tasks = [asyncio.create_task(_run_until_refused(agent)) for agent in agents]
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lambda: [task.cancel() for task in tasks])
        await asyncio.gather(*tasks, return_exceptions=True)
        for agent in agents:
            agent.close()
    counted = ("reports", "covers", "undelivered", "failures")
    return {"agents": len(agents), **{name: sum(getattr(a.counts, name) for a in agents) for name in counted}}


async def _run_until_refused(agent: Daemon) -> None:
    try:
        await agent.run()
    except Refused as reason:
        log.warning("an agent stops: %s", reason)


def main() -> None:
    """Run the agents of the specification file, and print what they did."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(name)s: %(message)s")
    # httpcore asks for it three times a request; an import that finds nothing is not remembered
    sys.modules.setdefault("sniffio", None)  # type: ignore[arg-type]
    print(json.dumps(asyncio.run(run(Specification.read(Path(sys.argv[1]))))))


if __name__ == "__main__":
    main()
