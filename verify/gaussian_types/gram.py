"""Which triples there are: triangular cells of arcs, and one Gram matrix above each cell.

A triple (a, b, x) of points in the ball of diameter s lies below one (whose reports are easier to tell apart) on a
circle of diameter s, with arcs p between x and a, q between x and b, 2π - p - q between a and b, all at most π. So the
triples to look at are the triangle {p, q ≤ π ≤ p + q}. In units of π its corners are (0, 1): x = a, (1, 0): x = b, (1,
1): a = b, and halving the longest side again and again gives right-angled cells whose corners are dyadic, hence exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcheckin.errors import InvalidParameter, NumericalFailure
from gaussian_types.rounding import SMALLEST_SPREAD, Array

# A cell is three corners: the right angle first, then the ends of the longest side.
WHOLE = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])

MARGIN = 1e-10  # added to a dominating matrix, in units of s², far above all rounding
_CHECKED = 1e-12  # what of it must remain after rounding


@dataclass(frozen=True)
class Triple:
    """A triangle (a, b, x) seen from the foot of the altitude on the side between x and an end.

    Attributes:
        apex_is_a: whether a is the apex and b the other end of the side (else the reverse).
        end: signed distance of the other end from the foot, noise standard deviations.
        base: signed distance of x from the foot.
        height: distance of the apex from the foot.
    """

    apex_is_a: bool
    end: float
    base: float
    height: float

    def gram(self) -> Array:
        """(|a-x|², |b-x|², ⟨a-x, b-x⟩)."""
        side = (self.end - self.base) ** 2
        apex = self.base**2 + self.height**2
        inner = -self.base * (self.end - self.base)
        return np.array([apex, side, inner] if self.apex_is_a else [side, apex, inner])


def halves(cells: Array) -> Array:
    """Each cell (k, 3, 2) cut at the middle of its longest side: (2k, 3, 2), exactly."""
    angle, first, second = cells[:, 0], cells[:, 1], cells[:, 2]
    middle = (first + second) / 2
    one = np.stack([middle, angle, first], 1)
    two = np.stack([middle, second, angle], 1)
    return np.stack([one, two], 1).reshape(-1, 3, 2)


def leaves(tree: str) -> Array:
    """The cells of a tree written in depth-first order, "1" for a cut cell and "0" for a leaf.

    Whatever the tree, its leaves cover the whole triangle: that is why trees are stored.
    """
    found: list[Array] = []
    waiting = [WHOLE]
    for mark in tree:
        if not waiting:
            raise InvalidParameter("tree", tree, "no marks after its last leaf")
        cell = waiting.pop()
        if mark == "1":
            one, two = halves(cell[None])
            waiting += [two, one]
        elif mark == "0":
            found.append(cell)
        else:
            raise InvalidParameter("tree", mark, "the marks 0 and 1")
    if waiting:
        raise InvalidParameter("tree", tree, "two branches for every cut")
    return np.stack(found)


def gram(arcs: Array, diameter: float) -> Array:
    """Gram entries (|a-x|², |b-x|², ⟨a-x, b-x⟩) of arcs (…, 2) in units of π."""
    p, q = np.pi * arcs[..., 0], np.pi * arcs[..., 1]
    a, b, ab = ((diameter**2 / 2) * (1 - np.cos(arc)) for arc in (p, q, p + q))
    return np.stack([a, b, (a + b - ab) / 2], -1)


def smallest_eigenvalue(matrix: Array) -> Array:
    """Of symmetric 2×2 matrices given as (…, 3): two diagonal entries, then the other."""
    a, b, c = matrix[..., 0], matrix[..., 1], matrix[..., 2]
    return np.asarray((a + b) / 2 - np.hypot((a - b) / 2, c))


def _positive_part(matrix: Array) -> Array:
    a, b, c = matrix[..., 0], matrix[..., 1], matrix[..., 2]
    radius = np.hypot((a - b) / 2, c)
    high, low = (a + b) / 2 + radius, (a + b) / 2 - radius
    kept_high, kept_low = np.maximum(high, 0.0), np.maximum(low, 0.0)
    slope = (kept_high - kept_low) / np.maximum(2 * radius, 1e-300)
    return np.stack([kept_low + slope * (a - low), kept_low + slope * (b - low), slope * c], axis=-1)


def inside_cells(cells: Array, diameter: float) -> Array:
    """By how much the inside of each cell may exceed the average of its corners (Loewner order).

    The entries of the Gram matrix are (s²/2)(1 - cos) of p, q and p + q. At a convex combination of the corners, -cos
    exceeds the combination of its corner values by -½ Σ λᵢ cos(ξᵢ)(pᵢ - p)², and Σ λᵢ (pᵢ - p)² is at most a quarter of
    the squared range. The off-diagonal entry then lies in an interval; its middle is kept and its half-width goes to
    the diagonal.
    """
    p, q = np.pi * cells[:, :, 0], np.pi * cells[:, :, 1]
    low, high = [], []
    for arc in (p, q, p + q):
        start, stop = arc.min(1), arc.max(1)
        spread = (stop - start) ** 2 / 4
        ends = np.cos(start), np.cos(stop)
        lowest = np.where((start <= np.pi) & (stop >= np.pi), -1.0, np.minimum(*ends))
        low.append(np.minimum(spread * lowest, 0.0))
        high.append(np.maximum(spread * np.maximum(*ends), 0.0))
    unit = diameter**2 / 8
    off_low, off_high = -unit * (high[0] + high[1] - low[2]), -unit * (low[0] + low[1] - high[2])
    width = (off_high - off_low) / 2
    return np.stack([-2 * unit * low[0] + width, -2 * unit * low[1] + width, (off_low + off_high) / 2], -1)


def dominating(cells: Array, diameter: float) -> Array:
    """One Gram matrix (k, 3) above every triple of each cell (k, 3, 2), up to rounding."""
    corners = gram(cells, diameter)
    best = np.empty((len(cells), 3))
    smallest = np.full(len(cells), np.inf)
    for order in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        matrix = corners[:, order[0]]
        for corner in order[1:]:
            matrix = matrix + _positive_part(corners[:, corner] - matrix)
        trace = matrix[:, 0] + matrix[:, 1]
        best = np.where((trace < smallest)[:, None], matrix, best)
        smallest = np.minimum(trace, smallest)
    return best + inside_cells(cells, diameter) + MARGIN * diameter**2 * np.array([1.0, 1.0, 0.0])


def triples_above(cells: Array, diameter: float) -> list[Triple]:
    """A triple above each cell, checked: its own Gram matrix, rounded as it is, dominates.

    Raises:
        NumericalFailure: if rounding ate the margin (it does not; the check makes it certain).
    """
    found = [_triple(matrix) for matrix in dominating(cells, diameter)]
    above = np.stack([one.gram() for one in found])
    inside = inside_cells(cells, diameter)
    gaps = (above - inside)[:, None, :] - gram(cells, diameter)
    if not bool(np.all(smallest_eigenvalue(gaps) >= _CHECKED * diameter**2)):
        raise NumericalFailure("a Gram matrix does not dominate its cell")
    return found


def _triple(matrix: Array) -> Triple:
    """The triangle with this Gram matrix, its apex opposite to the shorter side at x."""
    apex_is_a = bool(matrix[0] >= matrix[1])
    side, apex = (matrix[1], matrix[0]) if apex_is_a else (matrix[0], matrix[1])
    length = float(np.sqrt(side))
    foot = float(matrix[2]) / length
    height = float(np.sqrt(apex - foot * foot))
    if not height >= SMALLEST_SPREAD:
        raise NumericalFailure(f"a triangle of height {height} is too flat for this arithmetic")
    return Triple(apex_is_a, length - foot, -foot, height)
