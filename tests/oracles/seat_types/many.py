"""Rounds of many clients in which all others hold one value: the truth is a sum of equal seats.

Every client but the target at x, the chance of a view under "target at a" relative to "target at x
as well" is the average of n independent terms, R(a)/R(x) of those who report and 1 of those who do
not. So delta(alpha) = E (sum of n seats)+ / n exactly, everybody reporting included.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from oracles.seat_types.cells import plane_rows
from oracles.seat_types.laws import Array, Law

MOST_EXACT = 60  # clients; up to four values are enumerated, more are put on a lattice
LATTICE_ERROR = 2e-5  # relative, of figures above 1e-6


def _histogram_sum(one: Law, count: int) -> Law:
    """The sum of so many copies of a law of at most four atoms, one atom for every histogram."""
    values, masses = one.values[one.masses > 0], one.masses[one.masses > 0]
    times = np.zeros((1, 0), dtype=np.int64)
    left = np.array([count])
    for _ in range(len(values) - 1):
        repeat = left + 1
        rows = np.repeat(np.arange(len(left)), repeat)
        starts = np.repeat(np.cumsum(repeat) - repeat, repeat)
        taken = np.arange(len(rows)) - starts
        times = np.hstack([times[rows], taken[:, None]])
        left = left[rows] - taken
    times = np.hstack([times, left[:, None]])
    ways = special.gammaln(count + 1) - special.gammaln(times + 1).sum(axis=1)
    return Law(times @ values, np.exp(ways + times @ np.log(masses)))


def _lattice_excess(one: Law, count: int, shift: float, points: int = 2**18) -> float:
    """E (sum of copies + shift)+ by a Fourier transform on a fine lattice.

    What is far above the window is cut down to it, what is far below is left out: both lower the
    figure. Atoms are spread to the two lattice points beside them, which raises it by a relative
    error far below LATTICE_ERROR.
    """
    reach = 9.0 * np.sqrt(count * one.variance) + abs(count * one.mean) + abs(shift)
    kept = one.values > -reach / 2  # from further down the sum hardly ever comes back
    values, masses = np.minimum(one.values[kept], reach), one.masses[kept]
    step = 4.0 * reach / points
    low = np.floor(values / step)
    up = values / step - low
    at = low.astype(np.int64)
    cells = np.bincount(at % points, masses * (1.0 - up), minlength=points)
    cells += np.bincount((at + 1) % points, masses * up, minlength=points)
    total = np.fft.irfft(np.fft.rfft(cells) ** count, points)
    position = np.arange(points)
    position[position >= points // 2] -= points
    return float(total @ np.maximum(position * step + shift, 0.0))


def _excess(one: Law, count: int, shift: float) -> float:
    """E (sum of so many copies + shift)+."""
    if len(one.values) <= 3 or (len(one.values) == 4 and count <= MOST_EXACT):
        total = _histogram_sum(one, count)
        return float(total.masses @ np.maximum(total.values + shift, 0.0))
    return _lattice_excess(one, count, shift)


def _distinct(one: Law) -> Law:
    """Values that agree to twelve digits added up."""
    size = np.floor(np.log10(np.maximum(np.abs(one.values), 1e-300)))
    digits = np.round(one.values / 10.0**size, 11) * 10.0**size
    group = np.unique(digits, return_inverse=True)[1]
    masses = np.bincount(group, one.masses)
    return Law(np.bincount(group, one.values * one.masses) / masses, masses)


def check_in(seat: Law, n: int, rate: float, alpha: float) -> float:
    """Check-in of n clients, the common seat of the others given."""
    lazy = Law(np.append(seat.values, 1.0 - alpha), np.append(rate * seat.masses, 1.0 - rate))
    return _excess(_distinct(lazy), n, 0.0) / n


def cohort(seat: Law, n: int, size: int, alpha: float) -> float:
    """A random cohort of fixed size."""
    return _excess(_distinct(seat), size, (n - size) * (1.0 - alpha)) / n


def gram_seat(first: Array, second: Array, alpha: float, across: int = 60, reach: float = 6.0) -> Law:
    """The seat of Gaussian reports, a - x and b - x given as points of the plane (noise 1).

    Cells of a grid round x; what they lose makes the law smaller in convex order.
    """
    points = np.array([first, second, [0.0, 0.0]])
    cuts = [np.linspace(points[:, i].min() - reach, points[:, i].max() + reach, across)
            for i in (0, 1)]  # fmt: skip
    a, b, x = plane_rows(points, cuts[0], cuts[1])
    seen = x > 1e-280
    values, masses = (a[seen] - alpha * b[seen]) / x[seen], x[seen]
    return Law(values, masses)
