"""The exceptions say in one short line what is wrong and what is allowed."""

import pickle
import re

import numpy as np
import pytest

from dpcheckin import errors


def test_the_tree_drawn_in_the_docstring_is_the_tree_in_the_code() -> None:
    drawn = set(re.findall(r"^[ │]+[├└]── (\w+)", errors.__doc__ or "", flags=re.MULTILINE))
    known = [value for value in vars(errors).values() if isinstance(value, type)]
    defined = {c.__name__ for c in known if issubclass(c, errors.DpCheckinError)} - {"DpCheckinError"}
    assert drawn == defined
    assert set(errors.__all__) == defined | {"DpCheckinError"}


def test_an_invalid_parameter_is_a_value_error_and_names_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"^rate = 1\.5 is not allowed: expected a number in"):
        raise errors.InvalidParameter("rate", 1.5, "a number in [0, 1]")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (np.float64("nan"), "nan"),
        (np.int64(0), "0"),
        ("shufle", "'shufle'"),
        (np.zeros((2, 2)), "array([[0., 0.], [0., 0.]])"),
    ],
)
def test_an_invalid_value_is_shown_as_a_reader_would_type_it(value: object, shown: str) -> None:
    assert str(errors.InvalidParameter("x", value, "y")).startswith(f"x = {shown} is not allowed")


def test_a_huge_value_still_gives_one_short_line() -> None:
    message = str(errors.InvalidParameter("masses", np.arange(10_000.0).tolist(), "masses"))
    assert "\n" not in message
    assert len(message) < 160


def test_an_invalid_parameter_survives_the_way_between_processes() -> None:
    sent = errors.InvalidParameter("delta", 0.0, "a number in (0, 1)")
    received = pickle.loads(pickle.dumps(sent))
    assert type(received) is type(sent)
    assert str(received) == str(sent)
    assert received.name == "delta"
