"""The kinds of attack by name: what is drawn, and how many of a hundred attacks are of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from oracles.absent import designs, many, noisy, rounds, sampled, shuffles, steered, windows
from oracles.absent.designs import Design, Random
from oracles.absent.fight import Draw
from oracles.absent.setting import Setting

Design_ = Callable[[Random], Design]
Protocol = Callable[[Random, Design, int], Setting]


class Kind(NamedTuple):
    """A kind of attack; `slow` ones are left to long runs."""

    draw: Draw
    share: float
    slow: bool = False


def _any_of(makers: tuple[Design_, ...]) -> Design_:
    return lambda rng: makers[int(rng.integers(len(makers)))](rng)


def _crowd(protocol: Protocol, make: Design_, least: int, most: int, wide: int = 0) -> Draw:
    """So many clients, on a scale of quotients; fewer if a table has more than `wide` outputs."""

    def draw(rng: Random) -> Setting:
        design = make(rng)
        limit = most if not wide or design.table.shape[1] <= wide else max(least, most // 2)
        clients = round(least * (limit / least) ** float(rng.random()))
        return protocol(rng, design, clients)

    return draw


def _with_symbols(make: Design_, most: int) -> Design_:
    def draw(rng: Random) -> Design:
        while (design := make(rng)).table.shape[1] > most:
            pass
        return design

    return draw


_full, _uneven = shuffles.full, shuffles.uneven

KINDS: dict[str, Kind] = {
    "full/pure": Kind(_crowd(_full, _any_of(designs.PURE), 1, 6), 10),
    "full/families": Kind(_crowd(_full, _any_of(designs.FAMILIES), 1, 6, 5), 8),
    "full/own": Kind(_crowd(_full, _any_of(designs.OWN), 1, 6, 5), 8),
    "full/binary-crowd": Kind(_crowd(_full, designs.binary, 8, 600), 6),
    "full/ternary-crowd": Kind(_crowd(_full, _with_symbols(_any_of((designs.extreme, designs.ternary)), 3), 8, 60), 6),
    "full/families-crowd": Kind(_crowd(_full, _with_symbols(_any_of(designs.FAMILIES), 4), 7, 20), 4),
    "full/own-crowd": Kind(_crowd(_full, _with_symbols(_any_of(designs.OWN), 3), 7, 60), 4),
    "uneven/pure": Kind(_crowd(_uneven, _any_of(designs.PURE), 1, 6, 4), 8),
    "uneven/families": Kind(_crowd(_uneven, _any_of(designs.FAMILIES), 1, 6, 4), 6),
    "uneven/own": Kind(_crowd(_uneven, _any_of(designs.OWN), 1, 6, 4), 6),
    "uneven/crowd": Kind(_crowd(_uneven, _with_symbols(_any_of((designs.extreme, designs.binary)), 2), 8, 100), 6),
    "full/gaussian-line": Kind(noisy.on_line, 4, slow=True),
    "full/gaussian-plane": Kind(noisy.in_plane, 4, slow=True),
    "full/gaussian-coarse": Kind(noisy.coarse, 3),
    "full/gaussian-groups": Kind(sampled.groups, 0.1, slow=True),
    "full/gaussian-orthogonal": Kind(sampled.orthogonal, 0.03, slow=True),
    "full/laplace": Kind(noisy.with_laplace, 3),
    "uneven/noisy": Kind(noisy.uneven, 4),
    "window/alone": Kind(windows.alone, 4),
    "window/crowded": Kind(windows.crowded, 4),
    "window/sliding": Kind(windows.sliding, 3),
    "window/averaged": Kind(windows.together, 3),
    "window/averaged-crowd": Kind(rounds.averaged_crowd, 4),
    "window/steered": Kind(steered.window, 0.5),
    "rounds/full": Kind(rounds.full, 0.6),
    "rounds/uneven": Kind(rounds.uneven, 0.4),
    "rounds/averaged": Kind(rounds.averaged, 0.4),
    "full/many": Kind(many.full, 2),
    "uneven/many": Kind(many.uneven, 2),
}
