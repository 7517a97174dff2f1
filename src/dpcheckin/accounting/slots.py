"""Random check-ins composed numerically: the proofs of P2 with whole curves instead of Lemma A.2.

The proofs of P2 (arXiv 2007.06605v2) write a run as a composition of steps in which the target's
report stands with posterior probability at most q_i, whatever has been seen before.  By advanced
joint convexity (Balle, Barthe and Gaboardi, arXiv 1807.01647v2, Theorem 2) step i has the curve
q_i h(1 + (alpha - 1)/q_i) on alpha >= 1 and its mirror image below, h the local profile.  Composing
these curves never does worse than the closed forms of
:mod:`dpcheckin.accounting.random_check_ins`, which use only the largest loss of each step.

The posterior bounds need a pure local epsilon.  Adjacency: replace one client's data.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from dpcheckin.accounting import curve_composition
from dpcheckin.accounting.bracket import Bracket
from dpcheckin.accounting.curve_composition import CurveRound
from dpcheckin.errors import InvalidParameter

FloatArray = NDArray[np.float64]

BUCKETS = 96


def fixed_window_posteriors(
    slots: int, check_in_probability: float, local_epsilon: float
) -> FloatArray:
    """q_i = p / (m - (i-1)(1 - e^-eps0)): P2, Theorem A.4; also the sliding window with p = 1."""
    if not slots >= 1:
        raise InvalidParameter("slots", slots, "at least 1")
    if not 0.0 <= check_in_probability <= 1.0:
        raise InvalidParameter("check_in_probability", check_in_probability, "between 0 and 1")
    _check_local(local_epsilon)
    i = np.arange(slots, dtype=np.float64)
    return check_in_probability / (slots + i * math.expm1(-local_epsilon))


def averaged_posteriors(loads: NDArray[np.int64], local_epsilon: float) -> FloatArray:
    """P2, Theorem A.5, for realised loads: the middle expression of its proof, not the last."""
    _check_local(local_epsilon)
    sizes = np.asarray(loads, dtype=np.float64)
    if sizes.ndim != 1 or sizes.size == 0 or np.any(sizes < 0.0) or sizes.sum() < 1.0:
        raise InvalidParameter("loads", sizes.tolist()[:5], "non-negative counts, at least one")
    before = np.cumsum(sizes) - sizes
    after = sizes.sum() - sizes - before
    e = math.exp(-local_epsilon)
    return np.asarray(sizes / np.maximum(sizes + e * e * before + e * after, 1e-300))


def typical_averaged_posteriors(
    population: int, slots: int, local_epsilon: float, load_delta: float
) -> FloatArray:
    """Posteriors that hold for all loads, except with probability ``load_delta``.

    All loads lie in [low, high] but for load_delta (union bound over the slots, both tails); the
    posterior grows with the slot's own load and shrinks with the loads after it.
    """
    _check_local(local_epsilon)
    if not (population >= 1 and slots >= 1):
        raise InvalidParameter("population, slots", (population, slots), "at least 1")
    if not 0.0 < load_delta < 1.0:
        raise InvalidParameter("load_delta", load_delta, "a number strictly between 0 and 1")
    tail = load_delta / (2.0 * slots)
    high = min(population, int(binom.isf(tail, population, 1.0 / slots)))
    while binom.sf(high, population, 1.0 / slots) > tail:
        high += 1
    low = max(0, int(binom.ppf(tail, population, 1.0 / slots)))
    while low > 0 and binom.cdf(low - 1, population, 1.0 / slots) > tail:
        low -= 1
    i = np.arange(1, slots + 1, dtype=np.float64)
    rest = float(population - high)
    after = np.minimum((slots - i) * low, rest)
    e = math.exp(-local_epsilon)
    return np.asarray(high / (high + e * e * (rest - after) + e * after))


def shuffling_posteriors(reports: int, local_epsilon: float) -> FloatArray:
    """P2, Theorem A.7: q_i = 1 / (1 + (i-1) e^-2eps0 + (n-i) e^-eps0)."""
    if not reports >= 1:
        raise InvalidParameter("reports", reports, "at least 1")
    _check_local(local_epsilon)
    i = np.arange(1, reports + 1, dtype=np.float64)
    e = math.exp(-local_epsilon)
    return np.asarray(1.0 / (1.0 + (i - 1.0) * e * e + (reports - i) * e))


def composed_epsilon(
    posteriors: FloatArray, local_epsilon: float, delta: float, *, repeats: int = 1
) -> Bracket:
    """Epsilon of all steps, the whole run repeated ``repeats`` times.

    >>> q = fixed_window_posteriors(1000, 1.0, 1.0)
    >>> 0.25 < composed_epsilon(q, 1.0, 1e-6).upper < 0.256
    True
    """
    _check_local(local_epsilon)
    q = np.sort(np.asarray(posteriors, dtype=np.float64))
    if q.size == 0 or not np.all((q >= 0.0) & (q <= 1.0)):
        raise InvalidParameter("posteriors", q.tolist()[:3], "probabilities")
    # Equal-sized groups of neighbouring q; the bracket takes each group's largest and smallest.
    groups = np.array_split(q, min(BUCKETS, q.size))
    rounds = [(_step(float(g[0]), float(g[-1]), local_epsilon), repeats * g.size) for g in groups]
    composed = curve_composition.epsilon(rounds, delta, accuracy=1e-2)
    # A run contains one report of the target at most: its local epsilon is never exceeded.
    most = repeats * local_epsilon
    return Bracket(min(composed.lower, most), min(composed.upper, most))


def _step(low: float, high: float, local_epsilon: float) -> CurveRound:
    return CurveRound(
        upper=partial(_curve, high, local_epsilon),
        lower=partial(_curve, low, local_epsilon),
        largest_loss=math.log1p(high * math.expm1(local_epsilon)),
    )


def _curve(q: float, local_epsilon: float, alpha: FloatArray) -> FloatArray:
    """The curve for the extremal pure pair: (q (e0 - 1) - (alpha - 1))_+ / (e0 + 1)."""
    gain = q * math.expm1(local_epsilon) - (alpha - 1.0)
    return np.maximum(gain, 0.0) / (math.exp(local_epsilon) + 1.0)


def _check_local(local_epsilon: float) -> None:
    if not (local_epsilon > 0.0 and math.isfinite(local_epsilon)):
        raise InvalidParameter("local_epsilon", local_epsilon, "a positive, finite number")
