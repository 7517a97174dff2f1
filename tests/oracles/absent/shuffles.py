"""Full shuffles, cohorts of everybody and check-ins at uneven rates, enumerated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from oracles.absent import crowd
from oracles.absent.crowd import Array
from oracles.absent.designs import Design
from oracles.absent.setting import Random, Setting, Truth, epsilons

MOST_NUMBERS = 3_000_000


def _affordable(histograms: int, most: int) -> int:
    return int(max(6, min(most, MOST_NUMBERS // max(histograms, 1))))


def of_rows(sent: Array) -> Truth:
    """The truth about clients that send by these laws."""
    p, q = crowd.views(sent)

    def truth(at: Array) -> Array:
        return crowd.divided(p, q, np.exp(at))

    return truth


def _lazily(build: Callable[[], Truth]) -> Truth:
    kept: list[Truth] = []

    def truth(at: Array) -> Array:
        if not kept:
            kept.append(build())
        return kept[0](at)

    return truth


def _largest(truths: list[Truth]) -> Truth | None:
    return (lambda at: np.concatenate([truth(at) for truth in truths], axis=1)) if truths else None


def _largest_epsilon(table: Array) -> float:
    with np.errstate(divide="ignore"):
        spread = np.log(table[:, (table > 0).all(axis=0)])
    return float((spread.max(axis=0) - spread.min(axis=0)).max()) if spread.size else 1.0


def full(rng: Random, design: Design, clients: int, most: int = 36) -> Setting:
    """Everybody reports: as a full shuffle, as a cohort of all, at times with colluders."""
    size = len(crowd.histograms(clients, design.table.shape[1]))
    found = crowd.data_sets(rng, len(design.table), clients - 1, _affordable(size, most))
    spelled = [f"ShuffleRound({clients}, {design.text})", f"SubsampleRound({clients}, {clients}, {design.text})"]
    text = spelled[int(rng.random() < 0.15)]
    if rng.random() < 0.1:
        colluding = int(rng.integers(1, 4))
        everybody = clients + colluding
        text = f"ShuffleRound({everybody}, {design.text}, colluding={colluding}/{everybody})"
    truth = _lazily(lambda: of_rows(design.table[found]))

    def bad_case(table: Array) -> Truth:
        return _lazily(lambda: of_rows(table[_alike(len(table), clients - 1)]))

    return Setting(
        f"[({text}, 1)]",
        epsilons(rng, _largest_epsilon(design.table), clients),
        truth,
        lambda i: f"data (a, b, others) {found[i].tolist()} of table {design.table.tolist()}",
        _largest([bad_case(table) for table in design.attained]),
        crowded=_largest_epsilon(design.table) / 2 if clients > 2 else -1.0,
    )


def _alike(inputs: int, others: int) -> NDArray[np.int64]:
    """All others hold one value, which is one of the target's two or a third."""
    return np.array([(a, b, *[x] * others) for a in range(inputs) for b in range(a) for x in range(inputs)])


def uneven(rng: Random, design: Design, clients: int, most: int = 36) -> Setting:
    """Everybody has a rate of an interval: declared, or for want of a line that drops out, with colluders at times."""
    rate = 1.0 if rng.random() < 0.1 else round(float(rng.uniform(0.1, 0.99)), 3)
    low = round(rate * float(rng.choice([0.5, rng.uniform(0.5, 1.0), rng.uniform(0.1, 1.0)])), 4)
    words = [f"lowest_rate={low}"]
    smallest = low
    if rng.random() < 0.4:
        dropout = round(float(rng.uniform(0.02, 0.6)), 3)
        words, smallest = ([f"dropout={dropout}"], rate * (1 - dropout))
        if rng.random() < 0.4:
            words, smallest = [*words, f"lowest_rate={low}"], low * (1 - dropout)
    population = clients
    if rng.random() < 0.25:
        colluding = int(rng.integers(1, 4))
        population = clients + colluding
        words.append(f"colluding={colluding}/{population}")
    size = len(crowd.histograms(clients, design.table.shape[1] + 1))
    count = _affordable(size, most)
    found = crowd.data_sets(rng, len(design.table), clients - 1, count)
    found = found[rng.integers(len(found), size=count)] if len(found) < count else found
    rates = _rates(rng, smallest, rate, found.shape)
    _, distinct = np.unique(np.hstack([found, rates]), axis=0, return_index=True)
    found, rates = found[distinct], rates[distinct]
    target = f"CheckInRound({population}, {rate}, {design.text}, {', '.join(words)})"

    def build(table: Array, data: NDArray[np.int64], often: Array) -> Truth:
        return _lazily(lambda: of_rows(crowd.lazy(table[data], often)))

    def bad_case(table: Array) -> Truth:
        alike = _alike(len(table), clients - 1)
        often = [np.where(np.arange(alike.shape[1]) < 2, t, o) for t in (rate, smallest) for o in (rate, smallest)]
        return build(table, np.tile(alike, (4, 1)), np.repeat(often, len(alike), axis=0))

    return Setting(
        f"[({target}, 1)]",
        epsilons(rng, _largest_epsilon(design.table), clients * smallest),
        build(design.table, found, rates),
        lambda i: f"data {found[i].tolist()} at rates {rates[i].tolist()} of table {design.table.tolist()}",
        _largest([bad_case(table) for table in design.attained]),
        crowded=_largest_epsilon(design.table) / 2 if clients > 2 else -1.0,
    )


def _rates(rng: Random, low: float, high: float, shape: tuple[int, ...]) -> Array:
    """Rates of (a, b, others): the target has one rate; mostly ends of the interval, telling patterns first."""
    rates = np.where(rng.random(shape) < rng.random((shape[0], 1)), low, high)
    rates[::3, 2:] = low
    inside = rng.random(shape[0]) < 0.15
    rates[inside] = rng.uniform(low, high, (int(inside.sum()), shape[1]))
    rates[:, 0] = np.where(rng.random(shape[0]) < 0.85, high, rates[:, 0])
    rates[:, 1] = rates[:, 0]
    return rates
