"""One loss distribution composed with itself, for many numbers of rounds at once.

The cumulants of n rounds are n times those of one, and the transform of n rounds is a power of that
of one. So all counts within a factor of two share one tilt, one window and one transform; what is
left for each is a power and the way back. A tilt that fits another count a little better would only
make the round-off smaller, which is charged as always.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.compose import (
    WINDOW_EXPONENT,
    Cumulant,
    Factor,
    Mass,
    inverted,
    tilt_for,
    unbounded,
    untilted,
)
from dpcheckin.accounting.engine.loss import LossDistribution, Tail, single
from dpcheckin.special import fourier


def octaves(counts: Sequence[int]) -> list[list[int]]:
    """The counts in groups, each within a factor of two.

    >>> octaves([1, 5, 9, 40])
    [[1], [5, 9], [40]]
    """
    groups: list[list[int]] = []
    for count in sorted(set(counts)):
        if groups and count <= 2 * groups[-1][0]:
            groups[-1].append(count)
        else:
            groups.append([count])
    return groups


def repeated(one: LossDistribution, counts: Sequence[int], delta: float) -> Iterator[Tail]:
    """The tail of the composition for each count, most accurate near delta.

    Args:
        one: The losses of one round on a grid.
        counts: Numbers of rounds, best within a factor of two.
        delta: Where the question is asked.
    """
    cumulant = Cumulant([(one, 1)])
    middle = sorted(counts)[len(counts) // 2]
    theta = tilt_for(Cumulant([(one, middle)]), delta=delta, epsilon=None)
    value, mean, variance = cumulant(theta)
    mass = Mass.of(one)
    if variance == 0.0:
        yield from (Tail.without_loss(unbounded([(mass, count)])[0]) for count in counts)
        return
    window = _Window(cumulant, theta, middle)
    ends = {count: window.ends(count, one.step) for count in counts}
    longest = max(last - first + 1 for first, last in ends.values())
    size = fourier.next_fast_len(max(longest, 2 * one.reach + 2), True)
    factor = Factor.of(one, theta, size, max(counts))
    for count in counts:
        infinite, bounded = unbounded([(mass, count)])
        if count == 1 or not bounded:
            yield single(one) if count == 1 else Tail.without_loss(infinite)
            continue
        first, last = ends[count]
        first -= (size - (last - first + 1)) // 2
        pmf, per_bin = inverted(count * factor.logs, count * factor.log_bound, size)
        pmf = np.roll(pmf, -((first - count * factor.centre) % size))
        logs = count * value, count * mean
        yield untilted(pmf, per_bin, one.step, first, theta, *logs, infinite, count)


class _Window:
    """Ends outside which tilted compositions have next to no mass, for every count (Chernoff)."""

    def __init__(self, cumulant: Cumulant, theta: float, count: int) -> None:
        value, self._mean, variance = cumulant(theta)
        guess = cumulant.shift(count * variance)
        self._shifts: Array = guess * np.geomspace(0.01, 12.0, 36)
        self._rises = [
            np.array([cumulant(theta + sign * s)[0] - value for s in self._shifts])
            for sign in (-1.0, 1.0)
        ]

    def ends(self, count: int, step: float) -> tuple[int, int]:
        """First and last grid point for so many rounds."""
        reaches = []
        for sign, rises in zip((-1.0, 1.0), self._rises, strict=True):
            moved = count * (rises - sign * self._shifts * self._mean)
            reaches.append(float(np.min((moved + WINDOW_EXPONENT) / self._shifts)))
        mean = count * self._mean
        return (
            math.floor((mean - reaches[0]) / step) - 1,
            math.ceil((mean + reaches[1]) / step) + 1,
        )
