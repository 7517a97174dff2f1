"""`import dpcheckin as dp`: questions in plain names, arrays, tables, frames and plots."""

from __future__ import annotations

import math
import subprocess
import sys
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
import pytest

import dpcheckin as dp
from dpcheckin.errors import InvalidParameter, MissingExtra

matplotlib.use("Agg")
SMALL = {"population": 2_000, "rate": 0.05, "local_epsilon": 1.0}


def test_every_name_of_the_front_door_is_there_and_documented() -> None:
    for name in dp.__all__:
        value = getattr(dp, name)
        assert name == "__version__" or (value.__doc__ or "").strip(), name
    for function in (dp.epsilon, dp.delta, dp.plan, dp.compare, dp.tradeoff, dp.guarantee):
        assert "Args:" in (function.__doc__ or ""), function


def test_epsilon_is_the_guarantee_of_the_same_round() -> None:
    stated = dp.epsilon(**SMALL, rounds=20, delta=1e-5)
    one = dp.CheckInRound(2_000, 0.05, dp.any_pure(1.0))
    assert stated == dp.guarantee([(one, 20)], 1e-5)
    assert float(stated) == stated.epsilon.upper == stated.charge()
    assert float(dp.lower_bound([(one, 20)], 1e-5)) <= float(stated)


@pytest.mark.parametrize(
    ("name", "values"), [("rounds", [1, 5, 20]), ("delta", [1e-4, 1e-6]), ("rate", np.array([0.01, 0.05]))]
)
def test_one_argument_may_be_many_numbers(name: str, values: list[float]) -> None:
    asked = {**SMALL, "rounds": 20, "delta": 1e-5}
    sweep = dp.epsilon(**{**asked, name: values})
    assert isinstance(sweep, dp.Sweep)
    singly = [float(dp.epsilon(**{**asked, name: value})) for value in np.asarray(values).tolist()]
    assert np.asarray(sweep).tolist() == pytest.approx(singly, rel=2e-4)
    assert len(sweep) == len(values)


def test_a_sweep_among_a_few_clients_is_capped_by_what_holds_unshuffled() -> None:
    """Three clients hide nobody: the local figure is the smaller one, as in the guarantee."""
    asked = {"population": 3, "rate": 0.9, "local_epsilon": 0.5, "delta": 1e-3}
    counts = [1, 5, 40]
    sweep = dp.epsilon(**asked, rounds=counts)
    singly = [float(dp.epsilon(**asked, rounds=count)) for count in counts]
    assert np.asarray(sweep).tolist() == pytest.approx(singly, rel=2e-4)


def test_protocols_that_state_their_own_guarantee_sweep_too() -> None:
    sweep = dp.epsilon(2_000, protocol="local-only", local_epsilon=0.1, rounds=[1, 4], delta=1e-5)
    assert np.asarray(sweep)[0] == pytest.approx(0.1, rel=1e-3)
    assert np.all(np.isnan(sweep.lower_bounds))


def test_two_arrays_at_once_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="rate, rounds"):
        dp.epsilon(2_000, [0.1, 0.2], 1.0, rounds=[1, 2])
    with pytest.raises(InvalidParameter, match="rounds"):
        dp.epsilon(2_000, 0.1, 1.0, rounds=[[1, 2]])


def test_delta_turns_epsilon_round() -> None:
    stated = dp.epsilon(**SMALL, rounds=20, delta=1e-5)
    back = dp.delta(float(stated), **SMALL, rounds=20)
    assert back.lower <= 1e-5 * (1 + 1e-6)
    assert back.upper == pytest.approx(1e-5, rel=0.05)
    assert dp.delta([0.1, 0.2], **SMALL, rounds=20).upper.shape == (2,)


def test_a_plan_is_the_last_one_that_meets_the_target() -> None:
    planned = shown()["plan"]
    assert isinstance(planned, dp.PlannedRun)
    assert planned.parameter == "rounds"
    assert float(planned.guarantee) <= 0.3
    more = dp.epsilon(**SMALL, rounds=int(planned.value) + 1, delta=1e-5)
    assert float(more) > 0.3
    assert planned.run.rounds == planned.value == float(planned)
    with pytest.raises(InvalidParameter, match="are left out, one can be solved for"):
        dp.plan(epsilon=0.3, population=100)


def test_a_plan_says_what_it_tries() -> None:
    tried: list[str] = []
    few = {"population": 50, "rate": 0.1, "local_epsilon": 0.5, "protocol": "shuffled-check-in"}
    dp.plan(epsilon=1.0, delta=1e-3, **few, on_question=tried.append)
    assert tried
    assert all(text.startswith("trying rounds = ") for text in tried)


