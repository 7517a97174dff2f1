"""Tails of beta and gamma densities as integrals that lose no digits, whatever the parameters.

The tail of a density that falls from its edge on is the density there times
∫ exp(-slope·h + first·λ(-h) + second·λ(h·odds)) dh with λ(v) = log(1 + v) - v: three parts of one
sign, so that nothing cancels. The exponent is concave; the integral ends where it has fallen by
`FALL`, and Gauss and Legendre's rule does the rest.
"""

from __future__ import annotations

import numpy as np

from dpcheckin.special.arrays import Floats

FALL = 40.0  # exp(-40) = 4e-18
# Gauss and Legendre's 28 nodes on [0, 1], and the weights of the first half: NumPy's are good to
# 1e-13 only (a test computes these anew)
NODES = np.array(
    [
        0.001778751213022775,
        0.009348417314563623,
        0.022870359685530903,
        0.04218348680393396,
        0.06705373871280247,
        0.09717931454141042,
        0.1321945609931841,
        0.17167445298056752,
        0.21513976409429914,
        0.2620628875224409,
        0.31187424195546065,
        0.363969186182411,
        0.41771535893330963,
        0.47246035505798284,
        0.5275396449420171,
        0.5822846410666904,
        0.6360308138175891,
        0.6881257580445393,
        0.7379371124775591,
        0.7848602359057009,
        0.8283255470194325,
        0.8678054390068158,
        0.9028206854585896,
        0.9329462612871975,
        0.9578165131960661,
        0.9771296403144691,
        0.9906515826854364,
        0.9982212487869773,
    ]
)
_HALF = np.array(
    [
        0.0045621412965472586,
        0.01056605629638563,
        0.01645071389115219,
        0.022136467379502114,
        0.027553672837858374,
        0.0326364619834998,
        0.03732310711728439,
        0.041556708614450606,
        0.04528587219651642,
        0.04846532899896496,
        0.05105648378903038,
        0.05302788296142321,
        0.05435559612914707,
        0.0550235065082376,
    ]
)
WEIGHTS = np.concatenate([_HALF, _HALF[::-1]])
_NEAR = 1 / 81  # largest r² of λ's series, which has so many terms,
_TERMS = 9
_ENOUGH = ((2, 1e-8), (4, 1e-4))  # or fewer for smaller ones
_ROWS = 512  # tails that are summed at once, within a processor's cache


def log1p_less(v: Floats) -> Floats:
    """λ(v) = log(1 + v) - v for v > -1, to 3e-15 relative.

    >>> round(float(log1p_less(np.array([1e-9]))[0]) * 1e18, 9)
    -0.5
    """
    r = v / (2.0 + v)
    square = r * r
    largest = float(square.max(initial=0.0))
    # log(1 + v) = 2 artanh(r) = 2r + 2r³/3 + …, and 2r - v = -r v
    terms = next((n for n, most in _ENOUGH if largest < most), _TERMS)
    series = np.full_like(v, 1.0 / (2 * terms + 1))
    for j in range(terms - 1, 0, -1):
        series *= square
        series += 1.0 / (2 * j + 1)
    series *= square
    series *= 2.0
    series -= v
    series *= r
    if largest > _NEAR:
        far = square > _NEAR
        beyond = v[far]
        series[far] = np.log1p(beyond) - beyond
    return series


def fallen(slope: Floats, first: Floats, second: Floats, odds: Floats, end: float) -> Floats:
    """∫ exp(-slope·h + first·λ(∓h) + second·λ(±h·odds)) dh from 0 to `end`, to 1e-14 relative.

    The upper sign where `end` is 1, a density on an interval; the lower one where it is infinite.

    Args:
        slope: Not negative, or so little that the exponent rises by no more than 1.
        first: Factor of λ(-h), or of λ(h) if there is no end; not negative.
        second: Factor of λ(h·odds); not negative, and zero if there is no end.
        odds: Of the remaining part of the interval; positive.
        end: 1 or infinity.
    """
    sign = -1.0 if end == 1.0 else 1.0
    out = np.empty(slope.size)
    for start in range(0, slope.size, _ROWS):
        rows = slice(start, start + _ROWS)
        out[rows] = _rows(slope[rows], first[rows], second[rows], odds[rows], end, sign)
    return out


def _rows(
    slope: Floats, first: Floats, second: Floats, odds: Floats, end: float, sign: float
) -> Floats:
    width = _width(slope, first, second, odds, end, sign)
    h = width[:, None] * NODES
    exponent = first[:, None] * log1p_less(sign * h) - slope[:, None] * h
    if second.any():
        exponent += second[:, None] * log1p_less(h * odds[:, None])
    return np.asarray(width * (np.exp(exponent) @ WEIGHTS))


def _width(
    slope: Floats, first: Floats, second: Floats, odds: Floats, end: float, sign: float
) -> Floats:
    """Where the exponent is below -FALL, or the end: Newton's tangents of a concave function."""
    bend = first + second * odds * odds
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # of slope h + bend h²/2 = FALL, without cancellation
        width = 2 * FALL / (slope + np.sqrt(slope * slope + 2 * bend * FALL))
        for _ in range(4):
            h = np.minimum(width, 0.999 * end)
            there = h * odds
            # few digits are needed here
            value = first * (np.log1p(sign * h) - sign * h) - slope * h
            value += second * (np.log1p(there) - there)
            steep = slope + first * h / (1 + sign * h) + second * odds * there / (1 + there)
            width = np.where(steep > 0.0, h + (FALL + value) / steep, end)
    return np.asarray(np.minimum(np.where(np.isnan(width), end, width), end))
