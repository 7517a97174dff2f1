"""Potentials of reports from above and of the two types from below, in balanced units.

Everything is divided by (1 + α)/2. With the tilt β = (α - 1)/(α + 1) a report's term is Z = (1 - β)M - (1 + β)N, M and
N the likelihood ratios of a and b against x, and the types are A = (1 - β) - (1 + β)W, B = (1 - β)W - (1 + β). The
potential at a point t is E(Z - t)₊ for t > 0 and E(t - Z)₊ for t < 0; the two differ by -2β - t, the same for every law
here, so differences of potentials do not depend on which is used, and each is free of cancellation on its side.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpcheckin.special.normal import ndtr
from gaussian_types.gram import Triple
from gaussian_types.rounding import (
    SUMS,
    Array,
    call_lower,
    call_upper,
    density_upper,
    normal_masses,
    put_lower,
    put_upper,
)

REACH = 7.5  # standard deviations kept on both sides; the rest is charged in full
WIDEST, NARROWEST = 0.7, 0.12  # widths of the slices of one report's first coordinate


def report_potential(triple: Triple, tilts: Array, points: Array, slicing: float) -> Array:
    """Upper bounds (tilts, points) of the potential of Z for one triple.

    Write the report as (v, z): v along the side between x and the other end, z along the altitude, both measured from
    the foot and normal under the foot's own law. The potential is E ψ(q(v)), where q collects the two points of the
    side and ψ is a call or a put on the apex, convex in q with ψ'' a density. On a slice of v the conditional mean of q
    gives ψ(mean), and the rest is at most ½ Var(q)·max ψ'' over the range of q. Outside the slices the positive part is
    at most the mass of its one positive term.

    Args:
        triple: the triangle, in noise standard deviations.
        tilts: β, each in [0, 1).
        points: t, none of them 0.
        slicing: width of a slice times the side, in units of the height or of 1 if that is smaller.
    """
    side = abs(triple.end) + abs(triple.base)
    width = float(np.clip(slicing * min(triple.height, 1.0) / side, NARROWEST, WIDEST))
    reach = REACH + max(abs(triple.end), abs(triple.base))
    edges = np.linspace(-reach, reach, int(np.ceil(2 * reach / width)) + 1)
    slices = _Slices(triple, edges)
    result = np.empty((len(tilts), len(points)))
    plus, minus = 1 - tilts, 1 + tilts  # factors of a and of b
    apex, end = (plus, minus) if triple.apex_is_a else (minus, plus)
    calls = (points > 0) if triple.apex_is_a else (points < 0)
    for chosen, is_call in ((calls, True), (~calls, False)):
        if np.any(chosen):
            shift = np.abs(points[chosen]) if is_call else -np.abs(points[chosen])
            result[:, chosen] = slices.expectation(apex, end, shift, is_call)
    return result + 2 * float(ndtr(-REACH)) * float(minus.max()) * (1 + SUMS)


class _Slices:
    """Conditional means, variances and ranges of the side's two densities on slices of v."""

    def __init__(self, triple: Triple, edges: Array) -> None:
        end, base = triple.end, triple.base
        self.spread = triple.height
        self.mass = normal_masses(edges, 0.0)
        self.end = normal_masses(edges, end) / self.mass
        self.base = normal_masses(edges, base) / self.mass
        # Second moments: e^{2ev - e²} has mean e^{e²} times the mass at shift 2e, and so on.
        ends = normal_masses(edges, 2 * end) / self.mass * np.exp(end * end)
        bases = normal_masses(edges, 2 * base) / self.mass * np.exp(base * base)
        both = normal_masses(edges, end + base) / self.mass * np.exp(end * base)
        self.end_variance = np.maximum(ends - self.end**2, 0.0) + 8 * SUMS * ends
        self.base_variance = np.maximum(bases - self.base**2, 0.0) + 8 * SUMS * bases
        self.covariance = both - self.end * self.base
        self.covariance_error = 8 * SUMS * both
        self.end_at = np.exp(end * edges - end * end / 2)
        self.base_at = np.exp(base * edges - base * base / 2)

    def expectation(self, apex: Array, end: Array, shift: Array, is_call: bool) -> Array:
        """Upper bound of E (±(apex·Y - end·E - shift·X))₊, + for a call, - for a put."""
        a, e, t = apex[:, None, None], (end / apex)[:, None, None], shift[None, :, None]
        t = t / a
        first, second = e * self.end, t * self.base
        size = first + np.abs(second)
        outward = -4 * SUMS if is_call else 4 * SUMS
        value = (call_upper if is_call else put_upper)(first + second + outward * size, self.spread)
        low, high = self._range(e, t, is_call)
        curvature = density_upper(low, high, self.spread)
        variance = (
            e * e * self.end_variance
            + t * t * self.base_variance
            + 2 * e * t * self.covariance
            + 2 * e * np.abs(t) * self.covariance_error
        )
        value += 0.5 * np.maximum(variance, 0.0) * curvature
        return np.asarray(apex[:, None] * (value @ self.mass) * (1 + 8 * SUMS))

    def _range(self, e: Array, t: Array, is_call: bool) -> tuple[Array, Array]:
        """Range of the strike on each slice; a sum of two exponentials is largest at an end."""
        one, two = e * self.end_at, t * self.base_at
        low = np.minimum(one[..., :-1], one[..., 1:]) + np.minimum(two[..., :-1], two[..., 1:])
        if is_call:
            both = one + two
            high = np.maximum(both[..., :-1], both[..., 1:])
            return low * (1 - SUMS), high * (1 + SUMS)
        high = np.maximum(one[..., :-1], one[..., 1:]) + np.maximum(two[..., :-1], two[..., 1:])
        error = SUMS * np.maximum(one[..., :-1], one[..., 1:])
        return low - error - SUMS * np.abs(low), high + error