def test_a_comparison_has_ours_among_the_published() -> None:
    found = shown()["comparison"]
    assert isinstance(found, dp.Comparison)
    ours = [line for line in found if line.name == "empty-seat theorem"]
    assert ours[0].epsilon == pytest.approx(float(dp.epsilon(**SMALL, rounds=20, delta=1e-5)))
    assert found[0].epsilon is not None
    assert len(found) > 10
    with pytest.raises(InvalidParameter, match="local_epsilon"):
        dp.compare(1_000, 0.1)
    with pytest.raises(InvalidParameter, match="rate = 2"):
        dp.compare(1_000, 2.0, 1.0)
    alone = dp.Comparison(dp.Setting("shuffle", population=9, rounds=1, delta=1e-5), ())
    assert alone.caption.endswith("after 1 round")


@cache
def shown() -> dict[str, object]:
    one = dp.CheckInRound(2_000, 0.05, dp.any_pure(1.0))
    run = [(one, 20)]
    return {
        "guarantee": dp.guarantee(run, 1e-5),
        "lower bound": dp.lower_bound(run, 1e-5),
        "sweep": dp.epsilon(**SMALL, rounds=[1, 20], delta=1e-5),
        "plan": dp.plan(epsilon=0.3, delta=1e-5, **SMALL),
        "comparison": dp.compare(**SMALL, rounds=20, delta=1e-5),
        "trade-off": dp.tradeoff(run),
        "profile": dp.compose(run).profile(),
    }


def test_values_are_tables_in_a_notebook_and_frames_in_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    for name, value in shown().items():
        text = value._repr_html_()  # type: ignore[attr-defined]
        assert text.startswith("<table>"), name
        assert text.count("<tr>") == text.count("</tr>") >= 2, name
        frame = value.to_frame()  # type: ignore[attr-defined]
        assert isinstance(frame, pandas.DataFrame), name
        assert len(frame) >= 1, name
    certified = shown()["guarantee"]
    assert certified.to_frame()["epsilon"][0] == float(certified)  # type: ignore[attr-defined, arg-type]


def test_what_is_shown_is_rounded_to_the_safe_side() -> None:
    values = shown()
    sweep = values["sweep"]
    for row, exact in zip(sweep.shown(), sweep.epsilon, strict=True):  # type: ignore[attr-defined]
        assert float(row["ε (certified)"]) >= exact.upper
    for row, exact in zip(
        values["trade-off"].shown(),
        values["trade-off"].records(),
        strict=True,  # type: ignore[attr-defined]
    ):
        assert float(row["caught at most (certified)"]) >= exact["true_positives_at_most"]
        assert float(row["caught by the best known attack"]) <= exact["known_attack_catches"]


def test_plots_have_their_legend_beside_them(tmp_path: Path) -> None:
    from matplotlib import pyplot

    values = shown()
    for name in ("sweep", "trade-off", "profile", "comparison"):
        axes = values[name].plot()  # type: ignore[attr-defined]
        axes.figure.savefig(tmp_path / f"{name}.png")
        assert axes.lines or axes.patches, name
        legend = axes.get_legend()
        if legend is not None:
            right = axes.get_window_extent().x1
            assert legend.get_window_extent().x0 >= right, name
        pyplot.close(axes.figure)
    axes = values["sweep"].plot(lower_bound=True)  # type: ignore[attr-defined]
    assert [line.get_label() for line in axes.lines] == ["certified", "proven lower bound"]
    pyplot.close(axes.figure)


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    stated = dp.epsilon(**SMALL, rounds=20, delta=1e-5)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"pip install 'dpcheckin\[frame\]'"):
        stated.to_frame()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtra, match=r"pip install 'dpcheckin\[plot\]'"):
        dp.tradeoff(dp.LocalRound(dp.gaussian(2.0))).plot()


def test_accounting_loads_numpy_and_nothing_else_that_is_large() -> None:
    """Light doors: of libraries `import dpcheckin.accounting` loads NumPy."""
    code = (
        "import sys, dpcheckin.accounting; "
        "print([m for m in ('scipy', 'matplotlib', 'pandas', "
        "'dp_accounting', 'torch', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_infinite_figures_are_shown_as_what_they_are() -> None:
    curve = dp.tradeoff([(dp.CheckInRound(1_000, 0.1, dp.approximate(1.0, 1e-4)), 20)], delta=1e-9)
    assert "no statement of Gaussian privacy" in str(curve)
    assert math.isnan(curve.records()[0]["gaussian_catches"])


def test_surveys_are_tables_too() -> None:
    pandas = pytest.importorskip("pandas")
    planned = dp.plan_survey(dp.Wish(dp.Count(), population=2_000, delta=1e-5, epsilon=1.0, rounds=1))
    assert "<caption>The run is (" in planned._repr_html_()
    assert float(planned.shown()[0]["epsilon"]) >= planned.to_frame()["epsilon"][0]
    outcome = dp.simulate(planned.survey, np.arange(2_000) % 2 == 0, seed=3)
    frame = outcome.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == ["name", "estimate", "lower", "upper", "truth"]
    assert frame["truth"][0] == pytest.approx(1_000)
    assert outcome._repr_html_().startswith("<table><caption>")
