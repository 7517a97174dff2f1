"""Hits too many to enumerate: their law by Fourier inversion on a coarse grid.

The characteristic function of (hits c, excess d) is one closed form to the power `steps`. It is next to nothing outside
two small boxes of frequencies, round (0, 0) and round (pi, pi) (c and d have the same parity), so a few thousand
coefficients give everything, whatever the population. Weights on the integers (`Kernel`) turn them into what is wanted:
triangles move mass to coarse nodes and keep the mean (a split, for the upper bound), boxes and their first moments
collect a cell (a merge, for the lower). The law is tilted to several places in turn, so that every mass is computed
where it is not small and its relative error is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting.engine.arrays import Array, Complex
from dpcheckin.special import UNIT

# the transform of some weights at t, or at t + pi
Shape = Callable[[Array, bool], Complex]


class Kernel:
    """Weights round each position: sum over s of weight(s) * law(position + s).

    `fine` and `mixing` move the mass on from evenly spaced positions to chosen ones. Transforms are kept: the
    frequencies of the hits are the same for every tilt.
    """

    def __init__(self, positions: Array, shape: Shape, fine: Array | None = None, mixing: Array | None = None) -> None:
        self.positions, self._shape = positions, shape
        self._fine, self._mixing = positions if fine is None else fine, mixing
        self.total = float(np.abs(shape(np.zeros(1), False)[0]))  # weights are not negative
        self.furthest = float(np.abs(self._fine).max(initial=0.0))
        self.rows = np.ones(positions.size) if mixing is None else mixing.sum(axis=1)
        self._kept: dict[tuple[bytes, bool], tuple[Complex, Complex]] = {}

    def transforms(self, t: Array, turned: bool) -> tuple[Complex, Complex]:
        """Transform of the weights at `t`, or at t + pi if `turned`, and waves that carry it to the positions."""
        key = (t.tobytes(), turned)
        if key not in self._kept:
            waves: Any = np.exp(-1j * np.outer(self._fine, t))
            if turned:
                waves *= _signs(self._fine)[:, None]
            if self._mixing is not None:
                waves = np.asarray(self._mixing @ waves, dtype=np.complex128)
            self._kept[key] = self._shape(t, turned), waves
        return self._kept[key]


def _signs(integers: Array | NDArray[np.int64]) -> Array:
    """exp(i pi s), exactly."""
    return np.where(integers % 2 == 0, 1.0, -1.0)


def summed(offsets: NDArray[np.int64], weights: Array) -> Shape:
    """The transform of any `weights` at these `offsets`, term by term."""

    def shape(t: Array, turned: bool) -> Complex:
        given = weights * _signs(offsets) if turned else weights
        return np.asarray(np.exp(-1j * np.outer(t, offsets)) @ given, dtype=np.complex128)

    return shape


def triangle(cell: int, theta: float = 0.0) -> Shape:
    """The transform of (1 - |s| / cell) exp(-theta s), |s| < cell: Fejer's kernel, tilted.

    The sum over s of (1 - |s| / m) e^(-z s) is (sinh(m z / 2) / sinh(z / 2))^2 / m. At z + i pi the second sinh turns
    into a cosh, and the first as well if m is odd.
    """

    def shape(t: Array, turned: bool) -> Complex:
        z = (theta + 1j * t) / 2
        if turned:
            top = np.cosh(cell * z) if cell % 2 else 1j * np.sinh(cell * z)
            return np.asarray((top / np.cosh(z)) ** 2 / cell)
        whole = np.full(z.shape, complex(cell))
        np.divide(np.sinh(cell * z), np.sinh(z), out=whole, where=z != 0)
        return np.asarray(whole**2 / cell)

    return shape


# Frequencies are kept until the spectrum has fallen to exp(-BOX), far below round-off.
BOX = 46.0
# Tilts in standard deviations of the excess; each serves the nodes nearest to it.
TILTS = (0.0, 4.0, 8.0, 12.0)
LAST = 13.0


@dataclass(frozen=True, slots=True)
class Resolution:
    """How fine the nodes are: of the excess, per deviation; of the hits, in deviations."""

    nodes_per_deviation: int
    count_cell: float


@dataclass(frozen=True, slots=True)
class Densities:
    """Both densities, given hits c and excess d: (none + per_hit c ± kappa d) / population."""

    none: float
    per_hit: float
    kappa: float
    population: float


@dataclass(frozen=True, slots=True)
class Inverted:
    """Upper bounds of the mass moved to (hits, excess) nodes, and merged cells as vectors (p, q).

    `beyond` bounds the probability of a larger excess than the last node's.
    """

    base: Array
    hits: Array
    excess: Array
    beyond: float
    p: Array
    q: Array


@dataclass(frozen=True, slots=True)
class _Tilted:
    """The spectrum of one tilted law on its boxes of frequencies."""

    theta: float
    log_normaliser: float
    tc: Array
    td: Array
    spectrum: Complex
    exponent: Array  # size of the logarithm whose exponential each coefficient is
    left_out: float
    scale: float

    def masses(self, kc: Kernel, kd: Kernel) -> tuple[Array, Array]:
        """Tilted masses for every pair of weights, and a bound on their error."""
        value = np.zeros((kc.positions.size, kd.positions.size))
        # An exponential is only as good as its argument: rounding the logarithm of a coefficient
        # or the phase of a wave, either of them large where hits are many, counts as much.
        doubtful = 60 + 4 * math.sqrt(self.tc.size + self.td.size) + 4 * self.exponent
        doubtful += 4 * (np.abs(self.tc) * kc.furthest)[:, None] + 4 * self.td * kd.furthest
        doubtful *= UNIT * np.abs(self.spectrum)
        error = 0.0
        for turned in (False, True):
            # near (pi, pi) the spectrum repeats; only the weights see the difference
            left, count_waves = kc.transforms(self.tc, turned)
            right, excess_waves = kd.transforms(self.td, turned)
            inner = count_waves @ (left[:, None] * self.spectrum * right)
            value += (inner @ excess_waves.T).real
            error += float(np.abs(left) @ doubtful @ np.abs(right))
        each = self.scale * error + self.left_out * kc.total * kd.total
        return value * self.scale, each * np.outer(kc.rows, kd.rows)


@dataclass(frozen=True, slots=True)
class _Grid:
    """Frequencies and nodes shared by all tilts."""

    deviation: float
    d_cell: int
    c_low: int
    c_high: int
    c_cell: int
    tc: Array
    td: Array
    whole: bool
    scale: float


def inverted(
    count: int, hits: float, window: tuple[int, int], resolution: Resolution, densities: Densities | None
) -> Inverted:
    """The law of (hits, excess > 0) among `count` seats, split onto nodes and merged in cells.

    `count`: seats. `hits`: probability that a seat is a hit. `window`: numbers of hits to look at. `resolution`: how
    fine the nodes are. `densities`: what merged cells are weighed with; None if they are not wanted.
    """
    grid = _grid(count, hits, window, resolution)
    edges = [0.0, *((a + b) / 2 for a, b in pairwise(TILTS)), LAST]
    ends = np.floor(np.array(edges) * grid.deviation / grid.d_cell).astype(np.int64)
    triangles, boxes, moments = _count_triangles(grid), *_count_boxes(grid)
    split, merged = [], []
    for place, start, end in zip(TILTS, ends, ends[1:], strict=False):
        tilted = _tilted(count, hits, math.asinh(place / grid.deviation), grid)
        nodes = np.arange(start + 1, end + 1) * float(grid.d_cell)
        split.append(_split(tilted, nodes, grid.d_cell, triangles))
        if densities is not None:
            merged.append(_merged(densities, tilted, nodes, grid.d_cell, boxes, moments))
    beyond = math.exp(tilted.log_normaliser - tilted.theta * float(ends[-1] * grid.d_cell))
    base, numbers, excess = (np.concatenate(column) for column in zip(*split, strict=True))
    p = q = np.zeros(0)
    if merged:
        p, q = (np.concatenate(rows) for rows in zip(*merged, strict=True))
    return Inverted(base, numbers, excess, beyond, p, q)


def _grid(steps: int, u: float, window: tuple[int, int], resolution: Resolution) -> _Grid:
    low, high = window
    deviation = math.sqrt(steps * u)
    scatter = math.sqrt(steps * u * (1 - u))
    c_cell = max(1, int(resolution.count_cell * scatter))
    # the tilted laws have up to this many more hits
    drift = steps * u * (math.cosh(math.asinh(TILTS[-1] / deviation)) - 1)
    c_low, c_high = low - c_cell, high + math.ceil(2 * drift) + c_cell
    half = math.ceil((c_high - c_low + 8 * c_cell) / 2)
    d_period = 2 * math.ceil(12 * deviation)
    a_max = half if half <= 128 else _frequencies(scatter, 2 * half)
    whole = a_max >= half
    a = np.arange(1 - half, half + 1) if whole else np.arange(-a_max, a_max + 1)
    # the spectrum at -t is the conjugate of that at t: half of the plane, counted twice
    b = np.arange(_frequencies(deviation, d_period) + 1)
    return _Grid(
        deviation=deviation,
        d_cell=max(1, int(deviation / resolution.nodes_per_deviation)),
        c_low=c_low,
        c_high=c_high,
        c_cell=c_cell,
        tc=math.pi / half * a,
        td=2 * math.pi / d_period * b,
        whole=whole,
        scale=1 / (2 * half * d_period),
    )


def _frequencies(deviation: float, period: int) -> int:
    """How many frequencies 2 pi a / period matter on each side of zero."""
    needed = 1.15 * math.sqrt(2 * BOX) * period / (2 * math.pi * deviation)
    return min(math.ceil(needed), period // 2)


def _tilted(steps: int, u: float, theta: float, grid: _Grid) -> _Tilted:
    ch, tc, td = math.cosh(theta), grid.tc, grid.td
    swell = 2 * u * math.sinh(theta / 2) ** 2
    # e^{i tc} cosh(theta + i td) - cosh(theta), without cancellation near zero
    turn = np.expm1(1j * tc)[:, None]
    bend = ch * (-2 * np.sin(td / 2) ** 2) + 1j * math.sinh(theta) * np.sin(td)
    change = ch * turn + bend[None, :] * (1 + turn)
    logarithm = steps * np.log1p(u * change / (1 + swell))
    spectrum = np.exp(logarithm)
    spectrum[:, 1:] *= 2
    # |cosh(theta + i t)|^2 = cosh^2 - sin^2 t bounds what lies beside both boxes ...
    worst = 1 - u + u * math.sqrt(ch**2 - math.sin(min(float(td[-1]), math.pi / 2)) ** 2)
    if not grid.whole:
        # ... and the phase of hits against blanks what lies above and below them
        phase = float(tc[-1]) - math.tanh(theta) * math.tan(float(td[-1]))
        square = (1 - u) ** 2 + (u * ch) ** 2 + 2 * (1 - u) * u * ch * math.cos(max(phase, 0.0))
        worst = max(worst, math.sqrt(max(square, (1 - u) ** 2)))
    left_out = math.exp(steps * math.log(worst / (1 + swell)))
    normaliser = steps * math.log1p(swell)
    return _Tilted(theta, normaliser, tc, td, spectrum, np.abs(logarithm), left_out, grid.scale)


def _untilt(tilted: _Tilted, positions: Array) -> Array:
    return np.asarray(np.exp(tilted.log_normaliser - tilted.theta * positions))


def _split(tilted: _Tilted, d_nodes: Array, d_cell: int, kc: Kernel) -> tuple[Array, Array, Array]:
    """Upper bounds of the mass moved to (hits, excess) nodes."""
    value, error = tilted.masses(kc, Kernel(d_nodes, triangle(d_cell, tilted.theta)))
    mass = np.maximum(value + error, 0.0) * _untilt(tilted, d_nodes)[None, :]
    counts = kc.positions
    return mass.ravel(), np.repeat(counts, d_nodes.size), np.tile(d_nodes, counts.size)


def _count_triangles(grid: _Grid) -> Kernel:
    """Triangles on fine nodes, moved on to wider ones away from the middle."""
    cell = grid.c_cell
    fine = np.arange(grid.c_low, grid.c_high + cell, cell).astype(np.float64)
    if fine.size < 40:
        return Kernel(fine, triangle(cell))
    distance = np.abs(np.arange(fine.size) - (fine.size - 1) / 2)
    stride = np.where(distance < 20, 1, np.where(distance < 32, 3, 8))
    chosen = [0]
    while chosen[-1] < fine.size - 1:
        chosen.append(min(chosen[-1] + int(stride[chosen[-1]]), fine.size - 1))
    nodes = fine[chosen]
    mixing = np.array([np.interp(fine, nodes, unit) for unit in np.eye(nodes.size)])
    return Kernel(nodes, triangle(cell), fine, mixing)


def _count_boxes(grid: _Grid) -> tuple[Kernel, Kernel]:
    """Cells of hits for merging, and their first moments from the left end."""
    cell = 4 * grid.c_cell
    first = np.arange(grid.c_low, grid.c_high, cell).astype(np.float64)
    offsets = np.arange(cell)
    plain, moment = np.ones(cell), offsets.astype(np.float64)
    return Kernel(first, summed(offsets, plain)), Kernel(first, summed(offsets, moment))


def _merged(
    m: Densities, tilted: _Tilted, d_nodes: Array, d_cell: int, kc: Kernel, kc_moment: Kernel
) -> tuple[Array, Array]:
    """Lower bounds: each cell of (hits, excess) as one vector, M at its mean."""
    d_first = d_nodes - d_cell + 1  # cells end at the nodes, so that they tile (0, LAST]
    d_offsets = np.arange(d_cell)
    plain = np.exp(-tilted.theta * d_offsets)
    kd, kd_moment = (Kernel(d_first, summed(d_offsets, plain)), Kernel(d_first, summed(d_offsets, d_offsets * plain)))
    c_first, c_cell = kc.positions, kc.total
    mass, mass_error = tilted.masses(kc, kd)
    more_c, c_error = tilted.masses(kc_moment, kd)
    more_d, d_error = tilted.masses(kc, kd_moment)
    none, per_hit = m.none, m.per_hit
    weight = (none + per_hit * c_first[:, None]) * mass + per_hit * more_c
    lean = m.kappa * (d_first[None, :] * mass + more_d)
    slack = (none + abs(per_hit) * (np.abs(c_first[:, None]) + c_cell)) * mass_error
    slack += abs(per_hit) * c_error + m.kappa * (d_first[None, :] * mass_error + d_error)
    untilt = _untilt(tilted, d_first)[None, :] / m.population
    p = np.maximum(weight + lean - slack, 0.0) * untilt
    q = (weight - lean + slack) * untilt
    return p.ravel(), q.ravel()
