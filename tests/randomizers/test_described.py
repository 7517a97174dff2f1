"""A randomizer and its description are each other's inverse; nothing else is one."""

from typing import Any

import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import (
    DaryResponse,
    DitheredLevels,
    Gaussian,
    HadamardResponse,
    LdpSgd,
    LocalHashing,
    PrivUnit,
    Randomizer,
    SubsetSelection,
    TreeResponse,
    UnaryEncoding,
)
from dpcheckin.randomizers.described import DESCRIBED, described, from_description

EACH = (
    DaryResponse(2.0, 10),
    SubsetSelection(1.0, 10, 2),
    UnaryEncoding(1.0, 10, 0.4),
    HadamardResponse(1.0, 10),
    DitheredLevels(2.0, 8),
    TreeResponse(2.0, 64, 4),
    LocalHashing(2.0, 256, 32, "salt"),
    PrivUnit(2.0, 5, 3.0),
    LdpSgd(2.0, 5, 3.0),
)


def test_every_name_is_tried() -> None:
    assert {type(one) for one in EACH} == set(DESCRIBED.values())


@pytest.mark.parametrize("randomizer", EACH, ids=lambda one: type(one).__name__)
def test_a_description_gives_the_same_randomizer(randomizer: Randomizer) -> None:
    table = described(randomizer)
    assert from_description(table) == randomizer
    assert DESCRIBED[table["name"]] is type(randomizer)
    assert "dimension" not in table  # in a plan that is the size of a report


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"name": "rappor"}, "randomizer.name = 'rappor'"),
        ({}, "randomizer.name = None"),
        ({"name": "dary", "local_epsilon": 1.0}, "symbols"),
        ({"name": "dary", "local_epsilon": 1.0, "symbols": 3, "odd": 1}, "odd"),
        ({"name": "dary", "local_epsilon": "1", "symbols": 3}, "a number"),
        ({"name": "dary", "local_epsilon": True, "symbols": 3}, "a number"),
        ({"name": "dary", "local_epsilon": -1.0, "symbols": 3}, "local_epsilon = -1"),
    ],
)
def test_what_describes_no_randomizer_is_refused(table: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        from_description(table)


def test_a_randomizer_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="randomizer"):
        described(Gaussian(1.0))
