"""The catalogue: every entry says what it is, refuted ones stay refuted, and the order holds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from dpcheckin.accounting.published import (
    BoundValue,
    NotAGuarantee,
    Setting,
    catalogue,
    evaluate,
    published_bounds,
)
from dpcheckin.accounting.published.entry import PAPERS
from dpcheckin.accounting.statements import Kind
from dpcheckin.errors import InvalidParameter
from dpcheckin.report.catalogue_page import page
from dpcheckin.report.compare import EMPTY_SEAT, compare


def test_every_entry_is_complete() -> None:
    """Paper with arXiv version (or venue), theorem, statement, kind; an erratum if refuted."""
    entries = catalogue()
    assert len(entries) >= 30
    for bound in entries:
        assert bound.statement and bound.theorem and bound.protocols
        assert "arXiv" in bound.citation
        assert bound.kind in Kind
        if bound.kind is Kind.REFUTED:
            assert bound.erratum
    assert {b.paper for b in entries} >= {"P0", "P1", "P2", "P3", "P4"}
    assert len({(b.name, b.theorem, b.protocols) for b in entries}) == len(entries)
    assert all("v" in text.rsplit("arXiv", 1)[1] for text in PAPERS.values())


def test_only_guarantees_become_guarantees() -> None:
    """Whatever its number, an entry of another kind is refused, in the type's one door."""
    for bound in catalogue():
        value = BoundValue(bound, 0.1, None)
        if bound.kind is Kind.GUARANTEE:
            assert value.guaranteed_epsilon() == 0.1
        else:
            with pytest.raises(NotAGuarantee, match=bound.kind.value):
                value.guaranteed_epsilon()


def test_p1_table_2_is_recomputed_and_refuted() -> None:
    """First baseline entry within 0.092..0.096; approaches within a fifth of the print."""
    values = {v.name: v for v in published_bounds(10_000, 1e-2, 2.0, 100, 1e-4)}
    assert 0.092 <= values["P1 baseline"].epsilon <= 0.096
    assert values["P1 approach 1"].epsilon == pytest.approx(0.17, rel=0.1)
    values = {v.name: v for v in published_bounds(10_000, 1e-2, 8.0, 100, 1e-4)}
    assert values["P1 approach 1"].epsilon == pytest.approx(8.57, rel=0.01)
    assert values["P1 approach 2"].epsilon == pytest.approx(8.18, rel=0.01)
    assert all(values[f"P1 {x}"].kind is Kind.REFUTED for x in ("baseline", "approach 1"))


def test_p3_mnist_run() -> None:
    """Theorem 1 gives the reported 5.8 (5.79); the exact sum over k of P0's run gives 11.3."""
    run = Setting("subsampled-shuffle", 60_000, 6_000, 1e-5, cohort=2_000, local_epsilon=2.0)
    values = {v.theorem: v.epsilon for v in evaluate(run)}
    assert values["Thm 1"] == pytest.approx(5.79, abs=0.01)
    assert values["Thm 2, converted to epsilon"] < values["Thm 1"]


def test_reasons_are_given_where_a_bound_does_not_apply() -> None:
    """Never a number in the place of a reason."""
    for value in evaluate(Setting("shuffle", 50, 3, 1e-6, local_epsilon=2.0)):
        assert (value.epsilon is None) != (value.reason is None)
    with pytest.raises(InvalidParameter, match="protocol"):
        compare(Setting("gossip", 50, 3, 1e-6, local_epsilon=2.0))


def _check_order(setting: Setting) -> None:
    lines = compare(setting, frozenset({Kind.GUARANTEE, Kind.LOWER_BOUND}))
    proved = [x.epsilon for x in lines if x.kind is Kind.GUARANTEE and x.epsilon is not None]
    true_lower = [x.epsilon for x in lines if x.kind is Kind.LOWER_BOUND and x.epsilon is not None]
    for low in true_lower:
        assert low <= min(proved) * (1 + 1e-9)
    ours = next(x.epsilon for x in lines if x.name == EMPTY_SEAT)
    assert ours is not None and ours <= min(proved) * 1.01 + 1e-9


def _random_run(seed: int) -> tuple[Setting, Setting]:
    """The same random parameters for check-in and for a fixed cohort."""
    random = np.random.default_rng(seed)
    n, rate = int(10 ** random.uniform(3.0, 5.5)), float(random.uniform(0.01, 0.5))
    e0, rounds = float(random.uniform(0.2, 5.0)), int(10 ** random.uniform(0.0, 3.0))
    delta = float(10 ** random.uniform(-8.0, -3.0))
    cohort = max(2, min(n - 1, round(n * rate)))
    return (
        Setting("shuffled-check-in", n, rounds, delta, rate=rate, local_epsilon=e0),
        Setting("subsampled-shuffle", n, rounds, delta, cohort=cohort, local_epsilon=e0),
    )


