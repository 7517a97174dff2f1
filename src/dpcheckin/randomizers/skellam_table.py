"""Skellam noise drawn exactly, up to an error that is stated and can be charged.

The cumulative distribution is tabulated with 124 binary digits in integer arithmetic, and compared
with 124 random bits. Floating point enters nowhere, so the only difference between the noise drawn
here and the law that accounting speaks of is the cut tail and the last digit of the table: together
at most `TABLE_ERROR` in total variation for each number drawn.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers.source import RandomSource

TABLE_ERROR = 2.0**-98
LARGEST_VARIANCE = 2.0**30

Table = tuple[NDArray[np.int64], NDArray[np.int64], int]

_HALF = 62  # random bits are taken in halves: what every source can give at once
_BITS = 2 * _HALF
_GUARD = 64  # further digits of the recurrence; its terms are positive, so errors do not grow
_TAIL_BITS = 100


def reach(variance: float) -> int:
    """Noise beyond this has probability below 2^-100 (Bernstein: cosh t - 1 ≤ t²/(2 - 2t/3))."""
    log = (_TAIL_BITS + 1) * math.log(2.0)
    return math.ceil(log / 3.0 + math.sqrt(log * log / 9.0 + 2.0 * variance * log)) + 1


@lru_cache(maxsize=8)
def _cumulative(variance: float) -> Table:
    """High and low halves of 2^124 · P(noise ≤ j), j = -reach, …, reach - 1, and the reach.

    The masses obey P(j-1) = P(j+1) + (2j/variance) P(j): run downwards from far out, all terms are
    positive, and the masses add up to one whatever the start (Miller's algorithm).
    """
    if not 0.0 < variance <= LARGEST_VARIANCE:
        raise InvalidParameter("variance", variance, f"above 0 and at most {LARGEST_VARIANCE:g}")
    last = reach(variance)
    start = last + 64 + math.isqrt(math.ceil(32.0 * variance))  # the start's error has died by then
    top, bottom = variance.as_integer_ratio()
    unit = 1 << (_BITS + _GUARD)
    above, here = 0, unit
    masses = [0] * (start + 1)
    for j in range(start, 0, -1):
        masses[j] = here
        above, here = here, above + (2 * j * bottom * here) // top
        if here.bit_length() > 16 * (_BITS + _GUARD):  # keep the integers short
            cut = here.bit_length() - 2 * (_BITS + _GUARD)
            above, here = above >> cut, here >> cut
            masses = [mass >> cut for mass in masses]
    masses[0] = here
    return table_of(masses, last)


def table_of(masses: list[int], last: int) -> Table:
    """The table of a symmetric law on integers.

    Args:
        masses: of 0, 1, 2, … in any common unit; those beyond `last` go to the outermost entries.
        last: where the table ends.
    """
    total = masses[0] + 2 * sum(masses[1:])
    cumulative = []
    running = (total - masses[0] - 2 * sum(masses[1 : last + 1])) // 2
    for j in range(-last, last):
        running += masses[abs(j)]
        cumulative.append((running << _BITS) // total)
    high = np.array([c >> _HALF for c in cumulative], dtype=np.int64)
    low = np.array([c & ((1 << _HALF) - 1) for c in cumulative], dtype=np.int64)
    return high, low, last


def skellam_noise(variance: float, size: int, source: RandomSource) -> NDArray[np.int64]:
    """Independent Skellam integers of this variance, within `TABLE_ERROR` of the law.

    Args:
        variance: of the noise, at most 2^30.
        size: how many integers.
        source: where chance comes from.

    >>> from dpcheckin.randomizers import SecureSource
    >>> len(skellam_noise(100.0, 5, SecureSource()))
    5
    """
    return drawn_from(_cumulative(float(variance)), size, source)


def drawn_from(table: Table, size: int, source: RandomSource) -> NDArray[np.int64]:
    """Independent integers with the law of a table of 2^124 times the cumulative distribution.

    Args:
        table: high and low halves for -last, …, last - 1, and last.
        size: how many integers.
        source: where chance comes from.
    """
    high, low, last = table
    drawn = source.integers(1 << _HALF, size)
    index = np.searchsorted(high, drawn, side="right")
    # equal high halves leave it to the low ones: one draw in 2^62 per entry of the table
    for i in np.flatnonzero((index > 0) & (high[np.maximum(index, 1) - 1] == drawn)):
        ties = np.flatnonzero(high == drawn[i])
        rest = source.integers(1 << _HALF, 1)[0]
        index[i] = ties[0] + int(np.sum(low[ties] <= rest))
    return np.asarray(index - last, dtype=np.int64)
