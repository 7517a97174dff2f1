"""Lower bounds from one bad case: all other clients hold the same value.

Then the view's likelihood ratio is an average of `scale` independent terms: W for a report, 1 for
an empty seat. This is the exact divergence of one pair of datasets, so every figure from here is a
lower bound on what any guarantee can claim (and never a guarantee).
"""

from __future__ import annotations

import math

import numpy as np

from dpcheckin.accounting.lattice import LatticeModel, useful_reach
from dpcheckin.accounting.lattice_sums import LatticeSums, Tilt
from dpcheckin.accounting.loss import Array
from dpcheckin.errors import NumericalFailure

LARGEST = 1 << 16


class HomogeneousCurve:
    """Lower bounds of both directions of the pair's curve."""

    def __init__(self, model: LatticeModel) -> None:
        self._model = model
        self._choose()
        law = self._lattice_law()
        self._laws = {True: law, False: law[::-1].copy()}
        self._indices = {
            True: np.arange(-self._bottom, self._top + 1),
            False: np.arange(-self._top, self._bottom + 1),
        }
        self._sums: dict[bool, tuple[Tilt, LatticeSums]] = {}

    def forward(self, epsilon: float) -> float:
        """Lower bound of E_Q[(P/Q - e^eps)+]."""
        m = self._model
        return self._excess(math.expm1(epsilon) * m.scale, forward=True) / m.scale

    def backward(self, epsilon: float) -> float:
        """Lower bound of E_Q[(1 - e^eps P/Q)+]."""
        m = self._model
        threshold = -math.expm1(-epsilon) * m.scale
        return math.exp(epsilon) * self._excess(threshold, forward=False) / m.scale

    def _excess(self, threshold: float, *, forward: bool) -> float:
        m, indices = self._model, self._indices[forward]
        if threshold >= m.steps * float(indices[-1]) * self._step:
            return 0.0
        kept = self._sums.get(forward)
        if kept is None or not kept[0].serves(threshold):
            mass = self._laws[forward]
            tilt = Tilt.to(mass, indices * self._step, threshold, m.steps)
            sums = LatticeSums(mass, indices, m.ones, m.steps, self._step, tilt)
            kept = self._sums[forward] = (tilt, sums)
        value, error = kept[1].excess(threshold)
        return max(value - error, 0.0)

    def _choose(self) -> None:
        """Step and reach: reports too rare to matter are dropped (that can only lower)."""
        m = self._model
        reach = useful_reach(m)
        step = max(min(0.03 * reach.deviation, 0.02), 1 / LARGEST)
        # the smallest ratio of a pure randomizer becomes a node
        lowest = 1 - 1 / m.largest_ratio
        self._step = step = lowest / max(round(lowest / step), 1)
        self._top = min(max(math.ceil(reach.top / step - 1e-9), 1), LARGEST)
        self._bottom = math.ceil(lowest / step - 1e-9) + 1

    def _potential(self, nodes: Array, contraction: float) -> Array:
        """E(X - x)+ right of zero and E(x - X)+ left of it, for X = contraction * (W - 1)."""
        c, h = contraction, self._model.finite_profile
        right = nodes >= 0
        out = np.empty_like(nodes)
        out[right] = c * h(1 + nodes[right] / c)
        a = 1 + nodes[~right] / c
        inside = np.maximum(a, 1e-300)
        out[~right] = np.where(a > 0, c * inside * h(1 / inside), 0.0)
        return out

    def _lattice_law(self) -> Array:
        """A law on the lattice smaller than W - 1 in convex order, mixed with the empty seats.

        W - 1 is contracted towards its mean, zero, and then moved to the lattice; the contraction
        is the smallest for which the resulting potential stays below that of W - 1 everywhere.
        """
        m, lost = self._model, 1e-6
        while lost < 0.5:
            law = self._contracted(1 - lost)
            if law is not None:
                law = m.take * law
                law[self._bottom] += m.ones
                return law
            lost *= 1.6
        raise NumericalFailure("no lattice law below this local pair was found")

    def _contracted(self, contraction: float) -> Array | None:
        nodes = np.arange(-self._bottom - 2, self._top + 3) * self._step
        halves = np.arange(2 * (-self._bottom - 2), 2 * (self._top + 2) + 1) * (self._step / 2)
        coarse, fine = self._potential(nodes, contraction), self._potential(halves, 1.0)
        zero = self._bottom + 2
        # left form below zero, right form from zero on; at zero they agree, so cells stay linear
        sampled = np.empty_like(fine)
        sampled[::2] = coarse
        sampled[1::2] = 0.5 * (coarse[:-1] + coarse[1:])
        room = fine - sampled + 1e-17
        # at zero the two forms meet and the slope drops by one, which is not (negative) mass
        bends = np.diff(fine, 2)
        bends[2 * zero - 1] += self._step / 2
        kinks = np.maximum(bends, 0.0)
        left, after = kinks[:-1], kinks[1:]
        total = left + after
        some = total > 0
        gap = np.divide(left * after, total, out=np.zeros_like(total), where=some)
        share = np.divide(after, total, out=np.zeros_like(total), where=some)
        enough = (1 - share) * room[1:-2] + share * room[2:-1] >= gap * (1 - 1e-9) - 1e-17
        if not (np.all(room[2:-2] >= 0) and np.all(enough[2:-2])):
            return None
        mass = np.diff(coarse, 2)[1:-1] / self._step
        mass[self._bottom] += 1.0
        return np.asarray(np.maximum(mass, 0.0))
