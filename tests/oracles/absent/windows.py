"""Windows of random check-ins against an adversary who chooses every slot's randomizer with the past before its eyes.

Who reports where is hidden: a *configuration* says what every slot publishes, and has a prior. Each slot the adversary
chooses one of a few tables, sees what is published, and so on: the largest delta by backward induction over the whole
tree. Given everything, the two worlds differ in the law of the target's report alone.

A configuration's slot is a set of clients (a bit each; the target is bit 0, the dummy the last one): one client in
fixed and sliding windows, all of the slot in averaged ones, whose number is seen.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from math import exp

import numpy as np
from numpy.typing import NDArray

from oracles.absent import crowd
from oracles.absent.crowd import Array
from oracles.absent.designs import Random, _vertex, local_epsilon, response
from oracles.absent.setting import Setting, epsilons

Configurations = tuple[Array, NDArray[np.int64]]
MOST_LEAVES = 60_000


def _merged(weights: dict[tuple[int, ...], float]) -> Configurations:
    return np.array(list(weights.values())), np.array(list(weights))


def single(choices: list[list[tuple[int, float]]], slots: int, dummy: int) -> Configurations:
    """One report a slot, evenly among those who chose it, else the dummy's.

    `choices`: of each client, slots (or -1 for none) and their chances.
    """
    weights: dict[tuple[int, ...], float] = defaultdict(float)
    for chosen in product(*choices):
        chance = float(np.prod([c for _, c in chosen]))
        present = [[i for i, (slot, _) in enumerate(chosen) if slot == s] or [dummy] for s in range(slots)]
        share = chance / float(np.prod([len(p) for p in present]))
        for winners in product(*present):
            weights[tuple(1 << w for w in winners)] += share
    return _merged(weights)


def averaged(choices: list[list[tuple[int, float]]], slots: int) -> Configurations:
    """All reports of a slot."""
    weights: dict[tuple[int, ...], float] = defaultdict(float)
    for chosen in product(*choices):
        held = tuple(sum(1 << i for i, (slot, _) in enumerate(chosen) if slot == s) for s in range(slots))
        weights[held] += float(np.prod([c for _, c in chosen]))
    return _merged(weights)


def _of_sets(rows: Array, sets: NDArray[np.int64], most: int) -> Array:
    """Law of the histogram of what these sets of clients send: sets x outcomes; rows: clients x symbols."""
    symbols = rows.shape[1]
    offset = np.cumsum([0] + [len(crowd.histograms(k, symbols)) for k in range(most + 1)])
    out = np.zeros((len(sets), int(offset[-1])))
    for i, held in enumerate(sets):
        members = [j for j in range(len(rows)) if held >> j & 1]
        law = np.ones((1, 1))
        for k, j in enumerate(members):
            law = crowd.joined(law, k, rows[j : j + 1])
        out[i, offset[len(members)] : offset[len(members) + 1]] = law[0]
    return out


def likelihoods(tables: list[Array], values: Array, configurations: Configurations) -> list[Array]:
    """Of each slot: tables x outcomes x configurations."""
    found = []
    for slot in configurations[1].T:
        sets, back = np.unique(slot, return_inverse=True)
        most = max(int(s).bit_count() for s in sets)
        laws = np.stack([_of_sets(table[values], sets, most) for table in tables])
        laws = laws[:, :, (laws > 0).any(axis=(0, 1))]
        found.append(np.ascontiguousarray(laws[:, back].transpose(0, 2, 1)))
    return found


def game(prior: Array, first: list[Array], second: list[Array], alphas: Array) -> Array:
    """The adversary's best delta at each alpha; the worlds' likelihoods slot by slot."""
    worlds = [prior[None, :], prior[None, :]]
    shapes = [laws.shape[:2] for laws in first]
    for slot, laws in enumerate(zip(first, second, strict=True)):
        last = slot == len(first) - 1
        for w in (0, 1):
            if last:
                worlds[w] = np.einsum("lc,koc->lko", worlds[w], laws[w], optimize=True)
            else:
                worlds[w] = (worlds[w][:, None, None, :] * laws[w][None]).reshape(-1, len(prior))
    out = np.empty(len(alphas))
    for i, alpha in enumerate(alphas):
        value = np.maximum(worlds[0] - alpha * worlds[1], 0.0).reshape([n for shape in shapes for n in shape])
        for _ in shapes:
            value = value.sum(axis=-1).max(axis=-1)
        out[i] = value
    return out


def _tables(rng: Random, many: int, symbols: int) -> tuple[str, list[Array]]:
    """Tables of three inputs that one local pair covers."""
    e0 = local_epsilon(rng, 3.0)
    kind = int(rng.integers(4))
    if kind == 0:
        base = response(e0, 2)[[0, 1, 1]]
        flips = [base[list(order)] for order in ((0, 1, 1), (0, 1, 0), (1, 0, 1), (1, 0, 0))]
        return f"binary_response({e0})", flips[:many]
    if kind == 1 and symbols >= 3:
        base = response(e0, 3)
        return f"dary_response({e0}, 3)", [base[rng.permutation(3)] for _ in range(many)]
    found: list[Array] = []
    while len(found) < many:
        table = _vertex(rng, e0, 3)
        if table.shape[1] <= symbols:
            found.append(np.pad(table, ((0, 0), (0, symbols - table.shape[1]))))
    if kind == 2:  # few types: C, and A and B
        e, s = exp(e0), symbols
        rays = ([[e, 1, 1], [1, e, 1], [1, 1, e]], [[e, 1, e], [1, e, 1]], [[e, 1, 1], [1, e, e]])
        types = [np.array(columns).T for columns in rays]
        types = [t / t.sum(axis=1, keepdims=True) for t in types if t.shape[1] <= s]
        found[: len(types)] = [np.pad(t, ((0, 0), (0, s - t.shape[1]))) for t in types][: len(found)]
    return f"any_pure({e0})", found


def _even(clients: int, slots: int, probability: float) -> list[list[tuple[int, float]]]:
    one = [(s, probability / slots) for s in range(slots)]
    return [one + ([(-1, 1.0 - probability)] if probability < 1 else [])] * clients


def _probability(rng: Random) -> float:
    return 1.0 if rng.random() < 0.5 else round(float(rng.uniform(0.1, 0.99)), 2)


def _played(
    rng: Random, text: str, pair: str, tables: list[Array], made: Configurations, clients: int, most: int = 10
) -> Setting:
    """Games with random values of the others and the dummy (the last client)."""
    e0 = float(pair.partition("(")[2].rstrip(")").split(",")[0])
    values = rng.integers(0, 3, (most, clients))
    values[0], values[1], values[2] = 2, 1, 0
    values[:, 0] = 0
    values = np.unique(values, axis=0)

    def truth(at: Array) -> Array:
        out = np.empty((len(at), len(values)))
        for i, held in enumerate(values):
            first, second = (likelihoods(tables, np.concatenate([[x], held[1:]]), made) for x in (0, 1))
            both = [game(made[0], *worlds, np.exp(at)) for worlds in ((first, second), (second, first))]
            out[:, i] = np.maximum(*both)
        return out

    def data(i: int) -> str:
        return f"target 0 or 1, others and dummy {values[i, 1:].tolist()}, tables {[t.tolist() for t in tables]}"

    slots = made[1].shape[1]
    return Setting(text, epsilons(rng, e0, slots, 6), truth, data, crowded=e0 / 2 if slots > 1 else -1.0)


def _width(outcomes: int, slots: int) -> int:
    """How many tables the tree bears."""
    return int(max(1, min(4, MOST_LEAVES ** (1.0 / slots) / outcomes)))


def alone(rng: Random) -> Setting:
    """A fixed window: nobody is relied on, and what a slot holds otherwise is the adversary's."""
    slots, p, symbols = int(rng.integers(1, 8)), _probability(rng), int(rng.integers(2, 4))
    pair, tables = _tables(rng, _width(symbols, slots), symbols)
    elapsed = int(rng.integers(1, slots + 1)) if rng.random() < 0.2 else slots
    prior, sets = single(_even(1, slots, p), slots, 1)
    more = f", elapsed={elapsed}" if elapsed < slots else ""
    text = f"[(WindowRound({slots}, {pair}, {p}{more}), 1)]"
    return _played(rng, text, pair, tables, (prior, sets[:, :elapsed]), 2, 3)


