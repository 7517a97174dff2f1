"""Curves of rounds that hide nothing: it is seen who reported, or nothing is lost that has a bound."""

from __future__ import annotations

import math

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.curves import LOWER_SLACK, UPPER_SLACK, Curve, Unshuffled, left_of, right_of
from dpcheckin.accounting.engine.seats import RealPair


class LocalCurve(Curve):
    """Nothing but the local profile, at the rate of reporting: exact, in closed form."""

    def __init__(self, local: Unshuffled, largest_loss: float, real: RealPair | None, lattice: bool = False) -> None:
        """`real` is a pair of laws where the profile, the larger of two directions, is none.

        `lattice`: has the report no losses but the largest, none, and the largest with the other sign?
        """
        self._local, self._largest, self._real = local, largest_loss, real
        self.quantum, self.lattice = (largest_loss, True) if lattice else (0.0, False)
        top = min(largest_loss, 40.0)
        losses = np.linspace(0.0, top, 2000)
        # variance of the loss from the profile: 2 * integral of loss-weighted tail (a guide)
        values = local.rate * (local.profile(np.exp(losses)) - local.local_delta)
        self.spread = math.sqrt(max(2 * float(np.sum(values) * (losses[1] - losses[0])), 1e-30))

    def reach(self, tolerance: float) -> float:
        loss = self.spread
        while loss < min(self._largest, 700.0):
            value = self._local.rate * float(self._local.profile(np.array([math.exp(loss)]))[0])
            if value - self._local.rate * self._local.local_delta <= tolerance:
                return loss
            loss *= 1.2
        return min(self._largest, 700.0)

    def upper(self, step: float, points: int) -> Array:
        alphas = np.exp(np.minimum(np.arange(points) * step, 700.0))
        values = self._local.profile(left_of(alphas))
        if self.lattice and step == self.quantum / 2:
            values[2:] = self._local.local_delta  # no rounding where losses end
        return self._local.rate * values * UPPER_SLACK

    def lower(self, step: float, points: int) -> tuple[Array, Array | None]:
        alphas = right_of(np.exp(np.minimum(np.arange(points) * step, 700.0)))
        scale = self._local.rate * LOWER_SLACK
        if self._real is not None:
            return scale * self._real.above(alphas), scale * alphas * self._real.below(1.0 / alphas)
        return scale * np.maximum(self._local.profile(alphas) - self._local.local_delta, 0.0), None


def no_loss(local: Unshuffled | None = None) -> Curve:
    """A round without finite losses, but for what `local` gives away without bound."""
    return _NoLoss(local or Unshuffled(np.zeros_like, 0.0, 0.0, 0.0))


class _NoLoss(Curve):
    spread = 0.0

    def __init__(self, local: Unshuffled) -> None:
        self._local = local

    def reach(self, tolerance: float) -> float:
        return 0.0

    def upper(self, step: float, points: int) -> Array:
        return self._local.complete(np.zeros(points), np.exp(np.arange(points) * step))

    def lower(self, step: float, points: int) -> tuple[Array, Array | None]:
        return np.zeros(points), None