def type_potentials(scale: float, tilts: Array, points: Array) -> tuple[Array, Array]:
    """Node values (tilts, points) whose bilinear interpolation lies below the types' potentials.

    A convex function lies above its interpolation minus (step²/8)·(largest second derivative). Along t that derivative
    is the density of the type, along β it is (1 + W)² times the density, at the W that puts the type at t. The largest
    correction of the rectangles round a node is taken off the node.

    Args:
        scale: s', the spread of log W.
        tilts: β, ascending, in [0, 1).
        points: t, ascending, none of them 0.

    Returns:
        The node values for type A and for type B; those of the far tails may be negative.
    """
    plus, minus = (1 - tilts)[:, None], (1 + tilts)[:, None]
    t = points[None, :]
    strike = (plus - t) / minus
    slip = 4e-16 * (plus + np.abs(t)) / minus
    lower = minus * np.where(t > 0, put_lower(strike - slip, scale), call_lower(strike + slip, scale))
    first = lower * (1 - SUMS) - _corrections(
        scale, tilts, points, lambda b, u: (1 - b - u) / (1 + b), 1 / (1 + tilts[:-1, None])
    )
    strike = (t + minus) / plus
    slip = 4e-16 * (minus + np.abs(t)) / plus
    lower = plus * np.where(t > 0, call_lower(strike + slip, scale), put_lower(strike - slip, scale))
    second = lower * (1 - SUMS) - _corrections(
        scale, tilts, points, lambda b, u: (1 + b + u) / (1 - b), 1 / (1 - tilts[1:, None])
    )
    return first, second


def _corrections(
    scale: float, tilts: Array, points: Array, ratio: Callable[[Array, Array], Array], jacobian: Array
) -> Array:
    """What to take off each node for the inside of the rectangles round it."""
    corners = [ratio(b, u) for b in (tilts[:-1, None], tilts[1:, None]) for u in (points[None, :-1], points[None, 1:])]
    low, high = np.minimum.reduce(corners), np.maximum.reduce(corners)
    slip = 1e-14 * (1 + np.abs(low) + np.abs(high))
    density = density_upper(low - slip, high + slip, scale) * jacobian
    steps = np.diff(points)[None, :] ** 2, np.diff(tilts)[:, None] ** 2
    inside = density * (steps[0] + steps[1] * (1 + np.maximum(high, 0.0)) ** 2) / 8 * (1 + SUMS)
    nodes = np.zeros((len(tilts), len(points)))
    rows, columns = inside.shape
    for i in (0, 1):
        for j in (0, 1):
            part = nodes[i : i + rows, j : j + columns]
            np.maximum(part, inside, out=part)
    return nodes
