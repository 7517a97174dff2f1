"""Random check-ins: the closed forms, the composition below them, and real runs counted out."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcheckin.accounting.rounds import windows
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.papers.p2 import bounds as p2


def _fixed_window_law(bits: tuple[int, ...], m: int, p0: float, e0: float) -> np.ndarray:
    """Outputs of the fixed-window protocol with binary response and a dummy value of 0."""
    r = math.exp(e0)

    def report(bit: int) -> np.ndarray:
        return np.array([r, 1.0] if bit == 0 else [1.0, r]) / (r + 1)

    law = np.zeros(2**m)
    for choice in product(range(m + 1), repeat=len(bits)):  # slot, or m for staying away
        weight = math.prod(p0 / m if c < m else 1 - p0 for c in choice)
        if weight == 0.0:
            continue
        out = np.ones(1)
        for slot in range(m):
            here = [report(bits[i]) for i, c in enumerate(choice) if c == slot]
            out = np.kron(out, np.mean(here, axis=0) if here else report(0))
        law += weight * out
    return law


@pytest.mark.parametrize(("m", "p0"), [(2, 1.0), (3, 1.0), (3, 0.5)])
@pytest.mark.parametrize("others", [(0, 1), (1, 1), (0,)])
@pytest.mark.parametrize("e0", [0.5, 1.5])
def test_composed_epsilon_covers_real_runs(m: int, p0: float, others: tuple[int, ...], e0: float) -> None:
    """For several deltas, the run's true delta at our epsilon is no larger."""
    q = p2.fixed_window_posteriors(m, p0, e0)
    p_law = _fixed_window_law((0, *others), m, p0, e0)
    q_law = _fixed_window_law((1, *others), m, p0, e0)
    for delta in (1e-1, 1e-2, 1e-3):
        alpha = math.exp(p2.composed_epsilon(q, e0, delta).upper)
        assert np.maximum(p_law - alpha * q_law, 0).sum() <= delta + 1e-12
        assert np.maximum(q_law - alpha * p_law, 0).sum() <= delta + 1e-12


@pytest.mark.parametrize(("e0", "closed", "composed"), [(0.5, 0.139, 0.0820), (1.0, 0.475, 0.253), (2.0, 3.04, 1.14)])
def test_a_thousand_slots(e0: float, closed: float, composed: float) -> None:
    """The figures of the design notes, and how far below the closed form one gets."""
    statement = p2.fixed_window(1000, 1.0, e0, 1e-6).epsilon
    ours = p2.composed_epsilon(p2.fixed_window_posteriors(1000, 1.0, e0), e0, 1e-6)
    assert statement == pytest.approx(closed, rel=2e-3)
    assert ours.upper == pytest.approx(composed, rel=1.5e-2)
    assert ours.upper < 0.62 * statement


@settings(max_examples=5, deadline=None)
@given(st.floats(0.1, 2.5), st.integers(2, 40), st.floats(0.05, 1.0), st.floats(-9.0, -2.0))
def test_composition_never_exceeds_the_closed_forms(e0: float, m: int, p0: float, log_delta: float) -> None:
    """Fixed window, sliding window, shuffling and averaged updates, everywhere."""
    delta = 10.0**log_delta
    q = p2.fixed_window_posteriors(m, p0, e0)
    assert p2.composed_epsilon(q, e0, delta).upper <= p2.fixed_window(m, p0, e0, delta).epsilon
    q = p2.shuffling_posteriors(m, e0)
    shuffled = p2.composed_epsilon(q, e0, delta).upper
    assert shuffled <= p2.shuffling(m, e0, delta).epsilon
    assert p2.shuffling(m, e0, delta).epsilon <= p2.shuffling_before(m, e0, delta).epsilon * 1.0001
    n = 50 * m
    q = windows.typical_averaged_posteriors(n, m, e0, delta / 2)
    averaged = p2.composed_epsilon(q, e0, delta / 2).upper
    assert averaged <= p2.averaged(n, m, e0, delta / 2, delta / 2).epsilon


