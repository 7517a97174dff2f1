"""Fast Fourier transforms: NumPy's (pocketfft, as SciPy's is), and the lengths that suit them.

The relative error of a transform in the l2 norm is that of its butterflies, a few roundings for
each of log2(length) levels; who certifies a result charges `accounting.engine.arrays.FFT_LEVEL`.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from dpcheckin.special.arrays import Complexes, Floats

_REAL = (5, 3)  # prime factors beside 2 for which there are butterflies
_COMPLEX = (11, 7, 5, 3)


def next_fast_len(least: int, real: bool = False) -> int:
    """The smallest number from `least` on whose prime factors all have butterflies of their own.

    Args:
        least: 1 or more.
        real: For transforms of real numbers, whose factors go up to 5; otherwise up to 11.

    >>> next_fast_len(7001, True), next_fast_len(7001)
    (7200, 7040)
    """
    numbers = _fast_numbers(least.bit_length(), _REAL if real else _COMPLEX)
    return numbers[bisect_left(numbers, least)]


@lru_cache(maxsize=128)
def _fast_numbers(bits: int, primes: tuple[int, ...]) -> list[int]:
    """All numbers up to 2^bits with no other prime factors than 2 and these, in order."""
    most = 1 << bits
    found = [1]
    for prime in (2, *primes):
        found = [power for one in found for power in _multiples(one, prime, most)]
    return sorted(found)


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
