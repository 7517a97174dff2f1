"""Steps and states: what follows from the shuffler's answer."""

from typing import Any

import pytest

from dpcheckin.service.analyzer.core import Status, Step, next_step
from dpcheckin.service.wire.problems import Malformed


@pytest.mark.parametrize(
    ("status", "step"),
    [
        (None, Step.ANNOUNCE),
        (Status("open"), Step.WAIT),
        (Status("closed", 1, 1), Step.CHARGE_AND_COLLECT),
        (Status("claimed", 1, 1), Step.CHARGE_AND_COLLECT),
        (Status("void", 1, None, "population"), Step.SKIP),
        (Status("void", 1, 1, "batch"), Step.CHARGE_AND_SKIP),
        (Status("done"), Step.CHARGE_AS_LOST),
    ],
)
def test_the_next_step_follows_from_the_shufflers_answer(status: Status | None, step: Step) -> None:
    assert next_step(status) is step


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        {"state": "ajar"},
        {"state": "void"},
        {"state": "void", "reason": "weather"},
        {"state": "closed", "present": -1},
        {"state": "closed", "reports": True},
        {"state": "closed", "reports": "3"},
    ],
    ids=str,
)
def test_an_odd_status_is_an_error_and_not_a_guess(said: Any) -> None:
    with pytest.raises(Malformed):
        Status.from_object(said)
