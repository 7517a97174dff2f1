"""No figure changes unnoticed: every protocol, randomizer and kind of answer, corners included."""

from __future__ import annotations

import pytest
from frozen_figures import TOLERANCE, ask, differences, figures, frozen
from frozen_questions import questions

ANSWERS = frozen()


@pytest.mark.parametrize("question", questions(), ids=questions())  # long ones keep their name too
def test_figures_are_what_they_were(question: str) -> None:
    assert question in ANSWERS, f"never answered, write the file anew: {question}"
    changed = differences(ANSWERS[question], ask(question))
    assert not changed, "\n  ".join([question, *changed])


def test_the_file_answers_these_questions_and_no_others() -> None:
    assert list(ANSWERS) == questions()
    assert sum(map(figures, ANSWERS.values())) >= 300


def test_a_changed_figure_is_noticed() -> None:
    """The comparison itself: digits, missing rows, kinds, integers, zeros, infinities."""
    old = {"kind": "guarantee", "epsilon": {"lower": 0.0, "upper": 0.25}, "value": 7}
    assert differences(old, old | {"another row": 1.0}) == []
    assert differences(old, old | {"kind": "lower bound"})
    assert differences(old, old | {"value": 8})
    assert differences(old, {"kind": "guarantee"})
    assert differences(old, old | {"epsilon": {"lower": 1e-300, "upper": 0.25}})
    assert differences(old, old | {"epsilon": {"lower": 0.0, "upper": float("inf")}})
    last_digit = old | {"epsilon": {"lower": 0.0, "upper": 0.25 * (1 + 4e-16)}}
    assert differences(old, last_digit, exact=True)
    assert not differences(old, last_digit, exact=False)
    changed = differences(old, old | {"epsilon": {"lower": 0.0, "upper": 0.25 * (1 + 4 * TOLERANCE)}})
    assert changed == [f"epsilon, upper: was 0.25, is {0.25 * (1 + 4 * TOLERANCE)!r}"]
