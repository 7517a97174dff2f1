"""The catalogue: every entry says what it is, refuted ones stay refuted, and the order holds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from dpcheckin.accounting.kinds import Kind
from dpcheckin.accounting.published import (
    BoundValue,
    NotAGuarantee,
    Setting,
    catalogue,
    evaluate,
    published_bounds,
)
from dpcheckin.accounting.published.entry import PAPERS
from dpcheckin.errors import InvalidParameter
from dpcheckin.report.catalogue_page import page
from dpcheckin.report.compare import EMPTY_SEAT, best_guarantee, compare


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
    best = best_guarantee(lines)
    assert best.epsilon == min(proved)
    for low in true_lower:
        assert low <= best.epsilon * (1 + 1e-9)
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
