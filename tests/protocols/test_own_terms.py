"""Clients on their own terms: members for a while, and what the command says of those with an epsilon of their own."""

from __future__ import annotations

import json

import numpy as np
import pytest

from cli_in_process import run_cli
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.protocols import FullShuffle, RandomCheckIns, ShuffledCheckIn, own_guarantee
from dpcheckin.protocols.own_terms import own_guarantees
from dpcheckin.protocols.questions import RunQuestion
from dpcheckin.randomizers import BinaryResponse, Gaussian
from oracles.brute_force import as_pair, check_in_law, hockey_stick
from oracles.personal import response


def test_a_member_for_a_while_by_enumeration() -> None:
    """Five rounds of four clients, the target in rounds 3 and 4: the whole transcript, at the certified epsilon."""
    plan, delta, rate = ShuffledCheckIn(4, 0.5, 5, BinaryResponse(1.2)), 1e-2, 0.5
    matrix = response(2, 1.2)
    here = as_pair(check_in_law(matrix, [0, 1, 1, 1], rate), check_in_law(matrix, [1, 1, 1, 1], rate))
    away, _ = as_pair(*(check_in_law(matrix, [1, 1, 1], rate),) * 2)
    p, q = away, away
    for present in (False, True, True, False):  # round 1 is there already
        both = here if present else (away, away)
        p, q = (np.outer(whole, one).ravel() for whole, one in zip((p, q), both, strict=True))
    stated = own_guarantee(plan, delta, joins=3, leaves=4)
    assert max(hockey_stick(p, q, stated.epsilon.upper), hockey_stick(q, p, stated.epsilon.upper)) <= delta
    short = 0.7 * stated.epsilon.upper
    assert max(hockey_stick(p, q, short), hockey_stick(q, p, short)) > delta
    assert stated.epsilon.upper == plan.guarantee(delta, 2).epsilon.upper < plan.guarantee(delta).epsilon.upper


def test_bad_terms_are_named() -> None:
    plan = ShuffledCheckIn(100, 0.1, 5, BinaryResponse(1.0))
    for terms, name in (({"joins": 0}, "joins"), ({"joins": 4, "leaves": 3}, "joins"), ({"leaves": 6}, "leaves"),
                        ({"local_epsilon": 1.1}, "local_epsilon")):  # fmt: skip
        with pytest.raises(InvalidParameter, match=name):
            own_guarantee(plan, 1e-3, **terms)
    with pytest.raises(OutsideTheorem, match="pure"):
        own_guarantee(FullShuffle(1_000, 2, Gaussian(3.0)), 1e-3, local_epsilon=1.0)
    with pytest.raises(OutsideTheorem, match="all alike"):
        own_guarantee(RandomCheckIns(100, 50, BinaryResponse(1.0)), 1e-3)


def test_a_range_of_local_epsilons_is_told_one_by_one() -> None:
    asked = {"population": 1_000, "rate": 0.2, "randomizer": "binary"}
    spans = {(1.0, 4.0): [1, 2, 3, 4], (0.5, 2.0): [0.5, 1.5, 2], (1.0, 13.0): [1, 3, 5, 7, 9, 11, 13], (2.0, 2.0): [2]}
    for (low, high), told in spans.items():
        question = RunQuestion(**asked, local_epsilon=high, lowest_local_epsilon=low)
        assert list(own_guarantees(question, 1e-3)) == pytest.approx(told)
    assert own_guarantees(RunQuestion(**asked, local_epsilon=2.0), 1e-3) == {}


RUN = ("epsilon", "--population", "2000", "--rate", "0.2", "--randomizer", "binary", "--delta", "1e-4", "--json")


def test_the_command_with_a_range() -> None:
    told = json.loads(run_cli(*RUN, "--local-epsilon", "1..3", "--no-lower-bound"))
    own = {one["local_epsilon"]: one["epsilon"] for one in told["own"]}
    assert list(own) == [1.0, 2.0, 3.0] and own[1.0] < own[2.0] < own[3.0] == told["epsilon"]["upper"]
    assert any("no client's local epsilon is above 3" in text for text in told["assumptions"])
    plan = ShuffledCheckIn(2_000, 0.2, 1, BinaryResponse(3.0))
    assert own[2.0] == own_guarantee(plan, 1e-4, local_epsilon=2.0).epsilon.upper
    assert told["epsilon"]["upper"] == plan.guarantee(1e-4).epsilon.upper


def test_the_command_for_one_that_joins_late() -> None:
    told = json.loads(run_cli(*RUN, "--local-epsilon", "1", "--rounds", "20", "--joins", "16"))
    assert told["assumptions"][-1].startswith("the client takes part from round 16 on")
    plan = ShuffledCheckIn(2_000, 0.2, 20, BinaryResponse(1.0))
    assert told["epsilon"]["upper"] == plan.guarantee(1e-4, 5).epsilon.upper
    assert told["lower_bound"]["epsilon"] <= told["epsilon"]["upper"]


@pytest.mark.parametrize(
    "wrong",
    [("--local-epsilon", "3..1"), ("--local-epsilon", "0..1"), ("--local-epsilon", "x..1"), ("--local-epsilon", "1.."),
     ("--local-epsilon", "1", "--joins", "2"), ("--local-epsilon", "1", "--joins", "0")],
)  # fmt: skip
def test_what_is_no_term_is_one_line(wrong: tuple[str, ...]) -> None:
    err = run_cli(*RUN, *wrong, code=2)
    assert len(err.strip().splitlines()) == 1 and wrong[-2].removeprefix("--") in err.replace("_", "-")
