"""Types of Laplace reports on an interval: those of its two ends, a little wider, with noise.

Type A is 1 - alpha W and type B is W - alpha, W the ratio of the densities at the two ends. How
much noise makes a mixture of them lie above every report is proved by `certificates.laplace` when
it is asked for; both use the same points.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from dpcheckin.accounting.certificates.laplace import (
    LARGEST,
    SMALLEST,
    STRETCH,
    TILT_STEP,
    VIOLATION,
    LaplaceClaim,
    deviation,
)
from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.typed.laws import Types
from dpcheckin.accounting.engine.typed.nested_laws import NestedLaw, Points, on_points

_STEP, _OCTAVE = 0.06, 32  # of the points near zero, in deviations of a report; and further out
_LAST_TILT = 0.95  # beta, beyond which nothing is examined


class LaplaceTypes:
    """Types at every alpha for which they are proved.

    Args:
        local_epsilon: Length of the interval over the scale of the noise.
    """

    def __init__(self, local_epsilon: float) -> None:
        self._local_epsilon = local_epsilon
        # with two points to spare, as bounds of reports reach to the next one
        reach = float(np.expm1(local_epsilon)) * (1.0 + STRETCH + 2.5 / _OCTAVE)
        self._step = _STEP * deviation(local_epsilon)
        # in balanced units X lies between -(1 + beta) and 1 - beta times e0 - 1
        self._reach = 2.0 * (reach + self._step), reach + 2.0 * self._step
        self.claim = LaplaceClaim(
            local_epsilon, np.concatenate([run.points for run in self._points(1.0).runs])
        )

    def _points(self, unit: float) -> Points:
        bottom, top = self._reach
        return Points(unit * self._step, unit * bottom, unit * top, _OCTAVE)

    def __call__(self, rise: float) -> tuple[Types, ...]:
        beta = rise / (2.0 + rise)
        if beta >= _LAST_TILT:
            return ()
        index = int(beta / TILT_STEP)
        smoothing = self.claim.smoothing(index)
        if smoothing is None:
            return ()
        share, unit = beta / TILT_STEP - index, 1.0 + rise / 2
        left, right = self.claim.tilt(index), self.claim.tilt(index + 1)
        points = self._points(unit)
        return (
            Types(
                (
                    self._law((1.0 - share) * left.first + share * right.first, unit, points),
                    self._law((1.0 - share) * left.second + share * right.second, unit, points),
                ),
                self._worst(rise, points),
                smoothing * unit,
                VIOLATION * unit,
            ),
        )

    def _law(self, potentials: Array, unit: float, points: Points) -> NestedLaw:
        """The law on the points that has these potentials, in balanced units."""

        def potential(x: Array) -> Array:
            return np.asarray(unit * np.interp(x / unit, self.claim.points, potentials))

        return on_points(potential, potential, -0.5 * points.step, points)

    def _worst(self, rise: float, points: Points) -> NestedLaw:
        """Z*, with the upper tail of the one and the lower tail of the other."""
        alpha, epsilon = 1.0 + rise, self._local_epsilon
        return on_points(
            lambda x: laplace_profile(epsilon, 1.0 + x),
            lambda x: alpha * laplace_profile(epsilon, 1.0 - x / alpha),
            rise,
            points,
        )


def laplace_profile(local_epsilon: float, alpha: Array) -> Array:
    """H_alpha of Laplace noise at the two ends of the interval, alpha > 0."""
    logs = np.log(alpha)
    inner = -np.expm1(np.minimum((logs - local_epsilon) / 2, 0.0))
    return np.where(logs <= -local_epsilon, 1 - alpha, np.where(logs < local_epsilon, inner, 0.0))


def has_laplace_types(local_epsilon: float) -> bool:
    """Are there types of Laplace reports of this local epsilon, and something to gain?"""
    return SMALLEST <= local_epsilon <= LARGEST


@lru_cache(maxsize=32)
def laplace_types(local_epsilon: float) -> LaplaceTypes:
    """The types of Laplace reports; asked again, what was proved is remembered.

    Args:
        local_epsilon: Length of the interval over the scale of the noise.
    """
    return LaplaceTypes(local_epsilon)
