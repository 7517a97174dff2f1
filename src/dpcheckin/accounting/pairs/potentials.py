"""Potentials of Laplace reports, seen from finitely many triples of inputs, and differences of potentials with noise.

The unit of length is the scale of the noise, so that the interval has length ε₀. A triple (a, b, x) is a contraction of
one whose outermost inputs are the two ends, and contracting is post-processing (docs/laplace-certificate.md): in one
family x lies at p between a and b, in the other two b or a lies between the other and x.

A convex function smoothed by Laplace noise of scale τ becomes V with V - τ²V″ = U. Between nodes the functions compared
are linear, so V at the nodes is an exact sum of exponentials, and a minimum between two nodes is bounded from there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.errors import NumericalFailure

KERNEL = 1e-11  # relative error of the entries of the kernel and of sums with them


def _inner(falling: Array, rising: Array, low: Array, high: Array) -> Array:
    """Integral of (falling · e^-y + rising · e^y)₊ from low to high."""
    opposite = falling * rising < 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        root = 0.5 * np.log(np.where(opposite, -falling / rising, 1.0))
    root = np.where(opposite, np.clip(root, low, high), low)

    def between(start: Array, end: Array) -> Array:
        value = rising * (np.exp(end) - np.exp(start)) + falling * (np.exp(-start) - np.exp(-end))
        return np.asarray(np.maximum(value, 0.0))

    return between(low, root) + between(root, high)


def positive_part(length: float, p: Array, left: Array, middle: Array, right: Array) -> Array:
    """Integral of (left · R(0) + middle · R(p) + right · R(length))₊, R(z) with density e^-|y-z|/2.

    All weights may have either sign. Rounding is a few units in the last place of the positive parts of the three
    terms.

    `length`: of the interval, in scales of the noise. `p`: the place in between. `left`, `middle`, `right`: weights of
    the three densities.
    """
    far, near, back = np.exp(-length), np.exp(-p), np.exp(p)
    outside = np.maximum(left + middle * near + right * far, 0.0)
    outside = outside + np.maximum(left * far + middle * np.exp(p - length) + right, 0.0)
    zero, end = np.zeros_like(p), np.full_like(p, length)
    first = _inner(left, middle * near + right * far, zero, p)
    second = _inner(left + middle * back, right * far, p, end)
    return np.asarray(0.5 * (outside + first + second))


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Places p of the input in between, denser near the ends, for each of the three families."""

    length: float  # of the interval, in scales of the noise
    nodes: Array  # the places, from 0 to length

    @property
    def before(self) -> Array:
        """The place before each one, or itself."""
        return np.concatenate([self.nodes[:1], self.nodes[:-1]])

    @property
    def after(self) -> Array:
        """The place after each one, or itself."""
        return np.concatenate([self.nodes[1:], self.nodes[-1:]])

    @property
    def widths(self) -> Array:
        """The larger of the two distances to the neighbours."""
        return np.maximum(self.nodes - self.before, self.after - self.nodes)

    @staticmethod
    def of(length: float, finest: float, growth: float, widest: float) -> Places:
        """Places whose distance grows away from both ends.

        `length`: of the interval. `finest`: distance at an end. `growth`: by how much it grows per unit of length.
        `widest`: largest distance.
        """
        half = [0.0]
        while half[-1] < length / 2:
            half.append(half[-1] + min(finest + growth * half[-1], widest))
        scaled = np.array(half) * (0.5 * length / half[-1])
        return Places(length, np.concatenate([scaled, (length - scaled)[-2::-1]]))


def types_at(length: float, alpha: float, t: Array) -> tuple[Array, Array]:
    """Potentials at `t` of the types A (x = a) and B (x = b), by `length` and `alpha`: calls for t ≥ 0, else puts."""
    ends = np.array([[0.0], [length]])
    found = _between(length, ends, alpha, t)
    return found[0], found[1]


def reports_at(places: Places, alpha: float, t: Array) -> Array:
    """Upper bounds (families and places, t) that together bound the potentials of every triple.

    Between two places the potential is at most the linear interpolation (for x in between: with the weights of
    hyperbolic sines) of the rows of its neighbours. Calls for t ≥ 0, puts for t < 0.

    `places`: where the input in between lies. `alpha`: at least 1. `t`: where potentials are asked for, ascending.
    """
    p = places.nodes[:, None]
    squeezed = t / np.cosh(places.widths / 2)[:, None]
    sign = np.where(t >= 0.0, 1.0, -1.0)
    second = positive_part(places.length, p, sign, -alpha * sign, -sign * t)
    first = positive_part(places.length, p, -alpha * sign, sign, -sign * t)
    bend = places.widths[:, None] ** 2 / 8
    return np.concatenate(
        [
            _between(places.length, p, alpha, squeezed),
            second + bend * _reached(_bend_of_second(places, alpha, t), t, alpha),
            first + bend * _reached(_bend_of_first(places, alpha, t), t, 1.0),
        ]
    )


def _between(length: float, p: Array, alpha: float, t: Array) -> Array:
    """x at p between a and b."""
    sign = np.where(t >= 0.0, 1.0, -1.0)
    return positive_part(length, p, sign, -sign * t, -alpha * sign)