@settings(max_examples=50, deadline=None)
@given(st.integers(10, 400), st.integers(2, 8), st.floats(0.2, 2.0), st.integers(0, 10**6))
def test_typical_loads_cover_realised_loads(n: int, m: int, e0: float, seed: int) -> None:
    """Whenever all loads are within the bounds, each posterior is; the paper's is looser."""
    loads = np.random.default_rng(seed).multinomial(n, [1 / m] * m)
    # P2, Theorem A.5: the middle expression of its proof, not the last
    before, e = np.cumsum(loads) - loads, math.exp(-e0)
    exact = loads / (loads + e * e * before + e * (n - loads - before))
    assert np.all(exact <= np.minimum(1.0, math.exp(2 * e0) * loads / n) + 1e-12)
    typical = np.array(windows.typical_averaged_posteriors(n, m, e0, 1e-9))
    assert np.all(exact <= typical + 1e-12)  # fails with probability 1e-9


def test_corollary_3_3_far_inside_its_conditions() -> None:
    """Many clients, a small local epsilon: less than one half for the whole run."""
    fine = p2.repeated_fixed_window(10**7, 1000, 0.5, 1e-9, 1e-6)
    assert 0 < fine.epsilon < 0.5


def test_approximate_randomizers_pay_eightfold() -> None:
    """Lemma A.3 inverts, and refuses what it does not cover."""
    d1 = p2.smallest_pure_delta(0.1, 1e-12)
    assert p2.largest_local_delta(0.1, d1) == pytest.approx(1e-12, rel=1e-6)
    with pytest.raises(OutsideTheorem, match="random allocation"):
        p2.smallest_pure_delta(2.0, 0.1)
    pure = p2.fixed_window(1000, 1.0, 0.8, 5e-7)
    total = p2.with_local_delta(pure, 1000, d1)
    assert total.epsilon == pure.epsilon and total.delta > pure.delta


def test_bad_input_is_named() -> None:
    """Posteriors above one, NaN."""
    with pytest.raises(InvalidParameter, match="posteriors"):
        p2.composed_epsilon((1.5,), 1.0, 1e-3)
    with pytest.raises(InvalidParameter, match="local_epsilon"):
        p2.shuffling(10, math.nan, 1e-3)


def test_lemma_a1_is_reached_by_binary_response() -> None:
    """The other value is the other bit: equality; a third value of 3-ary response stays below."""
    e0 = 1.3
    e = math.exp(e0)
    for own in (0.0, 0.25, 0.7, 1.0):
        likely, unlikely = e / (e + 1), 1 / (e + 1)
        ratio = likely / (own * likely + (1 - own) * unlikely)
        assert p2.lemma_a1(e0, own) == pytest.approx(ratio, rel=1e-12)


def test_lemma_a2_covers_the_steps_composed_exactly() -> None:
    """Pairs of exactly those epsilons, composed over all their signs."""
    steps, rise, slope, delta = 12, 0.4, 0.5, 1e-3
    epsilons = [math.log1p(rise / (steps - slope * i)) for i in range(steps)]

    def exact(epsilon: float) -> float:
        total = 0.0
        for signs in product((1, -1), repeat=steps):
            loss = sum(s * e for s, e in zip(signs, epsilons, strict=True))
            p = math.prod(1 / (1 + math.exp(-s * e)) for s, e in zip(signs, epsilons, strict=True))
            total += p * max(0.0, -math.expm1(epsilon - loss))
        return total

    found = p2.lemma_a2(steps, rise, slope, delta)
    assert exact(found) <= delta < exact(0.5 * found)


def test_lemma_a6_holds_for_all_ways_to_fill_the_slots() -> None:
    """Five clients in three slots: of 243 ways at most a share delta is above."""
    norms = [math.sqrt(sum(choice.count(slot) ** 2 for slot in range(3))) for choice in product(range(3), repeat=5)]
    for delta in (0.9, 0.5, 0.1):
        bound = p2.lemma_a6(5, 3, delta)
        assert sum(norm > bound for norm in norms) <= delta * len(norms)
    assert p2.lemma_a6(5, 3, 0.999999) < max(norms)


def test_an_order_of_magnitude_fewer_users_fails_at_small_epsilon() -> None:
    """0.0203 with 1,000 users against 0.0135 with 10,000 before; it holds from 0.9 on."""
    few, many = (f(n, 0.1, 1e-6).epsilon for f, n in ((p2.shuffling, 1_000), (p2.shuffling_before, 10_000)))
    assert (f"{few:.4f}", f"{many:.4f}") == ("0.0203", "0.0135")
    assert p2.shuffling(1_000, 0.9, 1e-6).epsilon <= p2.shuffling_before(10_000, 0.9, 1e-6).epsilon
