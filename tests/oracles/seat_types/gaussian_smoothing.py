"""Whether smoothed Gaussian seats lie below a mixture of types A and B: a numerical second opinion.

Floating point on a grid of u, seats sorted into cells; nothing is certified here. A gap clearly
below zero refutes a scale; one that is not says only that this triple did not refute it. Cells
make the seat of a triple a little smaller in convex order than it is, and the types as well.
"""

from __future__ import annotations

import numpy as np

from oracles.seat_types.laws import Array, Law
from oracles.seat_types.many import gram_seat
from oracles.seat_types.seats import smoothed_part

CELLS = 120  # across the plane of a triple


def triple(p: float, q: float, diameter: float) -> tuple[Array, Array]:
    """a - x and b - x for points on a circle: arc p from x to a, arc q from a to b (radians)."""
    at = diameter / 2 * np.array([[np.cos(t), np.sin(t)] for t in (0.0, p, p + q)])
    return at[1] - at[0], at[2] - at[0]


def smoothed(law: Law, tau: float, at: Array) -> Array:
    """E G(Z - u) at each u."""
    gauge = smoothed_part(tau)
    return np.array([law.masses @ gauge(law.values - u) for u in at])


class Scale:
    """One claim: with this alpha and tau, types of diameter `types_at` cover diameter s."""

    def __init__(self, s: float, alpha: float, tau: float, types_at: float | None = None) -> None:
        wide = s if types_at is None else types_at
        self.s, self.alpha, self.tau = s, alpha, tau
        reach = 12.0 * max(1.0, s) * max(tau, 1.0)
        self.at = np.unique(np.concatenate([np.linspace(-reach, reach, 121), np.linspace(-3.0, 3.0, 61)]))
        far, near = np.array([wide, 0.0]), np.zeros(2)
        self.a = smoothed(gram_seat(near, far, alpha, CELLS), tau, self.at)
        self.b = smoothed(gram_seat(far, near, alpha, CELLS), tau, self.at)

    def best(self, p: float, q: float) -> tuple[float, float]:
        """(weight of B, least gap over u) for the triple with arcs p and q, the weight at its best.

        The gap is linear in the weight, so its least value is concave: ternary search.
        """
        seat = gram_seat(*triple(p, q, self.s), self.alpha, CELLS)
        x = smoothed(seat, self.tau, self.at)

        def least(w: float) -> float:
            return float(((1.0 - w) * self.a + w * self.b - x).min())

        low, high = 0.0, 1.0
        for _ in range(60):
            left, right = low + (high - low) / 3, high - (high - low) / 3
            if least(left) < least(right):
                low = left
            else:
                high = right
        return (low + high) / 2, least((low + high) / 2)

    def refutation(self, arcs: int = 9) -> tuple[float, float, float]:
        """(least gap, p, q) over a grid of triples without an arc above half the circle."""
        turns = np.linspace(0.0, np.pi, arcs)
        return min((self.best(p, q)[1], float(p), float(q)) for p in turns for q in turns if p + q > np.pi - 1e-9)
