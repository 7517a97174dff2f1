"""P4's algorithm (arXiv 2206.09569v1, Algorithm 1; P1 Algorithm 2) for the shuffle-Gaussian moment.

A sum over the integer partitions of the order, as published, with the three slips mended that make
the printed algorithm return nonsense: the 1/(2 sigma^2) in the exponent, the zeros that n!/prod
kappa! must count among the kappa, and the logarithm over (order - 1) at the end. It is the oracle
for small orders and the baseline of benchmarks/partition_baseline.py.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator


def partitions(number: int, largest: int | None = None) -> Iterator[list[int]]:
    """Every way to write `number` as a sum of positive integers, largest first."""
    if number == 0:
        yield []
        return
    for part in range(min(number, largest or number), 0, -1):
        for rest in partitions(number - part, part):
            yield [part, *rest]


def shuffle_gaussian_rdp(population: int, order: int, shift: float) -> float:
    """Rényi divergence of the homogeneous pair, distance `shift` in units of the noise."""
    logs = []
    for parts in partitions(order):
        zeros = population - len(parts)
        if zeros < 0:
            continue
        log = math.lgamma(order + 1) - sum(math.lgamma(k + 1) for k in parts)
        log += math.lgamma(population + 1) - math.lgamma(zeros + 1)
        log -= sum(math.lgamma(count + 1) for count in Counter(parts).values())
        log += sum(k * k - k for k in parts) * shift**2 / 2
        logs.append(log - order * math.log(population))
    top = max(logs)
    return (top + math.log(math.fsum(math.exp(x - top) for x in logs))) / (order - 1)