def _below(edge: Array, p: Array) -> Array:
    """R(p) of all reports below an edge."""
    away = np.abs(edge - p)
    return np.where(edge <= p, 0.5 * np.exp(-away), 1.0 - 0.5 * np.exp(-away))


def _edge(length: float, ratio: Array) -> Array:
    """Below which reports the density at 0 is more than so many times that at the other end."""
    with np.errstate(divide="ignore"):
        inside = 0.5 * (length - np.log(ratio))
    return np.where(ratio < np.exp(-length), np.inf, inside)


def _bend_of_second(places: Places, alpha: float, t: Array) -> Array:
    """How concave a potential may be in p, the place of b between a and x; falls with |t|."""
    low, high = places.before[:, None], places.after[:, None]
    size = np.abs(t)
    edge = np.minimum(_edge(places.length, size), high / 2)
    largest = np.exp(places.length) - alpha * np.exp(places.length - high)
    call = np.where(size <= largest, alpha * _below(edge, low), 0.0)
    top = np.clip(np.log(2 / alpha), low, high)
    put = np.where(size <= np.exp(places.length - top) * (alpha - np.exp(-top)), alpha, 0.0)
    return np.where(t >= 0.0, call, put)


def _bend_of_first(places: Places, alpha: float, t: Array) -> Array:
    """The same where a lies between b and x."""
    low, high = places.before[:, None], places.after[:, None]
    size, grown = np.abs(t), np.log(alpha)
    nearer = np.where(low > grown, 0.5 * (high + grown), np.inf)
    edge = np.minimum(_edge(places.length, size / alpha), nearer)
    largest = alpha * np.exp(places.length) - np.exp(places.length - high)
    put = np.where(size <= largest, _below(edge, low), 0.0)
    top = np.clip(np.log(2 * alpha), low, high)
    call = np.where(size <= np.exp(places.length - top) * (1.0 - alpha * np.exp(-top)), 1.0, 0.0)
    return np.where(t >= 0.0, call, put)


def _reached(values: Array, t: Array, most: float) -> Array:
    """At every t the largest value up to both neighbours, so that chords lie above the function.

    The function falls with |t| on either side of zero and is at most `most` beside it.
    """
    raised = values.copy()
    first = int(np.searchsorted(t, 0.0))
    raised[:, max(first - 1, 0) : first + 1] = most
    padded = np.concatenate([raised[:, :1], raised, raised[:, -1:]], axis=1)
    return np.asarray(np.maximum(np.maximum(padded[:, :-2], padded[:, 2:]), raised))


def kernel(points: Array, smoothing: float) -> Array:
    """Entry (j, i): the integral of hat j, seen from node i of the `points`, with Laplace weights of scale `smoothing`.

    All entries are positive; with steps of at least 3e-4 of τ the differences below keep eleven digits, shorter ones
    take three terms of the series, and a product of decays loses one unit in the last place per factor.
    """
    ratio = np.diff(points) / smoothing
    if not ratio.min() >= 1e-13:
        raise NumericalFailure("nodes are too close together for the smoothing scale")
    decay = np.exp(-ratio)
    mean = -np.expm1(-ratio) / ratio
    near, far = (1 - mean) / 2, (mean - decay) / 2
    short = ratio < 3e-4
    near = np.where(short, ratio / 4 * (1 - ratio / 3 * (1 - ratio / 4)), near)
    far = np.where(short, ratio / 4 * (1 - ratio * (2 / 3) * (1 - ratio * (3 / 8))), far)
    size = len(points)
    before, after = np.zeros((size, size)), np.zeros((size, size))
    for i in range(size - 1):
        before[:, i + 1] = before[:, i] * decay[i]
        before[i + 1, i + 1] += near[i]
        before[i, i + 1] += far[i]
    for i in range(size - 1, 0, -1):
        after[:, i - 1] = after[:, i] * decay[i - 1]
        after[i - 1, i - 1] += near[i - 1]
        after[i, i - 1] += far[i - 1]
    return before + after


def lowest(below: Array, above: Array, plain: Array, points: Array, smoothing: float) -> Array:
    """Lower bound over all u of V, from V and D = V - τ²V″ at the nodes, D linear in between.

    On an interval V is at least the smallest of its two values and the two values of D, because a
    minimum inside has V″ ≥ 0, so V ≥ D there. It is also at least the smaller end value minus
    (h²/8)·max V″, and V″ = (V - D)/τ² is largest at an end, being a solution of f = τ²f″.

    `below`: V at the nodes (…, nodes), from below. `above`: the same from above. `plain`: D at the nodes (…, nodes).
    `points`: the nodes. `smoothing`: τ.
    """
    ends = np.minimum(below[..., 1:], below[..., :-1])
    floor = np.minimum(plain[..., 1:], plain[..., :-1])
    bend = np.maximum(above - plain, 0.0)
    bend = np.maximum(bend[..., 1:], bend[..., :-1])
    bend *= np.diff(points) ** 2 / (8 * smoothing**2) * (1 + KERNEL)
    inside = np.maximum(np.minimum(ends, floor), ends - bend)
    return np.asarray(inside.min(-1))
