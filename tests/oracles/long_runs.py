"""Runs of up to a billion equal rounds without a grid: delta by inversion of the loss's transform.

The losses of one round are finitely many numbers with exact masses. With K(s) = log E exp(s loss) under P,

    delta(epsilon) = 1/(2 pi i) * integral of exp(T K(s) - s epsilon) / (s (s + 1)) ds

along a line Re s = theta > 0, since (1 - exp(-x))+ has the transform 1/(s (s + 1)). At the saddle point the integrand
falls like a normal density, and the trapezoidal rule converges faster than any power of its step. No convolution, no
tail that is cut off, nothing in common with the package. Losses that all lie on one lattice are not for it: their
transform is periodic, and only its first period is summed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import optimize, special, stats


def laws_of_check_in(pair: Sequence[Sequence[float]], others: int, clients: int, rate: float) -> tuple[np.ndarray, ...]:
    """P and Q of the numbers of reports of each kind: one client holds input 0 or 1, all others the input `others`."""
    rows = [[*(rate * p for p in row), 1.0 - rate] for row in pair]
    kinds = len(rows[0])
    found: dict[tuple[int, ...], np.ndarray] = {(0,) * kinds: np.ones(2)}

    def joined(first: Sequence[float], second: Sequence[float]) -> None:
        new: dict[tuple[int, ...], np.ndarray] = {}
        for counts, masses in found.items():
            for k in range(kinds):
                here = (*counts[:k], counts[k] + 1, *counts[k + 1 :])
                new[here] = new.get(here, np.zeros(2)) + masses * np.array([first[k], second[k]])
        found.clear()
        found.update(new)

    for _ in range(clients - 1):
        joined(rows[others], rows[others])
    joined(rows[0], rows[1])
    both = np.array([*found.values()])
    return both[:, 0], both[:, 1]


def laws_of_a_shuffle(truth: float, clients: int) -> tuple[np.ndarray, ...]:
    """P and Q of the number of ones among binary reports of which all others' are ones with probability 1 - `truth`."""
    middle, reach = (clients - 1) * (1 - truth), 14 * math.sqrt(clients * truth * (1 - truth)) + 10
    ones = np.arange(max(int(middle - reach), 0), min(int(middle + reach), clients) + 1)
    rest = stats.binom(clients - 1, 1 - truth)
    none, one = rest.pmf(ones), rest.pmf(ones - 1)
    return truth * one + (1 - truth) * none, (1 - truth) * one + truth * none


def log_delta(losses: np.ndarray, masses: np.ndarray, rounds: int, epsilon: float) -> float:
    """log delta(epsilon) of so many rounds with these losses and their masses under P."""

    def cumulant(s: np.ndarray | float) -> np.ndarray:
        return special.logsumexp(np.multiply.outer(s, losses), b=masses, axis=-1)

    def exponent(theta: float) -> float:
        return float(rounds * cumulant(theta) - theta * epsilon - math.log(theta) - math.log1p(theta))

    theta = optimize.minimize_scalar(lambda x: exponent(math.exp(x)), bounds=(-30.0, 12.0), method="bounded").x
    theta = math.exp(theta)
    weights = masses * np.exp(theta * losses - float(cumulant(theta)))
    mean = float(weights @ losses)
    deviation = math.sqrt(rounds * float(weights @ (losses - mean) ** 2))
    # poles at 0 and -1 are theta away: the step is far below that, and below a deviation
    step = min(0.2 / deviation, theta / 8.0)
    t = np.arange(0.0, 40.0 / deviation + 400.0 * step, step)
    total = np.zeros(t.size, np.complex128)
    for start in range(0, t.size, 256):  # log of the quotient of transforms: T times it keeps its digits
        part = t[start : start + 256]
        turned = np.exp(1j * np.multiply.outer(part, losses - mean)) - 1.0
        total[start : start + 256] = np.log1p(turned @ weights)
    s = theta + 1j * t
    values = np.exp(rounds * total + 1j * t * (rounds * mean - epsilon)) / (s * (s + 1.0))
    integral = step * (float(values.real.sum()) - 0.5 * float(values[0].real)) / math.pi
    return rounds * float(cumulant(theta)) - theta * epsilon + math.log(integral)


def epsilon_of(p: np.ndarray, q: np.ndarray, rounds: int, delta: float) -> float:
    """The epsilon of so many rounds with these laws, the larger of both orders, at this delta."""
    found = []
    for a, b in ((p, q), (q, p)):
        kept = (a > 0.0) & (b > 0.0)
        losses, masses = np.log(a[kept] / b[kept]), a[kept] / a[kept].sum()
        mean, spread = rounds * float(masses @ losses), math.sqrt(rounds * float(masses @ losses**2))
        ends = max(mean - 2.0 * spread, 1e-9 * spread), mean + 40.0 * spread
        found.append(
            optimize.brentq(
                lambda e, x=losses, m=masses: log_delta(x, m, rounds, e) - math.log(delta), *ends, rtol=1e-13
            )
        )
    return max(found)
