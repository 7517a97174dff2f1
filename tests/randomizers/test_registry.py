"""One list of randomizers: names and texts are read and written in one place, everybody's alike."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest

from dpcheckin.accounting import binary_response
from dpcheckin.errors import DpCheckinError, InvalidParameter
from dpcheckin.randomizers import (
    Argument,
    ClipOnly,
    DaryResponse,
    Gaussian,
    LdpSgd,
    PrivUnit,
    Randomizer,
    SkellamVector,
    SubsetSelection,
    TreeResponse,
    described,
    register,
    registry,
)
from dpcheckin.randomizers.registry import (
    BUILT_IN,
    kind_named,
    kinds,
    parameters,
    randomizer,
    typed_name,
    usages,
    usual,
)

EACH = [usual(kind) for kind in BUILT_IN]


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})


@dataclass(frozen=True)
class Coin(Randomizer):
    """One's own bit, or a lie.

    Args:
        local_epsilon: epsilon of one report.
        sides: how many.
    """

    local_epsilon: float
    sides: int

    name, label = "coin", "a coin"
    arguments = (Argument("sides", "SIDES", 2),)

    def __post_init__(self) -> None:
        if self.sides != 2:
            raise ValueError("a coin has two sides")

    @property
    def pair(self) -> Any:
        return binary_response(self.local_epsilon)

    def describe(self) -> str:
        return f"coin, local epsilon {self.local_epsilon:g}"

    def randomize(self, values: Any, source: Any) -> Any:
        raise NotImplementedError


def test_every_built_in_class_says_what_the_lists_need() -> None:
    """A name, a label, a sentence about what is typed; no spelling twice."""
    spelled = [word for kind in BUILT_IN for word in (kind.name, *kind.aliases)]
    assert len(set(spelled)) == len(spelled)
    for kind in BUILT_IN:
        assert kind.label and all(kind_named(word) is kind for word in (kind.name, *kind.aliases))
        about = parameters(kind)
        assert kind.noise_field in about
        assert all(about[one.field] for one in kind.arguments if one.field in about)
        assert usual(kind).describe()


@pytest.mark.parametrize("one", EACH, ids=lambda one: one.name)
def test_a_table_and_a_text_give_the_same_randomizer(one: Randomizer) -> None:
    table = described(one)
    assert randomizer(table) == one == randomizer(one)
    assert "dimension" not in table  # in a plan that is the size of a report
    numbers = {name: getattr(one, name) for name in parameters(type(one))}
    text = typed_name(type(one), numbers, one.noise_field)
    again = randomizer(text, **{one.noise_field: numbers[one.noise_field]})
    assert again.describe() == one.describe()


@pytest.mark.parametrize(
    ("text", "known", "made"),
    [
        ("dary:10", {"local_epsilon": 2.0}, DaryResponse(2.0, 10)),
        ("d-ary:1e3", {"local_epsilon": 2.0}, DaryResponse(2.0, 1000)),
        ("subset:20:3", {"local_epsilon": 2.0}, SubsetSelection(2.0, 20, 3)),
        ("subset:3", {"local_epsilon": 2.0, "symbols": 20}, SubsetSelection(2.0, 20, 3)),
        ("tree:4", {"local_epsilon": 2.0, "leaves": 64}, TreeResponse(2.0, 64, 4)),
        ("ldp-sgd", {"local_epsilon": 2.0}, LdpSgd(2.0, 2)),
        ("ldp-sgd:9", {"local_epsilon": 2.0}, LdpSgd(2.0, 9)),
        ("privunit", {"local_epsilon": 2.0, "dimension": 7, "clip": 3.0}, PrivUnit(2.0, 7, 3.0)),
        ("gaussian:1/2", {}, Gaussian(0.5)),
        ("gaussian", {"noise_multiplier": 3.0}, Gaussian(3.0)),
        ("skellam:2:100", {}, SkellamVector(2.0, 100)),
        ("skellam:100", {"noise_multiplier": 2.0}, SkellamVector(2.0, 100)),
    ],
)
def test_what_is_typed_fills_what_is_not_known(text: str, known: dict[str, float], made: Randomizer) -> None:
    assert randomizer(text, **known) == randomizer(text, known) == made


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        ("pigeon", {}, "randomizer = 'pigeon' .* any, binary, dary:K"),
        ("dary", {"local_epsilon": 1.0}, "expected dary:K"),
        ("dary:2.5", {"local_epsilon": 1.0}, "expected dary:K"),
        ("dary:x", {"local_epsilon": 1.0}, "expected dary:K"),
        ("dary:3", {}, "local-epsilon = None .* for the randomizer dary"),
        ("dary:1", {"local_epsilon": 1.0}, "symbols = 1"),
        ("dary:3", {"local_epsilon": float("nan")}, "local_epsilon = nan"),
        ("any:3", {"local_epsilon": 1.0}, "any, and 3 as --local-epsilon"),
        ("dary:3", {"local_epsilon": 1.0, "symbols": 3}, "dary, and 3 as --symbols"),
        ("gaussian:2", {"noise_multiplier": 2.0}, "gaussian, and 2 as --noise-multiplier"),
        ("gaussian:2", {"local_epsilon": 1.0}, "local-epsilon = 1.0 .* gaussian:SIGMA says it all"),
        ("gaussian", {"local_epsilon": 1.0}, "expected gaussian:SIGMA"),
        ("dary:3", {"local_epsilon": 1.0, "local_delta": 0.1}, "local-delta = 0.1"),
    ],
)
def test_what_does_not_fit_is_refused(text: str, given: dict[str, float], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        randomizer(text, **given)


def test_offers_that_are_not_wanted_are_left_alone() -> None:
    assert randomizer("gaussian:2", {"local_epsilon": 1.0, "dimension": 9}) == Gaussian(2.0)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"name": "rappor"}, "randomizer.name = 'rappor'"),
        ({}, "randomizer.name = None"),
        ({"name": 3}, "randomizer.name = 3"),
        ({"name": "dary", "local_epsilon": 1.0}, "symbols"),
        ({"name": "dary", "local_epsilon": 1.0, "symbols": 3, "odd": 1}, "odd"),
        ({"name": "dary", "local_epsilon": "1", "symbols": 3}, "a number"),
        ({"name": "dary", "local_epsilon": True, "symbols": 3}, "a number"),
        ({"name": "dary", "local_epsilon": -1.0, "symbols": 3}, "local_epsilon = -1"),
        ({"name": "hash", "local_epsilon": 1.0, "buckets": 4, "functions": 2, "salt": 5}, "a text"),
    ],
)
def test_what_describes_no_randomizer_is_refused(table: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        randomizer(table)


def test_a_randomizer_without_a_name_has_no_table() -> None:
    with pytest.raises(InvalidParameter, match="randomizer"):
        described(ClipOnly())


@pytest.mark.parametrize("one", EACH, ids=lambda one: one.name)
def test_reports_travel_and_come_back(one: Randomizer) -> None:
    """Those with a format make reports that fit it; the others say so."""
    if type(one).report_format is Randomizer.report_format:
        with pytest.raises(InvalidParameter, match="one by one"):
            _ = one.report_format
        return
    values = {"levels": np.array([0.2, 0.9])}.get(one.name, np.array([0, 1]))
    if hasattr(one, "clip"):
        values = np.eye(2, one.dimension)
    reports = one.randomize(values, registry_source())
    form = one.report_format
    assert form.shaped(reports) is reports and one.well_formed(reports).all()
    rows, dropped = form.decode([*form.encode(reports), b"odd"])
    assert dropped == (form.size != 3)
    assert np.allclose(rows[:2], reports, atol=1e-6) and one.well_formed(rows[:2]).all()


def registry_source() -> Any:
    from dpcheckin.randomizers import SeededSource

    return SeededSource(3)


def test_a_class_of_ones_own_is_read_like_any_other(empty: None) -> None:
    assert register(Coin) is Coin
    assert randomizer("coin:2", local_epsilon=1.0) == Coin(1.0, 2)
    assert described(Coin(1.0, 2)) == {"name": "coin", "local_epsilon": 1.0, "sides": 2}
    assert "coin:SIDES" in usages()
    with pytest.raises(InvalidParameter, match="two sides"):
        randomizer("coin:3", local_epsilon=1.0)
    register(Coin)  # a cell that is run again


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "dary"}, "no randomizer has yet"),
        ({"name": "Coin!"}, "small letters"),
        ({"name": "c2", "arguments": (Argument("odd", "X", 1),)}, "odd"),
    ],
)
def test_what_cannot_be_named_is_not_registered(changes: dict[str, Any], said: str, empty: None) -> None:
    kind = dataclass(frozen=True)(type("Other", (Coin,), changes))
    with pytest.raises(InvalidParameter, match=said):
        register(kind)
    with pytest.raises(InvalidParameter, match="subclasses Randomizer"):
        register(dict)  # type: ignore[type-var]


def test_a_broken_package_is_named_and_breaks_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its randomizer fails when it is asked for, in one line; all others are there."""
    points = (
        EntryPoint("odd", "package_that_is_not_there:Odd", registry.GROUP),
        EntryPoint("coin", f"{__name__}:Coin", registry.GROUP),
    )
    monkeypatch.setattr(registry, "_points", lambda: points)
    assert kind_named("coin") is Coin
    with pytest.raises(DpCheckinError, match=r"package_that_is_not_there.*'odd'.*No module") as seen:
        randomizer("odd", local_epsilon=1.0)
    assert "\n" not in str(seen.value)
    with pytest.warns(registry.BrokenPackage, match="package_that_is_not_there"):
        assert {"coin", "dary"} < set(kinds()) and "odd" not in kinds()
