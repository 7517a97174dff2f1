"""An analyzer whose rounds are void slows down, and ends before it wears its fleet out."""

import json
from pathlib import Path

import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.analyzer.core import VOID, Pacing, Status, TooManyVoidRounds, void_in_a_row
from service.analyzer_world import World, small_plan

OK = {"state": "released", "present": 100}
BAD = {"state": VOID, "present": 7}


def test_void_rounds_make_the_next_longer_up_to_a_limit_and_good_ones_shorter_again() -> None:
    pacing = Pacing(longest=8.0)
    assert [pacing.factor([BAD] * n) for n in range(6)] == [1, 2, 4, 8, 8, 8]
    assert [pacing.factor([BAD] * 3 + [OK] * n) for n in (1, 4, 5, 9, 10, 15, 40)] == [
        8, 8, 4, 4, 2, 1, 1,
    ]  # fmt: skip
    assert pacing.factor([OK] * 3 + [BAD]) == 2
    assert Pacing(longest=1.0).factor([BAD] * 9) == 1


def test_pauses_begin_after_a_few_void_rounds_and_grow_to_a_limit() -> None:
    pacing = Pacing(largest_pause=60.0)
    found = [pacing.pause([BAD] * n, 5.0) for n in (0, 3, 4, 5, 6, 7, 1000)]
    assert found == [0, 0, 10, 20, 40, 60, 60]
    assert pacing.pause([BAD] * 9 + [OK], 5.0) == 0


def test_void_by_batch_is_no_reason_to_slow_down() -> None:
    """It has enough clients, and too few of their coins came up: longer rounds would not help."""
    assert Pacing().factor([{"state": "void by batch", "present": 100}] * 4) == 1


def test_a_run_of_void_rounds_ends_with_the_reason() -> None:
    pacing = Pacing(most_void_rounds=3)
    pacing.check([OK, BAD, BAD])
    with pytest.raises(TooManyVoidRounds, match=r"3 rounds in a row were void: 7 to 7 clients"):
        pacing.check([OK, BAD, BAD, BAD])
    Pacing(most_void_rounds=0).check([BAD] * 500)
    assert void_in_a_row([]) == 0


@pytest.mark.parametrize("wrong", [{"longest": 0.5}, {"most_void_rounds": -1}, {"largest_pause": float("nan")}])
def test_limits_that_are_none_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter):
        Pacing(**wrong)  # type: ignore[arg-type]


def test_the_analyzer_announces_longer_rounds_and_ends_after_so_many(tmp_path: Path) -> None:
    void = Status("void", 50, None, "population")
    world = World(tmp_path, small_plan(), dict.fromkeys(range(1, 99), void))
    said = world.run(pacing=Pacing(longest=4.0, most_void_rounds=4, largest_pause=0.0))
    assert said.startswith("4 rounds in a row were void: 50 to 50 clients were there")
    lengths = []
    for signed in world.shuffler.rounds.values():
        document = json.loads(signed)["document"]
        lengths.append(round(document["closes"] - document["opens"], 6))
    assert lengths == [1.0, 1.0, 2.0, 4.0, 4.0]
    assert len(world.charges()) == 1
    # whoever starts it again wants it to try again
    world.outcomes.clear()
    assert "rounds of the plan have been charged" in world.run()
