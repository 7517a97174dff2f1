"""Agents behind a doorbell: they wake for true rings only, and not before a quiet time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import httpx
import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.flower.host import DeliveredModels, Host
from dpcheckin.flower.mailbox import Mailbox, Ring
from dpcheckin.service.client.core import Refused
from dpcheckin.service.client.daemon import Clock, ShufflerUnreachable
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.documents import RoundDocument
from dpcheckin.service.wire.signing import identity_from_seed, public_identity, signed_bytes

IDENTITY, STRANGER = identity_from_seed(bytes(32)), identity_from_seed(bytes([1]) * 32)
START = 1_000_000.0


class Time:
    """A clock that sleeping moves."""

    def __init__(self):
        self.now, self.slept = START, []

    def clock(self):
        return Clock(now=lambda: self.now, sleep=self.sleep)

    async def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class FakeAgent:
    """Remembers when it was asked; does what `outcomes` say, one after the other."""

    def __init__(self, time, outcomes=()):
        self.config = SimpleNamespace(identity=public_identity(IDENTITY))
        self._time, self._outcomes, self.asked = time, list(outcomes), []

    async def once(self):
        self.asked.append(self._time.now)
        outcome = self._outcomes.pop(0) if self._outcomes else True
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def ring(model=b"model", closes=START + 20, identity=IDENTITY):
    document = RoundDocument("00" * 32, 3, digest(model).hex(), "11" * 8, START, closes)
    return Ring(signed_bytes(document, identity), model)


async def play(host, box, rings, time, seconds=60.0):
    """Drop the rings one after the other, as the host takes them; stop when time is up."""
    stop = asyncio.Event()
    task = asyncio.create_task(host.run(stop))
    await asyncio.sleep(0)
    for one in rings:
        before = host.rings
        box.drop(one)
        for _ in range(200):
            await asyncio.sleep(0)
            if host.rings > before:
                break
    while time.now < START + seconds and not task.done():
        await asyncio.sleep(0)
    stop.set()
    await task


@pytest.fixture
def world(tmp_path):
    time = Time()
    box = Mailbox(tmp_path / "box")
    delivered = DeliveredModels(httpx.AsyncHTTPTransport())

    def host(*agents, quiet=2.0):
        return Host(agents, box, delivered, quiet, time.clock())

    return SimpleNamespace(time=time, box=Mailbox(tmp_path / "box"), host=host, kept=delivered)


def test_all_agents_look_once_after_the_quiet_time(world):
    """The doorbell is measured while it runs; nothing of the agents' falls into that moment."""
    agents = [FakeAgent(world.time) for _ in range(5)]
    asyncio.run(play(world.host(*agents), world.box, [ring()], world.time))
    assert all(len(agent.asked) == 1 for agent in agents)
    assert all(agent.asked[0] >= START + 2.0 for agent in agents)
    own = {pause for pause in world.time.slept if pause not in (0.25, 2.0)}
    assert len(own) == 5, "they do not come all at once"


def test_a_ring_that_the_analyzer_did_not_sign_wakes_nobody(world):
    """A SuperLink that makes up rings gets nothing, not even a request at the shuffler."""
    agent = FakeAgent(world.time)
    fakes = [ring(identity=STRANGER), Ring(b"not json", b"m"), Ring(b"{}", b"m")]
    for fake in fakes:
        asyncio.run(play(world.host(agent), world.box, [fake], world.time, seconds=5.0))
    assert agent.asked == []


def test_a_ring_of_a_round_that_is_over_wakes_nobody(world):
    agent = FakeAgent(world.time)
    asyncio.run(play(world.host(agent), world.box, [ring(closes=START - 1)], world.time))
    assert agent.asked == []


def test_an_agent_that_refuses_stays_away_and_the_others_go_on(world):
    weary, eager = FakeAgent(world.time, [Refused("enough")]), FakeAgent(world.time)
    rings = [ring(b"one"), ring(b"two", closes=START + 200)]
    asyncio.run(play(world.host(weary, eager), world.box, rings, world.time, seconds=120))
    assert len(weary.asked) == 1 and len(eager.asked) == 2


def test_a_shuffler_that_is_away_is_asked_again_within_the_round(world):
    agent = FakeAgent(world.time, [ShufflerUnreachable("down"), ShufflerUnreachable("down"), True])
    asyncio.run(play(world.host(agent), world.box, [ring()], world.time))
    assert len(agent.asked) == 3 and agent.asked[-1] < START + 20


def test_a_shuffler_that_stays_away_costs_the_round_only(world):
    agent = FakeAgent(world.time, [ShufflerUnreachable("down")] * 100)
    asyncio.run(play(world.host(agent), world.box, [ring()], world.time))
    assert 1 < len(agent.asked) < 100


def test_the_rung_model_is_used_if_it_is_the_rounds_own():
    """Asked for by its digest; any other model comes from the shuffler."""

    async def ask():
        def shuffler(request):
            return httpx.Response(200, content=b"from the shuffler")

        delivered = DeliveredModels(httpx.MockTransport(shuffler))
        delivered.keep(b"from the ring")
        async with httpx.AsyncClient(transport=delivered, base_url="http://127.0.0.1") as http:
            own = await http.get(f"/v1/model/{digest(b'from the ring').hex()}")
            other = await http.get(f"/v1/model/{digest(b'another').hex()}")
            round_ = await http.get("/v1/round")
        return own.content, other.content, round_.content, delivered.served_models

    own, other, round_, spared = asyncio.run(ask())
    assert own == b"from the ring" and other == round_ == b"from the shuffler" and spared == 1


@pytest.mark.parametrize("quiet", [-1.0, float("nan")])
def test_a_bad_quiet_time_is_refused(world, quiet):
    with pytest.raises(InvalidParameter, match="quiet"):
        world.host(FakeAgent(world.time), quiet=quiet)


def test_a_host_without_agents_is_refused(world):
    with pytest.raises(InvalidParameter, match="agents"):
        world.host()
