"""Laws of the multiset of everybody's reports, for many data sets at once, and what divides two of them.

A client is the law of what it sends, staying away being one more symbol. Multisets are counted as histograms, one row
each, and clients join one at a time.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@lru_cache(maxsize=64)
def histograms(clients: int, symbols: int) -> NDArray[np.int64]:
    """Every way in which so many clients can spread over so many symbols, one a row."""
    if symbols == 1:
        return np.full((1, 1), clients, np.int64)
    parts = []
    for first in range(clients + 1):
        rest = histograms(clients - first, symbols - 1)
        parts.append(np.column_stack([np.full(len(rest), first), rest]))
    return np.concatenate(parts)


@lru_cache(maxsize=2048)
def joins(clients: int, symbols: int) -> NDArray[np.int64]:
    """The row to which each histogram goes when one more client sends each symbol."""
    before, after = histograms(clients, symbols), histograms(clients + 1, symbols)
    base = float(clients + 2) ** np.arange(symbols - 1)[::-1]
    known = after[:, :-1] @ base  # rows come in lexicographic order, so codes rise
    steps = np.eye(symbols)[:, :-1] @ base
    codes = (before[:, :-1] @ base)[:, None] + steps[None, :]
    if float(clients + 2) ** (symbols - 1) > 2.0**52:  # codes would not be exact
        index = {tuple(row): i for i, row in enumerate(after.tolist())}
        moved = before[:, None, :] + np.eye(symbols, dtype=np.int64)[None]
        return np.array([[index[tuple(row)] for row in rows] for rows in moved.tolist()])
    return np.searchsorted(known, codes)


def joined(weights: Array, clients: int, sent: Array) -> Array:
    """One more client: weights are data sets x histograms, sent data sets x symbols."""
    symbols = sent.shape[1]
    to = joins(clients, symbols)
    out = np.zeros((len(sent), comb(clients + symbols, symbols - 1)))
    for j in range(symbols):
        if sent[:, j].any():
            out[:, to[:, j]] += sent[:, j : j + 1] * weights  # no two rows meet for one j
    return out


def views(sent: Array) -> tuple[Array, Array]:
    """Both laws of the view; sent: data sets x (at a, at b, the others) x symbols."""
    weights = np.ones((len(sent), 1))
    others = sent.shape[1] - 2
    for i in range(others):
        weights = joined(weights, i, sent[:, 2 + i])
    return joined(weights, others, sent[:, 0]), joined(weights, others, sent[:, 1])


def divided(p: Array, q: Array, alphas: Array) -> Array:
    """The larger of both directions' hockey-stick divergence: alphas x data sets."""
    out = np.empty((len(alphas), len(p)))
    for i, alpha in enumerate(alphas):
        forward = np.maximum(p - alpha * q, 0.0).sum(axis=1)
        backward = np.maximum(q - alpha * p, 0.0).sum(axis=1)
        out[i] = np.maximum(forward, backward)
    return out


def lazy(rows: Array, rates: Array) -> Array:
    """Rows sent at these rates (of the same leading shape); the last symbol is to stay away."""
    rates = np.broadcast_to(rates, rows.shape[:-1])[..., None]
    return np.concatenate([rows * rates, 1.0 - rates], axis=-1)


def data_sets(rng: np.random.Generator, inputs: int, others: int, most: int) -> NDArray[np.int64]:
    """Data sets (a, b, the others) as rows of inputs: all there are if few, else telling ones and random ones."""
    pairs = [(a, b) for a in range(inputs) for b in range(a)]
    if comb(others + inputs - 1, inputs - 1) * len(pairs) <= most:
        crowds = combinations_with_replacement(range(inputs), others)
        return np.array([(*pair, *crowd) for crowd in crowds for pair in pairs])
    found = []
    for a, b in pairs:
        third = [x for x in range(inputs) if x not in (a, b)]
        alike = [[x] * others for x in (a, b, *third[:1])]
        halves = [[a] * cut + [b] * (others - cut) for cut in rng.integers(0, others + 1, 2)]
        mixed = [rng.choice(inputs, others) for _ in range(2)]
        found += [(a, b, *sorted(crowd)) for crowd in (*alike, *halves, *mixed)]
    if len(found) > most:
        found = [found[i] for i in rng.permutation(len(found))[:most]]
    while len(found) < most:
        a, b = rng.permutation(inputs)[:2]
        shares = rng.dirichlet(np.full(inputs, 0.4))
        found.append((int(a), int(b), *sorted(rng.choice(inputs, others, p=shares))))
    return np.array(found)
