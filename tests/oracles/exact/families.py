"""Families of pairs of laws, and what an adaptive adversary makes of a sequence of them.

A family lists, for one round, the law of everything the analyzer sees under the two neighbouring
data sets, once for every choice the adversary has (the target's two inputs in either order, the
data of the others). With u and v the probabilities of what was seen so far under the two data sets,
the best the adversary can still make of sum (P - alpha Q)+ is

    V_0(u, v) = (u - v)+,     V_T(u, v) = max over pairs of  sum over outcomes of V_{T-1}(u p, v q),

so the run's profile is delta(alpha) = V_T(1, alpha). This is exact: no grid, no theorem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_CHUNK = 4_000_000  # numbers held at once


def hockey_stick(p: Array, q: Array, alphas: Array) -> Array:
    """sum (p - alpha q)+ of each row of p and q (C x O) at each alpha: an array C x A."""
    out = np.empty((len(p), len(alphas)))
    for i, alpha in enumerate(alphas):
        out[:, i] = np.maximum(p - alpha * q, 0.0).sum(axis=1)
    return out


@dataclass(frozen=True)
class Family:
    """The candidate pairs of one round: row c of `p` and of `q` are the laws of candidate c."""

    p: Array
    q: Array

    def __post_init__(self) -> None:
        assert self.p.shape == self.q.shape
        assert self.p.ndim == 2
        for side in (self.p, self.q):
            assert (side >= 0).all()
            assert np.allclose(side.sum(axis=1), 1.0, atol=1e-11)

    def __len__(self) -> int:
        return len(self.p)

    def profile(self, alphas: Array) -> Array:
        """The largest hockey-stick divergence over the candidates."""
        return hockey_stick(self.p, self.q, np.asarray(alphas, float)).max(axis=0)

    def renyi(self, order: float) -> float:
        """The largest Renyi divergence of this order (> 1) over the candidates."""
        if ((self.q == 0) & (self.p > 0)).any():
            return float("inf")
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = np.where(self.p > 0, np.log(self.p) - np.log(self.q), 0.0)
        # log sum p e^{(order-1) loss}, in log space: orders may be large
        exponent = np.where(self.p > 0, np.log(np.maximum(self.p, 1e-300)), -np.inf)
        exponent = exponent + (order - 1.0) * loss
        top = exponent.max(axis=1, keepdims=True)
        moment = top[:, 0] + np.log(np.exp(exponent - top).sum(axis=1))
        return float(max(moment.max() / (order - 1.0), 0.0))

    @cached_property
    def essential(self) -> Family:
        """Without outcomes of equal ratio kept apart, and without candidates that another beats.

        Both are exact: equal ratios may be told apart or not, and a pair whose profile lies below
        another's at every alpha is a coarsening of it (Blackwell), so it is never the better move.
        """
        one_of_each = {
            tuple(np.round(np.concatenate(row), 13)): row
            for row in (_merged(p, q) for p, q in zip(self.p, self.q, strict=True))
        }  # renaming symbols gives the same pair again and again
        rows = list(one_of_each.values())
        whole = _padded(rows)
        grid = np.concatenate([[0.0], np.exp(np.linspace(-4, 4, 65)), [1e3, 1e9]])
        coarse = hockey_stick(whole.p, whole.q, grid)  # only to find likely rivals quickly
        kept: list[int] = []
        knots: list[tuple[Array, Array]] = []
        for c in np.argsort(-coarse.sum(axis=1), kind="stable"):
            rivals = np.nonzero((coarse[c] <= coarse[kept] + 1e-14).all(axis=1))[0] if kept else []
            if not any(_below(rows[c], knots[k]) for k in rivals):
                kept.append(c)
                knots.append(_kinks(*rows[c]))
        return _padded([rows[c] for c in kept])

    @cached_property
    def kinks(self) -> list[tuple[Array, Array]]:
        """For each candidate the kinks of its profile and the values there; linear in between."""
        return [_kinks(p, q) for p, q in zip(self.p, self.q, strict=True)]

    def interpolated(self, alphas: Array) -> Array:
        """`profile`, for very many alphas: each candidate's profile is linear between kinks."""
        best = np.zeros(len(alphas))
        for at, value in self.kinks:
            np.maximum(best, np.interp(alphas, at, value), out=best)
        return best


