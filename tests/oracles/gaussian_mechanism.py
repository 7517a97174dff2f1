"""The exact curve of the Gaussian mechanism, the one composition that has a closed form.

T rounds of N(0, 1) against N(mu, 1) are one round at mu sqrt(T); 60 digits, so that delta is
right far below what doubles resolve.
"""

from __future__ import annotations

import mpmath

DIGITS = 60


def delta(mu: float, rounds: int, epsilon: float) -> mpmath.mpf:
    """Phi(m/2 - eps/m) - e^eps Phi(-m/2 - eps/m) with m = mu sqrt(rounds)."""
    with mpmath.workdps(DIGITS):
        m, eps = mpmath.mpf(mu) * mpmath.sqrt(rounds), mpmath.mpf(epsilon)
        return +(mpmath.ncdf(m / 2 - eps / m) - mpmath.exp(eps) * mpmath.ncdf(-m / 2 - eps / m))


def epsilon(mu: float, rounds: int, target: float) -> mpmath.mpf:
    """The epsilon at which the composed mechanism has delta = ``target``, by bisection."""
    with mpmath.workdps(DIGITS):
        low, high = mpmath.mpf(0), mpmath.mpf(1)
        if delta(mu, rounds, low) <= target:
            return low
        while delta(mu, rounds, high) > target:
            low, high = high, 2 * high
        for _ in range(120):
            middle = (low + high) / 2
            if delta(mu, rounds, middle) > target:
                low = middle
            else:
                high = middle
        return high
