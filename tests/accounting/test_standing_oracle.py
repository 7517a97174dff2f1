"""Every answer about a small run lies on its own side of the exactly enumerated loss.

A guarantee, a composition's upper end, the bridge and the Renyi route are never below the truth, a
lower bound never above it; nothing warns, and nothing fails except by a documented refusal. Cases
are random but always the same; `tests/oracles/explore.py` looks at new ones.
"""

from __future__ import annotations

import numpy as np
import pytest

import dpcheckin.accounting as accounting
from oracles.exact import randomizers
from oracles.exact.families import Array, Family
from oracles.exact.shuffles import check_in, local, subsample
from oracles.exact.windows import adaptive_window_delta, window
from oracles.standing.cases import KINDS, Case, draw
from oracles.standing.checks import Report, examine
from oracles.standing.protocols import DrawnRound
from oracles.standing.randomizers import RANDOMIZERS, spelled

SEED = 20_000
QUICK = [kind for kind in KINDS if not kind.endswith("/gaussian")]  # these take seconds each


def _no_crossing(*reports: Report) -> None:
    told = [str(crossing) for report in reports for crossing in report.crossings]
    if told:
        pytest.fail("\n".join(told), pytrace=False)


@pytest.mark.parametrize("kind", QUICK)
def test_no_answer_crosses_the_truth(kind: str) -> None:
    """One run of every kind."""
    _no_crossing(examine(draw(kind, SEED, 0)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_answer_crosses_the_truth_in_many_runs(kind: str) -> None:
    """More of the same, with each check reached by some of them."""
    reports = [examine(draw(kind, SEED, i)) for i in range(1, 9 if "gaussian" in kind else 16)]
    _no_crossing(*reports)
    played = [r for r in reports if not any(text.startswith("the run:") for text in r.refusals)]
    assert played
    assert all(report.checked for report in played)  # the lower bound, whatever is not proved
    if not kind.startswith("shuffle"):  # proved for few randomizers only, and refused for the rest
        assert sum(report.checked for report in played) > len(played)


def _case(text: str, family: Family, rounds: int, delta: float, epsilon: float = 0.0, index: int = 0) -> Case:
    one = DrawnRound(text, family, family, is_local=text.startswith("LocalRound"))
    return Case("named", 0, index, ((one, rounds),), delta, epsilon, False)


def _atoms(p: list[float], q: list[float]) -> tuple[str, Array]:
    matrix = np.array([p, q])
    return spelled(matrix[0], matrix[1]), matrix


def _colluding_cohort() -> Case:
    """The part of a cohort's law without another honest report counts, too."""
    family = subsample(randomizers.dary(1.0, 2), 2, 1, 1)
    return _case("SubsampleRound(2, 1, binary_response(1.0), colluding=0.5)", family, 2, 1e-2)


def _leak_over_the_bridge() -> Case:
    """Mass at infinity does not come out of the finite losses."""
    matrix = randomizers.leaky(randomizers.dary(1.0, 2), 0.2, np.eye(2))
    return _case("LocalRound(approximate(1.0, 0.2))", local(matrix, 1.0), 1, 0.3)


def _swapped_leak() -> Case:
    """The direction with the larger local delta is the one that counts."""
    text, matrix = _atoms([0.0, 0.5, 0.5], [0.1, 0.4, 0.5])
    return _case(f"CheckInRound(5, 0.5, {text})", check_in(matrix, 5, [0.5]), 1, 1e-5)


def _lopsided() -> Case:
    """No real pair has the larger of both directions everywhere."""
    text, matrix = _atoms([0.94, 0.06], [0.84, 0.16])
    return _case(f"CheckInRound(4, 0.9, {text})", check_in(matrix, 4, [0.9]), 1, 0.01)


def _lopsided_unshuffled() -> Case:
    text, matrix = _atoms([0.22, 0.41, 0.37], [0.46, 0.30, 0.24])
    return _case(f"LocalRound({text}, 0.6)", local(matrix, 0.6), 2, 0.11)


def _sliver() -> Case:
    """Nine parts in 10^13 that only one input can produce are still a local delta."""
    matrix = np.array([[0.6, 0.4 - 9e-13, 9e-13], [0.5, 0.5, 0.0]])
    return _case("LocalRound(from_atoms([1.2, 0.8 - 1.8e-12], [0.5, 0.5]))", local(matrix, 1.0), 1, 0.1, 5.0)


def _small_window() -> Case:
    family = window(randomizers.dary(1.0, 2), 1, 2, 1.0)
    return _case("WindowRound(1, binary_response(1.0), 1.0, others=2)", family, 2, 1e-3)


def _leaking_check_in() -> Case:
    """An answer for a local delta larger than the run's, not an overflow."""
    matrix = randomizers.leaky(randomizers.dary(1.0, 2), 0.1, np.eye(2))
    return _case("CheckInRound(3, 0.5, approximate(1.0, 0.1))", check_in(matrix, 3, [0.5]), 1, 1e-3)


NAMED = [
    _colluding_cohort,
    _leak_over_the_bridge,
    _swapped_leak,
    _lopsided,
    _lopsided_unshuffled,
    _sliver,
    _small_window,
    _leaking_check_in,
]


@pytest.mark.parametrize("named", NAMED, ids=lambda f: f.__name__.strip("_"))
def test_runs_that_were_once_answered_wrongly(named) -> None:
    _no_crossing(examine(named()))


@pytest.mark.parametrize("randomizer", ["binary", "dary", "any", "atoms", "symmetric"])
def test_a_window_may_learn_as_it_goes(randomizer: str) -> None:
    """The upper end covers slots whose contents depend on what was published before."""
    for index in range(3):
        rng = np.random.default_rng([SEED, index])
        drawn = RANDOMIZERS[randomizer](rng, True)
        slots, p = int(rng.integers(1, 4)), round(float(rng.uniform(0.1, 1.0)), 2)
        elapsed = int(rng.integers(1, slots + 1))
        epsilon = round(float(rng.uniform(0.0, 0.5)), 2)
        pair = eval(drawn.text, {name: getattr(accounting, name) for name in accounting.__all__})  # our own text
        one = accounting.WindowRound(slots, pair, p, elapsed=elapsed)
        said = accounting.compose([(one, 1)]).delta(epsilon).upper
        true = max(adaptive_window_delta(m, slots, p, np.exp(epsilon), elapsed) for m in drawn.covered)
        assert true <= said * (1 + 1e-9) + 1e-14, (drawn.text, slots, p, elapsed, epsilon)


def test_the_examination_sees_what_is_wrong() -> None:
    """A round described by less than it reveals is caught on every route but the lower bound."""
    stronger = check_in(randomizers.dary(3.0, 2), 3, [0.5])
    report = examine(_case("CheckInRound(3, 0.5, binary_response(1.0))", stronger, 2, 0.01, 0.1))
    asked = {crossing.sort[0] for crossing in report.crossings}
    assert {
        "compose.epsilon(delta).upper",
        "compose.delta(.).upper",
        "guarantee(run, delta).epsilon.upper",
        "event_distribution of run, composed, get_delta_for_epsilon",
        "renyi_curve",
        "epsilon_by_renyi(run, delta)",
    } <= asked
    weaker = check_in(randomizers.dary(0.5, 2), 3, [0.5])
    report = examine(_case("CheckInRound(3, 0.5, binary_response(1.0))", weaker, 2, 0.01, 0.1))
    assert [c.sort[0] for c in report.crossings] == ["lower_bound(run, delta).epsilon.lower"]
