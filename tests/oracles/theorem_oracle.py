"""The one-round theorem, evaluated directly from its statement for any discrete law of W.

    delta(eps) = E[(Z_1 + ... + Z_n)+ ; k < n] / n + rate * singular + rate^n

with every sum enumerated (doubles; a 50-digit twin for small cases). ``one_round_pair`` gives
the same bound as a pair of distributions, so that it can be composed by plain products. Also
here: Gaussian reports by quadrature for at most three users, and rates in an interval.
Three-atom laws with up to hundreds of users are in ``three_atom_oracle``.
"""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
from numpy.typing import NDArray

from .local_laws import RatioLaw, distinct

Floats = NDArray[np.float64]
DIGITS = 50


def _sums(values: Floats, masses: Floats, copies: int) -> tuple[Floats, Floats]:
    total, weight = np.zeros(1), np.ones(1)
    for _ in range(copies):
        total = np.add.outer(total, values).ravel()
        weight = np.outer(weight, masses).ravel()
    return total, weight


def _expected_positive_part(values: Floats, masses: Floats, copies: int, shift: float) -> float:
    """E(shift + sum of copies)+, the sum split in two halves that meet through a sorted scan."""
    x, px = _sums(values, masses, copies // 2)
    y, py = _sums(values, masses, copies - copies // 2)
    order = np.argsort(y)
    y, py = y[order], py[order]
    above = np.append(np.cumsum(py[::-1])[::-1], 0.0)
    first = np.append(np.cumsum((py * y)[::-1])[::-1], 0.0)
    start = np.searchsorted(y, -(x + shift), side="right")
    return math.fsum(px * ((x + shift) * above[start] + first[start]))


def subsample_delta(law: RatioLaw, population: int, cohort: int, epsilon: float) -> float:
    """Fixed cohort k < n: k copies of Z* and n - k empty seats."""
    if not 0 <= cohort < population:
        raise ValueError(f"cohort = {cohort}: an empty seat is needed, below {population}")
    values, masses = law.z_star(epsilon)
    shift = (population - cohort) * (1.0 - math.exp(epsilon))
    return (_expected_positive_part(values, masses, cohort, shift) + cohort * law.singular) / population


def check_in_delta(law: RatioLaw, population: int, rate: float, epsilon: float) -> float:
    """The theorem in its k < n form, k ~ Binomial(n, rate), plus rate^n."""
    return rate**population + math.fsum(
        math.comb(population, k)
        * rate**k
        * (1.0 - rate) ** (population - k)
        * subsample_delta(law, population, k, epsilon)
        for k in range(population)
    )


def full_delta(law: RatioLaw, population: int, rate: float, epsilon: float) -> float:
    """Without the k < n restriction: for laws whose case k = n the blanket lemma covers."""
    values, masses = law.z_star(epsilon)
    whole = _expected_positive_part(values, masses, population, 0.0) / population
    return check_in_delta(law, population, rate, epsilon) - rate**population * (1.0 - whole)


def check_in_delta_mp(law: RatioLaw, population: int, rate: float, epsilon: float) -> mpmath.mpf:
    """``check_in_delta`` with 50 digits, by multisets of atoms; relative accuracy at any size."""
    with mpmath.workdps(DIGITS):
        alpha, g = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(rate)
        atoms = []
        rest = mpmath.mpf(1)
        for ratio, mass in zip(law.ratios, law.masses, strict=True):
            w, m = mpmath.mpf(float(ratio)), mpmath.mpf(float(mass))
            if w > alpha:
                atoms.append((w - alpha, g * m))
                rest -= m
            if w * alpha > 1:
                atoms.append((1 - w * alpha, g * m))
                rest -= m
        atoms.append((mpmath.mpf(0), g * rest))
        total = mpmath.mpf(0)
        for away in range(1, population + 1):
            for counts in _compositions(population - away, len(atoms)):
                value = away * (1 - alpha)
                weight = (1 - g) ** away * math.factorial(population) / math.factorial(away)
                for (z, mass), count in zip(atoms, counts, strict=True):
                    value += count * z
                    weight *= mass**count / math.factorial(count)
                if value > 0:
                    total += weight * value
        singular = g * mpmath.mpf(law.singular) * (1 - g ** (population - 1))
        return +(total / population + singular + g**population)


def _compositions(total: int, parts: int):  # type: ignore[no-untyped-def]
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for others in _compositions(total - first, parts - 1):
            yield (first, *others)


def interval_rate_delta(law: RatioLaw, population: int, lowest: float, highest: float, epsilon: float) -> float:
    """Rates anywhere in [lowest, highest], highest < 1: the bound with at least one empty seat.

    q = lowest/highest; Z' is Z* w.p. lowest, 1 - e^eps w.p. q(1 - highest), 0 w.p. 1 - q.
    """
    q = lowest / highest
    alpha = math.exp(epsilon)
    values, masses = law.z_star(epsilon)
    values, masses = np.append(values, 0.0), np.append(lowest * masses, 1.0 - q)
    empty = q * (1.0 - highest)
    total = 0.0
    for away in range(1, population + 1):
        ways = math.comb(population, away) * empty**away
        taken = population - away
        total += ways * _expected_positive_part(values, masses, taken, away * (1.0 - alpha))
    nobody = highest * (1.0 - q + q * highest) ** (population - 1)
    return total / (population * q) + highest * law.singular + nobody


def one_round_pair(law: RatioLaw, population: int, rate: float, restricted: bool = True) -> tuple[Floats, Floats]:
    """The bound, for all eps at once, as a pair (p, q) whose profile it is.

    Between neighbouring values of {w, 1/w} every sum of Z's is A - alpha B with fixed masses, so
    the bound is piecewise linear in alpha and its atoms of p/q are where a sum changes sign.
    ``restricted`` is the k < n form with rate^n of distinguishing mass.
    """
    borders = distinct(float(x) for w in law.ratios for x in (w, 1.0 / w))
    edges = [0.0, *borders, math.inf]
    survival: list[tuple[float, float]] = []
    for left, right in itertools.pairwise(edges):
        middle = (left + right) / 2 if right < math.inf else left + 1.0
        up, down = law.ratios > middle, law.ratios * middle > 1.0
        rest = 1.0 - law.masses[up].sum() - law.masses[down].sum()
        a = np.concatenate([law.ratios[up], np.ones(down.sum()), [0.0]])
        b = np.concatenate([np.ones(up.sum()), law.ratios[down], [0.0]])
        mass = rate * np.concatenate([law.masses[up], law.masses[down], [max(rest, 0.0)]])
        sums_a, sums_b, sums_m = np.zeros(0), np.zeros(0), np.zeros(0)
        for away in range(1 if restricted else 0, population + 1):
            counts = np.array(list(_compositions(population - away, len(a))), dtype=float)
            ways = math.factorial(population) / math.factorial(away) * (1.0 - rate) ** away
            weight = ways * np.prod(mass**counts / _factorials(counts), axis=1)
            sums_a = np.append(sums_a, away + counts @ a)
            sums_b = np.append(sums_b, away + counts @ b)
            sums_m = np.append(sums_m, weight)
        with np.errstate(divide="ignore", invalid="ignore"):
            turns = np.where(sums_b > 0.0, sums_a / sums_b, 0.0)
        inside = (turns > left) & (turns < right)
        always = math.fsum((sums_m * sums_b)[turns >= right])
        order = np.argsort(turns[inside])
        pushed = (sums_m * sums_b)[inside][order] / population
        later = always / population + np.append(np.cumsum(pushed[::-1])[::-1], 0.0)[1:]
        survival.append((left, always / population + float(pushed.sum())))
        survival += list(zip(turns[inside][order].tolist(), later.tolist(), strict=True))
    ratios, masses = [], []
    for (_, before), (at, after) in itertools.pairwise(survival):
        if before - after > 1e-18:
            ratios.append(at)
            masses.append(before - after)
    ratio, q = _merged(np.array(ratios), np.array(masses))
    distinguishing = rate * law.singular
    if restricted:
        distinguishing = rate**population + distinguishing * (1.0 - rate ** (population - 1))
    p = np.append(ratio * q, [distinguishing, 0.0])
    return p, np.append(q, [0.0, max(0.0, 1.0 - math.fsum(q))])


def _factorials(counts: Floats) -> Floats:
    table = np.array([math.factorial(i) for i in range(int(counts.max(initial=0.0)) + 1)], float)
    return table[counts.astype(int)]


def _merged(ratios: Floats, masses: Floats) -> tuple[Floats, Floats]:
    """Join atoms that differ by rounding alone, keeping sums of masses and of ratio * mass."""
    group = np.append(0, np.cumsum(np.diff(ratios) > 1e-12 * ratios[1:]))
    mass = np.bincount(group, masses)
    return np.bincount(group, masses * ratios) / mass, mass


def gaussian_profile(distance: float, alpha: mpmath.mpf) -> mpmath.mpf:
    """h(alpha) of two Gaussians ``distance`` standard deviations apart (log-normal W)."""
    s = mpmath.mpf(distance)
    if alpha <= 0:
        return 1 - mpmath.mpf(alpha)
    log_alpha = mpmath.log(alpha)
    return mpmath.ncdf(s / 2 - log_alpha / s) - alpha * mpmath.ncdf(-s / 2 - log_alpha / s)


def gaussian_check_in_delta(distance: float, population: int, rate: float, epsilon: float) -> mpmath.mpf:
    """The theorem for Gaussian reports and 1, 2 or 3 users, by quadrature (about 20 digits)."""
    if population not in (1, 2, 3):
        raise ValueError(f"population = {population}: written out for 1, 2 and 3 users")
    with mpmath.workdps(30):
        g, alpha = mpmath.mpf(rate), mpmath.exp(mpmath.mpf(epsilon))
        everybody = g**population
        if population == 1:
            return everybody
        if population == 2:
            return +(g * (1 - g) * gaussian_profile(distance, 2 * alpha - 1) + everybody)
        one = g * (1 - g) ** 2 * gaussian_profile(distance, 3 * alpha - 2)
        two = g**2 * (1 - g) * _two_reports(mpmath.mpf(distance), alpha)
        return +(one + two + everybody)


def _two_reports(s: mpmath.mpf, alpha: mpmath.mpf) -> mpmath.mpf:
    """E(Z* + Z*' + 1 - alpha)+, the inner expectation by the potential of Z*."""

    def potential(t: mpmath.mpf) -> mpmath.mpf:
        if t >= 0:
            return gaussian_profile(s, alpha + t)
        return 1 - alpha - t + alpha * gaussian_profile(s, (1 - t) / alpha)

    def density(x: mpmath.mpf) -> mpmath.mpf:
        return mpmath.npdf((x + s**2 / 2) / s) / s

    shift, log_alpha = alpha - 1, mpmath.log(alpha)
    far = log_alpha + (3 + 14 * s) * (1 + s)
    kink = mpmath.log(alpha + shift)  # where the other report alone must be positive
    knots = [log_alpha, *sorted({kink, log_alpha + s, log_alpha + 3 * s, log_alpha + 6 * s}), far]
    knots = sorted(set(knots))
    above = mpmath.quad(lambda x: density(x) * potential(shift - (mpmath.exp(x) - alpha)), knots)
    knots = [-log_alpha, -log_alpha + s, -log_alpha + 3 * s, -log_alpha + 6 * s, far]
    below = mpmath.quad(lambda x: density(x) * potential(shift + (alpha * mpmath.exp(x) - 1)), knots)
    up = mpmath.ncdf((-log_alpha - s**2 / 2) / s)
    down = mpmath.ncdf((log_alpha - s**2 / 2) / s)
    return above + below + (1 - up - down) * potential(shift)
