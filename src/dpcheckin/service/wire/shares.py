"""Two shares of one report: each sum is noise to the party that takes it, their sum is the total.

A client of distributed check-in turns its vector into integers with noise and cuts them in
two modulo 2^32: a 32-byte seed, sealed to the analyzer, which expands it with AES-256-CTR, and the
rest, which the shuffler adds up. The shuffler's share is a one-time pad away from the report; the
analyzer sees seeds and one sum. What the sum gives away is priced in `protocols.distributed`.
"""

from __future__ import annotations

import math
import os

import numpy as np
from numpy.typing import NDArray

from dpcheckin.randomizers import IntegerVector, SecureSource
from dpcheckin.service.wire.payloads import SEED_BYTES, expand, split
from dpcheckin.service.wire.problems import Malformed


def make_shares(
    noise: IntegerVector, values: NDArray[np.float64], source: SecureSource
) -> tuple[bytes, bytes]:
    """The analyzer's seed and the shuffler's share of one client's vector.

    Args:
        noise: the randomizer of the plan.
        values: one client's vector; it is clipped here.
        source: secure chance.
    """
    report = noise.randomize(values.reshape(1, -1), source)[0]
    seed = os.urandom(SEED_BYTES)
    return seed, split(report, seed)


FALSE_ALARM = 2.0**-40
"""Largest probability that a sum of honest reports alone is taken for a spoiled one."""
_CUT_BITS = 60


def longest_sum(noise: IntegerVector, reports: int) -> float:
    """No sum of so many honest reports is longer, except with probability `FALSE_ALARM`.

    The length of the clients' own vectors, each at its bound, and that of their noise. Whatever
    hostile clients send, what passes for a sum is within twice this length of the honest one.

    Args:
        noise: the randomizer of the plan.
        reports: whose sum is taken.
    """
    integers = reports * math.sqrt(noise.largest_square)
    return (integers + _noise_norm(noise, reports)) * noise.clip / noise.steps * (1 + 1e-9)


def _noise_norm(noise: IntegerVector, reports: int) -> float:
    """‖noise‖ of the sum, in integers, exceeds this with probability below `FALSE_ALARM`.

    Let N be Skellam of variance v (a discrete Gaussian has a smaller moment generating function,
    that of the normal law at most), cut off at R = r√v, where its tail is below 2^-60/d. For a
    standard normal z, exp(λN²) = E exp(sN) with s = √(2λ) z. Where |z| ≤ a, the moment generating
    function of N is exp(v(cosh s - 1)) ≤ exp(c v s²/2) with c = 2(cosh s₀ - 1)/s₀² at the largest
    s₀ = a/√v; that part of E exp(λN²) is at most (1 - 2cvλ)^(-1/2), as for a normal variable of
    variance cv. Beyond a there is at most e^(r²/2 - (a - r)²/2), which `a` makes as small as
    e^(-30)/d, so that d coordinates multiply the whole by less than 1 + 1e-12. Then
    P(‖N‖ > √(cv)(√d + t)) ≤ exp(-t²/2), as for normal noise (Laurent and Massart, 2000, lemma 1).
    """
    if not reports:
        return 0.0
    d, deviation = noise.dimension, math.sqrt(reports * noise.variance)
    log = (_CUT_BITS + 1) * math.log(2.0) + math.log(d)
    r = (log / 3 + math.sqrt(log * log / 9 + 2 * deviation**2 * log)) / deviation  # Bernstein
    every_coordinate_at_its_cut = math.sqrt(d) * r * deviation
    a = r + math.sqrt(r * r + 2 * math.log(d) + 60.0)
    if a > 20.0 * deviation:  # hardly any noise
        return every_coordinate_at_its_cut
    farthest = a / deviation
    inflated = 2 * (math.cosh(farthest) - 1) / farthest**2
    t = math.sqrt(2 * (1e-12 - math.log(FALSE_ALARM - 2.0**-_CUT_BITS)))
    return min(every_coordinate_at_its_cut, math.sqrt(inflated) * deviation * (math.sqrt(d) + t))


class SumOfShares:
    """The analyzer's side: expand every seed, add the shuffler's sum, read off the total.

    Args:
        noise: the randomizer of the plan.
        shuffler_sum: little-endian uint32, one a coordinate: the shuffler's shares added modulo
            2**32.
    """

    def __init__(self, noise: IntegerVector, shuffler_sum: bytes) -> None:
        if len(shuffler_sum) != 4 * noise.dimension:
            raise Malformed("the shuffler's sum does not have the plan's dimension")
        self._noise, self._reports = noise, 0
        self._total = np.frombuffer(shuffler_sum, dtype="<u4").astype(np.uint32)

    def add(self, seed: bytes) -> None:
        """One client's seed."""
        self._total += expand(seed, self._total.size)  # uint32 wraps around, as it should
        self._reports += 1

    def total(self) -> NDArray[np.float64]:
        """The sum of the clients' vectors, with the noise of all of them.

        Two parts that do not belong together add up to anything modulo 2^32: a vector longer than
        `longest_sum` is no sum of honest reports, and raises `Malformed`.
        """
        noise = self._noise
        total = np.asarray(noise.estimate(self._total.astype(np.int64)), np.float64)
        if not float(np.linalg.norm(total)) <= longest_sum(noise, self._reports):
            raise Malformed("the sum is longer than honest shares can make it: one was malformed")
        return total
