"""From Rényi curves to (epsilon, delta), and nothing else.

A :class:`RenyiCurve` holds Rényi divergences at a grid of orders.  It adds up over rounds and is
converted by Canonne, Kamath and Steinke (arXiv 2004.00010v4, Proposition 12; the same formula is
P1 Lemma 3 and P4 Lemma 2).  The opposite direction, from (epsilon, delta) to Rényi, does not exist
as a guarantee and lives, marked as refuted, in `dpcheckin.papers.p1.bounds`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.parameters import open_probability
from dpcheckin.errors import InvalidParameter


@dataclass(frozen=True, slots=True)
class Converted:
    """An epsilon read off a Rényi curve, and the order at which it was found."""

    epsilon: float
    order: float
    at_largest_order: bool
    """True when the largest order of the grid won: a longer grid may give a smaller epsilon."""


@dataclass(frozen=True, slots=True, eq=False)
class RenyiCurve:
    """Rényi divergences ``epsilons[i]`` of order ``orders[i]`` (all orders above 1).

    >>> gaussian = RenyiCurve(np.arange(2.0, 60.0), np.arange(2.0, 60.0) / (2 * 5.0**2))
    >>> round(gaussian.times(10).epsilon(1e-5).epsilon, 3)
    2.814
    """

    orders: FloatArray
    epsilons: FloatArray

    def __post_init__(self) -> None:
        if self.orders.shape != self.epsilons.shape or self.orders.ndim != 1:
            raise InvalidParameter("epsilons", self.epsilons.shape, "one value for each order")
        if self.orders.size == 0 or not np.all(self.orders > 1.0):
            raise InvalidParameter("orders", self.orders.tolist()[:3], "at least one, all above 1")
        if np.any(np.isnan(self.epsilons)) or np.any(self.epsilons < 0.0):
            raise InvalidParameter("epsilons", "NaN or negative", "divergences are at least 0")

    def times(self, rounds: float) -> RenyiCurve:
        """Adaptive composition of ``rounds`` equal rounds: divergences add up."""
        if not rounds >= 0:
            raise InvalidParameter("rounds", rounds, "at least 0")
        return RenyiCurve(self.orders, self.epsilons * rounds)

    def epsilon(self, delta: float) -> Converted:
        """The least epsilon over the grid of orders for this ``delta`` (never below 0)."""
        open_probability("delta", delta)
        a = self.orders
        values = self.epsilons + np.log1p(-1.0 / a) - (np.log(delta) + np.log(a)) / (a - 1.0)
        best = int(np.argmin(values))
        return Converted(
            epsilon=max(0.0, float(values[best])),
            order=float(a[best]),
            at_largest_order=best == a.size - 1,
        )

    def profile(self, alpha: FloatArray) -> FloatArray:
        """Upper bounds of the hockey-stick divergence that follow from the curve, alpha >= 1."""
        a, losses = self.orders[:, None], np.log(np.atleast_1d(alpha))[None, :]
        logs = (
            (a - 1.0) * (self.epsilons[:, None] - losses) + a * np.log1p(-1.0 / a) - np.log(a - 1.0)
        )
        return np.asarray(np.exp(np.minimum(logs.min(axis=0), 0.0)))
