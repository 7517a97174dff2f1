"""The one table of protocols: every spelling resolves, every entry can be asked about."""

from __future__ import annotations

import pytest

from dpcheckin.accounting import Guarantee, Kind, LowerBound
from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols.questions import PLANNED, PROTOCOL_OF, PROTOCOLS, RunQuestion, protocol_name, randomizers_of
from dpcheckin.randomizers import registry

NUMBERS = {"rate": 0.1, "cohort": 10, "slots": 20, "check_in_probability": 0.5, "colluding": 0.1, "dropout": 0.1}


def _question(protocol: str, randomizer: str) -> RunQuestion:
    """A small run with every field that the table says the protocol takes."""
    given = {key: NUMBERS[key] for key in PROTOCOLS[protocol_name(protocol)].fields if key in NUMBERS}
    kind = registry.kind_named(randomizer)
    small = {one.field: 3.0 if one.field == kind.noise_field else 16 for one in kind.arguments}
    small |= {"chosen": 3, "branching": 4} if kind.arguments[1:] else {}
    own = registry.parameters(kind)
    made = registry.usual(kind, **{name: value for name, value in small.items() if name in own})
    rounds = 1 if protocol.endswith("sliding") else 2
    return RunQuestion(protocol, 100, rounds, made, **given)


def test_every_spelling_stands_for_one_name() -> None:
    for name, protocol in PROTOCOLS.items():
        assert protocol_name(name) == name
        assert [protocol_name(alias) for alias in protocol.aliases] == [name] * len(protocol.aliases)
    assert len(PROTOCOL_OF) > len(PROTOCOLS)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("full-shuffle", "shuffle"),
        ("random-check-ins-fixed", "random-check-in-fixed"),
        ("random-check-ins-sliding", "random-check-in-sliding"),
        ("random-check-ins-averaged", "random-check-in-averaged"),
        ("central-dp-sgd", "central"),
    ],
)
def test_an_alias_asks_the_same_question(alias: str, name: str) -> None:
    randomizer = randomizers_of(name)[0]
    assert _question(alias, randomizer) == _question(name, randomizer)


OFFERED = [(name, randomizer) for name in PROTOCOLS for randomizer in randomizers_of(name)]


@pytest.mark.parametrize(("protocol", "randomizer"), OFFERED)
def test_whatever_the_table_offers_is_answered(protocol: str, randomizer: str) -> None:
    """With the fields it lists: a guarantee, and a lower bound not above it."""
    question = _question(protocol, randomizer)
    stated = question.guarantee(1e-5)
    assert isinstance(stated, Guarantee) and stated.epsilon.upper > 0.0
    assert stated.assumptions and stated.basis
    if question.has_lower_bound:
        least = question.lower_bound(1e-5)
        assert isinstance(least, LowerBound) and least.kind is Kind.LOWER_BOUND
        assert least.epsilon.lower <= stated.epsilon.upper * (1 + 1e-9)
        # averages tell how many reports were which only where reports stand for symbols
        known = protocol != "random-check-in-averaged" or randomizer in ("any", "binary", "dary")
        assert (least.epsilon.lower > 0.0) == known


def test_unknown_names_are_refused_with_those_that_are_known() -> None:
    with pytest.raises(InvalidParameter, match=r"protocol = 'gossip' .* shuffled-check-in, sub"):
        protocol_name("gossip")
    with pytest.raises(InvalidParameter, match="protocol = 'central'"):
        protocol_name("central", PLANNED)


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_only_what_would_be_refused_is_left_out(name):
    """An offer that a protocol understands is taken: what is left out in silence changes the price."""
    numbers = {"rate": 0.5, "cohort": 50, "slots": 10, "check_in_probability": 0.5, "colluding": 0.1, "dropout": 0.1}
    offered = {**numbers, "lowest_rate": 0.3}
    kept = RunQuestion.of(name, 100, 1, **offered)
    for parameter, value in offered.items():
        if getattr(kept, parameter) == value:
            continue
        stands_for = parameter in ("rate", "cohort") and parameter in PROTOCOLS[name].understood
        if not stands_for:
            with pytest.raises(InvalidParameter):
                RunQuestion(name, 100, 1, **{parameter: value})
