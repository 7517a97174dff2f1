"""One-round curves of three-atom laws and of the lower-bound pairs, for hundreds of users.

All of them are expectations (A + B - C)+ over a multinomial (a, b, N, r): a symbols that favour
one side, b the other, N neutral or absent, r the rest. Given (a, b), N is binomial and the
expectation is a partial sum of it. ``_mp`` functions carry 50 digits, the others are doubles
(absolute accuracy about 1e-15, relative about 1e-11).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from .theorem_oracle import DIGITS

Floats = NDArray[np.float64]


def theorem_delta_mp(
    population: int,
    rate: float,
    local_epsilon: float,
    hit: float | mpmath.mpf,
    neutral: float | mpmath.mpf,
    epsilon: float,
    restricted: bool = False,
) -> mpmath.mpf:
    """The theorem for a three-atom law; ``restricted`` is the k < n form plus rate^n."""
    with mpmath.workdps(DIGITS):
        g, hit, neutral = mpmath.mpf(rate), mpmath.mpf(hit), mpmath.mpf(neutral)
        e0, alpha = mpmath.exp(mpmath.mpf(local_epsilon)), mpmath.exp(mpmath.mpf(epsilon))
        whole = _sum_mp(population, g, e0, hit, neutral, alpha)
        if restricted:
            crowd = _sum_mp(population, mpmath.mpf(1), e0, hit, neutral, alpha)
            whole += g**population * (1 - crowd)
        return +whole


def pure_delta_mp(population: int, rate: float, local_epsilon: float, symbols: int, epsilon: float) -> mpmath.mpf:
    """d-ary response (2: any pure randomizer), hit and neutral at full precision as well."""
    with mpmath.workdps(DIGITS):
        total = mpmath.exp(mpmath.mpf(local_epsilon)) + symbols - 1
        return theorem_delta_mp(population, rate, local_epsilon, 1 / total, (symbols - 2) / total, epsilon)


def _sum_mp(
    n: int, g: mpmath.mpf, e0: mpmath.mpf, hit: mpmath.mpf, neutral: mpmath.mpf, alpha: mpmath.mpf
) -> mpmath.mpf:
    if alpha >= e0:
        return mpmath.mpf(0)
    side, quiet, rest = g * hit, g * neutral + 1 - g, g * (1 - 2 * hit - neutral)
    total = mpmath.mpf(0)
    for m in range(1, n + 1):
        left = n - m
        prob, moment = _partial_sums(left, quiet, rest)
        outer = math.comb(n, m) * side**m
        for a in range(1, m + 1):
            gain = a * (e0 - alpha) - (m - a) * (alpha * e0 - 1)
            if gain <= 0:
                continue
            upto = left
            if alpha > 1:
                upto = min(left, int(mpmath.ceil(gain / (alpha - 1))) - 1)
            value = gain * prob[upto] - (alpha - 1) * moment[upto]
            total += outer * math.comb(m, a) * value
    return total / n


def _partial_sums(left: int, quiet: mpmath.mpf, rest: mpmath.mpf) -> tuple[list[mpmath.mpf], list[mpmath.mpf]]:
    """Sums over N <= c of comb(left, N) quiet^N rest^(left-N), and of N times that."""
    quiets, rests = [mpmath.mpf(1)], [mpmath.mpf(1)]
    for _ in range(left):
        quiets.append(quiets[-1] * quiet)
        rests.append(rests[-1] * rest)
    prob, moment = [], []
    p = f = mpmath.mpf(0)
    for count in range(left + 1):
        term = math.comb(left, count) * (quiets[count] * rests[left - count])
        p += term
        f += count * term
        prob.append(p)
        moment.append(f)
    return prob, moment


def theorem_delta(
    population: int, rate: float, local_epsilon: float, hit: float, neutral: float, epsilon: float
) -> float:
    """``theorem_delta_mp`` (not restricted) in doubles, for thousands of users."""
    e0 = math.exp(local_epsilon)
    return _sum_float(population, rate, e0, hit, neutral, epsilon, away_weight=0.0)


def generic_shuffle_delta(population: int, local_epsilon: float, epsilon: float) -> float:
    """Full shuffle of any pure randomizer for up to millions of users: a given a + b is
    Binomial(a + b, 1/2), so only the sum over a + b is left (cut at nine deviations)."""
    e0, alpha = math.exp(local_epsilon), math.exp(epsilon)
    side = 2.0 / (e0 + 1.0)
    spread = 9.0 * math.sqrt(population * side) + 9.0
    m = np.arange(max(1, int(population * side - spread)), min(population, int(population * side + spread)) + 1)
    slope, cost = (e0 - alpha) + (alpha * e0 - 1.0), m * (alpha * e0 - 1.0)
    first = np.floor(cost / slope) + 1.0
    value = slope * (m / 2.0) * stats.binom.sf(first - 2.0, np.maximum(m - 1, 1), 0.5)
    value -= cost * stats.binom.sf(first - 1.0, m, 0.5)
    value[m == 1] = 0.5 * max(e0 - alpha, 0.0)
    return float(np.sum(stats.binom.pmf(m, population, side) * value)) / population


def dary_lower_delta(population: int, rate: float, local_epsilon: float, symbols: int, epsilon: float) -> float:
    """Exact curve of d-ary response (d >= 3), users 1 on a or b, all others on a third value."""
    if symbols < 3:
        raise ValueError(f"symbols = {symbols}: a third value needs at least 3")
    e0 = math.exp(local_epsilon)
    off = 1.0 / (e0 + symbols - 1.0)
    return _sum_float(population, rate, e0, off, (symbols - 3.0) * off, epsilon, away_weight=1.0 / e0)


def _sum_float(n: int, g: float, e0: float, hit: float, neutral: float, epsilon: float, away_weight: float) -> float:
    """E(a(e0-alpha) - b(alpha e0-1) - (alpha-1)(N + away_weight r))+ / n."""
    alpha = math.exp(epsilon)
    side = g * hit
    quiet = g * neutral + 1.0 - g
    share = min(1.0, quiet / (1.0 - 2.0 * side))
    spread = 14.0 * math.sqrt(n * 2.0 * side * (1.0 - 2.0 * side)) + 60.0
    low = max(1, int(n * 2.0 * side - spread))
    high = min(n, int(n * 2.0 * side + spread))
    total = 0.0
    for m in range(low, high + 1):
        left = n - m
        a = np.arange(m + 1.0)
        log_weight = (
            special.gammaln(n + 1.0)
            - special.gammaln(left + 1.0)
            - special.gammaln(a + 1.0)
            - special.gammaln(m - a + 1.0)
            + m * math.log(side)
            + (special.xlog1py(left, -2.0 * side))
        )
        gain = a * (e0 - alpha) - (m - a) * (alpha * e0 - 1.0) - (alpha - 1.0) * away_weight * left
        keep = (gain > 0.0) & (log_weight > -90.0)
        if not keep.any():
            continue
        gain, weight = gain[keep], np.exp(log_weight[keep])
        cost = (alpha - 1.0) * (1.0 - away_weight)
        upto = np.full(gain.shape, float(left))
        if cost > 0.0:
            upto = np.minimum(left, np.ceil(gain / cost) - 1.0)
        below = stats.binom.cdf(upto, left, share)
        moment = left * share * stats.binom.cdf(upto - 1.0, left - 1, share) if left > 0 else 0.0
        total += float(np.sum(weight * (gain * below - cost * moment)))
    return total / n


def epsilon_of(curve: Callable[[float], float], delta: float, largest: float) -> float:
    """Where a decreasing curve meets ``delta``; 0 if it starts below."""
    if curve(0.0) <= delta:
        return 0.0
    return float(optimize.brentq(lambda e: math.log(max(float(curve(e)), 1e-320) / delta), 0.0, largest, xtol=1e-12))


def three_atom_pair(
    population: int, rate: float, local_epsilon: float, hit: float, neutral: float
) -> tuple[Floats, Floats]:
    """The explicit pair of the theorem (not restricted), all counts enumerated."""
    e0 = math.exp(local_epsilon)
    cells = (rate * hit, rate * hit, rate * neutral + 1.0 - rate, rate * (e0 - 1.0) * hit)
    return _multinomial_pair(population, cells, (e0, 1.0, 1.0, 0.0), (1.0, e0, 1.0, 0.0))


def binary_lower_pair(population: int, rate: float, local_epsilon: float) -> tuple[Floats, Floats]:
    """Binary response, everybody else on user 1's second value."""
    e0 = math.exp(local_epsilon)
    cells = (rate / (e0 + 1.0), rate * e0 / (e0 + 1.0), 1.0 - rate)
    return _multinomial_pair(population, cells, (e0, 1.0 / e0, 1.0), (1.0, 1.0, 1.0))


