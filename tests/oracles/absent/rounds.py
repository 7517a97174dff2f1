"""Two or three rounds, each with data that the adversary chooses after what it has seen.

A round is a menu of pairs of laws, one pair for a data set; world one is always the first of the pair, and the order
of the target's two values may differ from round to round. With one round left the adversary's best delta at alpha is
the largest divergence on the menu; with more, the best mean over what a round shows of what is left at alpha q/p.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from oracles.absent import crowd, designs, shuffles
from oracles.absent.crowd import Array
from oracles.absent.designs import Design
from oracles.absent.setting import Random, Setting, epsilons

Menu = tuple[Array, Array]


def both_orders(pairs: Menu) -> Menu:
    """Each pair and the same the other way round."""
    return np.concatenate([pairs[0], pairs[1]]), np.concatenate([pairs[1], pairs[0]])


def last(menu: Menu) -> Callable[[Array], Array]:
    """The largest divergence on the menu, at many alphas."""
    prepared = []
    for p, q in zip(*menu, strict=True):
        seen = (p > 0) | (q > 0)
        with np.errstate(divide="ignore"):
            ratio = np.where(q[seen] > 0, p[seen] / np.where(q[seen] > 0, q[seen], 1.0), np.inf)
        order = np.argsort(ratio)
        above_p = np.append(np.cumsum(p[seen][order][::-1])[::-1], 0.0)
        above_q = np.append(np.cumsum(q[seen][order][::-1])[::-1], 0.0)
        prepared.append((ratio[order], above_p, above_q))

    def value(alphas: Array) -> Array:
        best = np.zeros_like(alphas)
        for ratio, above_p, above_q in prepared:
            at = np.searchsorted(ratio, alphas, side="right")
            best = np.maximum(best, above_p[at] - alphas * above_q[at])
        return best

    return value


def before(menu: Menu, rest: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """One round of this menu, then the rest."""
    p, q = menu
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.where(p > 0, q / np.where(p > 0, p, 1.0), 0.0)

    def value(alphas: Array) -> Array:
        left = rest((alphas[:, None, None] * change[None]).ravel()).reshape(len(alphas), *p.shape)
        return np.asarray((p[None] * left).sum(axis=2).max(axis=1))

    return value


def _menu(rows: Array) -> Menu:
    p, q = crowd.views(rows)
    return both_orders((p, q))


def _data(rng: Random, design: Design, clients: int, most: int) -> NDArray[np.int64]:
    found = crowd.data_sets(rng, len(design.table), clients - 1, 40)
    return found[rng.permutation(len(found))[:most]]


def _full(rng: Random, design: Design, clients: int, most: int) -> tuple[str, Menu]:
    found = _data(rng, design, clients, most)
    return f"ShuffleRound({clients}, {design.text})", _menu(design.table[found])


def _averaged(rng: Random, design: Design, clients: int, most: int) -> tuple[str, Menu]:
    """An averaged window tells at least what a shuffle of its clients tells."""
    _, menu = _full(rng, design, clients, most)
    slots = int(rng.integers(1, 2 * clients + 1))
    return f"averaged_window({clients}, {slots}, {design.text}, {rng.choice([1e-9, 1e-4])})", menu


def _uneven(rng: Random, design: Design, clients: int, most: int) -> tuple[str, Menu]:
    rate = round(float(rng.uniform(0.2, 0.99)), 3)
    low = round(rate * float(rng.uniform(0.5, 1.0)), 4)
    found = _data(rng, design, clients, most)
    rates = np.where(rng.random(found.shape) < 0.7, low, rate)
    rates[:, :2] = rate
    text = f"CheckInRound({clients}, {rate}, {design.text}, lowest_rate={low})"
    return text, _menu(crowd.lazy(design.table[found], rates))


def _draw(kinds: tuple[Callable[[Random, Design, int, int], tuple[str, Menu]], ...], makers: tuple[str, ...]):  # type: ignore[no-untyped-def]
    def draw(rng: Random) -> Setting:
        def one(most_clients: int, most: int) -> tuple[str, Menu]:
            make = getattr(designs, makers[int(rng.integers(len(makers)))])
            while (design := make(rng)).table.shape[1] > 4:
                pass
            limit = {2: most_clients, 3: most_clients // 2}.get(design.table.shape[1], 4)
            clients = int(rng.integers(1, max(2, min(limit, most_clients)) + 1))
            return kinds[int(rng.integers(len(kinds)))](rng, design, clients, most)

        many = 2 if rng.random() < 0.7 else 3
        text, menu = one(24 if many == 2 else 6, 12 if many == 2 else 3)
        rounds, menus = f"[({text}, {many})]", [menu] * many
        if many == 2 and rng.random() < 0.3:
            second, other = one(16, 12)
            rounds, menus = f"[({text}, 1), ({second}, 1)]", [menu, other]

        def truth(at: Array) -> Array:
            value = last(menus[-1])
            for chosen in menus[-2::-1]:
                value = before(chosen, value)
            return value(np.exp(at))[:, None]

        top = many * max(float(_spread(m)) for m in menus)
        return Setting(rounds, epsilons(rng, top, 2.0, 6), truth, lambda _: "adaptive data", crowded=top / 2)

    return draw


def _spread(menu: Menu) -> float:
    both = (menu[0] > 0) & (menu[1] > 0)
    return float(np.abs(np.log(menu[0][both] / menu[1][both])).max()) + 1e-3


PURE = ("extreme", "binary", "ternary", "inner")
full = _draw((_full,), (*PURE, "hemisphere", "unary", "hadamard", "subset", "given"))
uneven = _draw((_uneven,), PURE)
averaged = _draw((_averaged,), PURE)


def averaged_crowd(rng: Random) -> Setting:
    """One averaged window of a crowd, of which only the shuffle of all reports is used."""
    design = designs.binary(rng) if rng.random() < 0.5 else designs.extreme(rng)
    most = {2: 400, 3: 40}.get(design.table.shape[1], 8)
    clients = round(4 * (most / 4) ** float(rng.random()))
    setting = shuffles.full(rng, design, clients)
    slots = round(float(np.exp(rng.uniform(0.0, np.log(2.0 * clients)))))
    text = f"[(averaged_window({clients}, {slots}, {design.text}, {rng.choice([1e-9, 1e-6])}), 1)]"
    return Setting(text, setting.epsilons, setting.truth, setting.data, crowded=setting.crowded)
