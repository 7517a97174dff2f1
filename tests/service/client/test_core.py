"""A client believes only what is signed, fits its limits and belongs together."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcheckin.service.client.config import Limits
from dpcheckin.service.client.core import Action, PlanReplaced, Refused
from dpcheckin.service.pricing import Price
from dpcheckin.service.wire import envelope, payloads
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.documents import KeyDocument
from dpcheckin.service.wire.signing import identity_from_seed, signed
from service.client_world import MODEL, WIDE, Coin, World
from service.plans import GAUSSIAN, PRIVUNIT, SKELLAM, plan


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def value() -> Any:
    return np.ones(20)


# --- refusing ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "limits", "said"),
    [
        ({"rate": 0.6}, {}, "plan's rate is 0.6, this client allows 0.5"),
        ({"randomizer": {**PRIVUNIT, "clip": 1.5}}, {}, "plan's clip is 1.5"),
        ({}, {"local_epsilon": 3.9}, "epsilon of one report is 4"),
        ({"epsilon_budget": 30.0}, {"total_epsilon": 2.0}, "epsilon of the whole plan"),
        ({"delta": 0.02}, {}, "plan's delta is 0.02"),
        ({"epsilon_budget": 0.01}, {}, "does not pay for a single round"),
        ({"randomizer": GAUSSIAN}, {"local_epsilon": 1.0}, "epsilon of one report"),
        ({"randomizer": {**PRIVUNIT, "name": "none"}}, {}, "cannot be priced"),
        ({"randomizer": {**PRIVUNIT, "extra": 1}}, {}, "cannot be priced"),
    ],
    ids=str,
)
def test_a_plan_beyond_the_owners_limits_is_refused(
    tmp_path: Path, changes: dict[str, Any], limits: dict[str, float], said: str
) -> None:
    world = World(tmp_path, plan(**changes))
    agent = world.agent(Limits(**{**WIDE.__dict__, **limits}))
    with pytest.raises(Refused, match=said):
        agent.read_plan(world.page())
    assert agent.joined is None
    with pytest.raises(Refused, match="no plan has been accepted"):
        agent.read_round(world.round())


def test_a_window_with_too_few_slots_is_a_rate_too_high(tmp_path: Path) -> None:
    world = World(tmp_path, plan("random-check-in-fixed", slots=2, rounds=2, epsilon_budget=20.0))
    with pytest.raises(Refused, match=r"plan's rate is 0\.5"):
        world.agent(Limits(**{**WIDE.__dict__, "rate": 0.4})).read_plan(world.page())


def test_a_signature_by_somebody_else_is_refused(world: World) -> None:
    stranger = identity_from_seed(os.urandom(32))
    agent = world.agent()
    with pytest.raises(Refused, match="signature of this plan does not hold"):
        agent.read_plan(world.page(by=stranger))
    with pytest.raises(Refused, match="signature of this key does not hold"):
        agent.read_plan(world.page(keys=[signed(world.key_document, stranger)]))
    agent.read_plan(world.page())
    with pytest.raises(Refused, match="signature of this round does not hold"):
        agent.read_round(world.round(by=stranger))


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"plan":1,"keys":2}', b'{"plan":{},"keys":[]}', b"\xff", b"NaN"])
def test_what_is_not_a_plan_page_is_refused(world: World, body: bytes) -> None:
    with pytest.raises(Refused):
        world.agent().read_plan(body)


def test_a_changed_signed_plan_is_refused(world: World) -> None:
    page = world.page().replace(b'"rate":0.2', b'"rate":0.1')
    with pytest.raises(Refused, match="does not hold"):
        world.agent().read_plan(page)


def test_a_new_signed_plan_within_the_limits_is_joined_and_starts_no_new_budget(world: World, tmp_path: Path) -> None:
    agent = world.agent(coin=Coin([0.1, 0.1]))
    agent.read_plan(world.page())
    agent.take_part(agent.read_round(world.round(7)), value)
    paid = agent.ledger.totals()
    other = World(tmp_path, plan(nonce="11" * 16))
    with pytest.raises(PlanReplaced, match="a round of another plan"):
        agent.read_round(other.round())
    agent.read_plan(other.page())
    agent.take_part(agent.read_round(other.round()), value)  # from round 0 again
    assert agent.ledger.totals().local_epsilon > paid.local_epsilon
    assert agent.ledger.totals().epsilon > paid.epsilon


def test_a_new_plan_beyond_the_limits_leaves_the_old_one_standing(world: World, tmp_path: Path) -> None:
    agent = world.agent()
    agent.read_plan(world.page())
    other = World(tmp_path, plan(nonce="11" * 16, rate=0.6))
    with pytest.raises(Refused, match=r"rate is 0\.6"):
        agent.read_plan(other.page())
    agent.read_round(world.round())  # the plan it joined still stands


def test_only_the_configured_plan_is_joined(world: World) -> None:
    with pytest.raises(Refused, match="another plan than the one in this client's configuration"):
        world.agent(plan=bytes(32)).read_plan(world.page())


def test_a_model_that_is_not_the_rounds_is_refused(world: World) -> None:
    agent = world.agent()
    agent.read_plan(world.page())
    found = agent.read_round(world.round())
    agent.check_model(found, MODEL)
    with pytest.raises(Refused, match="not the one that the round names"):
        agent.check_model(found, b"another model")


def test_a_key_that_was_not_announced_for_this_round_is_refused(world: World) -> None:
    agent = world.agent()
    agent.read_plan(world.page())
    found = agent.read_round(world.round(key="00" * 8))
    assert not agent.knows_key(found)
    with pytest.raises(Refused, match="a key that the plan page does not show"):
        agent.take_part(found, value)
    late = KeyDocument(world.plan.id.hex(), 1, world.key.public_key.hex(), 5)
    agent.read_plan(world.page(keys=[signed(late, world.identity)]))
    assert not agent.knows_key(agent.read_round(world.round(4)))
    assert agent.knows_key(agent.read_round(world.round(5)))


def test_keys_of_another_plan_are_not_used(world: World) -> None:
    foreign = KeyDocument("00" * 32, 1, world.key.public_key.hex(), 0)
    agent = world.agent()
    agent.read_plan(world.page(keys=[signed(foreign, world.identity)]))
    assert not agent.knows_key(agent.read_round(world.round()))


def test_rounds_do_not_run_backwards(world: World) -> None:
    agent = world.agent()
    agent.read_plan(world.page())
    agent.take_part(agent.read_round(world.round(7)), value)
    with pytest.raises(Refused, match="round 6 after round 7"):
        agent.read_round(world.round(6))


# --- deciding ---------------------------------------------------------------------------------


def test_heads_makes_a_report_that_the_analyzer_can_open(world: World) -> None:
    agent = world.agent(coin=Coin([0.19]))
    agent.read_plan(world.page())
    part = agent.take_part(agent.read_round(world.round()), value)
    assert part.action is Action.REPORT
    payload = world.key.open(part.envelope, world.plan.id, digest(MODEL))
    assert np.linalg.norm(payloads.read_payload(world.plan, payload)) == pytest.approx(1, abs=1e-5)


def test_tails_makes_a_cover_of_the_same_size(world: World) -> None:
    agent = world.agent(coin=Coin([0.21, 0.1]))
    agent.read_plan(world.page())
    called: list[int] = []
    cover = agent.take_part(agent.read_round(world.round()), lambda: called.append(1))  # type: ignore[arg-type, return-value, func-returns-value]
    report = agent.take_part(agent.read_round(world.round(1)), value)
    assert (cover.action, report.action) == (Action.COVER, Action.REPORT)
    assert len(cover.envelope) == len(report.envelope)
    assert not called


def test_without_cover_tails_sends_nothing(tmp_path: Path) -> None:
    world = World(tmp_path, plan(cover=False))
    agent = world.agent(coin=Coin([0.9]))
    agent.read_plan(world.page())
    part = agent.take_part(agent.read_round(world.round()), value)
    assert (part.action, part.envelope) == (Action.NOTHING, b"")


def test_coins_fall_at_the_plans_rate(world: World) -> None:
    """Binomial: 2,000 flips at 0.2 lie within 5 deviations of 400."""
    agent = world.agent()
    agent.read_plan(world.page())
    found = agent.read_round(world.round())
    heads = sum(agent.flip(found) for _ in range(2000))
    assert abs(heads - 400) < 5 * (2000 * 0.2 * 0.8) ** 0.5


def test_a_coin_that_has_fallen_is_not_flipped_again_after_a_crash(world: World) -> None:
    agent = world.agent(coin=Coin([0.1]))
    agent.read_plan(world.page())
    agent.take_part(agent.read_round(world.round()), value)
    agent.ledger.close()  # the process dies; nothing was sent
    again = world.agent()
    again.read_plan(world.page())
    found = again.read_round(world.round())
    assert again.is_done(found)
    with pytest.raises(Refused, match="dealt with already"):
        again.take_part(found, value)


def _raising(what: type[BaseException]) -> Callable[[], Any]:
    def broken() -> Any:
        raise what("of a value")

    return broken


@pytest.mark.parametrize(
    "task",
    [
        _raising(RuntimeError),
        _raising(MemoryError),
        _raising(SystemExit),
        _raising(KeyboardInterrupt),
        lambda: np.ones(3),
        lambda: np.full(20, np.nan),
        lambda: np.full(20, np.inf),
        lambda: np.full(20, 1e200),
        lambda: "a text",
        lambda: None,
    ],
)
def test_a_task_that_fails_sends_a_report_of_the_neutral_value(
    world: World, task: Callable[[], Any], recwarn: pytest.WarningsRecorder
) -> None:
    agent = world.agent(coin=Coin([0.1]))
    agent.read_plan(world.page())
    part = agent.take_part(agent.read_round(world.round()), task)
    assert (part.action, part.failed) == (Action.REPORT, True)
    payload = world.key.open(part.envelope, world.plan.id, digest(MODEL))
    assert np.linalg.norm(payloads.read_payload(world.plan, payload)) == pytest.approx(1, abs=1e-5)
    assert agent.ledger.reported(world.plan.id.hex(), 0) is True
    assert not recwarn.list  # a warning is a line in somebody's log


@pytest.mark.parametrize(
    ("limits", "said", "rounds"),
    [({"total_local_epsilon": 8.5}, "without an honest shuffler", 2), ({"total_epsilon": 8.0}, "", 12)],
)
def test_a_client_stops_before_the_report_that_passes_its_budget(
    tmp_path: Path, limits: dict[str, float], said: str, rounds: int
) -> None:
    world = World(tmp_path)
    agent = world.agent(Limits(**{**WIDE.__dict__, **limits}), coin=Coin([0.1] * 12))
    agent.read_plan(world.page())
    for number in range(rounds):
        agent.check_budget()
        agent.take_part(agent.read_round(world.round(number)), value)
        totals = agent.ledger.totals()
        assert totals.local_epsilon <= agent.config.limits.total_local_epsilon
        assert totals.epsilon <= agent.config.limits.total_epsilon
    if said:
        with pytest.raises(Refused, match=said):
            agent.check_budget()


def test_when_a_client_leaves_does_not_depend_on_its_coins(tmp_path: Path) -> None:
    """The network sees who leaves: after so many rounds, whether it always reported or never."""
    left = []
    for place, draws in enumerate(([0.1] * 12, [0.9] * 12, [0.1, 0.9] * 6)):
        world = World(tmp_path / str(place), plan(epsilon_budget=50.0))
        own = Limits(**{**WIDE.__dict__, "total_epsilon": 50.0, "total_local_epsilon": 13.0})
        agent = world.agent(own, coin=Coin(draws))
        agent.read_plan(world.page())
        for number in range(12):
            try:
                agent.check_budget()
            except Refused as reason:
                left.append((number, str(reason)))
                break
            agent.take_part(agent.read_round(world.round(number)), value)
    assert len(left) == 3
    assert len(set(left)) == 1
    assert 0 < left[0][0] < 12


def test_another_plan_is_paid_from_what_is_left(tmp_path: Path) -> None:
    one = World(tmp_path, plan(epsilon_budget=4.0))
    limits = Limits(**{**WIDE.__dict__, "total_epsilon": 4.5})
    agent = one.agent(limits)
    agent.read_plan(one.page())
    for number in range(agent.joined.price.allowed_rounds):  # type: ignore[union-attr]
        agent.check_budget()
        agent.take_part(agent.read_round(one.round(number)), value)
    agent.ledger.close()
    two = World(tmp_path, plan(epsilon_budget=4.0, nonce="22" * 16))
    later = two.agent(limits)
    later.read_plan(two.page())
    with pytest.raises(Refused, match="one more round would make epsilon"):
        later.check_budget()


def test_moments_are_uniform_over_what_is_left_of_the_window(world: World) -> None:
    agent = world.agent(coin=Coin([0.0, 0.5, 0.999]))
    agent.read_plan(world.page())
    found = agent.read_round(world.round())
    # 30 of the 100 seconds are everybody's allowance for computing, 10 the margin
    assert [agent.moment(120.0, found, 10.0) for _ in range(3)] == pytest.approx([150.0, 170.0, 189.96])
    assert agent.moment(90.0, found, 10.0) >= 130.0  # type: ignore[operator]
    assert agent.moment(160.0, found, 10.0) is None


# --- windows ----------------------------------------------------------------------------------


def test_a_window_gets_one_report_in_a_uniform_slot_that_survives_a_restart(tmp_path: Path) -> None:
    slots = []
    for i in range(96):
        world = World(tmp_path / str(i), plan("random-check-in-fixed", epsilon_budget=50.0))
        agent = world.agent()
        agent.read_plan(world.page())
        first = [agent.flip(agent.read_round(world.round(n))) for n in range(3)]
        agent.ledger.close()
        again = world.agent()
        again.read_plan(world.page())
        all_rounds = [again.flip(again.read_round(world.round(n))) for n in range(12)]
        assert all_rounds[:3] == first
        assert sum(all_rounds) == 1
        slots.append(all_rounds.index(True))
        again.ledger.close()
    counts = np.bincount(slots, minlength=12)
    # chi-square, 11 degrees: an honest draw fails with probability below 1e-7
    assert float(((counts - 8.0) ** 2 / 8.0).sum()) < 60


def test_some_stay_away_from_a_window_with_a_probability(tmp_path: Path) -> None:
    document = plan("random-check-in-fixed", check_in_probability=0.5, epsilon_budget=50.0)
    for draw, slots in ((0.6, 0), (0.4, 1)):
        world = World(tmp_path / str(draw), document)
        agent = world.agent(coin=Coin([draw]))
        agent.read_plan(world.page())
        assert sum(agent.flip(agent.read_round(world.round(n))) for n in range(12)) == slots


def test_a_sliding_window_begins_where_the_client_arrives(tmp_path: Path) -> None:
    document = plan("random-check-in-sliding", rounds=89, epsilon_budget=50.0)
    for arrival in (0, 30):
        world = World(tmp_path / str(arrival), document)
        agent = world.agent(arrival=arrival)
        agent.read_plan(world.page())
        hits = [n for n in range(89) if agent.flip(agent.read_round(world.round(n)))]
        # slot = arrival + 0..11, and round 0 is slot 11
        assert len(hits) <= 1
        assert all(arrival - 11 <= n <= arrival for n in hits)
        assert arrival == 0 or len(hits) == 1


# --- two shares -------------------------------------------------------------------------------


def test_a_report_in_two_shares_fits_together(tmp_path: Path) -> None:
    world = World(tmp_path, plan("distributed-check-in", randomizer=SKELLAM))
    agent = world.agent(coin=Coin([0.1]))
    agent.read_plan(world.page())
    part = agent.take_part(agent.read_round(world.round()), value)
    sizes = envelope.sizes(world.plan)
    mine = payloads.read_payload(world.plan, world.key.open(part.envelope, world.plan.id, digest(MODEL)))
    theirs = np.frombuffer(part.envelope[sizes.released :], dtype="<u4")
    report = (mine + theirs).view(np.int32) / 256
    # each coordinate: 1/√20 of the clip plus noise of deviation 4
    assert np.abs(report - 20**-0.5).max() < 4 * 7


def test_the_price_is_the_accountings(world: World) -> None:
    price = Price(world.plan)
    assert price.spent(5).epsilon == price.plan.guarantee(1e-5, 5).charge()
    assert price.spent(0).epsilon == 0.0
