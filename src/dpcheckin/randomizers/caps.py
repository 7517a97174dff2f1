"""Randomizers that report a direction: LDP-SGD's random hemisphere and PrivUnit.

Both send a unit vector u that lies in the cap {u : ⟨u, v⟩ ≥ c} round the client's direction v with probability p and
outside it otherwise, uniformly in either part. With q the uniform measure of the cap, the likelihood ratio of two
inputs is at most e^ε₀ = p(1-q)/(q(1-p)), and the estimate clip·u/m, m = E⟨u, v⟩, is unbiased for unit vectors. The norm
is folded in by a random sign: v is x/‖x‖ with probability (1 + ‖x‖/clip)/2 and -x/‖x‖ otherwise, so shorter vectors are
unbiased too and the report remains a mixture of reports of unit vectors, which changes nothing for privacy.

LDP-SGD (Duchi, Jordan, Wainwright, arXiv 1604.02390v4, section 4.2.3; Erlingsson et al., arXiv 2001.03618v1, Algorithm
4) is the cap q = 1/2. PrivUnit (Bhowmick et al., arXiv 1812.00984v2, Algorithm 1) takes smaller caps; q and p are
chosen here to make the error smallest (the optimised form of Feldman and Talwar, arXiv 2102.12099v1).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin import accounting
from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers.base import (
    PureVectorRandomizer,
    SummableRandomizer,
    SummedReports,
    Value,
    check_rows,
    row_dots,
    row_norms,
    squared_rows,
)
from dpcheckin.randomizers.formats import FloatRows
from dpcheckin.randomizers.source import Array, RandomSource
from dpcheckin.special import sphere
from dpcheckin.special.gamma import log_beta
from dpcheckin.special.roots import minimum


def cap_height(measure: float, dimension: int) -> float:
    """The c with P(⟨u, v⟩ ≥ c) = measure ≤ 1/2 for u uniform on the sphere of this dimension."""
    return float(sphere.cap_height(measure, dimension))


def cap_moment(height: float, dimension: int) -> float:
    """E[⟨u, v⟩ ; ⟨u, v⟩ ≥ height] for u uniform on the sphere of this dimension."""
    log_total = log_beta(0.5, (dimension - 1) / 2)
    log_rest = (dimension - 1) / 2 * math.log1p(-height * height) if height < 1 else -math.inf
    return math.exp(log_rest - log_total) / (dimension - 1)


def cap_probability(local_epsilon: float, measure: float) -> float:
    """The largest p that keeps the likelihood ratio within e^`local_epsilon` for a cap of this measure."""
    return measure / (measure + (1 - measure) * math.exp(-local_epsilon))


def mean_cosine(local_epsilon: float, measure: float, dimension: int) -> float:
    """m = E⟨u, v⟩ of a report about a unit vector v, with a cap of this measure.

    Args:
        local_epsilon: epsilon of one report, in nats.
        measure: of the cap.
        dimension: of the vectors.
    """
    p = cap_probability(local_epsilon, measure)
    contrast = (p - measure) / (measure * (1 - measure))
    return cap_moment(cap_height(measure, dimension), dimension) * contrast


@lru_cache(maxsize=256)
def best_cap(local_epsilon: float, dimension: int) -> float:
    """The cap measure q ≤ 1/2 of the largest mean cosine, the least error, for this `local_epsilon` and `dimension`."""

    def loss(log_measure: float) -> float:
        return -mean_cosine(local_epsilon, math.exp(log_measure), dimension)

    grid = np.linspace(math.log(0.5) - local_epsilon - 3.0, math.log(0.5), 64)
    values = [loss(x) for x in grid]
    i = int(np.argmin(values))
    if i == len(grid) - 1:
        return 0.5
    log_measure, _ = minimum(loss, float(grid[max(i - 1, 0)]), float(grid[i + 1]), absolute=1e-10)
    return math.exp(log_measure)


@dataclass(frozen=True)
class CapRandomizer(PureVectorRandomizer, SummableRandomizer):
    """Reports are directions: unit vectors, of which a cap round the client's own is likelier.

    Args:
        dimension: entries of a vector, 2 or more.
        clip: largest l2 norm of a vector.
    """

    least_dimension = 2

    @property
    @abstractmethod
    def cap_measure(self) -> float:
        """q: the share of the sphere that the cap covers."""

    @cached_property
    def cap_probability(self) -> float:
        """p: how often the report lies in the cap."""
        return cap_probability(self.local_epsilon, self.cap_measure)

    @cached_property
    def height(self) -> float:
        """c: how close to v the cap begins."""
        return cap_height(self.cap_measure, self.dimension)

    @cached_property
    def mean_cosine(self) -> float:
        """m: mean inner product of report and (unit) input."""
        return mean_cosine(self.local_epsilon, self.cap_measure, self.dimension)

    def estimate(self, reports: Array) -> Array:
        return reports * (self.clip / self.mean_cosine)

    def sum_estimates(self, reports: Array) -> Array:
        return reports.sum(axis=0) * (self.clip / self.mean_cosine)

    def total_variance(self, values: Array) -> NDArray[np.float64]:
        kept = np.minimum(squared_rows(values), self.clip**2)
        return (self.clip / self.mean_cosine) ** 2 - kept

    def randomize(self, values: Array, source: RandomSource) -> Array:
        check_rows(values, self.dimension)
        norms = row_norms(values)
        lengths = np.asarray(norms, dtype=np.float64)[:, 0]
        signs = source.sign(0.5 * (1 + np.minimum(lengths / self.clip, 1.0)))
        # A zero vector has no direction: any fixed one serves, since its sign is a fair coin.
        if (lengths == 0).any():
            values = values + 0.0  # a copy
            values[lengths == 0, 0] = 1.0
            lengths = np.where(lengths == 0, 1.0, lengths)
        q, rest = self.cap_measure, math.exp(-self.local_epsilon)
        inside = source.uniform(lengths.shape) >= (1 - q) * rest / (q + (1 - q) * rest)
        if source.is_secure:
            return self._by_rejection(values * (signs / lengths)[:, None], inside, source)
        return self._by_cosine(values, signs / lengths, inside, source)

    def _cosines(self, inside: NDArray[np.bool_], source: RandomSource) -> NDArray[np.float64]:
        """⟨u, v⟩ given whether u is in the cap, by inversion of the uniform direction's law."""
        u, q = source.uniform(inside.shape), self.cap_measure
        upper = np.where(inside, u * q, q + u * (1 - q))  # P(⟨u, v⟩ ≥ cosine)
        tail = np.minimum(upper, 1 - upper)
        signs = np.where(upper < 0.5, 1.0, -1.0)
        return np.asarray(signs * sphere.cap_height(tail, self.dimension))

    def _by_cosine(
        self, values: Array, scales: NDArray[np.float64], inside: NDArray[np.bool_], source: RandomSource
    ) -> Array:
        """u = cos·v + sin·w, w the part of a normal vector orthogonal to v, at unit length.

        v is scale · value; it is never formed, since these rows are what a simulation waits for.
        """
        cosines = self._cosines(inside, source)
        reports = source.normal(tuple(values.shape))
        along = np.asarray(row_dots(reports, values), dtype=np.float64) * scales
        energy = squared_rows(reports) - along * along
        sines = np.sqrt((1 - cosines * cosines) / energy)
        reports *= source.as_array(sines, reports)[:, None]
        add = source.as_array(scales * (cosines - along * sines), reports)[:, None]
        if source.xp is np:
            reports += values * add
        else:
            reports.addcmul_(values, add)
        return reports

    def _by_rejection(self, directions: Array, inside: NDArray[np.bool_], source: RandomSource) -> Array:
        """Data-independent directions, kept or not: the report's low-order bits tell nothing.

        Forming cos·v + sin·w in floating point would leave traces of v in the rounding. Here every reported vector was
        drawn without looking at v; only its choice depends on v.
        """
        reports = np.empty_like(directions)
        for row in range(len(directions)):
            while True:
                draw = source.normal((1, self.dimension))[0]
                draw /= math.sqrt(float(draw @ draw))
                if (float(draw @ directions[row]) >= self.height) == bool(inside[row]):
                    break
            reports[row] = draw
        return reports

    def summed(self, norms: NDArray[np.float64], dimension: int, source: RandomSource) -> SummedReports:
        """The normal limit of a sum of reports from `source`, about vectors of these `norms` and of this `dimension`.

        The part along each x_i is drawn exactly. The parts across, uniform on a sphere of dimension d-1, are replaced
        by normals of the same energy in all d directions: their sum differs from the exact one by a relative 1/d in its
        covariance (upwards, along the x_i) and by 1/(clients·d) in its fourth cumulant.
        """
        if dimension != self.dimension:
            raise InvalidParameter("dimension", dimension, f"the randomizer's own, {self.dimension:,}")
        signs = source.sign(0.5 * (1 + np.minimum(norms / self.clip, 1.0)))
        cosines = self._cosines(source.uniform(norms.shape) < self.cap_probability, source)
        scale = self.clip / self.mean_cosine
        energy = float(np.sum(1 - cosines * cosines)) / (self.dimension - 1)
        weights = scale * signs * cosines / np.maximum(norms, 1e-300)
        return SummedReports(np.where(norms > 0, weights, 0.0), scale * math.sqrt(energy))

    @property
    def report_format(self) -> FloatRows:
        return FloatRows(self.dimension)

    def well_formed(self, reports: Array) -> NDArray[np.bool_]:
        """Unit vectors; in single precision their length is off by little."""
        norms = np.sqrt(squared_rows(np.asarray(reports, dtype=np.float64)))
        return np.asarray(np.isfinite(norms) & (np.abs(norms - 1.0) < 1e-4))

    def log_ratio(self, reports: NDArray[Any], value: Value, others: Value) -> NDArray[np.float64]:
        near = [reports @ np.asarray(x, float) >= self.height for x in (value, others)]
        return np.asarray(self.local_epsilon * (near[0].astype(np.float64) - near[1]))


