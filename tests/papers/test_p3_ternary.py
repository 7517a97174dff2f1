"""P3's ternary |chi|^alpha-DP against shuffles that are enumerated report by report."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpcheckin.accounting.renyi import of_ternary
from dpcheckin.errors import InvalidParameter
from dpcheckin.papers.catalogue import evaluate
from dpcheckin.papers.entry import Setting
from dpcheckin.papers.p3 import bounds, ternary

E0 = 1.0
Law = tuple[float, ...]


def _response(symbols: int, e0: float) -> list[Law]:
    """k-ary response: the law for each value."""
    whole = math.exp(e0) + symbols - 1
    return [tuple((math.exp(e0) if i == j else 1.0) / whole for j in range(symbols)) for i in range(symbols)]


def _shuffled(laws: list[Law]) -> dict[tuple[int, ...], float]:
    """The law of the sorted reports, one by one."""
    out: dict[tuple[int, ...], float] = {}
    for reports in itertools.product(range(len(laws[0])), repeat=len(laws)):
        chance = math.prod(law[r] for law, r in zip(laws, reports, strict=True))
        key = tuple(sorted(reports))
        out[key] = out.get(key, 0.0) + chance
    return out


def _divergence(others: list[Law], p: Law, q: Law, r: Law, order: float) -> float:
    above, below, base = (_shuffled([*others, one]) for one in (p, q, r))
    return sum(w * (abs(above[y] - below[y]) / w) ** order for y, w in base.items())


def test_the_special_case_in_print() -> None:
    """m = 10, order 2: 3-ary response has 0.125, Theorem 6 allows 0.4345."""
    a, b, third = _response(3, E0)
    exact = math.exp(ternary.divergence(a, b, third, 10, 2.0))
    assert f"{exact:.3f}" == "0.125"
    assert f"{math.exp(ternary.special_case(10, E0, 2.0)):.4f}" == "0.4345"


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, 4.5, 6.0])
@pytest.mark.parametrize("reports", [1, 2, 4])
def test_histograms_are_the_shuffle(reports: int, order: float) -> None:
    """And Theorem 6 and Lemma 7 lie above, for every triple of a 3-ary randomizer."""
    laws = _response(3, E0)
    for p, q, r in itertools.product(laws, repeat=3):
        if p == q:
            continue
        exact = _divergence([r] * (reports - 1), p, q, r, order)
        assert math.exp(ternary.divergence(p, q, r, reports, order)) == pytest.approx(exact, rel=1e-9)
        assert exact <= math.exp(ternary.special_case(reports, E0, order)) * (1 + 1e-12)
        if q == r:
            assert exact <= math.exp(ternary.from_one(reports, E0, order)) * (1 + 1e-12)


@pytest.mark.parametrize("order", [2.0, 3.0, 5.0])
def test_any_data_by_the_reduction(order: float) -> None:
    """Theorem 5 with the exact special case, and Theorem 4, above all data of four clients; Lemma 5 on the way."""
    laws = [*_response(3, E0), (1 / 3, 1 / 3, 1 / 3)]
    worst = {}
    for others in itertools.combinations_with_replacement(laws, 3):
        for p, q, r in itertools.product(laws, repeat=3):
            exact = _divergence(list(others), p, q, r, order)
            worst[p, q, r] = max(worst.get((p, q, r), 0.0), exact)
            assert exact <= _divergence(list(others[1:]), p, q, r, order) * (1 + 1e-9)
    for (p, q, r), exact in worst.items():
        if p == q:
            continue

        def special(m: np.ndarray, p: Law = p, q: Law = q, r: Law = r) -> np.ndarray:
            return np.array([ternary.divergence(p, q, r, int(k), order) for k in m])

        reduced = ternary.reduction(4, E0, special)
        assert exact <= math.exp(reduced) * (1 + 1e-9)
        assert reduced <= ternary.reduction(4, E0, lambda m: ternary.special_case(m, E0, order)) + 1e-12
    assert max(worst.values()) <= math.exp(ternary.theorem_4(4, E0, order))


def test_lemma_2_makes_theorem_1_of_theorem_4() -> None:
    zeta = np.array([ternary.theorem_4(500, 2.0, float(a)) for a in range(2, 65)])
    np.testing.assert_allclose(of_ternary(zeta, 500 / 9_000).epsilons, bounds.upper_rdp(9_000, 500, 2.0, 64).epsilons)


@pytest.mark.parametrize(
    ("n", "k", "e0"), [(60_000, 2_000, 2.0), (1_000, 1_000, 0.5), (10**6, 1_000, 3.0), (50, 1, 1.0)]
)
def test_the_whole_sum_is_below_theorem_1_and_above_binary_response(n: int, k: int, e0: float) -> None:
    low, ours = bounds.lower_rdp(n, k, e0, 60).epsilons, ternary.reduced_rdp(n, k, e0, 60).epsilons
    assert np.all(ours <= bounds.upper_rdp(n, k, e0, 60).epsilons * (1 + 1e-12)) and np.all(ours >= low)


def test_compare_has_it_for_p3s_own_run() -> None:
    run = Setting("subsampled-shuffle", 60_000, 6_000, 1e-5, cohort=2_000, local_epsilon=2.0)
    values = {v.theorem: v.epsilon for v in evaluate(run)}
    assert 3.9 < values["Thms 5, 6 with Lemma 2"] < 4.0 < values["Thm 1"]


def test_bad_input_is_named() -> None:
    with pytest.raises(InvalidParameter, match="order"):
        ternary.from_one(3, 1.0, math.nan)
    with pytest.raises(InvalidParameter, match="laws"):
        ternary.divergence([0.5, 0.5], [0.5, 0.5], [1.0, 0.0], 3, 2.0)
    with pytest.raises(InvalidParameter, match="cohort"):
        ternary.reduced_rdp(10, 11, 1.0)
