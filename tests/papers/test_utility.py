"""The papers' utility theorems beside experiments that meet their conditions."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dpcheckin.cli import main
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.papers.convex_task import ConvexTask
from dpcheckin.papers.p2 import utility as p2_utility
from dpcheckin.papers.p2.utility import averaged_window, fixed_window
from dpcheckin.papers.p3 import utility as p3_utility
from dpcheckin.papers.p3.utility import subsampled_shuffle
from dpcheckin.randomizers import SeededSource, lp_randomizer

TASK = ConvexTask(dimension=4)


@pytest.mark.parametrize("norm", [1, 1.5, 2, 3, math.inf])
def test_the_task_meets_the_conditions(norm):
    """Gradients by differences, their lp norm below L, smooth, and least at the centre."""
    task = ConvexTask(3, lipschitz=2.0, smoothness=5.0, norm=norm)
    draw = np.random.default_rng(0)
    records = task.records(draw, 40)
    for _ in range(20):
        a, b = draw.normal(size=(2, 3))
        step = 1e-6 * np.eye(3)
        slopes = [(task.risk(a + s, records) - task.risk(a - s, records)) / 2e-6 for s in step]
        assert task.gradients(a, records).mean(axis=0) == pytest.approx(slopes, abs=1e-6)
        assert np.linalg.norm(task.gradients(a, records), norm, axis=1).max() <= 2.0 + 1e-12
        apart = np.linalg.norm(task.gradients(a, records) - task.gradients(b, records), axis=1)
        assert apart.max() <= 5.0 * np.linalg.norm(a - b) + 1e-12
        assert task.risk(a, records) >= task.risk(task.centre, records)
        assert np.linalg.norm(task.projected(9 * a)) <= task.diameter / 2 + 1e-12


def test_bounds_are_the_theorems_and_hold():
    """Six standard errors would have to be crossed; the bounds are tens of them away."""
    checks = [
        fixed_window(TASK, 600, 100, 0.5, 0.8, repeats=4),
        averaged_window(TASK, 600, 60, 2.0, repeats=4),
        averaged_window(TASK, 600, 60, 2.0, smooth=True, repeats=4),
        subsampled_shuffle(TASK, 400, 40, 50, 2.0, repeats=4),
    ]
    for check in checks:
        assert 0 < check.measured < check.bound and check.holds
        assert check.measured + 6 * check.deviation < check.bound
    assert checks[0].bound == p2_utility.fixed_window_risk(TASK, 600, 100, 0.5, 0.8)
    assert checks[1].bound == p2_utility.averaged_risk(TASK, 600, 60, 2.0)
    assert checks[1].details["inverse_load"] > 60 / 600


def test_learning_learns_and_noise_hurts():
    """From the edge of the ball at risk about 0.9, and monotone in the noise."""
    start = TASK.risk(TASK.start, np.array([TASK.centre])) - 0
    quiet, loud = (averaged_window(TASK, 2000, 100, s, repeats=6) for s in (0.3, 30.0))
    assert quiet.measured < start / 20 and quiet.measured < loud.measured / 4


@pytest.mark.parametrize("norm", [1.2, 2, 3, 8])
def test_r_p_is_unbiased_and_within_the_printed_variance(norm):
    """Vectors on the lp sphere and inside it: their mean report, and Equation 48's 14 d max(d^(1-2/p), 1) L²."""
    draw = np.random.default_rng(5)
    dimension, epsilon = 12, 2.0
    task = ConvexTask(dimension, lipschitz=1.5, norm=norm)
    reports = lp_randomizer(norm, epsilon, dimension, 1.5)
    rows = draw.normal(size=(3, dimension))
    rows *= 1.5 / np.linalg.norm(rows, norm, axis=1, keepdims=True)
    spread = reports.total_variance(rows)
    assert np.all(spread <= p3_utility.printed_variance(task, epsilon))
    many = reports.estimate(reports.randomize(np.repeat(rows[:1], 20_000, axis=0), SeededSource(3)))
    assert np.linalg.norm(many.mean(axis=0) - rows[0]) < 5 * math.sqrt(spread[0] / 20_000)


def test_p3_with_one_round_and_exact_variance_by_hand():
    """2 D G (2 + log T)/√T with G² = max(d^(1-2/p), 1) L² + variance/k."""
    check = subsampled_shuffle(ConvexTask(4, norm=math.inf), 40, 10, 9, 1.0, repeats=2)
    size = 4 / math.tanh(0.5)  # one coordinate of four, one bit: the report's only entry
    expected = 4 * math.sqrt(4 + size**2 / 10) * (2 + math.log(9)) / 3
    assert check.bound == pytest.approx(expected)
    printed = 4 * math.sqrt(4 + 4 * 4 * 4 / math.tanh(0.5) ** 2 / 10) * (2 + math.log(9)) / 3
    assert check.details["bound_with_printed_variance"] == pytest.approx(printed)
    with pytest.raises(InvalidParameter, match="norm"):
        p3_utility.largest_square(3, 0.5, 1.0)
    with pytest.raises(InvalidParameter, match="rounds"):
        p3_utility.risk(rounds=0, diameter=1.0, second_moment=1.0)


def test_conditions_are_checked():
    with pytest.raises(OutsideTheorem, match="check-in probability"):
        fixed_window(TASK, 100, 100, 1.0, 0.5)
    with pytest.raises(OutsideTheorem, match="no more slots than clients"):
        averaged_window(TASK, 100, 200, 1.0)
    for bad in ({"dimension": 0}, {"dimension": 2, "diameter": math.nan}):
        with pytest.raises(InvalidParameter):
            ConvexTask(**bad)
    with pytest.raises(InvalidParameter, match="noise"):
        averaged_window(TASK, 100, 10, math.nan)
    with pytest.raises(InvalidParameter, match="even"):
        averaged_window(TASK, 101, 10, 1.0)
    with pytest.raises(InvalidParameter, match="repeats"):
        averaged_window(TASK, 100, 10, 1.0, repeats=1)


def test_the_command(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["dpcheckin", "utility", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *capsys.readouterr()

    small = ("--population", "600", "--slots", "60", "--repeats", "2", "--dimension", "4")
    code, out, _ = run("p2-3.5", *small, "--json")
    facts = json.loads(out)
    same = fixed_window(TASK, 600, 60, 1.0, repeats=2)
    assert code == 0 and (facts["bound"], facts["measured"]) == (same.bound, same.measured)
    assert facts["epsilon"] == same.plan.epsilon(1e-5).upper
    code, out, _ = run("p2-4.2", *small, "--noise", "0.5")
    assert code == 0 and "ε ≤" in out and "expected excess risk" in out
    few = ("--population", "60", "--cohort", "20", "--rounds", "9", "--repeats", "2")
    code, out, _ = run("p3-3", "--norm", "3", *few)
    assert code == 0 and "expected excess risk" in out
    for arguments in (
        ("p9",),
        ("p3-3", "--norm", "0.9"),
        ("p3-3", "--norm", "nan"),
        ("p3-3", "--norm", "x"),
        ("p2-3.5", "--repeats", "1", *small[:4]),
    ):
        code, _, err = run(*arguments)
        assert code == 2 and len(err.strip().splitlines()) == 1
