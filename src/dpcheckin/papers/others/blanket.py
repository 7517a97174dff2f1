"""The privacy blanket of Gaussian reports on an interval, all shuffled, by FFT; and the index that it tends to.

Takagi and Liew, arXiv 2601.19154v4, after Balle, Bell, Gascón and Nissim, arXiv 1903.02837v2, Lemma 5.3: where every
report has at least the density m(y), the least over the interval, one shuffle of n loses at most E(X_1 + ... + X_n)+ /
n, X = (R(a) - alpha R(b))/m at y with density m, and 0 with what m lacks of one. Values at the interval's two ends. A
ball of many dimensions has next to no such m; section 4b of docs/theory.md has another law in its place.
"""

from __future__ import annotations

import math

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.pairs.gaussian import gaussian
from dpcheckin.errors import OutsideTheorem
from dpcheckin.numerals import count, open_probability, positive
from dpcheckin.special.fourier import next_fast_len
from dpcheckin.special.normal import ndtr, ndtri
from dpcheckin.special.roots import switch

_PER_DEVIATION = 24.0  # nodes to a deviation of one report
_REACH = 14.0  # deviations of the sum on either side
_LARGEST, _LEAST = 1 << 21, 1e-10  # transform, and delta that its rounding leaves room for


def _tails(distance: float, alpha: float, at: FloatArray) -> tuple[FloatArray, FloatArray]:
    """E(X - t)+ and E(-t - X)+ for t >= 0, of one client, whose X is 0 where its report is no draw from the blanket."""
    half = distance / 2.0
    above, below = np.log(alpha + at) / distance, np.log((1.0 + at) / alpha) / distance
    calls = ndtr(half - above) - (alpha + at) * ndtr(-half - above)
    far = np.maximum(below, 0.0)
    puts = alpha * ndtr(half - far) - (1.0 + at) * ndtr(-half - far)
    near = np.log(np.maximum(alpha - at, 1.0)) / distance  # draws that say b, though not by so much as alpha
    puts += np.maximum(alpha - at, 1.0) * (ndtr(near + half) - ndtr(half)) - ndtr(near - half) + ndtr(-half)
    return calls, puts


def interval_delta(population: int, noise_multiplier: float, epsilon: float, little: float = 1e-13) -> float:
    """delta at epsilon of one full shuffle of a population, the noise_multiplier per half of the interval.

    Chords of a report's potential between nodes belong to a larger law; what lies above the last node (about `little`),
    the sum beyond its window and rounding are added.

    >>> 0.99e-6 < interval_delta(1_000, 2.0, 0.2) < 1e-5
    True
    """
    distance, n, alpha = 2.0 / noise_multiplier, population, math.exp(epsilon)
    half = distance / 2.0
    spread = 2.0 * (math.exp(distance**2) * ndtr(3.0 * half) - 2.0 * ndtr(half) + ndtr(-half))
    deviation = alpha * math.sqrt(float(spread))
    step = deviation / _PER_DEVIATION
    top = math.ceil(max(4.0 * deviation, math.exp(distance * (half - float(ndtri(little))))) / step)
    window = max(_REACH * math.sqrt(n) * deviation / step, 2.0 * top)
    size = next_fast_len(math.ceil(2.0 * window), True)
    if size > _LARGEST:
        raise OutsideTheorem("needs more noise: a transform this long has too little room")
    nodes = np.arange(-top, top + 1)
    calls, puts = _tails(distance, alpha, step * np.arange(top + 2.0))
    calls[top + 1] = calls[top]  # what lies above the last node is added at the end
    puts[top + 1] = puts[top]  # what lies below the first moves up to it
    after, before = (np.maximum(np.diff(side, 2) / step, 0.0) for side in (calls, puts))
    masses: FloatArray = np.concatenate([before[::-1], [0.0], after])
    masses[top] = 1.0 - masses.sum()
    spectrum = np.fft.rfft(np.bincount(nodes % size, masses, size))
    power = np.exp(n * np.log(np.maximum(np.abs(spectrum), 1e-300))) * np.exp(1j * n * np.angle(spectrum))
    sums = np.maximum(np.fft.irfft(power, size), 0.0)
    middle = round(n * float(nodes @ masses))
    places = middle - size // 2 + (np.arange(size) - middle + size // 2) % size
    inside = float(sums @ np.maximum(places, 0.0)) * step
    # (x)+ [x > w] <= (w + 1/t) e^(t (x - w))
    end = max((middle + size // 2 - 1) * step, step)
    tilts = np.geomspace(1e-3, 30.0, 60) / (math.sqrt(n) * deviation)
    tilts = tilts[tilts * top * step < 300.0]
    grown = n * np.log(np.exp(np.outer(tilts, nodes * step)) @ masses)
    beyond = float(np.min((end + 1.0 / tilts) * np.exp(np.minimum(grown - tilts * end, 600.0)), initial=math.inf))
    rounding = 1e-15 * size * end / n
    return (inside + beyond) / n + float(calls[top]) + rounding


def interval_epsilon(population: int, noise_multiplier: float, delta: float) -> float:
    """Epsilon at delta of one full shuffle of a population, by the blanket of the interval; noise_multiplier as above.

    >>> 0.2 < interval_epsilon(1_000, 2.0, 1e-6) < 0.25
    True
    """
    count("population", population)
    positive("noise_multiplier", noise_multiplier)
    if not open_probability("delta", delta) >= _LEAST:
        raise OutsideTheorem(f"needs a delta of at least {_LEAST:g}: the transform is in doubles")
    alone = gaussian(noise_multiplier).epsilon_within(delta)

    def holds(epsilon: float) -> bool:
        return interval_delta(population, noise_multiplier, epsilon, 1e-3 * delta) <= delta

    if not holds(alone):
        raise OutsideTheorem("gives nothing below the epsilon of a report that is seen by itself")
    return switch(holds, alone, 0.0, relative=1e-4)[0]


def index_epsilon(population: int, noise_multiplier: float, rounds: int, delta: float) -> float:
    """What a blanket's shuffle index chi says of large crowds: normal reports 1/(chi sqrt n) apart. No bound.

    Of a population, over so many rounds, at delta. chi^-2 is the variance of X at alpha = 1, in the notation above,
    which for every local pair is twice E(W - 1)+^2; here that of the noise_multiplier.

    >>> 0.001 < index_epsilon(60_000, 9.48, 1, 1 / 60_000) < 0.002
    True
    """
    count("population", population)
    apart = math.sqrt(2.0 * rounds * gaussian(noise_multiplier).second_moment / population)
    return gaussian(2.0 / apart).epsilon_within(delta)