def dary_lower_pair(population: int, rate: float, local_epsilon: float, symbols: int) -> tuple[Floats, Floats]:
    """d-ary response, everybody else on a third value."""
    e0 = math.exp(local_epsilon)
    off = rate / (e0 + symbols - 1.0)
    cells = (off, off, off * (symbols - 3.0) + 1.0 - rate, off * e0)
    return _multinomial_pair(population, cells, (e0, 1.0, 1.0, 1.0 / e0), (1.0, e0, 1.0, 1.0 / e0))


def _multinomial_pair(
    n: int, cells: tuple[float, ...], left: tuple[float, ...], right: tuple[float, ...]
) -> tuple[Floats, Floats]:
    """Reference counts ~ Multinomial(n; cells); densities are the mean weights of the counts."""
    grid = np.stack(np.meshgrid(*[np.arange(n + 1)] * (len(cells) - 1), indexing="ij"), axis=-1)
    counts = grid.reshape(-1, len(cells) - 1)
    counts = counts[counts.sum(axis=1) <= n]
    counts = np.column_stack([counts, n - counts.sum(axis=1)])
    ways = special.gammaln(n + 1.0) - special.gammaln(counts + 1.0).sum(axis=1)
    mass = np.exp(ways) * np.prod(np.array(cells) ** counts, axis=1)
    # "Nothing but the rest" has density zero under both: not an outcome of the pair.
    keep = (mass > 0.0) & (counts @ np.array(left) > 0.0)
    mass, counts = mass[keep], counts[keep]
    return mass * (counts @ np.array(left)) / n, mass * (counts @ np.array(right)) / n
