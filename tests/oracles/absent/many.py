"""Large crowds whose others all send by one law (or binary ones by two): a multinomial, truncated.

What is far out is left out, which only makes a divergence smaller. Outputs that say the same of the target are one.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from oracles.absent import crowd, designs
from oracles.absent.crowd import Array
from oracles.absent.designs import Design
from oracles.absent.setting import Random, Setting, Truth, epsilons

REACH = 9.0  # standard deviations


def merged(first: Array, second: Array, others: Array) -> Array:
    """Three laws (rows) on outputs that can be told apart by what they say of the target."""
    seen: dict[tuple[float, float], Array] = {}
    for column in np.stack([first, second, others]).T:
        key = (round(float(column[0] / column[2]), 9), round(float(column[1] / column[2]), 9))
        seen[key] = seen.get(key, np.zeros(3)) + column
    return np.stack(list(seen.values())).T


def _around(clients: int, chance: float) -> Array:
    mean, deviation = clients * chance, np.sqrt(clients * chance * (1.0 - chance))
    low, high = np.floor(mean - REACH * deviation - 12), np.ceil(mean + REACH * deviation + 12)
    return np.arange(max(low, 0.0), min(high, clients) + 1)


def alike(clients: int, first: Array, second: Array, others: Array) -> Truth:
    """All others send by one law on two or three outputs, everywhere positive."""
    rows = merged(first, second, others)
    if rows.shape[1] > 3:
        raise ValueError("at most three outputs that can be told apart")
    base = rows[2]
    one = _around(clients, base[0])
    two = _around(clients, base[1]) if len(base) == 3 else np.zeros(1)
    left = base[1] / (1.0 - base[0]) if len(base) == 3 else 0.0
    i, j = one[:, None], two[None, :]
    chance = stats.binom.pmf(i, clients, base[0]) * stats.binom.pmf(j, clients - i, left)
    # given the counts of all n if everybody sent by the others' law, the target is any of them
    counts = [i, j, clients - i - j] if len(base) == 3 else [i, clients - i]
    worlds = [sum(c * row[s] / base[s] for s, c in enumerate(counts)) / clients for row in rows[:2]]
    p, q = (np.where(chance > 0, chance * world, 0.0).ravel()[None] for world in worlds)

    return lambda at: crowd.divided(p, q, np.exp(at))


def two_values(clients: int, e0: float, like_first: int) -> Truth:
    """Binary response; so many of the others hold the first value, the rest the second."""
    high = np.exp(e0) / (1.0 + np.exp(e0))
    rest = clients - 1 - like_first
    count = np.convolve(
        stats.binom.pmf(np.arange(like_first + 1), like_first, high),
        stats.binom.pmf(np.arange(rest + 1), rest, 1.0 - high),
    )
    up, stay = np.append(0.0, count), np.append(count, 0.0)
    p, q = ((h * up + (1.0 - h) * stay)[None] for h in (high, 1.0 - high))
    return lambda at: crowd.divided(p, q, np.exp(at))


def _clients(rng: Random, most: float) -> int:
    return round(150.0 * (most / 150.0) ** float(rng.random()))


def _together(truths: list[Truth]) -> Truth:
    return lambda at: np.concatenate([truth(at) for truth in truths], axis=1)


def full(rng: Random) -> Setting:
    """A full shuffle of binary or ternary reports, in the names of all that they are cases of."""
    e0, clients = designs.local_epsilon(rng), _clients(rng, 6000.0)
    table = designs.response(e0, 3)
    if rng.random() < 0.5:
        ones = sorted({0, clients - 1, *(int(v) for v in rng.integers(0, clients, 4))})
        truths = [two_values(clients, e0, one) for one in ones]
        said = [f"{one} of the others at the first value" for one in ones]
        name = ("binary_response", "hemisphere", "any_pure")[int(rng.integers(3))] + f"({e0})"
    else:
        truths = [alike(clients, *table[[0, 1, x]]) for x in (2, 1)]
        said = ["all others at a third value", "all others at the second value"]
        name = f"dary_response({e0}, 3)" if rng.random() < 0.5 else f"any_pure({e0})"
    at = epsilons(rng, e0, clients, 10)
    return Setting(f"[(ShuffleRound({clients}, {name}), 1)]", at, _together(truths), lambda i: said[i], crowded=e0 / 2)


def uneven(rng: Random) -> Setting:
    """Check-ins at rates of an interval: others at either end or at what is drawn, the target at the largest."""
    e0, clients = designs.local_epsilon(rng), _clients(rng, 20_000.0)
    rate = round(float(np.exp(rng.uniform(np.log(0.02), np.log(0.98)))), 3)
    low = round(rate * float(rng.choice([0.5, rng.uniform(0.4, 1.0)])), 5)
    ternary = rng.random() < 0.3
    design = Design("", designs.response(e0, 2)) if not ternary else Design("", designs.response(e0, 3))
    name = ("any_pure({})", "dary_response({}, 3)")[int(rng.integers(2))] if ternary else "binary_response({})"
    if not ternary and rng.random() < 0.4:
        name = "any_pure({})"
    text = f"CheckInRound({clients}, {rate}, {name.format(e0)}, lowest_rate={low})"
    cases = [(often, x) for often in (low, rate, rng.uniform(low, rate)) for x in range(1, len(design.table))]
    truths, said = [], []
    for often, x in cases:
        sent = crowd.lazy(design.table[[0, 1, x]], np.array([rate, rate, often]))
        if merged(*sent).shape[1] <= 3:
            truths.append(alike(clients, *sent))
            said.append(f"all others at value {x} and rate {often!r}")
    at = epsilons(rng, e0, clients * low, 10)
    return Setting(f"[({text}, 1)]", at, _together(truths), lambda i: said[i], crowded=e0 / 2)
