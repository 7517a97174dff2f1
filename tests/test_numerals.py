"""Numbers as people type them: what is read, with which digits, and what is refused."""

from __future__ import annotations

import pytest

from dpcheckin.dashboard.form import Form
from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.options import RunOptions
from dpcheckin.numerals import number, typed, whole
from dpcheckin.options import options_of


@pytest.mark.parametrize(
    ("text", "value"), [("0.02", 0.02), ("2%", 0.02), (" 2 % ", 0.02), ("1/30", 1 / 30), ("1e-5", 1e-5), ("7", 7.0)]
)
def test_numbers_are_decimals_fractions_or_per_cent(text: str, value: float) -> None:
    assert number(text) == value


@pytest.mark.parametrize("text", ["1/0", "x", "", "1/2/3", "%", "1/x", "0,5", "1,500", "60,000"])
def test_what_is_no_number_is_shown_with_examples(text: str) -> None:
    """A comma is a decimal point to some and nothing to others: neither is guessed."""
    with pytest.raises(ValueError, match="1/30 or 2%"):
        number(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("60000", 60000), ("60_000", 60000), ("1e6", 10**6), ("1.25E+3", 1250), ("-3", -3),
     ("60,000", 60000), ("1,234,567", 1234567), ("1e25", 10**25),
     ("12345678901234567890", 12345678901234567890)],
)  # fmt: skip
def test_whole_numbers_keep_every_digit(text: str, value: int) -> None:
    assert whole(text) == value


@pytest.mark.parametrize(
    "text", ["60,00", "0,500", "1,0000", ",000", "1.5", "1.25e1", "1e-3", "", "x", "nan", "1e9999", "_1"]
)
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="60_000 or 1e6"):
        whole(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1 / 30, "1/30"), (1e-5, "1e-5"), (2.5e20, "2.5e20"), (0.0333, "0.0333"), (60_000, "60000"),
     (0.1 + 0.2, "0.30000000000000004"), (2.0, "2"), (0.0, "0"), (7 / 3, "2.3333333333333335")],
)  # fmt: skip
def test_what_is_typed_reads_back_as_the_same_number(value: float, text: str) -> None:
    assert typed(value) == text
    assert (whole if isinstance(value, int) else number)(text) == value


def test_a_page_and_a_sweep_read_the_same_numbers() -> None:
    form = Form.read({"population": "60,000", "rate": "2%", "rounds": "1e3", "delta": "1/10000"})
    assert (form.population, form.rate, form.rounds, form.delta) == (60_000, 0.02, 1_000, 1e-4)
    options = {one.name: one for one in options_of(RunOptions)}
    assert options["rate"].parse("1/50") == 0.02
    assert options["population"].parse("1e5") == 100_000


@pytest.mark.parametrize(("field", "text"), [("local_epsilon", "0,5"), ("rounds", "2.5"), ("rate", "nan")])
def test_a_page_refuses_what_could_be_meant_in_two_ways(field: str, text: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        Form.read({field: text})
    assert (refused.value.name, refused.value.value) == (field, text)
