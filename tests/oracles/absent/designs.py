"""Random randomizers as tables, and how the package's front door spells their local pair."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from scipy import optimize

from oracles.absent.crowd import Array

Random = np.random.Generator


@dataclass(frozen=True)
class Design:
    """A table (inputs x outputs) and its pair.

    `attained`: tables among whose data sets the package's lower bound must find its bad case; none if it is not known.
    """

    text: str
    table: Array
    attained: tuple[Array, ...] = ()


def local_epsilon(rng: Random, largest: float = 4.0) -> float:
    """Mostly ordinary, at times very small or large."""
    if rng.random() < 0.08:
        return float(rng.choice([0.02, 0.1, 5.0, 7.0]))
    return round(float(np.exp(rng.uniform(np.log(0.2), np.log(largest)))), 3)


def response(e0: float, symbols: int) -> Array:
    """The truth, or any other symbol e times as rarely."""
    weights = np.ones((symbols, symbols)) + np.expm1(e0) * np.eye(symbols)
    return weights / weights.sum(axis=1, keepdims=True)


def _vertex(rng: Random, e0: float, inputs: int) -> Array:
    """A random table of columns of 1s and es that cannot be split; at most as many columns as inputs."""
    patterns = np.array(list(product([1.0, np.exp(e0)], repeat=inputs))).T
    found = optimize.linprog(rng.normal(size=patterns.shape[1]), A_eq=patterns, b_eq=np.ones(inputs), method="highs-ds")
    used = found.x > 1e-12
    table = patterns[:, used] * found.x[used]
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def _mixed(rng: Random, first: Array, second: Array) -> Array:
    share = round(float(rng.uniform(0.1, 0.9)), 3)
    return np.hstack([share * first, (1.0 - share) * second])


def extreme(rng: Random, inputs: int = 3) -> Design:
    """Any pure randomizer: extreme patterns, at times two of them after a coin."""
    e0 = local_epsilon(rng)
    table = _vertex(rng, e0, inputs)
    if table.shape[1] <= 3 and rng.random() < 0.3:
        table = _mixed(rng, table, _vertex(rng, e0, inputs))
    return Design(f"any_pure({e0})", table, (response(e0, 2), response(e0, 3)))


def inner(rng: Random) -> Design:
    """A table without zeros, as the worst pure randomizer of its own epsilon."""
    table = np.exp(rng.uniform(0.0, rng.choice([0.4, 1.0, 2.5]), size=(3, int(rng.integers(2, 6)))))
    table /= table.sum(axis=1, keepdims=True)
    e0 = float(np.nextafter(np.log((table.max(axis=0) / table.min(axis=0)).max()), 99.0))
    return Design(f"any_pure({e0!r})", table, (response(e0, 2), response(e0, 3)))


def given(rng: Random) -> Design:
    """A table as the package is given it; zeros in a third of them."""
    kind = rng.random()
    if kind < 0.4:
        table = _vertex(rng, local_epsilon(rng), 3)
    else:
        table = np.exp(rng.uniform(0.0, rng.choice([0.5, 1.5, 3.0]), size=(3, int(rng.integers(2, 6)))))
        if kind > 0.7:
            table[:, 0] = 0.0
            table[int(rng.integers(3)), 0] = rng.choice([0.01, 0.1, 0.7])
    table /= table.sum(axis=1, keepdims=True)
    return Design(f"from_matrix({table.tolist()})", table)


def leaking(rng: Random) -> Design:
    """A pure randomizer that blurts its input out with a small probability."""
    e0, leak = local_epsilon(rng), float(rng.choice([1e-6, 1e-3, 0.02, 0.1]))
    pure = _vertex(rng, e0, 3) if rng.random() < 0.5 else response(e0, 2)
    open_hand = np.eye(len(pure)) if rng.random() < 0.5 else np.eye(len(pure))[[0, 1, 1][: len(pure)]]
    return Design(f"approximate({e0}, {leak})", np.hstack([(1.0 - leak) * pure, leak * open_hand]))


def binary(rng: Random) -> Design:
    """Warner's response."""
    e0 = local_epsilon(rng)
    table = response(e0, 2)
    return Design(f"binary_response({e0})", table, (table,))


