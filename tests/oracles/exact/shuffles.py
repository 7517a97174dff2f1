"""Rounds in which the analyzer sees a multiset of reports, enumerated by counting.

A client is a *type*: the law of what it sends, absence being one more symbol. The law of the
multiset of what everybody sends is built up one client at a time over all histograms. The data of
the others run through every multiset of types, the target through every ordered pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray

from oracles.exact.families import Array, Family, pooled

Matrix = Array


@lru_cache(maxsize=512)
def histograms(clients: int, symbols: int) -> NDArray[np.int64]:
    """All histograms of so many clients over so many symbols, one a row."""
    rows = np.zeros((comb(clients + symbols - 1, symbols - 1), symbols), np.int64)
    for i, draw in enumerate(combinations_with_replacement(range(symbols), clients)):
        for symbol in draw:
            rows[i, symbol] += 1
    return rows


@lru_cache(maxsize=512)
def _one_more(clients: int, symbols: int) -> NDArray[np.int64]:
    """Where histogram h goes when one more client sends symbol j: an index for each (h, j)."""
    index = {tuple(h): i for i, h in enumerate(histograms(clients + 1, symbols).tolist())}
    steps = np.eye(symbols, dtype=np.int64)
    before = histograms(clients, symbols)
    return np.array([[index[tuple(h + s)] for s in steps] for h in before])


def _add_client(laws: Array, clients: int, sent: Array) -> Array:
    """`laws` (rows: weights of the histograms of so many clients) with one more, row by row."""
    to = _one_more(clients, sent.shape[1])
    out = np.zeros((len(laws), comb(clients + sent.shape[1], sent.shape[1] - 1)))
    for j in range(sent.shape[1]):
        out[:, to[:, j]] += laws * sent[:, j : j + 1]  # h -> h + e_j never meets itself
    return out


def crowd(types: Array, others: int) -> Array:
    """Histogram weights of the others, one row for every multiset of types they can be."""
    laws, members = np.ones((1, 1)), [()]
    for m in range(others):
        grown = [(i, t) for i, ms in enumerate(members) for t in range(ms[-1] if ms else 0, len(types))]
        laws = _add_client(laws[[i for i, _ in grown]], m, types[[t for _, t in grown]])
        members = [(*members[i], t) for i, t in grown]
    return laws


def _pairs(types: Array, targets: Array, others: int, weight: Array | None = None) -> Family:
    """All ordered pairs of the target's laws in every crowd."""
    around = crowd(types, others)
    ends = [_add_client(around, others, np.repeat(law[None, :], len(around), axis=0)) for law in targets]
    if weight is not None:
        ends = [end * weight for end in ends]
    pairs = [(a, b) for a in range(len(ends)) for b in range(len(ends)) if a != b]
    return Family(np.concatenate([ends[a] for a, _ in pairs]), np.concatenate([ends[b] for _, b in pairs]))


def lazy(matrix: Matrix, rate: float) -> Matrix:
    """The randomizer of a client that takes part with this probability; column 0 is absence."""
    absent = np.full((len(matrix), 1), 1.0 - rate)
    return np.hstack([absent, rate * matrix])


def check_in(matrix: Matrix, honest: int, rates: Sequence[float]) -> Family:
    """Shuffled check-in of so many honest clients, the target among them.

    `rates`: the rates a client may have; everybody's, the target's too, is any of them. (Laws are
    linear in each rate, so the ends of an interval are the worst of it.) Colluding clients take
    part and report in the open: they are simply not counted.
    """
    types = np.concatenate([lazy(matrix, rate) for rate in rates])
    return pooled([_pairs(types, lazy(matrix, rate), honest - 1) for rate in rates])


def subsample(matrix: Matrix, population: int, cohort: int, colluders: int = 0) -> Family:
    """A uniformly random cohort of fixed size reports; colluders say whether they are in it.

    A set of h honest clients is *the* honest part of the cohort with probability
    C(colluders, cohort - h) / C(population, cohort).
    """
    honest = population - colluders
    open_hand = np.hstack([np.ones((len(matrix), 1)), matrix])  # absent or not: weight 1 each
    present = honest - histograms(honest, matrix.shape[1] + 1)[:, 0]
    chance = [comb(colluders, cohort - h) if h <= cohort else 0 for h in range(honest + 1)]
    weight = np.array([c / comb(population, cohort) for c in chance])[present]
    return _pairs(open_hand, open_hand, honest - 1, weight)


def shuffle(matrix: Matrix, honest: int) -> Family:
    """Everybody reports; what colluders sent is known and left out."""
    return _pairs(matrix, matrix, honest - 1)


def local(matrix: Matrix, rate: float) -> Family:
    """It is seen who reported what: the target's own lazy report."""
    own = lazy(matrix, rate)
    pairs = [(a, b) for a in range(len(own)) for b in range(len(own)) if a != b]
    return Family(own[[a for a, _ in pairs]], own[[b for _, b in pairs]])
