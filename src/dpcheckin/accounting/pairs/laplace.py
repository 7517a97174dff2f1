"""Laplace reports: a number of an interval, and noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.curves import Curve, Unshuffled
from dpcheckin.accounting.engine.seats import Law, Mixture, RealPair
from dpcheckin.accounting.pairs.local import LocalPair
from dpcheckin.accounting.parameters import local_epsilon_in_range
from dpcheckin.accounting.types.cases import all_at_one_value, with_types
from dpcheckin.accounting.types.laplace import (
    has_laplace_types,
    laplace_profile,
    laplace_types,
)
from dpcheckin.accounting.types.pure import Family


@dataclass(frozen=True)
class LaplacePair(LocalPair):
    """Laplace noise on a number of an interval, whose length is epsilon times the noise's scale."""

    local_epsilon: float
    local_delta: float = 0.0
    full_shuffle_proved: bool = False
    family: Family = Family.LAPLACE

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"Laplace with local epsilon {self.local_epsilon:g}"

    @property
    def typed(self) -> bool:
        return self.family is Family.LAPLACE and has_laplace_types(self.local_epsilon)

    def without_types(self) -> LaplacePair:
        return replace(self, family=Family.OTHER)

    def profile(self, alpha: Array | Sequence[float] | float) -> Array:
        a = np.asarray(alpha, dtype=np.float64)
        inside = laplace_profile(self.local_epsilon, np.maximum(a, 1e-300))
        return np.where(a <= 0, 1.0 - np.minimum(a, 0.0), inside)

    @property
    def second_moment(self) -> float:
        epsilon = self.local_epsilon
        if epsilon < 1e-4:  # the two terms would cancel
            return epsilon**2 * (0.5 + epsilon / 12)
        return 2 / 3 * (math.expm1(epsilon) + 2 * math.expm1(-epsilon / 2))

    @property
    def directions(self) -> tuple[RealPair, ...]:
        epsilon = self.local_epsilon
        smallest, largest = math.exp(-epsilon), math.exp(epsilon)

        def tails(ratio: float) -> tuple[float, float]:
            if ratio < smallest:
                return 1.0, 1.0
            if ratio >= largest:
                return 0.0, 0.0
            log = math.log(ratio)
            return 0.5 * math.exp(-0.5 * (epsilon + log)), 1 - 0.5 * math.exp(0.5 * (log - epsilon))

        (real,) = super().directions
        return (replace(real, tails=tails),)

    def shuffled_curve(
        self, parts: Mixture[Law], rate: float, smallest: float, unprotected: float = 0.0
    ) -> Curve:
        worst = self.curve(parts, rate, smallest, unprotected)
        if not self.typed:
            return worst
        local = Unshuffled(self.profile, unprotected, rate, 0.0)
        below = all_at_one_value(parts, smallest)
        types = laplace_types(self.local_epsilon)
        return with_types(types, worst, parts, local, below, dear=True)


def laplace(local_epsilon: float) -> LaplacePair:
    """Laplace noise on one number, with epsilon = range / scale."""
    return LaplacePair(local_epsilon_in_range(local_epsilon))
