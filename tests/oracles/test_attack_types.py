"""The attack by brute force: the package stands, promises slightly too small do not."""

from __future__ import annotations

import re

import numpy as np
import pytest

from oracles import attack_types
from oracles.attacks import climb, guarantees
from oracles.attacks.kinds import KINDS
from oracles.seat_types.laws import Array

_SLOW = [name for name in KINDS if name.startswith("gaussian/") or name.endswith("/alike")]
_SLOW += ["laplace/seats", "response/groups", "sets/groups", "any/vertices"]
_QUICK = [name for name in KINDS if name not in _SLOW]


@pytest.mark.parametrize("name", [*_QUICK, "gaussian/line"])
def test_the_package_is_not_crossed(name: str) -> None:
    tally = attack_types.attack(name, 31, 60, size={"alphas": 4, "batch": 8, "moves": 1})
    assert tally.crossings == []
    assert tally.attacks >= 60


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_the_package_is_not_crossed_by_many(name: str) -> None:
    tally = attack_types.attack(name, 32, max(150, int(20_000 * KINDS[name].share)))
    assert tally.crossings == []
    assert tally.closest[0] > 0.8
    assert tally.sampled > 0 and tally.climbed >= tally.attacks / 2


def _a_tenth_less(text: str, epsilons: Array) -> Array:
    return 0.9 * guarantees.deltas(text, epsilons)


def _bites(name: str, promise: guarantees.Promise) -> bool:
    tally = climb.Tally()
    for _ in range(40):
        attack_types.attack(name, 33, tally.attacks + 1, promise=promise, tally=tally)
        if tally.crossings:
            assert "arena.truths(Genes(" in tally.crossings[0] or "two rounds" in tally.crossings[0]
            return True
    return False


@pytest.mark.parametrize("name", _QUICK)
def test_a_promise_a_tenth_too_small_is_found(name: str) -> None:
    assert _bites(name, _a_tenth_less)


@pytest.mark.slow
@pytest.mark.parametrize("name", _SLOW)
def test_a_promise_a_tenth_too_small_is_found_in_slow_kinds(name: str) -> None:
    assert _bites(name, _a_tenth_less)


def _milder(text: str, epsilons: Array) -> Array:
    """The promise for a randomizer with a tenth less to tell."""
    milder = re.sub(
        r"(any_pure|binary_response|hemisphere|dary_response|laplace)\(([0-9.e-]+)",
        lambda found: f"{found[1]}({0.9 * float(found[2])!r}",
        text,
    )
    assert milder != text
    return guarantees.deltas(milder, epsilons)


@pytest.mark.parametrize("name", ["hemisphere/circle", "any/designs", "any/response", "response/dary", "laplace/line"])
def test_the_promise_for_a_milder_randomizer_is_found(name: str) -> None:
    assert _bites(name, _milder)


def test_a_promise_of_two_rounds_that_forgets_the_second_is_found() -> None:
    def forgets(text: str, epsilons: Array) -> Array:
        return guarantees.deltas(text.replace(", 2)]", ", 1)]"), epsilons)

    rng = np.random.default_rng(3)
    tally = climb.Tally()
    for _ in range(6):
        arena = KINDS["any/designs"].draw(rng)
        fight = climb.begin(arena, climb.epsilons(rng, arena, 6), forgets, tally)
        fight.attack(arena.crowd.draw(rng, 20), climbed=False)
        climb.two_rounds(rng, fight, forgets, most=300)
    assert tally.twice > 0
    assert any(line.startswith("two rounds") for line in tally.crossings)


def test_what_is_not_a_number_is_a_crossing() -> None:
    tally = attack_types.attack(
        "any/inner", 31, 1, promise=lambda text, epsilons: np.full(len(epsilons), np.nan),
        seconds=5.0,
    )  # fmt: skip
    assert tally.crossings


def test_the_command_says_what_crossed(capsys: pytest.CaptureFixture[str],
                                       monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    words = ["attack_types.py", "--attacks", "60", "--kinds", "response/d*", "--seed", "5"]
    monkeypatch.setattr("sys.argv", words)
    assert attack_types.main() == 0
    assert "response/dary" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", [*words, "--scaled", "0.5"])
    assert attack_types.main() == 1
    assert "CROSSED response/dary: promised" in capsys.readouterr().out
