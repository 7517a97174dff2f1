"""The one-round theorem for continuous laws of W and dozens of users, on a lattice.

Z* is replaced by the lattice law with the same potential at the lattice points: larger in convex
order, so the result is from above, with an error that falls with the square of the step. Two
steps therefore give the limit (Richardson). Doubles and a plain FFT: good to about 1e-12
absolute, not certified; a cross-check in the middle ground between quadrature and nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Profile = Callable[[Floats], Floats]


def gaussian(distance: float) -> Profile:
    def profile(alpha: Floats) -> Floats:
        log = np.log(np.maximum(alpha, 1e-300))
        curve = special.ndtr(distance / 2 - log / distance)
        curve = curve - alpha * special.ndtr(-distance / 2 - log / distance)
        return np.where(alpha > 0.0, curve, 1.0 - alpha)

    return profile


def laplace(local_epsilon: float) -> Profile:
    """1 - exp((log alpha - eps0)/2) between e^-eps0 and e^eps0."""

    def profile(alpha: Floats) -> Floats:
        low = math.exp(-local_epsilon)
        inside = 1.0 - np.exp((np.log(np.maximum(alpha, low)) - local_epsilon) / 2)
        return np.where(alpha < low, 1.0 - alpha, np.maximum(inside, 0.0))

    return profile


def check_in_delta(
    profile: Profile, population: int, rate: float, epsilon: float, reach: float, per_seat: int
) -> float:
    """Limit of two lattices; an empty seat, e^eps - 1, is ``per_seat`` steps of the finer one."""
    fine = _on_lattice(profile, population, rate, epsilon, reach, 2 * per_seat)
    coarse = _on_lattice(profile, population, rate, epsilon, reach, per_seat)
    return fine - (coarse - fine) / 3.0


def _on_lattice(profile: Profile, population: int, rate: float, epsilon: float, reach: float, per_seat: int) -> float:
    alpha = math.exp(epsilon)
    step = (alpha - 1.0) / per_seat
    half = 2 ** math.ceil(math.log2(2.0 * reach / step))
    index = np.arange(-half, half)
    t = step * index
    potential = np.where(t >= 0.0, profile(alpha + t), 1.0 - alpha - t + alpha * profile((1.0 - t) / alpha))
    mass = np.zeros(2 * half)
    mass[1:-1] = np.diff(potential, 2) / step
    mass[np.abs(t) > reach] = 0.0
    transform = np.fft.rfft(np.fft.ifftshift(mass))
    away = np.zeros(2 * half)
    away[half - per_seat] = 1.0
    mixed = rate * transform + (1.0 - rate) * np.fft.rfft(np.fft.ifftshift(away))
    sums = np.fft.fftshift(np.fft.irfft(mixed**population - (rate * transform) ** population))
    total = float(np.sum(np.maximum(t, 0.0) * sums)) / population
    cut = rate * float(profile(np.array(alpha + reach)))  # what lies beyond the reach
    return total + cut + rate**population
