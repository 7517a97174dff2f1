"""Options that are described once: read from a dataclass, shown to typer, changed by name."""

import inspect
from dataclasses import dataclass, field, fields
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from dpcheckin.cli.arguments import options_from
from dpcheckin.cli.train import train
from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.options import RunOptions
from dpcheckin.options import changed, check_choices, listed, option, options_of


@dataclass(frozen=True)
class Taste:
    sugar: int = option(2, "Spoons.", section="Taste")
    memory: tuple[int, ...] = option((), "Earlier cups.", on_command_line=False)


@dataclass(frozen=True)
class Tea:
    kind: str = option("green", choices=("green", "black", "white"))
    hot: bool = option(False, "Boil the water again.")
    taste: Taste = field(default_factory=Taste)
    cup: Path | None = option(None, "Where it goes.", changes_result=False)
    kept: int = 0  # not an option

    def __post_init__(self) -> None:
        check_choices(self)


@pytest.fixture
def brew():
    seen = []
    app = typer.Typer()

    @app.command()
    @options_from(Tea)
    def command(options: Tea, loud: bool = typer.Option(False, "--loud")) -> None:
        """Brew."""
        seen.append((options, loud))

    def run(*arguments):
        result = CliRunner().invoke(app, list(arguments), env={"TERM": "dumb"})
        return result, seen

    return run


def test_groups_are_opened_in_place_and_other_fields_left_out():
    assert [one.name for one in options_of(Tea)] == ["kind", "hot", "sugar", "memory", "cup"]
    assert [one.path for one in options_of(Tea)] == [(), (), ("taste",), ("taste",), ()]


def test_what_is_typed_arrives_as_one_instance(brew):
    result, seen = brew("--kind", "black", "--hot", "--sugar", "0", "--cup", "mug", "--loud")
    assert result.exit_code == 0, result.output
    assert seen == [(Tea("black", True, Taste(0), Path("mug")), True)]


def test_nothing_typed_is_the_dataclass_itself(brew):
    _, seen = brew()
    assert seen == [(Tea(), False)]


def test_help_has_sections_choices_and_no_option_of_programs(brew):
    text = brew("--help")[0].output
    assert "green, black or white." in text and "Taste" in text and "Spoons." in text
    assert "--memory" not in text and "--no-hot" not in text


def test_a_word_that_is_no_choice_is_refused_by_name(brew):
    result, seen = brew("--kind", "coffee")
    assert isinstance(result.exception, InvalidParameter) and not seen
    assert str(result.exception) == ("kind = 'coffee' is not allowed: expected green, black or white")


def test_changes_reach_into_groups_and_unknown_names_are_refused():
    assert changed(Tea(), {"sugar": 5, "hot": True}) == Tea(hot=True, taste=Taste(5))
    with pytest.raises(InvalidParameter, match="milk"):
        changed(Tea(), {"milk": 1})


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("sugar", "3", 3), ("hot", "Yes", True), ("hot", "0", False), ("cup", "a/b", Path("a/b"))],
)
def test_texts_are_read_as_the_type_of_the_option(name, text, value):
    (one,) = [o for o in options_of(Tea) if o.name == name]
    assert one.parse(text) == value and type(one.parse(text)) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [("sugar", "much", "whole number"), ("hot", "warm", "true or false"), ("memory", "1", "leave it out")],
)
def test_other_texts_are_refused_by_name(name, text, allowed):
    (one,) = [o for o in options_of(Tea) if o.name == name]
    with pytest.raises(InvalidParameter, match=f"{name}.*{allowed}"):
        one.parse(text)


def test_two_options_of_one_name_are_a_mistake():
    @dataclass(frozen=True)
    class Twice:
        taste: Taste = field(default_factory=Taste)
        sugar: int = option(1)

    Twice.__annotations__ = {"taste": Taste, "sugar": int}
    with pytest.raises(TypeError, match="sugar"):
        options_of(Twice)


def test_a_command_without_the_parameter_is_a_mistake():
    with pytest.raises(TypeError, match="options"):
        options_from(Tea)(lambda: None)


def test_one_word_is_listed_alone():
    assert listed(("only",)) == "only"


def test_train_takes_every_option_of_a_run_with_its_default():
    shown = inspect.signature(train).parameters
    described = {one.name: one for one in options_of(RunOptions) if one.on_command_line}
    assert set(shown) - set(described) == {"out", "stop_after", "tensorboard", "json"}
    for name, one in described.items():
        assert shown[name].default == one.default == one.value(RunOptions())
    undescribed = {f.name for f in fields(RunOptions)} - {one.name for one in options_of(RunOptions)}
    assert undescribed == {"settings", "table"}
