"""P1's coupling: mended it covers binary response counted out, as printed it does not."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from dpcheckin.papers.others.bounds import pure_epsilon
from dpcheckin.papers.p1 import coupling


def _law(bits: tuple[int, ...], rate: float, e0: float) -> dict[tuple[int, int], float]:
    """(number of reports, ones among them) of one check-in of binary response."""
    keep = math.exp(e0) / (math.exp(e0) + 1)
    out: dict[tuple[int, int], float] = {}
    for here in product((False, True), repeat=len(bits)):
        chance = math.prod(rate if x else 1 - rate for x in here)
        law = np.ones(1)
        for bit, present in zip(bits, here, strict=True):
            if present:
                one = keep if bit else 1 - keep
                law = np.convolve(law, [1 - one, one])
        for ones, mass in enumerate(law):
            key = (sum(here), ones)
            out[key] = out.get(key, 0.0) + chance * float(mass)
    return out


def _truth(others: tuple[int, ...], rate: float, e0: float, epsilon: float) -> float:
    p, q = _law((1, *others), rate, e0), _law((0, *others), rate, e0)
    alpha = math.exp(epsilon)
    there = sum(max(p[y] - alpha * q[y], 0.0) for y in p)
    return max(there, sum(max(q[y] - alpha * p[y], 0.0) for y in p))


@pytest.mark.parametrize("others", [(), (0,), (0, 0), (0, 1, 1), (0, 0, 0, 0), (1, 0, 1, 0, 1)])
@pytest.mark.parametrize("free", [0.05, 0.5, 1.0, 2.5])
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_the_mended_bound_covers_enumeration(others: tuple[int, ...], free: float, rate: float) -> None:
    for e0 in (1.0, 3.0):
        epsilon, bound = coupling.delta(len(others) + 1, rate, e0, free)
        assert _truth(others, rate, e0, epsilon) <= bound + 1e-12


def _printed(n: int, rate: float, e0: float, free: float) -> float:
    """Without its first term, which is the profile of a shuffle of nobody."""
    epsilon = math.log1p(rate * math.expm1(free))
    total = float(binom.pmf(n - 1, n - 1, rate))
    for k in range(1, n):
        at = free + math.log(rate / (1 - rate) * (n / k - 1))
        total += binom.pmf(k - 1, n - 1, rate) * coupling.shuffle_profile(e0, k, at)
    return rate * (1 - math.exp(epsilon - free)) * total


@pytest.mark.parametrize(
    ("n", "rate", "free", "truth", "printed"),
    [(1, 0.1, 0.5, 0.0902, 0.0354), (3, 0.1, 0.1, 0.0895, 0.0081), (5, 0.3, 0.1, 0.2542, 0.0092)],
)
def test_as_printed_it_lies_below_the_truth(n: int, rate: float, free: float, truth: float, printed: float) -> None:
    epsilon, mended = coupling.delta(n, rate, 3.0, free)
    exact = _truth((0,) * (n - 1), rate, 3.0, epsilon)
    assert exact == pytest.approx(truth, abs=6e-5)
    # the printed sum with the clones pair for the shuffles: no smaller than with binary response
    assert printed - 6e-5 <= _printed(n, rate, 3.0, free) < exact <= mended


def test_groups_only_add() -> None:
    """Few clients are summed exactly; many are grouped, and never below the sum."""
    n, rate, e0, free = 3_000, 0.3, 1.0, 0.2
    _, bound = coupling.delta(n, rate, e0, free)
    epsilon = math.log1p(rate * math.expm1(free))
    k = np.arange(700, 1101)
    first = sum(
        w * coupling.shuffle_profile(e0, int(i), free) for i, w in zip(k, binom.pmf(k - 1, n - 1, rate), strict=True)
    )
    exact = rate * math.exp(epsilon - free) * first + _printed(n, rate, e0, free)
    assert exact <= bound * (1 + 1e-9) and bound < 2 * exact


def test_one_round_has_the_delta_asked_for() -> None:
    found = coupling.epsilon_of_one_round(2_000, 0.1, 1.0, 1e-5)
    free = math.log1p(math.expm1(found) / 0.1)
    assert coupling.delta(2_000, 0.1, 1.0, free)[1] <= 1e-5
    assert found < pure_epsilon(2_000, 0.1, 1.0, 1, 1e-5).upper
