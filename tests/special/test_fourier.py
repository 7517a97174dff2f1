"""Lengths that suit a transform, and transforms against SciPy's and against sums."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

from dpcheckin.special import fourier


def smooth(number: int, primes: tuple[int, ...]) -> bool:
    for prime in primes:
        while number % prime == 0:
            number //= prime
    return number == 1


@pytest.mark.parametrize(("real", "primes"), [(True, (2, 3, 5)), (False, (2, 3, 5, 7, 11))])
def test_lengths_are_the_next_smooth_numbers(real: bool, primes: tuple[int, ...]) -> None:
    last = 0
    for number in (n for n in range(1, 3000) if smooth(n, primes)):
        for least in range(last + 1, number + 1):
            assert fourier.next_fast_len(least, real) == number
        last = number
    rng = np.random.default_rng(4)
    for least in (10 ** rng.uniform(3, 7.5, 300)).astype(int):
        assert fourier.next_fast_len(int(least), real) == scipy.fft.next_fast_len(int(least), real)


@pytest.mark.parametrize("size", [12, 625, 7200, 98304])
def test_transforms_err_by_a_few_roundings(size: int) -> None:
    rng = np.random.default_rng(size)
    signal = rng.random(size)
    unit, levels = 2.0**-53, np.log2(size)
    back = fourier.irfft(fourier.rfft(signal), size)
    assert np.linalg.norm(back - signal) <= 6 * unit * levels * np.linalg.norm(signal)
    turned = signal * np.exp(1j * rng.random(size))
    again = fourier.ifft(fourier.fft(turned))
    assert np.linalg.norm(again - turned) <= 6 * unit * levels * np.linalg.norm(turned)
    for place in (0, 1, size // 3):
        direct = np.sum(signal * np.exp(-2j * np.pi * ((place * np.arange(size)) % size) / size))
        assert abs(fourier.rfft(signal)[place] - direct) <= 1e-12 * size
    padded = fourier.fft(turned[:10], size)
    assert padded.size == size
    assert padded[0] == pytest.approx(turned[:10].sum(), rel=1e-13)
