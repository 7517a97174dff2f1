"""Gaussian reports: a ball of inputs and noise, in any dimension."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcheckin.accounting.certificates import certified_scale
from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.curves import UPPER_SLACK, Curve, Unshuffled
from dpcheckin.accounting.engine.noise import gaussian_profile, gaussian_profile_at
from dpcheckin.accounting.engine.seats import Law, Mixture, RealPair
from dpcheckin.accounting.pairs.local import LocalPair
from dpcheckin.accounting.parameters import positive
from dpcheckin.accounting.types.cases import all_at_one_value, with_types
from dpcheckin.accounting.types.gaussian import gaussian_types
from dpcheckin.accounting.types.pure import Family
from dpcheckin.errors import InvalidParameter
from dpcheckin.special.normal import ndtr


@dataclass(frozen=True)
class GaussianPair(LocalPair):
    """Gaussian noise of standard deviation sigma * C on vectors of norm at most C.

    Two points of the ball are at most 2C apart, so W is log-normal with s = 2 / sigma in any
    dimension.
    """

    noise_multiplier: float
    name: str = "Gaussian"
    local_epsilon: float = math.inf
    local_delta: float = 0.0
    full_shuffle_proved: bool = False
    family: Family = Family.GAUSSIAN

    @property
    def s(self) -> float:
        """Distance of the two inputs in standard deviations of the noise."""
        return 2.0 / self.noise_multiplier

    @property
    def typed(self) -> bool:
        return self.family is Family.GAUSSIAN and certified_scale(self.s) is not None

    def without_types(self) -> GaussianPair:
        return replace(self, family=Family.OTHER)

    def profile(self, alpha: Array | Sequence[float] | float) -> Array:
        a = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
        return gaussian_profile(self.s, a).reshape(np.shape(alpha))

    @property
    def second_moment(self) -> float:
        s = self.s
        if s > 25.0:
            return math.inf  # it would overflow
        tail = ndtr
        return float(math.exp(s * s) * tail(1.5 * s) - 2 * tail(s / 2) + tail(-s / 2))

    @property
    def directions(self) -> tuple[RealPair, ...]:
        s = self.s
        half, root = s / 2, math.sqrt(2)

        def tails(ratio: float) -> tuple[float, float]:  # is called 100,000 times for a curve
            if ratio <= 0.0:
                return 1.0, 1.0
            place = math.log(ratio) / s
            return 0.5 * math.erfc((place + half) / root), 0.5 * math.erfc((place - half) / root)

        (real,) = super().directions
        return (replace(real, tails=tails),)

    @property
    def label(self) -> str:
        return f"Gaussian reports with noise multiplier {self.noise_multiplier:g}"

    def shuffled_curve(
        self, parts: Mixture[Law], rate: float, smallest: float, unprotected: float = 0.0
    ) -> Curve:
        worst = self.curve(parts, rate, smallest, unprotected)
        known = gaussian_types(self.s, parts) if self.family is Family.GAUSSIAN else None
        if known is None:
            return worst
        local = Unshuffled(self.profile, unprotected, rate, 0.0)
        below = all_at_one_value(parts, smallest)
        return with_types(known, worst, parts, local, below, dear=True)

    def epsilon_within(self, delta: float) -> float:
        """In closed form and without an end: little noise costs thousands."""
        low, high = 0.0, 1.0
        while self._profile_above(high) > delta:
            low, high = high, 2 * high
        for _ in range(60):
            half = 0.5 * (low + high)
            low, high = (half, high) if self._profile_above(half) > delta else (low, half)
        return high

    def _profile_above(self, epsilon: float) -> float:  # a little to the left: it is larger there
        left = np.array([max(epsilon * (1.0 - 1e-15) - 1e-15, 0.0)])
        return float(gaussian_profile_at(self.s, left)[0]) * UPPER_SLACK

    def merged(self, outputs: int) -> tuple[Array, Array]:
        """Ratios and masses under Q of reports told apart no finer than so many intervals.

        What is seen of a merged report is not more than of the report: bounds from below stay so.
        The intervals are equal but for the two ends, and reach into the tails as far as they can
        without growing too wide.

        Args:
            outputs: How many, at least 3.
        """
        tail = min(5.0, 1.0 + 0.25 * outputs)
        inner = np.linspace(-tail, self.s + tail, outputs - 1)

        def masses(mean: float) -> Array:
            low = np.concatenate([[-np.inf], inner - mean])
            high = np.concatenate([inner - mean, [np.inf]])
            # from the nearer tail, so that nothing cancels
            left, right = np.where(low > 0, -high, low), np.where(low > 0, -low, high)
            return np.asarray(ndtr(right) - ndtr(left))

        q = masses(0.0)
        return masses(self.s) / q, q

    def repeated(self, reports: int) -> GaussianPair:
        return GaussianPair(self.noise_multiplier / math.sqrt(reports))


def gaussian(noise_multiplier: float) -> GaussianPair:
    """Gaussian noise of standard deviation noise_multiplier * C on vectors clipped to norm C."""
    if not 0.08 <= positive("noise_multiplier", noise_multiplier) <= 1e6:
        raise InvalidParameter("noise_multiplier", noise_multiplier, "a number in [0.08, 1e6]")
    return GaussianPair(float(noise_multiplier))
