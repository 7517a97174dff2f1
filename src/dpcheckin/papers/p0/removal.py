"""Distributed check-in under removal adjacency: the average of k reports, k hidden (P0 Theorem 5).

One-dimensional reports. With k others present the average is N(0, s^2/k); with the target too it is N(d/(k+1),
s^2/(k+1)), d the distance between the target and the others. The printed moment (arXiv 2206.03151v1, below Eq. 13) is
wrong; `moment` is right. In the direction the theorem uses it is infinite from order k + 1 on, so the answer here is a
loss distribution. No data is worse once the number of the others is revealed (docs/errata.md), but `epsilon` integrates
on a grid, groups the numbers by their middles and knows one dimension only: no guarantee. That is
`papers.p0.removal_sum`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.engine.curves import CurveFunction
from dpcheckin.accounting.engine.sampling import FunctionCurve, refined, visible_counts
from dpcheckin.accounting.renyi import RenyiCurve
from dpcheckin.accounting.statements import Bracket
from dpcheckin.errors import OutsideTheorem
from dpcheckin.numerals import count, open_probability, positive
from dpcheckin.special import binomial

_POINTS = 4001


def moment(others: int, order: float, noise: float, distance: float = 1.0) -> float:
    """E_q[(p/q)^order], p = N(0, s^2/k), q = N(d/(k+1), s^2/(k+1)); infinite for order >= k + 1.

    k are the others, s is the noise, d the distance.

    >>> round(moment(5, 3, 1.3), 2), round(printed_moment(5, 3, 1.3), 2)
    (1.76, 0.7)
    """
    k, a = others, order
    if a >= k + 1:
        return math.inf
    mean, p, q = distance / (k + 1), noise**2 / k, noise**2 / (k + 1)
    mixed = a * q + (1.0 - a) * p
    log = a * (a - 1.0) * mean**2 / (2.0 * mixed)
    log += 0.5 * (a * math.log(q) + (1.0 - a) * math.log(p) - math.log(mixed))
    return math.exp(log)


def printed_moment(others: int, order: float, noise: float) -> float:
    """The moment as P0 prints it, with others, order and noise as in `moment`. Refuted."""
    k, a = others, order
    root = math.sqrt((k + 1) ** a / ((k + a) * k ** (a - 1)))
    return root * math.exp(-(a + 1) / (noise**2 * (k + 1)))


def printed_braces(population: int, rate: float, noise: float, order: int) -> float:
    """The moment of this order between the braces of Eq. 12 and 13, for a population, rate and noise. Refuted.

    >>> round(printed_braces(100, 0.5, 1.0, 2), 3)  # no moment is below 1
    0.985
    """
    n, g, a = population, rate, order
    others = np.arange(1, n)
    chance = binomial.pmf(others, n - 1, g)
    alone = (1.0 - g) ** (n - 1)
    total = (1.0 - g) ** (a - 1) * (a * g - g + 1.0)
    mixed = alone * math.exp(1.0 / noise**2) + _printed_mean(chance, others, 2, noise)
    total += float(math.comb(a, 2)) * g**2 * (1.0 - g) ** (a - 2) * mixed
    for j in range(3, a + 1):
        mixed = alone * math.exp(j * (j - 1) / (2.0 * noise**2))
        mixed += _printed_mean(chance, others, j, noise)
        total += 3.0 * float(math.comb(a, j)) * g ** (a - j) * (1.0 - g) ** j * mixed
    return total


def printed_line_12(population: int, rate: float, noise: float, kept: int) -> tuple[float, float]:
    """E[printed moment of order 2; k >= 1] in Eq. 12, and what Eq. 14 puts in its place.

    For a population n, a rate and noise; `kept` is (1 - Delta)(n - 1) rate. Lemma 4 needs a function that never grows;
    this one does.
    """
    others = np.arange(1, population)
    mean = (population - 1) * rate
    exact = _printed_mean(binomial.pmf(others, population - 1, rate), others, 2, noise)
    few = math.exp(-((mean - kept) ** 2) / (2.0 * mean))
    return exact, printed_moment(1, 2, noise) * few + printed_moment(kept + 1, 2, noise)


def _printed_mean(chance: FloatArray, others: NDArray[np.int64], order: int, noise: float) -> float:
    k = others.astype(np.float64)
    logs = 0.5 * (order * np.log(k + 1.0) - np.log(k + order) - (order - 1.0) * np.log(k))
    return float(np.dot(chance, np.exp(logs - (order + 1.0) / (noise**2 * (k + 1.0)))))


def printed_epsilon(population: int, rate: float, noise_multiplier: float, rounds: int, delta: float) -> float:
    """Eq. 12, 13 at delta, 1/(order - 1) for 1/(1 - order): population, rate, noise_multiplier, rounds. Refuted."""
    orders = np.arange(2, 33)
    logs = np.array([math.log(printed_braces(population, rate, noise_multiplier, int(a))) for a in orders])
    possible = logs >= 0.0
    if not possible.any():
        raise OutsideTheorem("prints moments below 1 for every order up to 32: no epsilon follows")
    kept = orders[possible].astype(np.float64)
    curve = RenyiCurve(kept, logs[possible] / (kept - 1.0))
    return curve.times(rounds).epsilon(delta).epsilon


def epsilon(
    population: int, rate: float, noise_multiplier: float, rounds: int, delta: float, *, distance: float = 1.0
) -> Bracket:
    """Epsilon of the pair at delta over so many rounds of a population at this rate, larger of the two directions.

    The target is at this distance from the others, in units of which the noise_multiplier is meant.
    """
    positive("noise_multiplier", noise_multiplier)
    positive("distance", distance)
    open_probability("rate", rate)
    count("population", population, smallest=2)
    counts = visible_counts(population - 1, rate)
    parts = [
        (float(w), *_laws(max(1, round((lo + hi) / 2)), rate, noise_multiplier, distance))
        for lo, hi, w in zip(counts.low, counts.high, counts.probability, strict=True)
        if hi >= 1.0 and w > 0.0
    ]
    # Alone, the target's presence is visible: the whole rate is lost.
    alone = rate * (1.0 - rate) ** (population - 1)

    def curves(with_target: bool) -> tuple[CurveFunction, CurveFunction]:
        """H_alpha(with || without) or the other way round, from above and from below."""

        def upper(alpha: FloatArray) -> FloatArray:
            total = np.full_like(alpha, counts.tail + alone)
            for w, p, q in parts:
                total += w * (_hockey(q, p, alpha) if with_target else _hockey(p, q, alpha))
            return total

        return upper, lambda alpha: np.maximum(upper(alpha) - counts.tail - alone, 0.0)

    reach = max(float(np.max(np.abs(np.log(q) - np.log(p)))) for _, p, q in parts) + 1e-9
    one_round = FunctionCurve(*curves(True), reach, curves(False))
    return Bracket(*refined([(one_round, rounds)], delta))


def _laws(k: int, rate: float, noise: float, distance: float) -> tuple[FloatArray, FloatArray]:
    """Without and with the target, as masses of equal cells."""
    wide = noise / math.sqrt(k)
    x = np.linspace(-10.0 * wide, 10.0 * wide + distance / (k + 1), _POINTS)
    p = np.exp(-(x**2) * k / (2 * noise**2)) * math.sqrt(k)
    q = np.exp(-((x - distance / (k + 1)) ** 2) * (k + 1) / (2 * noise**2)) * math.sqrt(k + 1)
    p, q = p / p.sum(), q / q.sum()
    return p, (1.0 - rate) * p + rate * q


def _hockey(p: FloatArray, q: FloatArray, alpha: FloatArray) -> FloatArray:
    ratio = p / q
    order = np.argsort(ratio)
    top_p = np.append(np.cumsum(p[order][::-1])[::-1], 0.0)
    top_q = np.append(np.cumsum(q[order][::-1])[::-1], 0.0)
    i = np.searchsorted(ratio[order], alpha, side="right")
    return np.asarray(np.maximum(top_p[i] - alpha * top_q[i], 0.0))
