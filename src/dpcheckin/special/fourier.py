"""Fast Fourier transforms: NumPy's (pocketfft, as SciPy's is), and the lengths that suit them.

The relative error of a transform in the l2 norm is that of its butterflies, a few roundings for
each of log2(length) levels; who certifies a result charges `accounting.engine.arrays.FFT_LEVEL`.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from dpcheckin.special.arrays import Complexes, Floats

_REAL = (5, 3)  # prime factors beside 2 for which there are butterflies
_COMPLEX = (11, 7, 5, 3)


@lru_cache(maxsize=1024)
def next_fast_len(least: int, real: bool = False) -> int:
    """The smallest number from `least` on whose prime factors all have butterflies of their own.

    Args:
        least: 1 or more.
        real: For transforms of real numbers, whose factors go up to 5; otherwise up to 11.

    >>> next_fast_len(7001, True), next_fast_len(7001)
    (7200, 7040)
    """
    products = [1]
    for prime in _REAL if real else _COMPLEX:
        products = [found for one in products for found in _multiples(one, prime, 2 * least)]
    # each times the power of two that lifts it to `least`
    return min(one << max(-(-least // one) - 1, 0).bit_length() for one in products)


def _multiples(one: int, prime: int, most: int) -> list[int]:
    found = [one]
    while found[-1] * prime <= most:
        found.append(found[-1] * prime)
    return found


def rfft(signal: ArrayLike) -> Complexes:
    """Frequencies 0 to size // 2 of a real signal."""
    return np.asarray(np.fft.rfft(signal), np.complex128)


def irfft(spectrum: Complexes, size: int) -> Floats:
    """The real signal of so many numbers with these frequencies."""
    return np.asarray(np.fft.irfft(spectrum, size), np.float64)


def fft(signal: Complexes | Floats, size: int | None = None) -> Complexes:
    """All frequencies of a signal, filled up with zeros to `size`."""
    return np.asarray(np.fft.fft(signal, size), np.complex128)


def ifft(spectrum: Complexes) -> Complexes:
    """The signal with these frequencies."""
    return np.asarray(np.fft.ifft(spectrum), np.complex128)
