"""Which randomizers a plan may name, and what they cost there."""

import pytest

from dpcheckin.errors import DpCheckinError, InvalidParameter
from dpcheckin.randomizers import DiscreteGaussianVector, described, registry
from dpcheckin.randomizers.registry import kinds, usual
from dpcheckin.service.pricing import Price, encoding_of, randomizer_of
from dpcheckin.service.wire.problems import Malformed

from .plans import DARY, PRIVUNIT, SKELLAM, plan

OCTETS = {"clip": 1.0, "encoding": 4}


def test_discrete_gaussian_shares_are_priced_by_their_own_theorem() -> None:
    named = {**SKELLAM, "name": "discrete-gaussian"}
    document = plan("distributed-check-in", randomizer=named)
    assert randomizer_of(document) == DiscreteGaussianVector(4.0, 20, 1.0, 256)
    costs = [Price(plan("distributed-check-in", randomizer=one)).statement(12) for one in (SKELLAM, named)]
    assert any("discrete Gaussian" in text for text in costs[1].basis)
    assert costs[1].charge() == pytest.approx(costs[0].charge(), rel=0.05)
    assert encoding_of("discrete-gaussian") == encoding_of("skellam") == 3


@pytest.mark.parametrize("named", ["laplace", "subset:6:2", "unary:6", "hadamard:6", "levels:4", "hash:64"])
def test_whatever_has_a_layout_may_be_sent_and_counted(named: str) -> None:
    """With encoding 4; the size of a report must be the plan's."""
    made = registry.randomizer(named, {"dimension": 3}, local_epsilon=2.0)
    size = made.report_format.size
    table = {**described(made), **OCTETS, "dimension": size}
    document = plan(randomizer=table)
    assert randomizer_of(document) == made and Price(document).spent(1).epsilon > 0
    with pytest.raises(InvalidParameter, match=f"{size} bytes"):
        randomizer_of(plan(randomizer={**table, "dimension": size + 1}))


@pytest.mark.parametrize("name", ["any", "gaussian", "skellam", "discrete-gaussian", "l1-bit"])
def test_reports_without_a_layout_are_not_sent_one_by_one(name: str) -> None:
    """Least of all those whose only guarantee is that of their sum."""
    table = {**described(usual(kinds()[name])), **OCTETS, "dimension": 4}
    with pytest.raises(InvalidParameter, match="one by one"):
        Price(plan(randomizer=table))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "laplace"}, "randomizer.name"),
        ({"name": "pigeon"}, "randomizer.name"),
        ({"steps": 3}, "steps"),
        ({"local_epsilon": "4"}, "a number"),
        ({"local_epsilon": -1.0}, "local_epsilon"),
        ({**DARY, "encoding": 1}, "randomizer.encoding"),
        ({"encoding": 2}, "randomizer.encoding"),
    ],
)
def test_what_is_not_exactly_a_randomizer_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(DpCheckinError, match=said):
        Price(plan(randomizer={**PRIVUNIT, **changes}))


def test_the_price_of_a_window_is_bounded_in_time() -> None:
    """Clients price whatever an analyzer signs: one window of 2^32 slots would take 32 GB and hours."""
    assert plan("random-check-in-averaged", slots=1 << 20).participation["slots"] == 1 << 20
    with pytest.raises(Malformed, match=r"plan\.slots"):
        plan("random-check-in-averaged", slots=(1 << 20) + 1)
