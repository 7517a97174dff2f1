"""What the analyzer sees of one round, for a batch of data sets at once: laws of histograms.

The same enumeration as `seat_types.views`, with one column for each data set of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from oracles.seat_types import views
from oracles.seat_types.laws import Array


@dataclass(frozen=True)
class Pairs:
    """The laws of the view with the target at a (p) and at b (q): histograms x data sets."""

    p: Array
    q: Array

    def deltas(self, alphas: Array) -> Array:
        """The larger of both orders' sum (p - alpha q)+: alphas x data sets."""
        out = np.empty((len(alphas), self.p.shape[1]))
        for i, alpha in enumerate(alphas):
            forward = np.maximum(self.p - alpha * self.q, 0.0).sum(axis=0)
            backward = np.maximum(self.q - alpha * self.p, 0.0).sum(axis=0)
            out[i] = np.maximum(forward, backward)
        return out

    def one(self, index: int) -> views.Pair:
        """One data set of the batch."""
        return views.Pair(self.p[:, index], self.q[:, index])


def _grown(weights: Array, clients: int, sent: Array) -> Array:
    """One more client; weights: histograms x data sets, sent: data sets x symbols."""
    symbols = sent.shape[1]
    to = views.step(clients, symbols)
    out = np.zeros((len(views.histograms(clients + 1, symbols)[0]), len(sent)))
    for j in range(symbols):
        if sent[:, j].any():
            out[to[:, j]] += sent[:, j] * weights  # for one j no two histograms meet
    return out


def _ends(rows: Array) -> Pairs:
    """rows: data sets x (a, b, others) x symbols, absence being symbol 0."""
    weights = np.ones((1, len(rows)))
    others = rows.shape[1] - 2
    for i in range(others):
        weights = _grown(weights, i, rows[:, 2 + i])
    return Pairs(_grown(weights, others, rows[:, 0]), _grown(weights, others, rows[:, 1]))


def check_in(rows: Array, rates: Array) -> Pairs:
    """Shuffled check-in; `rates`: of the target and each of the others."""
    rate = np.concatenate([rates[:1], rates])[None, :, None]
    absent = np.broadcast_to(1.0 - rate, (*rows.shape[:2], 1))
    return _ends(np.concatenate([absent, rate * rows], axis=2))


def cohort(rows: Array, present: int, colluders: int = 0) -> Pairs:
    """A uniformly random cohort of fixed size; colluders show whether they are in it."""
    free = np.concatenate([np.ones((*rows.shape[:2], 1)), rows], axis=2)
    n = rows.shape[1] - 1
    pairs = _ends(free)
    absent = views.histograms(n, free.shape[2])[1]
    chance = [comb(colluders, present - h) if h <= present else 0 for h in range(n + 1)]
    weight = (np.array(chance)[n - absent] / comb(n + colluders, present))[:, None]
    seen = weight[:, 0] > 0
    return Pairs((pairs.p * weight)[seen], (pairs.q * weight)[seen])
