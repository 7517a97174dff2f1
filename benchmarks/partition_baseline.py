"""Shuffle-Gaussian Rényi orders: the papers' sum over integer partitions against series powers.

    python benchmarks/partition_baseline.py [--largest 60] [--budget 60]

The published algorithm (tests/oracles/partitions.py) is timed order by order until the time budget
is used up; the rest of its orders is extrapolated from the exact numbers of partitions, and said to
be. Ours computes all orders at once in the same process.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from dpcheckin.papers.p4.bounds import full_shuffle_rdp
from oracles.partitions import shuffle_gaussian_rdp

POPULATION, NOISE = 60_000, 9.48


def partition_counts(largest: int) -> list[int]:
    """p(0..largest)."""
    counts = [1] + [0] * largest
    for part in range(1, largest + 1):
        for total in range(part, largest + 1):
            counts[total] += counts[total - part]
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=60)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for the baseline")
    options = parser.parse_args()
    counts = partition_counts(options.largest)

    spent, done, worst = 0.0, 1, 0.0
    ours = full_shuffle_rdp(POPULATION, NOISE, options.largest, sensitivity=1.0)
    while done < options.largest and spent < options.budget:
        done += 1
        start = time.perf_counter()
        theirs = shuffle_gaussian_rdp(POPULATION, done, 1 / NOISE)
        spent += time.perf_counter() - start
        worst = max(worst, abs(theirs - ours.epsilons[done - 2]))
    per_partition = spent / sum(counts[2 : done + 1])
    whole = per_partition * sum(counts[2 : options.largest + 1])

    best = min(_timed(options.largest) for _ in range(5))
    print(f"published algorithm, orders 2..{done}: {spent:.2f} s measured")
    if done < options.largest:
        print(f"  orders 2..{options.largest}: {whole:.0f} s, extrapolated by partition numbers")
    print(f"series powers, orders 2..{options.largest}: {best * 1e3:.2f} ms")
    print(f"ratio: {whole / best:,.0f}")
    print(f"largest difference over orders 2..{done}: {worst:.1e}")
    print(f"series powers, orders 2..4000: {_timed(4000):.2f} s")


def _timed(largest: int) -> float:
    start = time.perf_counter()
    full_shuffle_rdp(POPULATION, NOISE, largest, sensitivity=1.0)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
