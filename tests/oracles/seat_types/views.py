"""What the analyzer really sees of one round, enumerated: how often each report arrived.

Clients have laws of their own (rows over a common alphabet), so every client may hold a different
value. Absence is one more symbol. The law of the histogram of all that was sent is built up client
by client; nothing is assumed about randomizer or data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from oracles.seat_types.laws import Array

Codes = NDArray[np.int64]


def size(clients: int, symbols: int) -> int:
    """How many histograms there are of so many clients over so many symbols besides absence."""
    return comb(clients + symbols, symbols)


# A histogram is known by the sum of its reports' keys; that no two agree is asserted, not hoped.
_KEYS = np.random.default_rng(2718).integers(1, 2**55, size=512)
_MOST_CLIENTS = 100


@lru_cache(maxsize=8192)
def _unsorted(clients: int, symbols: int) -> tuple[Codes, Codes]:
    """All histograms with `clients` in all: their keys, and how many sent symbol 0."""
    if symbols == 1:
        return np.array([clients * _KEYS[0]]), np.array([clients])
    parts = [_unsorted(clients - c, symbols - 1) for c in range(clients + 1)]
    keys = [part[0] + c * _KEYS[symbols - 1] for c, part in enumerate(parts)]
    return np.concatenate(keys), np.concatenate([part[1] for part in parts])


@lru_cache(maxsize=4096)
def histograms(clients: int, symbols: int) -> tuple[Codes, Codes]:
    """The same, sorted by key."""
    assert clients <= _MOST_CLIENTS  # or keys may overflow
    keys, absent = _unsorted(clients, symbols)
    order = np.argsort(keys)
    keys, absent = keys[order], absent[order]
    assert (np.diff(keys) > 0).all()
    return keys, absent


@lru_cache(maxsize=4096)
def step(clients: int, symbols: int) -> Codes:
    """Where each histogram goes when one more client sends symbol j: column j."""
    before, after = histograms(clients, symbols)[0], histograms(clients + 1, symbols)[0]
    return np.searchsorted(after, before[:, None] + _KEYS[None, :symbols])


def _grow(weights: Array, clients: int, sent: Array) -> Array:
    to = step(clients, len(sent))
    out = np.zeros(len(histograms(clients + 1, len(sent))[0]))
    for j, chance in enumerate(sent):
        if chance > 0:
            out[to[:, j]] += chance * weights  # for one j no two histograms meet
    return out


def essential(rows: Array) -> Array:
    """The rows without reports nobody sends, reports whose columns are proportional added up."""
    rows = rows[:, rows.sum(axis=0) > 0]
    shape = np.round(rows / rows.sum(axis=0), 11)
    _, group = np.unique(shape, axis=1, return_inverse=True)
    merged = np.zeros((len(rows), group.max() + 1))
    np.add.at(merged.T, group.ravel(), rows.T)
    return merged


@dataclass(frozen=True)
class Pair:
    """The laws of one view under the two data sets."""

    p: Array
    q: Array

    @property
    def swapped(self) -> Pair:
        """The same two data sets, named the other way round."""
        return Pair(self.q, self.p)

    def delta(self, alpha: float) -> float:
        """sum (p - alpha q)+."""
        return float(np.maximum(self.p - alpha * self.q, 0.0).sum())

    def largest_loss(self) -> float:
        """The largest log p/q, infinite if there is an outcome that only p can produce."""
        seen = self.p > 0
        if (self.q[seen] <= 0).any():
            return float("inf")
        return float(np.log(self.p[seen] / self.q[seen]).max())


def _view(a: Array, b: Array, others: Array) -> tuple[Pair, Codes]:
    """Histograms of everybody; column 0 of every row is absence."""
    weights = np.ones(1)
    for clients, sent in enumerate(others):
        weights = _grow(weights, clients, sent)
    ends = [_grow(weights, len(others), law) for law in (a, b)]
    return Pair(*ends), histograms(len(others) + 1, len(a))[1]


def check_in(rows: Array, rates: float | Sequence[float]) -> Pair:
    """Shuffled check-in; rows: the target's reports at a, at b, then those of the others.

    `rates`: with which probability the target and each of the others take part; or one for all.
    """
    rows = essential(rows)
    n = len(rows) - 1
    rate = np.full(n, rates) if np.isscalar(rates) else np.asarray(rates, float)
    rate = np.concatenate([rate[:1], rate])[:, None]
    lazy = np.hstack([1.0 - rate, rate * rows])
    return _view(lazy[0], lazy[1], lazy[2:])[0]


def cohort(rows: Array, present: int, colluders: int = 0) -> Pair:
    """A uniformly random cohort of `present` of all clients reports; rows as in `check_in`.

    `colluders`: so many clients besides those of the rows; who of them is in the cohort is known,
    and so is how many of the rest are.
    """
    rows = essential(rows)
    n = len(rows) - 1
    free = np.hstack([np.ones((n + 1, 1)), rows])  # a set of absent clients counts once
    pair, absent = _view(free[0], free[1], free[2:])
    chance = [comb(colluders, present - h) if h <= present else 0 for h in range(n + 1)]
    weight = np.array(chance)[n - absent] / comb(n + colluders, present)
    seen = weight > 0
    return Pair((pair.p * weight)[seen], (pair.q * weight)[seen])


class Profiles:
    """The largest profile over some pairs, at very many alphas; each is linear between kinks."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._sorted = []
        for pair in pairs:
            seen = (pair.p > 0) | (pair.q > 0)
            p, q = pair.p[seen], pair.q[seen]
            with np.errstate(divide="ignore"):
                ratio = p / q
            order = np.argsort(ratio)
            tail_p = np.concatenate([np.cumsum(p[order][::-1])[::-1], [0.0]])
            tail_q = np.concatenate([np.cumsum(q[order][::-1])[::-1], [0.0]])
            self._sorted.append((ratio[order], tail_p, tail_q))

    def at(self, alphas: Array) -> Array:
        """The largest sum (p - alpha q)+ at each alpha."""
        best = np.zeros(len(alphas))
        for ratio, tail_p, tail_q in self._sorted:
            first = np.searchsorted(ratio, alphas, side="right")
            np.maximum(best, tail_p[first] - alphas * tail_q[first], out=best)
        return best


def two_rounds(first: Sequence[Pair], second: Sequence[Pair], alpha: float) -> float:
    """The true delta of two rounds whose pairs an adversary picks, the second after the first."""
    ahead = Profiles(second)
    best = 0.0
    for pair in first:
        seen = pair.p > 0
        p, q = pair.p[seen], pair.q[seen]
        best = max(best, float(p @ ahead.at(alpha * q / p)))
    return best
