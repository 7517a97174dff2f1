"""Randomizers that add noise to a clipped vector: Gaussian and Laplace.

Reports made with a secure source are rounded to a fixed grid, a millionth of the noise scale, far above the spacing of
floats, so that low-order bits of the sum do not point back at the input (Mironov, CCS 2012). That is a precaution in
the floating-point model, not a proof for it; where an exact discrete law is needed use `SkellamInteger`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin import accounting
from dpcheckin.errors import OutsideTheorem
from dpcheckin.numerals import positive
from dpcheckin.randomizers.base import (
    Argument,
    PureVectorRandomizer,
    SummableRandomizer,
    SummedReports,
    Value,
    check_finite,
    check_rows,
    clip_rows,
)
from dpcheckin.randomizers.formats import FloatRows
from dpcheckin.randomizers.source import Array, RandomSource

_GRID = 2.0**-20


def _snapped(reports: Array, scale: float, source: RandomSource) -> Array:
    if not source.is_secure:
        return reports
    return np.round(reports / (scale * _GRID)) * (scale * _GRID)


@dataclass(frozen=True)
class Gaussian(SummableRandomizer):
    """Clip to l2 norm `clip`, add normal noise of deviation noise_multiplier · clip.

    Args:
        noise_multiplier: standard deviation of the noise in each coordinate, in clips.
        clip: largest l2 norm of a vector.
    """

    noise_multiplier: float
    clip: float = 1.0

    name, label, noise_field = "gaussian", "Gaussian", "noise_multiplier"
    description = "Gaussian, noise multiplier {0.noise_multiplier:g}"
    arguments = (Argument("noise_multiplier", "SIGMA", 1.0),)

    def __post_init__(self) -> None:
        positive("noise_multiplier", self.noise_multiplier)
        positive("clip", self.clip)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise in each coordinate."""
        return self.noise_multiplier * self.clip

    @property
    def pair(self) -> accounting.LocalPair:
        from dpcheckin.accounting.pairs.gaussian import gaussian

        return gaussian(self.noise_multiplier)

    def randomize(self, values: Array, source: RandomSource) -> Array:
        check_rows(values)
        reports = source.normal(tuple(values.shape))
        reports *= self.deviation
        reports += clip_rows(values, self.clip)
        return _snapped(reports, self.deviation, source)

    def estimate(self, reports: Array) -> Array:
        return reports

    def total_variance(self, values: Array) -> NDArray[np.float64]:
        return np.full(values.shape[0], values.shape[1] * self.deviation**2)

    def summed(self, norms: NDArray[np.float64], dimension: int, source: RandomSource) -> SummedReports:
        return SummedReports(self.clipping_weights(norms), self.deviation * math.sqrt(norms.size))

    @property
    def neighbours(self) -> tuple[Value, Value, Value]:
        return (-self.clip,), (self.clip,), (-self.clip,)

    def log_ratio(self, reports: NDArray[Any], value: Value, others: Value) -> NDArray[np.float64]:
        a, b = (clip_rows(np.array([x], float), self.clip)[0] for x in (value, others))
        return np.asarray((reports @ (a - b) - (a @ a - b @ b) / 2) / self.deviation**2)


@dataclass(frozen=True)
class Laplace(PureVectorRandomizer):
    """Clip to l1 norm `clip`, add Laplace noise of scale 2·clip/ε₀ to each coordinate.

    In one dimension the local pair is the Laplace pair itself; in more it is that of any pure randomizer, since nothing
    tighter is proved here for a shift spread over coordinates.

    Args:
        clip: largest l1 norm of a vector.
    """

    dimension: int = 1

    name, label, norm = "laplace", "Laplace", 1
    arguments = ()

    @property
    def scale(self) -> float:
        """Scale of the noise: mean absolute value in each coordinate."""
        return 2 * self.clip / self.local_epsilon

    @property
    def pair(self) -> accounting.LocalPair:
        return (accounting.laplace if self.dimension == 1 else accounting.any_pure)(self.local_epsilon)

    def randomize(self, values: Array, source: RandomSource) -> Array:
        check_rows(values, self.dimension)
        lengths = abs(values).sum(axis=1, keepdims=True)
        check_finite(lengths)
        clipped = values * (self.clip / lengths.clip(self.clip, None))
        signs = source.sign(np.full(tuple(values.shape), 0.5))
        noise = self.scale * signs * np.log(source.uniform(tuple(values.shape)))
        return _snapped(clipped + source.as_array(noise, values), self.scale, source)

    def estimate(self, reports: Array) -> Array:
        return reports

    def total_variance(self, values: Array) -> NDArray[np.float64]:
        return np.full(values.shape[0], values.shape[1] * 2 * self.scale**2)

    @property
    def report_format(self) -> FloatRows:
        return FloatRows(self.dimension)

    def log_ratio(self, reports: NDArray[Any], value: Value, others: Value) -> NDArray[np.float64]:
        far = [np.abs(reports - np.asarray(x, float)).sum(axis=1) for x in (value, others)]
        return np.asarray((far[1] - far[0]) / self.scale)


@dataclass(frozen=True)
class ClipOnly(SummableRandomizer):
    """Clip to l2 norm `clip` and add nothing: for a trusted server that adds the noise itself.

    It protects nobody by itself, so it has no local pair.

    Args:
        clip: largest l2 norm of a vector.
    """

    clip: float = 1.0

    description = "clipping only"

    def __post_init__(self) -> None:
        positive("clip", self.clip)

    @property
    def pair(self) -> accounting.LocalPair:
        raise OutsideTheorem("clipping without noise has no local guarantee; use it in a central plan only")

    @property
    def neighbours(self) -> tuple[Value, Value, Value]:
        self._cannot("one that protects a report: of this there is nothing to audit")

    def randomize(self, values: Array, source: RandomSource) -> Array:
        check_rows(values)
        return clip_rows(values, self.clip)

    def estimate(self, reports: Array) -> Array:
        return reports

    def total_variance(self, values: Array) -> NDArray[np.float64]:
        return np.zeros(values.shape[0])

    def summed(self, norms: NDArray[np.float64], dimension: int, source: RandomSource) -> SummedReports:
        return SummedReports(self.clipping_weights(norms), 0.0)
