"""A client keeps a plan to its promises, and pays for what was or may have been released."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcheckin.service.client.config import Limits, Refused
from dpcheckin.service.client.core import Agent
from dpcheckin.service.client.ledger import ClientLedger
from dpcheckin.service.pricing import Price
from dpcheckin.service.wire.documents import VoidDocument
from dpcheckin.service.wire.signing import identity_from_seed, public_identity, signed_bytes
from service.client_world import WIDE, Coin, World
from service.plans import plan

SHUFFLER = identity_from_seed(bytes(31) + b"\7")
STRANGER = identity_from_seed(bytes(31) + b"\11")


def value() -> Any:
    return np.ones(20)


def limits(**changes: Any) -> Limits:
    return Limits(**{**WIDE.__dict__, **changes})


def play(world: World, agent: Agent, *rounds: int) -> None:
    for number in rounds:
        agent.check_budget()
        agent.take_part(agent.read_round(world.round(number)), value)


def void(world: World, *rounds: int, by: Any = SHUFFLER) -> bytes:
    return signed_bytes(VoidDocument(world.plan.id.hex(), rounds), by)


def joined(world: World, own: Limits = WIDE, **config: Any) -> Agent:
    agent = world.agent(own, Coin([0.1] * 40), **config)
    agent.read_plan(world.page())
    return agent


# --- the plan's own budget --------------------------------------------------------------------


def test_a_client_stops_at_the_budget_that_the_plan_has_signed(tmp_path: Path) -> None:
    """Its own limits would allow 20; the plan promised 4, and an analyzer that goes on is alone."""
    world = World(tmp_path, plan(epsilon_budget=4.0))
    agent = joined(world)
    allowed = Price(world.plan).allowed_rounds
    assert 1 <= allowed < world.plan.rounds
    play(world, agent, *range(allowed))
    assert agent.ledger.totals().epsilon <= 4.0
    with pytest.raises(Refused, match=r"the plan's epsilon .*, and it promises to stop at 4"):
        agent.check_budget()


def test_rounds_beyond_the_plans_number_are_not_paid_twice(tmp_path: Path) -> None:
    """An honest shuffler releases no more rounds than the plan has; void ones do not count."""
    world = World(tmp_path, plan(rounds=3, epsilon_budget=50.0))
    agent = joined(world, limits(total_epsilon=60.0))
    play(world, agent, *range(6))
    assert agent.ledger.totals().epsilon == Price(world.plan).spent(3).epsilon


# --- the owner's own limits -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "own", "said"),
    [
        ({}, {"minimum_population": 101}, "priced for 100 honest clients, this client wants"),
        ({"minimum_batch": 4}, {"minimum_batch": 5}, "rounds of 4 reports, this client wants at"),
        ({"compute_seconds": 1e-9}, {}, "leaves 1e-09 seconds for computing, this client wants"),
        ({}, {"minimum_compute_seconds": 0.31}, "leaves 0.3 seconds for computing"),
        ({"colluding": 0.1, "minimum_present": 120}, {"minimum_population": 100}, "priced for 90 honest clients"),
        ({"cover": False}, {"require_cover": True}, "requires cover"),
        ({"rounds": 12}, {"rounds": 11}, "the plan has 12 rounds, this client allows 11"),
    ],
)
def test_a_plan_beyond_what_an_owner_wants_is_refused(
    tmp_path: Path, changes: dict[str, Any], own: dict[str, Any], said: str
) -> None:
    world = World(tmp_path, plan(**changes))
    agent = world.agent(limits(**own))
    with pytest.raises(Refused, match=said):
        agent.read_plan(world.page())


def test_a_plan_within_all_of_them_is_joined(tmp_path: Path) -> None:
    own = limits(minimum_population=100, require_cover=True, rounds=12)
    joined(World(tmp_path), own)


# --- void rounds ------------------------------------------------------------------------------


def test_seven_void_rounds_cost_nothing_once_the_shuffler_has_said_so(tmp_path: Path) -> None:
    world = World(tmp_path)
    agent = joined(world, shuffler_identity=public_identity(SHUFFLER))
    play(world, agent, *range(7))
    paid = agent.ledger.totals()
    assert paid.epsilon > 3.0  # until then each of them may have been released
    assert agent.read_void(void(world, *range(7))) == 7
    after = agent.ledger.totals()
    assert after.epsilon == 0.0
    # the reports had left the device: if the shuffler lies, this is what was given away
    assert after.local_epsilon == paid.local_epsilon
    assert agent.read_void(void(world, *range(7))) == 0  # said twice, given back once
    play(world, agent, 7)
    assert agent.ledger.totals().epsilon == Price(world.plan).spent(1).epsilon
    agent.ledger.close()
    again = ClientLedger(tmp_path / "state" / "ledger")
    assert again.rounds_of(world.plan.id.hex()) == 1
    assert again.totals() == agent.ledger.totals()
    again.close()


def test_a_client_with_void_rounds_pays_exactly_for_those_that_were_not(tmp_path: Path) -> None:
    world = World(tmp_path)
    agent = joined(world, shuffler_identity=public_identity(SHUFFLER))
    price = Price(world.plan)
    play(world, agent, 0, 1, 2, 3)
    agent.read_void(void(world, 1, 3, 9))  # of round 9 it knows nothing
    assert agent.ledger.totals().epsilon == price.spent(2).epsilon
    play(world, agent, 4)
    agent.read_void(void(world, 1, 3, 4, 9))
    assert agent.ledger.totals().epsilon == price.spent(2).epsilon


def test_budget_that_void_rounds_had_used_up_is_there_again(tmp_path: Path) -> None:
    world = World(tmp_path, plan(epsilon_budget=4.0))
    agent = joined(world, shuffler_identity=public_identity(SHUFFLER))
    allowed = Price(world.plan).allowed_rounds
    play(world, agent, *range(allowed))
    with pytest.raises(Refused):
        agent.check_budget()
    agent.read_void(void(world, 0))
    play(world, agent, allowed)
    with pytest.raises(Refused):
        agent.check_budget()


@pytest.mark.parametrize("who", ["stranger", "analyzer", "nobody is trusted"])
def test_only_the_shuffler_that_the_owner_named_can_give_anything_back(tmp_path: Path, who: str) -> None:
    """The analyzer is who the figures protect from: its word that it saw nothing is worth none."""
    world = World(tmp_path)
    named = None if who == "nobody is trusted" else public_identity(SHUFFLER)
    agent = joined(world, shuffler_identity=named)
    play(world, agent, 0)
    before = agent.ledger.totals()
    by = {"stranger": STRANGER, "analyzer": world.identity}.get(who, SHUFFLER)
    with pytest.raises(Refused):
        agent.read_void(void(world, 0, by=by))
    assert agent.ledger.totals() == before


def test_a_statement_about_another_plan_gives_nothing_back(tmp_path: Path) -> None:
    world = World(tmp_path)
    agent = joined(world, shuffler_identity=public_identity(SHUFFLER))
    play(world, agent, 0)
    before = agent.ledger.totals()
    other = signed_bytes(VoidDocument("00" * 32, (0,)), SHUFFLER)
    assert agent.read_void(other) == 0
    assert agent.ledger.totals() == before


@pytest.mark.parametrize("body", [b'{"plan":"00","rounds":[1,1],"type":"void"}', b'{"rounds":[2,1]}', b"[]"])
def test_a_statement_out_of_form_is_refused_even_if_signed(tmp_path: Path, body: bytes) -> None:
    world = World(tmp_path)
    agent = joined(world, shuffler_identity=public_identity(SHUFFLER))
    message = b"dpcheckin/1 void\0" + body
    signature = SHUFFLER.sign(message).hex().encode()
    with pytest.raises(Refused):
        agent.read_void(b'{"document":' + body + b',"signature":"' + signature + b'"}')


def test_a_client_stops_after_so_many_void_rounds_in_a_row(tmp_path: Path) -> None:
    world = World(tmp_path)
    named = public_identity(SHUFFLER)
    agent = joined(world, limits(void_rounds=3), shuffler_identity=named)
    play(world, agent, 0, 1, 2)
    agent.read_void(void(world, 0, 2))
    play(world, agent, 3, 4)  # round 1 was not void: two in a row at most
    agent.read_void(void(world, 0, 2, 3, 4))
    with pytest.raises(Refused, match="3 rounds in a row were void"):
        agent.check_budget()
