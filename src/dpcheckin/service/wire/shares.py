"""Two shares of one report: each sum is noise to the party that takes it, their sum is the total.

A client of distributed check-in turns its vector into integers with Skellam noise and cuts them in
two modulo 2^32: a 32-byte seed, sealed to the analyzer, which expands it with AES-256-CTR, and the
rest, which the shuffler adds up. The shuffler's share is a one-time pad away from the report; the
analyzer sees seeds and one sum. What the sum gives away is priced in `protocols.distributed`.
"""

from __future__ import annotations

import math
import os

import numpy as np
from numpy.typing import NDArray

from dpcheckin.randomizers import SecureSource, SkellamVector
from dpcheckin.service.wire.payloads import SEED_BYTES, expand, split
from dpcheckin.service.wire.problems import Malformed


def make_shares(
    noise: SkellamVector, values: NDArray[np.float64], source: SecureSource
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


class SumOfShares:
    """The analyzer's side: expand every seed, add the shuffler's sum, read off the total.

    Args:
        noise: the randomizer of the plan.
        shuffler_sum: little-endian uint32, one a coordinate: the shuffler's shares added modulo
            2**32.
    """

    def __init__(self, noise: SkellamVector, shuffler_sum: bytes) -> None:
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
        clips and noise allow is no sum of honest reports, and raises `Malformed`.
        """
        noise, reports = self._noise, self._reports
        total = np.asarray(noise.estimate(self._total.astype(np.int64)), np.float64)
        longest = reports * math.sqrt(noise.largest_square)
        # ‖noise‖ exceeds σ(√d + t) with probability about exp(-t²/2); twice that is never seen
        longest += 2 * math.sqrt(reports * noise.variance) * (math.sqrt(noise.dimension) + 9.0)
        if not float(np.linalg.norm(total)) <= longest * noise.clip / noise.steps:
            raise Malformed("the sum is longer than honest shares can make it: one was malformed")
        return total
