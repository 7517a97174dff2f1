"""Local pairs of tables of probabilities: of two inputs, and of a randomizer with finitely many inputs and outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.seats import RealPair
from dpcheckin.accounting.pairs.profile import ProfilePair
from dpcheckin.errors import InvalidParameter
from dpcheckin.special import UNIT

_FINE, _FEW = 400, 800  # ratios at which the worst of all pairs of rows is computed, and kinks besides
_APART = 1e-7  # relatively; ratios nearer to each other than that are one
_FURTHEST = 1e200  # of ratios; what is further is taken to have no counterpart
_ROUNDING = 1e-12  # more than what differences of computed profiles lose
_MOST_PRODUCTS = 4e9


def from_atoms(
    ratios: Sequence[float] | Array, masses: Sequence[float] | Array, name: str = "given atoms"
) -> ProfilePair:
    """What a report says of *two inputs*, and only of these: finitely many ratios W, each with its mass under Q.

    A mechanism with a third input has other pairs too, which may say more: `from_matrix` takes the worst of all. What
    E_Q[W] lacks of one is mass of P where Q has none, and becomes the local delta; up to four units in the last place
    of the sum it is taken for the rounding of the numbers given.

    Args:
        ratios: dP/dQ at each output, finite, 0 or more.
        masses: Q at each output.
        name: For sentences and tables.
    """
    w, m = np.asarray(ratios, dtype=np.float64), np.asarray(masses, dtype=np.float64)
    if w.ndim != 1 or w.shape != m.shape or w.size == 0:
        raise InvalidParameter("ratios", w.shape, "a list as long as masses, not empty")
    if not (np.all(np.isfinite(w)) and np.all(w >= 0)):
        raise InvalidParameter("ratios", w.tolist(), "finite numbers, 0 or more")
    if not (np.all(m >= 0) and abs(float(m.sum()) - 1) < 1e-9):
        raise InvalidParameter("masses", m.tolist(), "probabilities that add up to 1")
    w = np.where(np.abs(w - 1.0) < 8 * UNIT, 1.0, w)  # the rounding of a quotient is no loss
    if not ((m > 0) & (w > 0)).any():
        raise InvalidParameter("ratios", w.tolist(), "at least one positive ratio with mass")
    lacking = 1.0 - math.fsum((w * m).tolist())
    if lacking < -1e-9:
        raise InvalidParameter("ratios", w.tolist(), "ratios whose mean under the masses is <= 1")
    delta = lacking if lacking > 4 * UNIT * w.size else 0.0
    return replace(_pair(w, m, delta, name), condition="every client holds one of the two inputs that were given")


def revealing(ratios: Array, masses: Array, rest: float, name: str = "given atoms") -> ProfilePair:
    """The pair of all inputs that has these `ratios` with these `masses`, and `rest` of either law without counterpart.

    `name`: for sentences and tables.
    """
    return _pair(np.append(ratios, 0.0), np.append(masses, rest), rest, name)


def from_matrix(rows: Sequence[Sequence[float]] | Array, name: str = "given table") -> ProfilePair:
    """A randomizer given by a table: the worst of all pairs of its inputs, in both directions.

    Args:
        rows: One for each input: the probability of every output, adding up to 1.
        name: For sentences and tables.

    >>> pair = from_matrix([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    >>> round(pair.local_epsilon, 4)  # 0.7 for 0.1
    1.9459
    """
    table = np.asarray(rows, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] < 2 or not table.shape[1]:
        raise InvalidParameter("rows", table.shape, "a table of two rows or more, all of one length")
    if not (np.all(table >= 0.0) and np.all(np.abs(table.sum(axis=1) - 1.0) < 1e-9)):
        raise InvalidParameter("rows", table.tolist(), "in every row probabilities that add up to 1")
    places = _places(table)
    if not table.shape[0] * table.size * places.size < _MOST_PRODUCTS:
        raise InvalidParameter("rows", table.shape, "a table small enough to compare all pairs of rows")
    # the profile of the worst law for each place: convex, and closed under swapping, so that it is that of a pair
    deltas = np.minimum(_largest(table, places) * (1.0 + _ROUNDING), 1.0)
    slopes = np.append(np.diff(deltas) / np.diff(places), 0.0)
    masses = np.maximum(np.diff(slopes), 0.0)
    middle = max(1.0 - deltas[0] + 2.0 * slopes[0], 0.0)
    ratios = np.concatenate([[1.0], places[1:], 1.0 / places[1:]])
    whole = np.concatenate([[middle], masses, places[1:] * masses])
    real = tuple(one for a, b in _telling(table, places) for one in _both(table[a], table[b]))
    described = ("kind", "matrix"), ("rows", tuple(tuple(row) for row in table.tolist()))
    return replace(revealing(ratios, whole, float(deltas[-1]), name), real=real, described=described)


def _places(table: Array) -> Array:
    """Ratios from 1 to the largest, at which profiles have kinks if these are few; beyond, h is what is left."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        ratios = (table[:, None] / table[None]).ravel()
    ratios = ratios[(ratios > 1.0) & (ratios < _FURTHEST)]
    if ratios.size == 0:  # of equal rows, or of rows that have nothing in common
        return np.array([1.0, 1.0 + 1e-12])
    fine = np.geomspace(1.0, ratios.max(), _FINE)
    kinks = np.unique(ratios)
    places = np.union1d(fine, kinks) if kinks.size <= _FEW else fine
    return np.asarray(places[np.append(True, np.diff(np.log(places)) > _APART)])


def _profiles(table: Array, places: Array) -> Iterator[Array]:
    """For every row, and some places after the other: its divergence from each row, one place a line."""
    step = max(1_000_000 // table.size, 1)
    for row in table:
        parts = [places[i : i + step, None, None] for i in range(0, places.size, step)]
        yield np.concatenate([np.maximum(row - alpha * table, 0.0).sum(axis=2) for alpha in parts])


def _largest(table: Array, places: Array) -> Array:
    return np.asarray(np.max([profile.max(axis=1) for profile in _profiles(table, places)], axis=0), np.float64)


def _telling(table: Array, places: Array) -> set[tuple[int, int]]:
    """Pairs of rows for lower bounds: farthest apart as a whole, half way to the largest loss, and in their squares."""
    some = np.array(list(_profiles(table, np.array([1.0, math.sqrt(places[-1])]))))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        ratios = np.where(table[None] > 0.0, np.minimum(table[:, None] / table[None], 1e100), 0.0)
    squares = (np.maximum(ratios - 1.0, 0.0) ** 2 * table[None]).sum(axis=2)
    found = [np.unravel_index(int(np.argmax(one)), one.shape) for one in (some[:, 0], some[:, 1], squares)]
    return {(min(a, b), max(a, b)) for a, b in ((int(x), int(y)) for x, y in found) if a != b}


def _both(p: Array, q: Array) -> tuple[RealPair, RealPair]:
    p, q = np.where(p * _FURTHEST > q, p, 0.0), np.where(q * _FURTHEST > p, q, 0.0)
    w = np.divide(p, q, out=np.zeros_like(p), where=q > 0.0)
    delta = float(p[q == 0.0].sum())
    return _real(w, q, delta), _real(*_swapped(w, q, delta), float(q[p == 0.0].sum()))


def _pair(w: Array, m: Array, delta: float, name: str) -> ProfilePair:
    """Ratios and their masses under Q, and mass of P where Q has none."""
    kept = w[(m > 0) & (w > 0)]
    nowhere = float(m[w == 0].sum())  # Q-mass where P has none: the swapped pair's delta
    epsilon = max(float(np.max(np.abs(np.log(kept)), initial=0.0)), 1e-12)

    def function(alpha: Array) -> Array:
        alpha = np.minimum(alpha, 1e300)  # infinity times a ratio of zero is no number
        # the divergence of Q from P: nothing cancels however large alpha is
        backward = _mean_positive(m, lambda a: 1.0 - a * w, alpha)
        return np.asarray(np.maximum(_mean_positive(m, lambda a: w - a, alpha) + delta, backward))

    return ProfilePair(
        name,
        function,
        epsilon,
        max(delta, nowhere),
        real=(_real(w, m, delta), _real(*_swapped(w, m, delta), nowhere)),
        described=(("kind", "matrix"), ("rows", ((*(w * m), delta), (*m, 0.0)))),
    )


def _mean_positive(m: Array, of: Callable[[Array], Array], alpha: Array) -> Array:
    """E_Q of the positive part of a function of alpha and W, which is given for alphas in a column."""
    column = np.asarray(alpha, dtype=np.float64).ravel()[:, None]
    return np.asarray((np.maximum(of(column), 0.0) @ m).reshape(np.shape(alpha)))


def _swapped(w: Array, m: Array, delta: float) -> tuple[Array, Array]:
    """Ratios dQ/dP and their masses under P; where Q has nothing the ratio is zero."""
    there = w > 0
    ratios, masses = 1.0 / w[there], (w * m)[there]
    if delta > 0.0:
        ratios, masses = np.append(ratios, 0.0), np.append(masses, delta)
    return ratios, masses / masses.sum()


def _real(w: Array, m: Array, delta: float) -> RealPair:
    """A pair of laws with one ratio everywhere, at most as revealing as the atoms.

    Outputs that P alone has are merged with those that Q alone has, or else with the largest ratio: what cannot be told
    from the merged report is not more than what could.
    """
    w = w.copy()
    if delta > 0.0:
        bare = (w == 0) & (m > 0)
        place = int(np.argmax(bare)) if bare.any() else int(np.argmax(np.where(m > 0, w, -1.0)))
        w[place] += delta / m[place]
    return RealPair(
        above=lambda alpha: _mean_positive(m, lambda a: w - a, alpha),
        below=lambda alpha: _mean_positive(m, lambda a: a - w, alpha),
        largest_ratio=float(w[m > 0].max()),
        smallest_ratio=float(w[m > 0].min()),
        second_moment=float(np.maximum(w - 1.0, 0.0) ** 2 @ m),
        atoms=(w[m > 0], m[m > 0]),
    )