def dary(rng: Random) -> Design:
    """Response among three to five symbols."""
    e0, symbols = local_epsilon(rng), int(rng.integers(3, 6))
    table = response(e0, symbols)
    return Design(f"dary_response({e0}, {symbols})", table, (table,))


def ternary(rng: Random) -> Design:
    """Response among three symbols."""
    e0 = local_epsilon(rng)
    table = response(e0, 3)
    return Design(f"dary_response({e0}, 3)", table, (table,))


def subset(rng: Random) -> Design:
    """Sets of symbols."""
    e0 = local_epsilon(rng)
    symbols, size = [(3, 2), (4, 2), (4, 3)][int(rng.integers(3))]
    sets = list(combinations(range(symbols), size))
    table = np.array([[np.exp(e0) if x in chosen else 1.0 for chosen in sets] for x in range(symbols)])
    table /= table.sum(axis=1, keepdims=True)
    return Design(f"subset_selection({e0}, {symbols}, {size})", table, (table,))


def unary(rng: Random) -> Design:
    """One bit a symbol; the odds of a true bit against a false one are e to one."""
    e0, symbols = local_epsilon(rng), int(rng.integers(2, 4))
    p = 0.5 if rng.random() < 0.5 else round(float(rng.uniform(0.3, 0.9)), 2)
    odds = p / (1.0 - p) / np.exp(e0)
    q = odds / (1.0 + odds)
    bits = np.array(list(product([0, 1], repeat=symbols)))
    chance = np.where(np.eye(symbols), p, q)
    table = np.array([np.where(bits, c, 1.0 - c).prod(axis=1) for c in chance])
    text = f"unary_encoding({e0}, {symbols}" + ("" if p == 0.5 else f", {p}") + ")"
    return Design(text, table, (table,))


def hadamard(rng: Random) -> Design:
    """Three rows of a Hadamard matrix of order four."""
    e0 = local_epsilon(rng)
    signs = np.array([[1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
    table = np.where(signs > 0, np.exp(e0), 1.0)
    table /= table.sum(axis=1, keepdims=True)
    return Design(f"hadamard_response({e0}, 3)", table, (table,))


def hemisphere(rng: Random) -> Design:
    """Half circles round two or three directions, cut into the arcs that tell them apart."""
    e0 = local_epsilon(rng)
    more = rng.uniform(0.0, 360.0, 1) if rng.random() < 0.6 else np.array([])
    angles = np.concatenate([[0.0, 180.0 if rng.random() < 0.5 else rng.uniform(90.0, 180.0)], more])
    return Design(f"hemisphere({e0})", _arcs(angles, 90.0, np.exp(e0)))


def cap(rng: Random) -> Design:
    """PrivUnit in the plane: arcs round three directions; which arc the package says itself."""
    import dpcheckin as dp

    e0 = local_epsilon(rng)
    half = 180.0 * float(dp.privunit(e0, 2).cap_measure)
    turn = rng.uniform(60.0, 180.0, 2)
    return Design(f"privunit({e0}, 2)", _arcs(np.array([0.0, turn[0], turn.sum()]), half, np.exp(e0)))


def _arcs(angles: Array, half: float, e: float) -> Array:
    """Density e to one inside the arc of this half width round each direction."""
    cuts = np.unique(np.round(np.mod(np.concatenate([angles - half, angles + half]), 360.0), 9))
    widths = np.diff(np.append(cuts, cuts[0] + 360.0))
    apart = np.abs((cuts + widths / 2 - angles[:, None] + 180.0) % 360.0 - 180.0)
    table = np.where(apart < half, e, 1.0) * widths
    return np.asarray(table / table.sum(axis=1, keepdims=True))


PURE: tuple[Callable[[Random], Design], ...] = (extreme, inner, binary, dary)
FAMILIES = (subset, unary, hadamard, hemisphere, cap)
OWN = (given, leaking)
