"""Reports of Laplace noise on an interval: every triple of inputs, seen from finitely many.

The unit of length is the scale of the noise, so that the interval has length ε₀. A triple (a, b, x)
is a contraction of one whose outermost inputs are the two ends, and contracting is post-processing
(docs/laplace-certificate.md): in one family x lies at p between a and b, in the other two b or a
lies between the other and x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


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

    All weights may have either sign. Rounding is a few units in the last place of the positive
    parts of the three terms.

    Args:
        length: Of the interval, in scales of the noise.
        p: The place in between.
        left, middle, right: Weights of the three densities.
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
    """Places p of the input in between, denser near the ends, for each of the three families.

    Args:
        length: Of the interval, in scales of the noise.
        nodes: The places, from 0 to length.
    """

    length: float
    nodes: Array

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

        Args:
            length: Of the interval.
            finest: Distance at an end.
            growth: By how much it grows per unit of length.
            widest: Largest distance.
        """
        half = [0.0]
        while half[-1] < length / 2:
            half.append(half[-1] + min(finest + growth * half[-1], widest))
        scaled = np.array(half) * (0.5 * length / half[-1])
        return Places(length, np.concatenate([scaled, (length - scaled)[-2::-1]]))


def types_at(length: float, alpha: float, t: Array) -> tuple[Array, Array]:
    """Potentials of the types A (x = a) and B (x = b): calls for t ≥ 0, puts for t < 0."""
    ends = np.array([[0.0], [length]])
    found = _between(length, ends, alpha, t)
    return found[0], found[1]


def reports_at(places: Places, alpha: float, t: Array) -> Array:
    """Upper bounds (families and places, t) that together bound the potentials of every triple.

    Between two places the potential is at most the linear interpolation (for x in between: with
    the weights of hyperbolic sines) of the rows of its neighbours. Calls for t ≥ 0, puts for t < 0.

    Args:
        places: Where the input in between lies.
        alpha: At least 1.
        t: Where potentials are asked for, ascending.
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
