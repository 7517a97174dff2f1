"""The crowd that is priced and the presence that voids a round: two numbers, with margins."""

from typing import Any

import pytest

from dpcheckin.accounting import CheckInRound, compose
from dpcheckin.errors import InvalidParameter
from dpcheckin.service.pricing import Price
from dpcheckin.service.shuffler.stores.sqlite import MemoryStore
from dpcheckin.service.wire.documents import PlanDocument
from dpcheckin.service.wire.problems import Malformed
from service.plans import SKELLAM, plan, plan_object
from service.shuffler_world import Analyzer, Clock, attend, core_over, send


def epsilon(**changes: Any) -> float:
    return Price(plan(**changes)).spent(5).epsilon


def test_colluders_are_taken_out_of_the_crowd_and_losses_widen_the_rates() -> None:
    """The plan's price is the accounting's for the same fraction, and never below its parts."""
    document = plan(colluding=0.2, dropout=0.1)
    one = CheckInRound(100, 0.2, Price(document).plan.randomizer.pair, colluding=0.2, dropout=0.1)
    assert Price(document).spent(5).epsilon == compose([(one, 5)]).epsilon(1e-5).upper
    plain, colluding, lost = epsilon(), epsilon(colluding=0.2), epsilon(dropout=0.1)
    assert plain < colluding < epsilon(colluding=0.2, dropout=0.1)
    assert plain < lost < epsilon(colluding=0.2, dropout=0.1)
    # 20 of 100 that collude leave 80: the same as 80 of whom none does
    assert colluding == epsilon(population=80)


def test_presence_beyond_the_priced_crowd_is_a_margin_and_changes_no_price() -> None:
    assert epsilon(minimum_present=150) == epsilon()


def test_those_who_collude_take_their_noise_out_of_a_sum() -> None:
    whole = Price(plan("distributed-check-in", randomizer=SKELLAM))
    fewer = Price(plan("distributed-check-in", randomizer=SKELLAM, colluding=0.25))
    assert fewer.plan.population == 75
    assert fewer.spent(3).epsilon > whole.spent(3).epsilon
    assert "75 clients" in str(fewer.statement(3))


@pytest.mark.parametrize(
    ("protocol", "wrong"),
    [
        ("distributed-check-in", {"dropout": 0.1}),
        ("random-check-in-fixed", {"dropout": 0.1}),
        ("random-check-in-averaged", {"colluding": 0.1}),
    ],
)
def test_a_margin_without_a_theorem_is_no_price(protocol: str, wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter, match="no theorem"):
        Price(plan(protocol, **wrong))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"minimum_present": 99}, "at least the population of 100"),
        ({"colluding": 0.99}, "leaving two honest clients"),
        ({"colluding": 1.0}, "below 1"),
        ({"colluding": -0.1}, "colluding"),
        ({"dropout": 1.0}, "below 1"),
        ({"dropout": float("nan")}, "dropout"),
        ({"compute_seconds": 0.71}, "compute_seconds"),
        ({"compute_seconds": 0.0}, "compute_seconds"),
    ],
)
def test_a_plan_whose_numbers_do_not_fit_is_refused(wrong: dict[str, float], said: str) -> None:
    with pytest.raises(Malformed, match=said):
        PlanDocument.from_object(plan_object(**wrong))


@pytest.mark.parametrize(("present", "state"), [(4, "void"), (5, "void"), (6, "closed")])
def test_a_round_is_void_below_the_presence_not_below_the_priced_crowd(present: int, state: str) -> None:
    analyzer, clock = Analyzer.of(population=4, minimum_present=6, minimum_batch=0), Clock()
    core = core_over(MemoryStore(), clock)
    analyzer.publish(core)
    analyzer.open(core, 0)
    attend(core, present)
    send(core, analyzer, 0, 0, 1)
    clock.now += 20
    assert core.status(0)["state"] == state
