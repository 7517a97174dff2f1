"""A fleet of agents and somebody who sees when each of them asks and sends, and nothing else.

`VirtualLoop` is an event loop whose time passes only while everybody waits, so that hundreds of
rounds take seconds and no other process can disturb them.
"""

import asyncio
import selectors
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
from scipy.stats import rankdata

from dpcheckin.service.client.config import ClientConfig
from dpcheckin.service.client.core import Part
from dpcheckin.service.client.daemon import Clock, Daemon
from dpcheckin.service.pricing import Price, Spent
from dpcheckin.service.wire.problems import Problem
from dpcheckin.service.wire.signing import public_identity
from service.client_world import MODEL, WIDE, World
from service.plans import plan

RATE = 0.5


class FreePrice(Price):
    """What rounds cost is not what is looked at here."""

    allowed_rounds = 10**6  # type: ignore[assignment]

    def spent(self, charged: int) -> Spent:
        return Spent(0.0, 0.0, self.delta)

    def rounds_epsilon(self, rounds: int) -> float:
        return 0.0


class _Selector(selectors.DefaultSelector):
    """Does not wait: moves the loop's time instead."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if not found:
            assert timeout is not None, "everybody waits for ever"
            self.now += timeout
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._own = _Selector()
        super().__init__(self._own)

    def time(self) -> float:
        return self._own.now


@dataclass(frozen=True)
class Seen:
    """One client in one round: seconds from the round's beginning, and how its coin fell."""

    fetched: float
    sent: float
    heads: bool
    size: int = 0
    requests: int = 0


class Watched:
    """Agents with one shuffler between whose doors and theirs somebody notes the times.

    Args:
        folder: of the agents' ledgers.
        clients: how many.
        rounds: how many.
        task_seconds: that a computation takes.
        seconds: of a round; a third of it is the allowance.
        virtual: in virtual time.
        seed: of coins and moments.
        failing: share of the clients whose task fails, whatever it takes.
    """

    def __init__(
        self,
        folder: Path,
        *,
        clients: int,
        rounds: int,
        task_seconds: float,
        seconds: float = 9.0,
        virtual: bool = True,
        seed: int = 1,
        failing: float = 0.0,
    ) -> None:
        document = plan(rate=RATE, rounds=rounds, round_seconds=seconds, compute_seconds=seconds / 3)
        self.world, self.seconds, self.rounds = World(folder, document), seconds, rounds
        self.task_seconds, self.virtual = task_seconds, virtual
        self.folder, self.clients = folder, clients
        self.chance = np.random.default_rng(seed)
        self.failing = failing
        self.times: dict[tuple[str, int], list[float]] = {}
        self.sizes: dict[tuple[str, int], int] = {}
        self.requests: dict[tuple[str, int], int] = {}
        self.agents: list[Daemon] = []
        self.began = 0.0
        self._signed: dict[int, bytes] = {}

    # --- the shuffler -------------------------------------------------------------------------

    def now(self) -> float:
        return asyncio.get_running_loop().time() if self.virtual else time.time()

    def _round(self) -> int:
        return int((self.now() - self.began) // (1.2 * self.seconds))

    def _opens(self, number: int) -> float:
        return self.began + 1.2 * self.seconds * number

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path, number = request.url.path, self._round()
        if path == "/v1/plan":
            return httpx.Response(200, content=self.world.page())
        opens = self._opens(number)
        who = (request.headers["authorization"], number)
        self.requests[who] = self.requests.get(who, 0) + 1
        note = self.times.setdefault((request.headers["authorization"], number), [])
        if path.startswith("/v1/model/"):
            note.append(self.now() - opens)
            return httpx.Response(200, content=MODEL)
        if path.endswith("/report"):
            self.sizes[who] = len(request.content)
            note.append(self.now() - opens)
            return httpx.Response(202, content=b"{}")
        if number >= self.rounds or self.now() > opens + self.seconds:
            return httpx.Response(404, content=Problem.NO_ROUND.body())
        if number not in self._signed:
            closes = opens + self.seconds
            self._signed[number] = self.world.round(number, opens=opens, closes=closes)
        return httpx.Response(200, content=self._signed[number])

    # --- the agents ---------------------------------------------------------------------------

    def value(self, model: bytes) -> Any:
        if not self.virtual:
            time.sleep(self.task_seconds)
        return np.ones(20)

    def task_of(self, number: int) -> Any:
        """Of clients whose task fails, some raise and some have a value that does not fit."""
        if number >= self.failing * self.clients:
            return self
        wrong = [np.full(20, np.nan), np.ones(3)][number % 2]
        return SimpleNamespace(value=lambda model: self.value(model) * 0 + wrong)

    def _work(self, call: Callable[[], Part]) -> asyncio.Future[Part]:
        async def take_time() -> Part:
            await asyncio.sleep(self.task_seconds)
            return call()

        return asyncio.ensure_future(take_time())

    def _clock(self) -> Clock:
        async def aside(call: Callable[..., Any], *arguments: Any) -> Any:
            return call(*arguments)

        return Clock(self.now, asyncio.sleep, self._work, aside) if self.virtual else Clock()

    def _agent(self, number: int, http: httpx.AsyncClient) -> Daemon:
        config = ClientConfig(
            "http://127.0.0.1:1",
            f"token{number}",
            public_identity(self.world.identity),
            WIDE,
            self.folder / str(number),
            poll_seconds=self.seconds / 4,
        )
        config.state.mkdir()
        made = Daemon(config, self.task_of(number), http, self._clock(), price=FreePrice)
        secure, chance = made._source.uniform, self.chance

        def uniform(size: Any) -> Any:
            return chance.random(1) if size == 1 else secure(size)

        made._source.uniform = uniform  # type: ignore[method-assign]
        return made

    async def _play(self) -> None:
        self.began = self.now() + 0.1
        transport = httpx.MockTransport(self._answer)
        async with httpx.AsyncClient(transport=transport) as http:
            self.agents = [self._agent(n, http) for n in range(self.clients)]
            running = [asyncio.create_task(agent.run()) for agent in self.agents]
            await asyncio.sleep(1.2 * self.seconds * self.rounds + self.seconds)
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def play(self) -> list[Seen]:
        """Every client and round of which an envelope was sent."""
        factory = VirtualLoop if self.virtual else asyncio.new_event_loop
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(self._play())
        found = []
        for agent in self.agents:
            for number in range(self.rounds):
                times = self.times.get((f"Bearer {agent.config.token}", number), [])
                heads = agent.ledger.reported(self.world.plan.id.hex(), number)
                if heads is not None and len(times) == 2:
                    who = (f"Bearer {agent.config.token}", number)
                    seen = Seen(*times, heads, self.sizes[who], self.requests[who])
                    found.append(seen)
            agent.close()
        return found


def auc(values: Any, heads: Any) -> float:
    """Probability that a client whose coin came up has the larger value; 0.5: nothing is seen."""
    ranks, ones = rankdata(values), np.asarray(heads, bool)
    n1, n0 = int(ones.sum()), int((~ones).sum())
    return float((ranks[ones].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))


def deviation(heads: Any) -> float:
    """Of `auc` when nothing is seen."""
    ones = np.asarray(heads, bool)
    n1, n0 = int(ones.sum()), int((~ones).sum())
    return float(np.sqrt((n1 + n0 + 1) / (12 * n1 * n0)))
