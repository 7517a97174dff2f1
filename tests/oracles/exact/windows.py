"""One window of random check-ins, by running through every choice of slots of every client.

Each client picks one of the slots (each with probability p/slots) or none. A slot takes one of
those who picked it, evenly, and publishes that client's report; an empty slot publishes the
randomized dummy. The analyzer sees the sequence of reports, or the first few of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from oracles.exact.families import Array, Family


@lru_cache(maxsize=64)
def _choices(others: int, slots: int) -> NDArray[np.int64]:
    """Every choice of the others, one a row; `slots` means none."""
    return np.array(list(product(range(slots + 1), repeat=others)), np.int64).reshape((slots + 1) ** others, others)


def _sequences(laws: Array) -> Array:
    """The law of the sequence of reports given each slot's law (choices x slots x symbols)."""
    out = laws[:, 0, :]
    for i in range(1, laws.shape[1]):
        out = (out[:, :, None] * laws[:, i, None, :]).reshape(len(out), -1)
    return out


def window(
    matrix: Array,
    slots: int,
    others: int,
    probability: float,
    elapsed: int | None = None,
    others_probabilities: Sequence[float] | None = None,
) -> Family:
    """All pairs for every data of the others, every dummy and every pair of target inputs.

    `others_probabilities`: with which probabilities another client may choose a slot; by default
    as the target does.
    """
    inputs = range(len(matrix))
    seen = slots if elapsed is None else elapsed
    habits = list(product(inputs, others_probabilities or [probability]))
    choices = _choices(others, slots)
    p, q = [], []
    for crowd in combinations_with_replacement(habits, others):
        chance = np.ones(len(choices))
        for i, (_, often) in enumerate(crowd):
            chance = chance * np.where(choices[:, i] == slots, 1.0 - often, often / slots)
        possible = chance > 0
        taken = choices[possible][:, None, :] == np.arange(slots)[None, :, None]
        rows = matrix[[x for x, _ in crowd]] if crowd else np.zeros((0, matrix.shape[1]))
        count = taken.sum(axis=2)[:, :, None]
        total = taken.astype(float) @ rows
        for dummy in inputs:
            ends = [
                chance[possible] @ _with_target(matrix[a], total, count, matrix[dummy], probability, seen)
                for a in inputs
            ]
            for a, b in product(inputs, inputs):
                if a != b:
                    p.append(ends[a])
                    q.append(ends[b])
    return Family(np.array(p), np.array(q))


def _with_target(law: Array, total: Array, count: Array, dummy: Array, probability: float, seen: int) -> Array:
    """For each choice of the others the law of the first `seen` reports, the target's law given."""
    slots = total.shape[1]
    without = np.where(count > 0, total / np.maximum(count, 1), dummy)
    out = (1.0 - probability) * _sequences(without[:, :seen])
    for s in range(slots):
        laws = without.copy()
        laws[:, s] = (total[:, s] + law) / (count[:, s] + 1)
        out = out + (probability / slots) * _sequences(laws[:, :seen])
    return out


def adaptive_window_delta(
    matrix: Array, slots: int, probability: float, alpha: float, elapsed: int | None = None
) -> float:
    """The true delta of one window whose slots see what was published before.

    What a slot would hold without the target is chosen by the adversary with the past before its
    eyes. Nobody else is relied on.
    """
    pairs = [(a, b) for a in matrix for b in matrix if a is not b]
    seen = slots if elapsed is None else elapsed
    share = probability / slots

    def value(left: int, free: float, used: tuple[float, float], a: Array, b: Array) -> float:
        """`free`: the chance of the past if the target did not report in it; `used`: if it did."""
        if not left:
            still = (1.0 - share * seen) * free
            return max(still + used[0] - alpha * (still + used[1]), 0.0)
        best = 0.0
        for row in matrix:
            total = 0.0
            for y, chance in enumerate(row):
                told = (used[0] * chance + free * share * a[y], used[1] * chance + free * share * b[y])
                total += value(left - 1, free * chance, told, a, b)
            best = max(best, total)
        return best

    return max(value(seen, 1.0, (0.0, 0.0), a, b) for a, b in pairs)
