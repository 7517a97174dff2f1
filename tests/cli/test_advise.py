"""Advice is arithmetic over what the accountant certifies: every part of it is checked here."""

from __future__ import annotations

import json

import mpmath
import numpy as np
import pytest

from dpcheckin.cli import main
from dpcheckin.errors import InvalidParameter
from dpcheckin.notebook.advice import advise, central_signal, report_variance
from dpcheckin.protocols import ShuffledCheckIn
from dpcheckin.randomizers import Gaussian, PrivUnit, SeededSource


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-5), (1.0, 1e-5), (3.0, 1e-8), (12.0, 0.3)])
def test_the_trusted_servers_noise_keeps_exactly_its_delta(epsilon: float, delta: float) -> None:
    """In forty digits the Gaussian mechanism with that noise has the delta that was asked for."""
    population = 1000
    with mpmath.workdps(40):
        noise = population / mpmath.sqrt(central_signal(epsilon, delta, population))
        shift = 2 / noise  # one vector of length one turns into its opposite
        near = mpmath.ncdf(shift / 2 - epsilon / shift)
        far = mpmath.ncdf(-shift / 2 - epsilon / shift)
        found = near - mpmath.exp(epsilon) * far
    assert float(found) == pytest.approx(delta, rel=1e-5)


def test_the_variance_of_a_report_is_that_of_reports() -> None:
    """Mean square over 8,000 reports of 50 numbers; its standard deviation is below 0.5%."""
    assert report_variance(Gaussian(3.0, 0.5), 10) == pytest.approx(9.0)
    randomizer = PrivUnit(2.0, 50, 0.5)
    rows = np.zeros((8000, 50))
    rows[:, 3] = 0.5
    reports = randomizer.randomize(rows, SeededSource((1, 2)))
    strayed = np.asarray(randomizer.estimate(reports)) - rows
    expected = report_variance(randomizer, 50) * 0.25
    assert float((strayed**2).mean()) == pytest.approx(expected, rel=0.03)


def test_rounds_and_epsilon_are_the_plans_and_signal_is_check_ins_over_variance() -> None:
    found = advise(epsilon=1.0, population=2000, dimension=100, local_epsilons=[1.0, 3.0])
    assert found.best.local_epsilon == 1.0
    for choice in found.choices:
        assert choice.local_epsilon is not None
        randomizer = PrivUnit(choice.local_epsilon, 100)
        plan = ShuffledCheckIn(2000, 0.1, 100_000, randomizer)
        assert plan.epsilon(1e-5, choice.rounds).upper == choice.epsilon <= 1.0
        assert plan.epsilon(1e-5, choice.rounds + 1).upper > 1.0
        signal = 200 * choice.rounds / report_variance(randomizer, 100)
        assert choice.signal == pytest.approx(signal / central_signal(1.0, 1e-5, 2000))
        assert 0 < choice.signal < 1  # nobody beats the trusted server
    shares = [row["signal"] for row in found.records()]
    assert shares == sorted(shares, reverse=True)


def test_gaussian_reports_are_tried_unasked_and_what_colluding_leaves_is_the_plans() -> None:
    """With many check-ins they leave the largest signal; a client that reports more often is betrayed more."""
    found = advise(epsilon=1.0, population=60_000, dimension=3010)
    best = found.best
    assert best.noise_multiplier == 2.7 and best.local_epsilon is None and best.signal > 0.7
    plan = ShuffledCheckIn(60_000, 0.1, best.rounds, Gaussian(2.7))
    stated = plan.guarantee(1e-5)
    assert stated.local is not None and best.colluding_epsilon == stated.local.epsilon > 1000
    assert found.records()[0]["colluding_epsilon"] == best.colluding_epsilon
    few = advise(epsilon=1.0, population=60_000, dimension=3010, passes=50.0)
    assert few.best.local_epsilon is not None and few.best.noise_multiplier is None


def test_few_passes_change_what_is_best() -> None:
    """Where passes are scarce, reports with less noise are best, and epsilon is left over."""
    few = advise(epsilon=1.0, population=2000, dimension=100, passes=5.0, local_epsilons=[1, 2])
    assert all(choice.passes <= 5.0 for choice in few.choices)
    assert few.best.local_epsilon == 2.0
    slack = next(choice for choice in few.choices if choice.local_epsilon == 1.0)
    assert slack.rounds == 50 and slack.epsilon < 1.0


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"population": 1}, "population"),
        ({"dimension": 1}, "dimension"),
        ({"passes": 0.01}, "passes"),
        ({"passes": float("inf")}, "passes"),
        ({"local_epsilons": []}, "local_epsilons"),
        ({"local_epsilons": [9.0], "epsilon": 1e-4}, "epsilon"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object], name: str) -> None:
    given = {"epsilon": 1.0, "population": 500, "dimension": 20, "local_epsilons": [2.0]}
    with pytest.raises(InvalidParameter, match=name):
        advise(**{**given, **wrong})  # type: ignore[arg-type]


def test_the_command_prints_one_table_and_a_run_to_start_from(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*more: str) -> tuple[object, str, str]:
        given = ["--epsilon", "1", "--population", "2000", "--dimension", "100", "--passes", "5"]
        monkeypatch.setattr("sys.argv", ["dpcheckin", "advise", *given, *more])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    code, out, _ = run("--local-epsilon", "1", "--local-epsilon", "2")
    assert code == 0 and "signal" in out and "--local-epsilon 2 --rate 0.1 --rounds" in out
    code, out, _ = run("--local-epsilon", "2", "--json")
    (choice,) = json.loads(out)["choices"]
    assert code == 0 and choice["rounds"] <= 50 and choice["noise_multiplier"] is None
    code, out, error = run("--local-epsilon", "0")
    assert code == 2 and len(error.strip().splitlines()) == 1 and "--local-epsilon = 0" in error
