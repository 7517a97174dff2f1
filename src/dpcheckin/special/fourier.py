"""Fast Fourier transforms: NumPy's (pocketfft, as SciPy's is), and the lengths that suit them.

The relative error of a transform in the l2 norm is that of its butterflies, a few roundings for each of log2(length)
levels; who certifies a result charges `FFT_LEVEL`. Where few frequencies are asked for, or a period is long, sums as
they stand or a chirp transform are better; they say themselves how wrong they may be.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache

import numpy as np
from numpy.fft import fft as fft
from numpy.fft import ifft as ifft
from numpy.fft import irfft as irfft
from numpy.fft import rfft as rfft
from numpy.typing import NDArray

from dpcheckin.special import UNIT, Complexes, Floats

Integers = NDArray[np.int64]
# A bound on the relative l2 error of an FFT per level of its recursion. The textbook constant for radix-2 is below 3
# units of round-off (Higham, Accuracy and Stability, 24.1).
FFT_LEVEL = 6.0 * UNIT
# roots of unity that are worth keeping, of several sizes and of the last one (32 MB)
MOST_KEPT, MANY_KEPT = 1 << 18, 1 << 21
FEW_TURNS = 20  # roots that are less than this part of their circle are computed one by one
_REAL = (5, 3)  # prime factors beside 2 for which there are butterflies
_COMPLEX = (11, 7, 5, 3)


def next_fast_len(least: int, real: bool = False) -> int:
    """The smallest number from `least` on whose prime factors all have butterflies of their own.

    For transforms of real numbers these go up to 5, otherwise up to 11.

    >>> next_fast_len(7001, True), next_fast_len(7001)
    (7200, 7040)
    """
    numbers = _fast_numbers(least.bit_length(), _REAL if real else _COMPLEX)
    return numbers[bisect_left(numbers, least)]


@lru_cache(maxsize=128)
def _fast_numbers(bits: int, primes: tuple[int, ...]) -> list[int]:
    """All numbers up to 2^bits with no other prime factors than 2 and these, in order."""
    most = 1 << bits
    numbers = [1]
    for prime in (2, *primes):
        for number in numbers:  # it grows: the multiples of a multiple come later
            if number * prime <= most:
                numbers.append(number * prime)
    return sorted(numbers)


def _sines(size: int) -> tuple[Floats, Floats]:
    """sin(pi r / size) and cos(pi r / size) for r = 0, 1, ..., size - 1."""
    angles = math.pi / size * np.arange(size)
    return np.sin(angles), np.cos(angles)


_kept_sines = lru_cache(maxsize=4)(_sines)
_kept_many_sines = lru_cache(maxsize=1)(_sines)


def versed(turns: Integers, size: int) -> tuple[Floats, Floats, Floats]:
    """1 - cos, cos and sin of 2 pi turns / size, without cancellation.

    Phases are reduced as integers: as products of floats they would lose digits where they are large. Neighbouring
    questions ask for the same roots of unity, which are looked up unless few.
    """
    reduced = turns % size
    if turns.size * FEW_TURNS < size or size > MANY_KEPT:
        angles = math.pi / size * reduced
        sine, cosine = np.sin(angles), np.cos(angles)
    else:
        kept = _kept_sines if size <= MOST_KEPT else _kept_many_sines
        sines, cosines = kept(size)
        sine, cosine = sines[reduced], cosines[reduced]
    versed = 2.0 * sine * sine
    return versed, 1.0 - versed, 2.0 * sine * cosine


def turns(counts: Integers, size: int) -> Complexes:
    """exp(2 pi i counts / size)."""
    out = np.empty(counts.shape, np.complex128)
    _, out.real, out.imag = versed(counts, size)
    return out


def direct(masses: Floats, first: int, few: int, size: int) -> tuple[Complexes, float]:
    """Sums of masses times exp(2 pi i m j / size), m = 0 .. few - 1, over places j from `first` on, and their error.

    With exp(i f (j + k)) = exp(i f j) exp(i f k) they are two short sums, one within the other.
    """
    width = math.isqrt(masses.size) + 1
    rows = -(-masses.size // width)
    table = np.zeros(rows * width)
    table[: masses.size] = masses
    frequencies = np.arange(few)[:, None]
    inner = turns(frequencies * np.arange(width), size)
    parts = np.concatenate([inner.real, inner.imag]) @ table.reshape(rows, width).T
    outer = turns(frequencies * (first + width * np.arange(rows)), size)
    sums = ((parts[:few] + 1j * parts[few:]) * outer).sum(1)
    # roots of unity, products, and sums of so many terms
    return sums, UNIT * (2 * (width + rows) + 60) * float(np.abs(masses).sum())


def chirped(masses: Floats, first: int, few: int, size: int) -> tuple[Complexes, float]:
    """What `direct` says, for few masses from `first` on, few frequencies and a long period `size`: by chirps.

    With j n = (j^2 + n^2 - (j - n)^2) / 2 it is a convolution of the two lengths only. Angles are whole numbers of half
    turns of the period, so that none is rounded twice.
    """
    points, frequencies, spectrum = _chirps(size, masses.size, few - 1)
    length = spectrum.size
    sums = ifft(fft(masses * points, length) * spectrum)[:few] * frequencies
    if first:
        sums *= _half_turns(2 * first * np.arange(few), size)
    # two transforms are multiplied (Cauchy-Schwarz), the product transformed back; angles
    level, whole = FFT_LEVEL * math.log2(length), float(masses.sum())
    error = 3 * level * float(np.linalg.norm(masses)) * math.sqrt(masses.size + few - 1)
    return sums, error + level * math.sqrt(length) * whole + 40 * UNIT * whole


@lru_cache(maxsize=64)  # the laws of one sum have them in common
def _chirps(size: int, points: int, last: int) -> tuple[Complexes, Complexes, Complexes]:
    """The factors of a chirp transform that do not depend on what is transformed."""
    chirp = _half_turns(np.arange(max(points, last + 1)) ** 2, size)
    # place -m of a circle is place length - m: where j - n is below zero
    length = next_fast_len(points + last)
    circle = np.zeros(length, dtype=np.complex128)
    circle[: last + 1] = np.conj(chirp[: last + 1])
    circle[length - points + 1 :] = np.conj(chirp[points - 1 : 0 : -1])
    return chirp[:points], chirp[: last + 1], fft(circle)


def _half_turns(counts: Integers, size: int) -> Complexes:
    """exp(i pi counts / size)."""
    return np.asarray(np.exp((1j * math.pi / size) * (counts % (2 * size))))
