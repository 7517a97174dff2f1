"""A randomizer of one's own: one entry of a vector, chosen at random, with Laplace noise."""

from dataclasses import dataclass

import numpy as np

from dpcheckin.accounting import laplace
from dpcheckin.randomizers import Argument, VectorRandomizer


@dataclass(frozen=True)
class OneEntry(VectorRandomizer):
    """Entries within [-clip, clip]; a report is a row (entry, value with Laplace noise).

    Args:
        local_epsilon: epsilon of one report, in nats.
        dimension: entries of a vector.
        clip: largest absolute value of an entry.
    """

    local_epsilon: float
    dimension: int
    clip: float = 1.0

    name, label, norm = "one-entry", "one entry with Laplace noise", np.inf
    arguments = (Argument("dimension", "DIM", 1000),)

    @property
    def scale(self):
        return 2 * self.clip / self.local_epsilon

    @property
    def pair(self):
        # which entry it is does not depend on the data: one number with Laplace noise is left
        return laplace(self.local_epsilon)

    def describe(self):
        return f"one entry with Laplace noise, local epsilon {self.local_epsilon:g}"

    def randomize(self, values, source):
        rows = np.asarray(values, float).clip(-self.clip, self.clip)
        where = source.integers(self.dimension, len(rows))
        uniform = source.uniform(len(rows)) - 0.5
        noise = -self.scale * np.sign(uniform) * np.log1p(-2 * np.abs(uniform))
        return np.stack([where, rows[np.arange(len(rows)), where] + noise], axis=1)

    def estimate(self, reports):
        estimates = np.zeros((len(reports), self.dimension))
        where = reports[:, 0].astype(int)
        estimates[np.arange(len(reports)), where] = self.dimension * reports[:, 1]
        return estimates

    def total_variance(self, values):
        rows = np.asarray(values, float).clip(-self.clip, self.clip)
        squares = (rows**2).sum(axis=1)
        return self.dimension * (squares + self.dimension * 2 * self.scale**2) - squares

    # for audits: the values that are hardest to hide, and what a report says of them

    @property
    def neighbours(self):
        low, high = (-self.clip,) * self.dimension, (self.clip,) * self.dimension
        return low, high, low

    def log_ratio(self, reports, value, others):
        where = reports[:, 0].astype(int)
        far = [np.abs(reports[:, 1] - np.asarray(x)[where]) for x in (value, others)]
        return (far[1] - far[0]) / self.scale