@dataclass(frozen=True)
class LdpSgd(CapRandomizer):
    """Clip, sign by norm, random hemisphere: Duchi et al.'s l2 randomizer, used by LDP-SGD.

    >>> round(LdpSgd(local_epsilon=2.0, dimension=1000).cap_probability, 4)
    0.8808
    """

    dimension: int = 2  # what a report gives away is the same in all of them

    name, label = "hemisphere", "hemisphere (LDP-SGD)"
    aliases = ("ldp-sgd",)
    description = "LDP-SGD (random hemisphere), local epsilon {0.local_epsilon:g}"

    @cached_property
    def cap_measure(self) -> float:
        return 0.5

    @property
    def pair(self) -> accounting.LocalPair:
        return accounting.hemisphere(self.local_epsilon)


@dataclass(frozen=True)
class PrivUnit(CapRandomizer):
    """PrivUnit with the cap that makes the error smallest for this epsilon and dimension.

    >>> PrivUnit(4.0, 1000).mean_cosine > 1.5 * LdpSgd(4.0, 1000).mean_cosine
    True
    """

    name, label = "privunit", "PrivUnit"

    @cached_property
    def cap_measure(self) -> float:
        return best_cap(self.local_epsilon, self.dimension)

    @property
    def pair(self) -> accounting.LocalPair:
        from dpcheckin.accounting.pairs.cap import cap_pair

        # from the very cap that is sampled, so that the two cannot drift apart
        return cap_pair(self.local_epsilon, self.dimension, self.cap_measure)

    @property
    def neighbours(self) -> tuple[Value, Value, Value]:
        # a small cap is seldom hit by chance: as with k-ary response a third value hides least
        rest = (0.0,) * (self.dimension - 2)
        c = self.clip
        return (0.0, c, *rest), (c, 0.0, *rest), (-c, 0.0, *rest)