def crowded(rng: Random) -> Setting:
    """A fixed window with others who choose likewise."""
    slots, p, symbols = int(rng.integers(1, 5)), _probability(rng), int(rng.integers(2, 4))
    others = int(rng.integers(0, 5 if slots < 4 else 4))
    pair, tables = _tables(rng, min(_width(symbols, slots), 3), symbols)
    made = single(_even(1 + others, slots, p), slots, 1 + others)
    text = f"[(WindowRound({slots}, {pair}, {p}, others={others}), 1)]"
    return _played(rng, text, pair, tables, made, others + 2, 6)


def sliding(rng: Random) -> Setting:
    """Client j chooses among slots j, j + 1, ..., of which the last use is made from slot `slots` on."""
    slots, symbols = int(rng.integers(1, 4)), int(rng.integers(2, 4))
    clients = int(rng.integers(slots, 6))
    pair, tables = _tables(rng, min(_width(symbols, clients - slots + 1), 3), symbols)
    target = int(rng.integers(clients))
    order = [target, *(j for j in range(clients) if j != target)]
    used = clients - slots + 1
    choices = []
    for j in order:
        places = [j + s - (slots - 1) for s in range(slots)]
        choices.append([(place if 0 <= place < used else -1, 1.0 / slots) for place in places])
    made = single(choices, used, clients)
    text = f"[(WindowRound({slots}, {pair}), 1)]"
    return _played(rng, text, pair, tables, made, clients + 1, 6)


def together(rng: Random) -> Setting:
    """An averaged window: every report of a slot is seen, and how many there are."""
    slots, symbols = int(rng.integers(1, 4)), int(rng.integers(2, 4))
    clients = int(rng.integers(1, 6 if slots < 3 else 5))
    outcomes = sum(len(crowd.histograms(k, symbols)) for k in range(clients + 1))
    pair, tables = _tables(rng, min(_width(outcomes, slots), 3), symbols)
    made = averaged(_even(clients, slots, 1.0), slots)
    reserved = float(rng.choice([1e-9, 1e-4, 0.02]))
    text = f"[(averaged_window({clients}, {slots}, {pair}, {reserved}), 1)]"
    return _played(rng, text, pair, tables, made, clients + 1, 6)