def _kinks(p: Array, q: Array) -> tuple[Array, Array]:
    ratios = np.unique(p[q > 0] / q[q > 0])
    at = np.concatenate([[0.0], ratios[ratios > 0]])
    return at, hockey_stick(p[None, :], q[None, :], at)[0]


def _below(row: tuple[Array, Array], other: tuple[Array, Array]) -> bool:
    """Whether a pair's profile lies below another's, given by its kinks.

    The other is linear between its kinks and the pair's is convex, so the kinks decide; beyond
    the last one the other is constant, and the pair's falls.
    """
    at, value = other
    mine = hockey_stick(row[0][None, :], row[1][None, :], at)[0]
    return bool((mine <= value + 1e-14).all())


def _merged(p: Array, q: Array) -> tuple[Array, Array]:
    """The pair with outcomes of equal ratio added up, in the order of the ratio."""
    seen = p + q > 0
    p, q = p[seen], q[seen]
    with np.errstate(divide="ignore"):
        _, group = np.unique(np.round(np.log(p) - np.log(q), 12), return_inverse=True)
    return np.bincount(group, p), np.bincount(group, q)


def _padded(rows: Sequence[tuple[Array, Array]]) -> Family:
    """Pairs of different lengths as one family: what is missing is impossible."""
    width = max(len(p) for p, _ in rows)
    p = np.array([np.pad(p, (0, width - len(p))) for p, _ in rows])
    q = np.array([np.pad(q, (0, width - len(q))) for _, q in rows])
    return Family(p, q)


def pooled(families: Sequence[Family]) -> Family:
    """All candidates of all families."""
    width = max(f.p.shape[1] for f in families)

    def wide(a: Array) -> Array:
        return np.pad(a, ((0, 0), (0, width - a.shape[1])))

    p = np.concatenate([wide(f.p) for f in families])
    return Family(p, np.concatenate([wide(f.q) for f in families]))


def cost(run: Sequence[Family]) -> float:
    """About how many numbers `adaptive_delta` handles for each alpha."""
    work = 1.0
    for family in run[:-1]:
        work *= family.essential.p.size
    return work * (len(run[-1].essential) if len(run) > 1 else run[-1].p.size)


def adaptive_delta(run: Sequence[Family], alphas: Sequence[float] | Array) -> Array:
    """The run's exact profile at each alpha, the adversary choosing each round with the past."""
    alphas = np.asarray(alphas, float)
    if len(run) == 1:
        return run[0].profile(alphas)
    return _value([family.essential for family in run], alphas)


def _value(run: list[Family], alphas: Array) -> Array:
    if len(run) == 1:
        return run[0].interpolated(alphas)
    first, rest = run[0], run[1:]
    best = np.zeros(len(alphas))
    step = max(1, _CHUNK // first.p.shape[1])
    for p, q in zip(first.p, first.q, strict=True):
        seen = p > 0
        ratio = q[seen] / p[seen]
        for start in range(0, len(alphas), step):
            part = slice(start, start + step)
            ahead = _value(rest, np.outer(alphas[part], ratio).ravel())
            np.maximum(best[part], ahead.reshape(-1, len(ratio)) @ p[seen], out=best[part])
    return best


def adaptive_epsilon(run: Sequence[Family], delta: float) -> float:
    """The smallest epsilon >= 0 at which the run's profile is at most delta (inf if none)."""
    if adaptive_delta(run, [1.0])[0] <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while adaptive_delta(run, [np.exp(high)])[0] > delta:
        low, high = high, 2 * high
        if high > 256:
            return float("inf")
    for _ in range(60):
        middle = (low + high) / 2
        if adaptive_delta(run, [np.exp(middle)])[0] > delta:
            low = middle
        else:
            high = middle
    return high
