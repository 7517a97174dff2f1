"""Can a SuperLink's operator tell who checked in? A test on what the operator's log holds.

For every ring and node the operator sees the size of the reply, the run time that Flower reports
and whether it was an error. If nothing leaks, the coins are independent of all of that, so, within
a node, any assignment of "checked in" to its rounds is as likely as the true one: permuting the
labels within each node gives exact p-values, whatever the distribution of the times is, however
nodes differ, and however times drift. Four features are tested (size, time, spread of the times,
errors) by rank sums, and the level is divided by four.

`detectable_shift` states the power: the smallest delay of participants that this test would find
with a given probability on times like those observed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.special.normal import ndtri

Floats = NDArray[np.float64]
FEATURES = ("size", "seconds", "spread", "error")


@dataclass(frozen=True)
class Observation:
    """One reply as the operator sees it, and (from the owner's ledger) whether it checked in."""

    node: str
    round: int
    size: int
    seconds: float
    error: bool
    checked_in: bool


@dataclass(frozen=True)
class Verdict:
    """p-values by feature, and whether any passes the level after correction for their number."""

    p_values: dict[str, float]
    level: float
    observations: int
    checked_in: int

    @property
    def leaks(self) -> bool:
        """Is some feature different beyond chance?"""
        return any(p < self.level / len(self.p_values) for p in self.p_values.values())

    def to_json(self) -> dict[str, Any]:
        return {
            "p_values": self.p_values,
            "level": self.level,
            "observations": self.observations,
            "checked_in": self.checked_in,
            "leaks": self.leaks,
        }


class _Strata:
    """Centred ranks within each node, scaled so that nodes of different sizes count alike."""

    def __init__(self, seen: Sequence[Observation]) -> None:
        self.nodes = np.array([one.node for one in seen])
        self.labels = np.array([one.checked_in for one in seen], dtype=np.float64)
        self.parts = [np.flatnonzero(self.nodes == node) for node in np.unique(self.nodes)]

    def scores(self, values: Floats) -> Floats:
        found = np.zeros(len(values))
        for part in self.parts:
            ranks = _ranks(values[part])
            found[part] = (ranks - ranks.mean()) / (len(part) + 1)
        return found

    def permuted(self, chance: np.random.Generator) -> Floats:
        labels = self.labels.copy()
        for part in self.parts:
            labels[part] = chance.permutation(labels[part])
        return labels

    def spread(self, values: Floats) -> Floats:
        found = np.zeros(len(values))
        for part in self.parts:
            found[part] = np.abs(values[part] - np.median(values[part]))
        return found


def _ranks(values: Floats) -> Floats:
    """Ranks from 1 on; equal values share the mean of theirs."""
    _, place, ties = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(ties) - 0.5 * (ties - 1))[place])


def _features(seen: Sequence[Observation], strata: _Strata) -> dict[str, Floats]:
    seconds = np.array([one.seconds for one in seen])
    return {
        "size": np.array([one.size for one in seen], dtype=np.float64),
        "seconds": seconds,
        "spread": strata.spread(seconds),
        "error": np.array([one.error for one in seen], dtype=np.float64),
    }


def examine(
    seen: Sequence[Observation], *, level: float = 0.01, permutations: int = 20_000, seed: int = 0
) -> Verdict:
    """Exact two-sided permutation p-values within nodes, for every feature.

    Args:
        seen: replies of all nodes and rounds.
        level: of the test, over all features.
        permutations: how many are drawn.
        seed: of the permutations.
    """
    if not 0 < level < 1:
        raise InvalidParameter("level", level, "strictly between 0 and 1")
    strata = _Strata(seen)
    if not 0 < strata.labels.sum() < len(seen):
        raise InvalidParameter("observations", len(seen), "some that checked in and some that not")
    chance = np.random.default_rng(seed)
    scores = {name: strata.scores(v) for name, v in _features(seen, strata).items()}
    table = np.stack(list(scores.values()))
    actual = np.abs(table @ strata.labels - table.sum(axis=1) * strata.labels.mean())
    beyond = np.zeros(len(table))
    for _ in range(permutations):
        drawn = table @ strata.permuted(chance) - table.sum(axis=1) * strata.labels.mean()
        beyond += np.abs(drawn) >= actual - 1e-12
    p_values = (beyond + 1) / (permutations + 1)
    named = dict(zip(scores, map(float, p_values), strict=True))
    return Verdict(named, level, len(seen), int(strata.labels.sum()))


def detectable_shift(
    seen: Sequence[Observation],
    *,
    power: float = 0.9,
    level: float = 0.01,
    trials: int = 400,
    seed: int = 0,
) -> float:
    """Seconds by which participants would have to be slower to be found with this probability.

    Times are taken as observed; labels are drawn again (permuted within nodes), the delay is added
    to those who bear them, and the normal limit of the rank sum decides. Bisection over the delay.

    Args:
        seen: replies of all nodes and rounds.
        power: probability with which the delay is to be found.
        level: of the test, over all features.
        trials: labellings drawn for each delay.
        seed: of the labellings.
    """
    strata = _Strata(seen)
    times = np.array([one.seconds for one in seen])
    chance = np.random.default_rng(seed)
    drawn = [strata.permuted(chance) for _ in range(trials)]
    threshold = -float(ndtri(level / len(FEATURES) / 2))

    def found(delay: float) -> float:
        hits = sum(abs(_z(strata, times + delay * labels, labels)) > threshold for labels in drawn)
        return hits / trials

    return _bisect(lambda delay: found(delay) >= power, float(np.ptp(times)) or 1.0)


def _z(strata: _Strata, values: Floats, labels: Floats) -> float:
    scores = strata.scores(values)
    total = variance = 0.0
    for part in strata.parts:
        size, share = len(part), labels[part].mean()
        total += float(scores[part] @ (labels[part] - share))
        if size > 1:
            variance += float(scores[part] @ scores[part]) * share * (1 - share) * size / (size - 1)
    return total / variance**0.5 if variance > 0 else 0.0


def _bisect(enough: Callable[[float], bool], largest: float) -> float:
    low, high = 0.0, largest
    while not enough(high):
        low, high = high, 2 * high
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