@pytest.mark.parametrize("seed", range(6))
def test_order_of_bounds(seed: int) -> None:
    """Lower bound <= empty-seat guarantee <= every other sound bound (1% numerical width)."""
    for setting in _random_run(seed):
        _check_order(setting)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 306))
def test_order_of_bounds_for_hundreds_of_runs(seed: int) -> None:
    """The same, three hundred times."""
    for setting in _random_run(seed):
        _check_order(setting)


@pytest.mark.parametrize("noise", [3.0])
def test_order_for_gaussian_reports(noise: float) -> None:
    """Homogeneous pair <= guarantee <= check-in alone, clones."""
    run = Setting("shuffled-check-in", 5_000, 50, 1e-5, rate=0.05, noise_multiplier=noise)
    _check_order(run)
    values = {x.name: x.epsilon for x in compare(run)}
    low, ours = values["homogeneous Gaussian pair"], values[EMPTY_SEAT]
    assert low is not None and ours is not None and low < ours < 2 * low
    assert math.isfinite(values["check-in alone, Gaussian reports"] or math.inf)


def test_the_page_of_bounds_is_up_to_date() -> None:
    """docs/bounds.md is what the catalogue says."""
    written = (Path(__file__).parents[2] / "docs" / "bounds.md").read_text(encoding="utf-8")
    assert written == page()


_SMALL_RUNS = {
    "shuffle": {"local_epsilon": 0.4},
    "subsampled-shuffle": {"local_epsilon": 0.4, "cohort": 400},
    "shuffled-check-in": {"local_epsilon": 0.4, "rate": 0.2},
    "distributed-check-in": {"noise_multiplier": 1.0, "rate": 0.2},
    "distributed-check-in-removal": {"noise_multiplier": 1.0, "rate": 0.2},
    "random-check-in-fixed": {"local_epsilon": 0.4, "slots": 1000, "check_in_probability": 0.5},
    "random-check-in-averaged": {"local_epsilon": 0.4, "slots": 1000},
    "random-check-in-sliding": {"local_epsilon": 0.4, "slots": 1000},
}


@pytest.mark.parametrize("protocol", _SMALL_RUNS)
def test_every_protocol_is_evaluated(protocol: str) -> None:
    """A figure or a reason for each entry; composed proofs are never above their closed form."""
    setting = Setting(protocol, 2_000, 1, 1e-6, **_SMALL_RUNS[protocol])
    values = evaluate(setting)
    assert any(v.epsilon is not None for v in values)
    for v in values:
        assert (v.epsilon is None) != (v.reason is None)
        assert v.epsilon is None or (math.isfinite(v.epsilon) and v.epsilon >= 0.0)
    figures = {v.name: v.epsilon for v in values}
    for name, closed in figures.items():
        composed = figures.get(f"{name}, composed")
        if composed is not None and closed is not None:
            assert composed <= closed


@pytest.mark.parametrize("protocol", ["shuffle", "subsampled-shuffle"])
def test_gaussian_reports_are_evaluated(protocol: str) -> None:
    """P4's curves are refuted or unproved, and above the exact pair they convert."""
    more = {"cohort": 200} if protocol == "subsampled-shuffle" else {}
    values = evaluate(Setting(protocol, 2_000, 10, 1e-5, noise_multiplier=4.0, **more))
    kinds = (Kind.REFUTED, Kind.CONJECTURE)
    claims = [v for v in values if v.kind in kinds and v.epsilon is not None]
    assert claims
    lower = [v.epsilon for v in values if v.kind is Kind.LOWER_BOUND and v.epsilon is not None]
    assert all(v > 0.0 for v in lower)


def test_local_deltas_need_to_be_tiny() -> None:
    """P2's second halves: a figure above the pure one, or the reason why there is none."""
    name = "(eps0, delta0) random check-ins"
    for protocol in ("shuffle", "random-check-in-fixed", "random-check-in-averaged"):
        run = {"slots": 10**5} if protocol != "shuffle" else {}
        values = {
            x: next(
                v
                for v in evaluate(
                    Setting(protocol, 10**5, 1, 1e-6, local_epsilon=0.05, local_delta=x, **run)
                )
                if v.name == name
            )
            for x in (1e-18, 1e-7)
        }
        assert values[1e-18].epsilon is not None and values[1e-18].epsilon < 0.4
        assert values[1e-7].epsilon is None and "delta" in (values[1e-7].reason or "")
