"""Can a SuperLink's operator tell who checked in? A test on what the operator's log holds.

For every ring and node the operator sees the size of the reply, the run time that Flower reports and whether it was an
error. If nothing leaks, the coins are independent of all of that, so, within a node, any assignment of "checked in" to
its rounds is as likely as the true one: permuting the labels within each node gives exact p-values, whatever the
distribution of the times is, however nodes differ, and however times drift. Four features are tested (size, time,
spread of the times, errors) by rank sums, and the level is divided by four.

`detectable_shift` states the power: the smallest delay of participants that this test would find with a given
probability on times like those observed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
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
        return {**asdict(self), "leaks": self.leaks}


class _Strata:
    """The nodes, each of which is looked at by itself."""

    def __init__(self, seen: Sequence[Observation]) -> None:
        nodes = np.array([o.node for o in seen])
        self.labels = np.array([o.checked_in for o in seen], dtype=np.float64)
        self.parts = [np.flatnonzero(nodes == node) for node in np.unique(nodes)]

    def within(self, values: Floats, change: Callable[[Floats], Floats]) -> Floats:
        """The values of each node changed by themselves."""
        changed = np.zeros(len(values))
        for part in self.parts:
            changed[part] = change(values[part])
        return changed


def _ranks(values: Floats) -> Floats:
    """Ranks from 1 on; equal values share the mean of theirs."""
    _, place, ties = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(ties) - 0.5 * (ties - 1))[place])


def _scores(values: Floats) -> Floats:
    """Centred ranks, scaled so that nodes of different sizes count alike."""
    ranks = _ranks(values)
    return np.asarray((ranks - ranks.mean()) / (len(values) + 1))


def _features(seen: Sequence[Observation], strata: _Strata) -> dict[str, Floats]:
    seconds = np.array([o.seconds for o in seen])
    return {
        "size": np.array([o.size for o in seen], dtype=np.float64),
        "seconds": seconds,
        "spread": strata.within(seconds, lambda times: np.abs(times - np.median(times))),
        "error": np.array([o.error for o in seen], dtype=np.float64),
    }


def examine(seen: Sequence[Observation], *, level: float = 0.01, permutations: int = 20_000, seed: int = 0) -> Verdict:
    """Exact two-sided permutation p-values within nodes, for every feature.

    The `level` is that of the test over all features together.
    """
    if not 0 < level < 1:
        raise InvalidParameter("level", level, "strictly between 0 and 1")
    strata = _Strata(seen)
    if not 0 < strata.labels.sum() < len(seen):
        raise InvalidParameter("observations", len(seen), "some that checked in and some that not")
    chance = np.random.default_rng(seed)
    features = _features(seen, strata)
    table = np.stack([strata.within(values, _scores) for values in features.values()])
    actual = np.abs(table @ strata.labels - table.sum(axis=1) * strata.labels.mean())
    beyond = np.zeros(len(table))
    for _ in range(permutations):
        labels = strata.within(strata.labels, chance.permutation)
        drawn = table @ labels - table.sum(axis=1) * strata.labels.mean()
        beyond += np.abs(drawn) >= actual - 1e-12
    p_values = (beyond + 1) / (permutations + 1)
    named = dict(zip(features, map(float, p_values), strict=True))
    return Verdict(named, level, len(seen), int(strata.labels.sum()))


def detectable_shift(
    seen: Sequence[Observation], *, power: float = 0.9, level: float = 0.01, trials: int = 400, seed: int = 0
) -> float:
    """Seconds by which participants would have to be slower to be found with this probability.

    Times are taken as observed; labels are drawn again (permuted within nodes), the delay is added to those who bear
    them, and the normal limit of the rank sum decides. Bisection over the delay.
    """
    strata = _Strata(seen)
    times = np.array([o.seconds for o in seen])
    chance = np.random.default_rng(seed)
    drawn = [strata.within(strata.labels, chance.permutation) for _ in range(trials)]
    threshold = -float(ndtri(level / len(FEATURES) / 2))

    def enough(delay: float) -> bool:
        hits = sum(abs(_z(strata, times + delay * labels, labels)) > threshold for labels in drawn)
        return hits / trials >= power

    low, high = 0.0, float(np.ptp(times)) or 1.0
    while not enough(high):
        low, high = high, 2 * high
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _z(strata: _Strata, values: Floats, labels: Floats) -> float:
    scores = strata.within(values, _scores)
    total = variance = 0.0
    for part in strata.parts:
        size, share = len(part), labels[part].mean()
        total += float(scores[part] @ (labels[part] - share))
        if size > 1:
            variance += float(scores[part] @ scores[part]) * share * (1 - share) * size / (size - 1)
    return total / variance**0.5 if variance > 0 else 0.0
