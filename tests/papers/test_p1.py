"""P1: its accountants for any base mechanism, Theorem 4 with its k = 0 term, Lemma 1."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcheckin.accounting import Bracket, CheckInRound, DistributedRound, Kind, compose, gaussian
from dpcheckin.accounting.engine.sampling import seen_counts, visible_counts
from dpcheckin.accounting.renyi import RenyiCurve, sampled_rdp, wang_subsampled
from dpcheckin.errors import InvalidParameter
from dpcheckin.papers.catalogue import evaluate
from dpcheckin.papers.entry import Setting
from dpcheckin.papers.p1 import bounds as p1
from dpcheckin.papers.p1.bounds import smallest_renyi
from dpcheckin.special import binomial


def _composed(n: int, rate: float, noise: float, rounds: int, delta: float) -> Bracket:
    return compose([(DistributedRound(n, rate, noise), rounds)]).epsilon(delta)


@settings(max_examples=12, deadline=None)
@given(st.integers(20, 5_000), st.floats(0.01, 0.6), st.floats(0.5, 4.0), st.integers(1, 300), st.floats(-8.0, -3.0))
def test_loss_distribution_never_exceeds_theorem_4(
    n: int, rate: float, noise: float, rounds: int, log_delta: float
) -> None:
    """And its bracket is ordered."""
    delta = 10.0**log_delta
    if delta < 1e-15 * rounds:
        return
    ours = _composed(n, rate, noise, rounds, delta)
    assert ours.lower <= ours.upper <= p1.theorem_4(n, rate, noise, rounds, delta) + 1e-9


def test_theorem_4_needs_its_k_0_term() -> None:
    """Without it the moment falls below one: an impossible Rényi divergence."""
    n, rate = 10, 0.05
    counts = visible_counts(n, rate)
    assert counts.probability[counts.high <= 0].sum() == pytest.approx((1 - rate) ** n)
    assert np.all(p1.theorem_4_rdp(n, rate, 3.0).epsilons >= 0.0)
    without = 1 - (1 - rate) ** n  # every remaining moment is at least one, but not by so much
    assert without * math.exp(p1.fixed_cohort_rdp(n, 1, 3.0).epsilons[0]) < 1.0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-3), (1.0, 1e-6), (0.0, 0.05)])
def test_lemma_1_is_the_smallest_divergence(epsilon: float, delta: float) -> None:
    """No pair of two-point laws with this profile has a smaller one; some have an infinite one."""
    order = 3.0
    least = smallest_renyi(np.array([epsilon]), np.array([delta]), np.array([order]))[0, 0]
    best = math.inf
    for r in delta + np.geomspace(1e-12, 1 - delta - 1e-9, 40_001):
        q = (r - delta) * math.exp(-epsilon)
        if 0 < q < 1:
            moment = r**order * q ** (1 - order) + (1 - r) ** order * (1 - q) ** (1 - order)
            best = min(best, math.log(moment) / (order - 1))
    assert least == pytest.approx(best, rel=1e-3, abs=1e-9)
    assert least <= best + 1e-12


def _binary(bit: int, e0: float) -> dict[int, float]:
    return {bit: e0 / (e0 + 1), 1 - bit: 1 / (e0 + 1)}


def _check_in(bits: tuple[int, ...], chances: list[float], e0: float) -> dict[tuple[int, int], float]:
    """(how many check in, ones among them) by enumeration; given the number every subset is as likely."""
    law: dict[tuple[int, int], float] = {}
    for k, chance in enumerate(chances):
        subsets = list(itertools.combinations(bits, k))
        for subset in subsets:
            for reports in itertools.product((0, 1), repeat=k):
                p = math.prod(_binary(b, e0)[r] for b, r in zip(subset, reports, strict=True))
                key = (k, sum(reports))
                law[key] = law.get(key, 0.0) + chance * p / len(subsets)
    return law


def _moment(bits: tuple[int, ...], other: tuple[int, ...], chances: list[float], e0: float, order: float) -> float:
    p, q = _check_in(bits, chances, e0), _check_in(other, chances, e0)
    return sum(q[y] * (p[y] / q[y]) ** order for y in q if q[y] > 0.0)


@pytest.mark.parametrize("chances", [[0.0, 0.0, 0.0, 1.0], [0.2, 0.3, 0.0, 0.5], [0.512, 0.384, 0.096, 0.008]])
def test_remark_3_with_any_base_and_any_distribution_of_k(chances: list[float]) -> None:
    """Three clients, every data set and order: the exact divergence is at most Eq. 5's, whatever k's distribution."""
    e0 = math.exp(1.2)

    def base(reports: float, orders: np.ndarray) -> np.ndarray:
        k = int(reports)
        alone = [0.0] * k + [1.0]  # exactly k check in
        worst = [
            max(_moment((0, *rest), (1, *rest), alone, e0, a) for rest in itertools.product((0, 1), repeat=k - 1))
            for a in orders
        ]
        return np.log(worst) / (orders - 1.0)

    curve = sampled_rdp(3, seen_counts(chances), base, 1.2)
    for order in (2, 3, 6, 20):
        for rest in itertools.product((0, 1), repeat=2):
            exact = math.log(_moment((0, *rest), (1, *rest), chances, e0, order)) / (order - 1)
            assert exact <= curve.epsilons[order - 2] * (1 + 1e-12)
    mixed = [math.exp((a - 1) * e) for a, e in zip(curve.orders, curve.epsilons, strict=True)]
    parts = np.zeros(len(mixed))
    for k, chance in enumerate(chances):  # Theorem 2: a mean over k of the curves of fixed cohorts
        one = np.ones(len(mixed))
        if k:
            fixed = wang_subsampled(RenyiCurve(curve.orders, base(k, curve.orders)), k / 3, 1.2)
            one = np.exp((fixed.orders - 1) * fixed.epsilons)
        parts += chance * one
    np.testing.assert_allclose(mixed, parts, rtol=1e-9)


def test_seen_counts_are_a_distribution() -> None:
    with pytest.raises(InvalidParameter, match="chances"):
        seen_counts([0.5, 0.4])
    with pytest.raises(InvalidParameter, match="chances"):
        seen_counts([1.5, -0.5])


def test_approaches_take_any_base_and_any_counts() -> None:
    """The binomial as an explicit distribution, and a profile or a Rényi curve in the place of an epsilon."""
    n, rate, rounds, delta = 400, 0.1, 10, 1e-3
    chances = [float(binomial.pmf(k, n, rate)) for k in range(n + 1)]
    counts = seen_counts(np.array(chances) / math.fsum(chances))
    pair = gaussian(4.0)
    orders = np.arange(2.0, 400.0)
    curve = RenyiCurve(orders, orders / 8.0)  # two values of gaussian(4) are half a deviation apart
    exact = pair.epsilon_within(delta**2)
    for approach in (p1.baseline, p1.approach_1, p1.approach_2):
        plain = approach(n, rate, exact, rounds, delta)
        assert approach(n, rate, pair, rounds, delta) == plain
        assert approach(n, rate, curve, rounds, delta) >= plain  # Rényi curves say a little less than profiles
        assert approach(n, rate, exact, rounds, delta, counts=counts) == pytest.approx(plain, rel=0.02)
        few = approach(n, rate, exact, rounds, delta, counts=seen_counts([0.0] * 20 + [1.0]))
        assert few != pytest.approx(plain, rel=0.02)


def test_gaussian_reports_have_p1s_figures() -> None:
    """`--noise-multiplier` reaches all three; of the new ones the guarantee is above the truth."""
    run = Setting("shuffled-check-in", 2_000, 20, 1e-5, rate=0.1, noise_multiplier=3.0)
    values = {(v.name, v.theorem): v for v in evaluate(run)}
    found = {name: v for (name, _), v in values.items()}
    for name in ("P1 baseline", "P1 approach 1", "P1 approach 2"):
        assert found[name].epsilon is not None and found[name].kind is Kind.REFUTED
    one = [(CheckInRound(2_000, 0.1, gaussian(3.0)), 20)]
    certified = compose(one).epsilon(1e-5)
    assert found["Rényi over the number of check-ins, Gaussian reports"].epsilon > certified.upper
    assert certified.lower <= found["homogeneous Gaussian pair"].epsilon * 1.001 <= certified.upper
    assert found["homogeneous Gaussian pair, Rényi"].kind is Kind.CONJECTURE
    nothing = Setting("shuffled-check-in", 2_000, 20, 1e-5, rate=0.1)
    assert all(v.epsilon is None for v in evaluate(nothing) if v.name.startswith("P1 "))
