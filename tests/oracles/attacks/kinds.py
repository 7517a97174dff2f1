"""What is attacked: kinds, each a way to draw an arena, and how large their shares are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oracles.attacks import caps, hemispheres, noisy, pure
from oracles.attacks.arenas import Arena, shuffled
from oracles.attacks.crowds import Crowd, Random, any_level
from oracles.attacks.lattice import OnLattice
from oracles.attacks.many_clients import Alike, Groups
from oracles.attacks.seats import Enumerated


def _between(rng: Random, low: int, high: int) -> int:
    return int(rng.integers(low, high + 1))


def _binary(rng: Random) -> Arena:
    n = _between(rng, 2, 8) if rng.random() < 0.6 else int(np.exp(rng.uniform(2.0, 4.4)))
    return shuffled(rng, hemispheres.Binary(n, any_level(rng), 4))


def _circle(rng: Random) -> Arena:
    n = _between(rng, 2, 6)
    values = min(n + 1, {6: 4, 5: 5}.get(n, 6))
    return shuffled(rng, hemispheres.Circle(n, any_level(rng), values))


def _sphere(rng: Random) -> Arena:
    return shuffled(rng, hemispheres.Sphere(_between(rng, 2, 6), any_level(rng), 3))


def _designs(rng: Random) -> Arena:
    n, designs = _between(rng, 2, 6), _between(rng, 1, 2)
    if designs == 1 and rng.random() < 0.5:
        n = _between(rng, 7, 14)
    return shuffled(rng, pure.Designs(n, any_level(rng), min(n + 1, 5), designs))


def _vertices(rng: Random) -> Arena:
    values = _between(rng, 3, 5)
    n = _between(rng, 2, 6)
    return shuffled(rng, pure.Vertices(n, any_level(rng), values))


def _inner(rng: Random) -> Arena:
    n, symbols = _between(rng, 2, 7), _between(rng, 2, 6)
    return shuffled(rng, pure.Inner(n, any_level(rng), min(n + 1, 4), symbols))


def _response_as_any(rng: Random) -> Arena:
    d = _between(rng, 3, 5)
    n = _between(rng, 2, {3: 24, 4: 12, 5: 8}[d])
    return shuffled(rng, pure.Response(n, any_level(rng), d, as_any=True))


def _response(rng: Random) -> Arena:
    d = _between(rng, 3, 6)
    n = _between(rng, 2, {3: 24, 4: 12, 5: 8, 6: 6}[d])
    return shuffled(rng, pure.Response(n, any_level(rng), d))


def _sets(rng: Random) -> Arena:
    d, chosen = [(3, 2), (4, 2), (4, 3), (3, 0), (3, -1), (2, 0)][rng.integers(0, 6)]
    reports = {(4, 2): 6, (4, 3): 4, (3, 0): 8, (2, 0): 4, (3, -1): 4}.get((d, chosen), 3)
    n = _between(rng, 2, {3: 20, 4: 12, 6: 6}.get(reports, 4))
    return shuffled(rng, pure.Sets(n, any_level(rng), d, chosen=chosen))


def _caps_on_circle(rng: Random) -> Arena:
    n = _between(rng, 2, 6)
    values = min(n + 1, {6: 4, 5: 5}.get(n, 6))
    return shuffled(rng, caps.CapsOnCircle(n, any_level(rng, 0.1, 6.0), values))


def _caps_on_sphere(rng: Random) -> Arena:
    return shuffled(rng, caps.CapsOnSphere(_between(rng, 2, 6), any_level(rng, 0.1, 6.0), 3))


_CELLS = {2: 56, 3: 24, 4: 14, 5: 10}  # of reports, for so many clients


def _diameter(rng: Random, highest: float = 3.0) -> float:
    return float(np.exp(rng.uniform(np.log(0.1), np.log(highest))))


def _line(rng: Random) -> Arena:
    n = _between(rng, 2, 5)
    crowd = noisy.Gaussian(n, _diameter(rng), min(n + 1, 4), along=_CELLS[n])
    return shuffled(rng, crowd)


def _plane(rng: Random) -> Arena:
    n = _between(rng, 2, 5)
    across = {2: 4, 3: 3}.get(n, 2)
    crowd = noisy.Gaussian(n, _diameter(rng), min(n + 1, 4), _CELLS[n] // across, across)
    return shuffled(rng, crowd)


def _few_cells(rng: Random) -> Arena:
    along = _between(rng, 2, 4)
    n = _between(rng, 6, {2: 80, 3: 28, 4: 14}[along])
    return shuffled(rng, noisy.Gaussian(n, _diameter(rng), 4, along))


def _cohort(rng: Random, n: int) -> int:
    return _between(rng, 1, n - 1) if rng.random() < 0.25 else 0


def _gaussian_seats(rng: Random) -> Arena:
    n, flat = int(np.exp(rng.uniform(np.log(6), np.log(200)))), rng.random() < 0.5
    along, across = (300, 1) if flat else (64, 32)
    crowd = noisy.Gaussian(n, _diameter(rng, 1.8), 3 if n < 60 else 2, along, across, (4.0, 8.0))
    return OnLattice(crowd, float(rng.uniform(0.02, 0.9)), _cohort(rng, n))


Few = Callable[[Random, int, float], Crowd]  # a crowd with few possible reports


def _poles(rng: Random, n: int, level: float) -> Crowd:
    return hemispheres.Binary(n, level, 2)


def _third_symbol(rng: Random, n: int, level: float) -> Crowd:
    if rng.random() < 0.3:
        return pure.Designs(n, level, 3, 1)
    return pure.Response(n, level, 3, as_any=True)


def _symbols(rng: Random, n: int, level: float) -> Crowd:
    return pure.Response(n, level, _between(rng, 3, 12))


def _few_sets(rng: Random, n: int, level: float) -> Crowd:
    d, chosen = [(3, 2), (3, -1), (2, 0)][rng.integers(0, 3)]
    return pure.Sets(n, level, d, chosen=chosen)


def _caps(rng: Random, n: int, level: float) -> Crowd:
    return caps.CapsOnCircle(n, min(level, 6.0), 3)


def _alike(few: Few, most: float) -> Callable[[Random], Arena]:
    """Hundreds of clients: where a bound comes close to the truth its digits matter."""

    def draw(rng: Random) -> Arena:
        n = int(np.exp(rng.uniform(4.0, 7.0)))
        taken = min(float(np.exp(rng.uniform(0.0, np.log(most)))), 0.9 * n)
        cohort = max(int(taken), 1) if rng.random() < 0.25 else 0
        return Alike(few(rng, n, any_level(rng)), taken / n, cohort)

    return draw


def _groups(few: Few, most: float) -> Callable[[Random], Arena]:
    """The others split between some values: where the largest pattern has to be found."""

    def draw(rng: Random) -> Arena:
        n = int(np.exp(rng.uniform(2.3, 5.0)))
        taken = min(float(np.exp(rng.uniform(0.0, np.log(most)))), 0.9 * n)
        return Groups(few(rng, n, any_level(rng)), taken / n)

    return draw


def _laplace(rng: Random) -> Arena:
    n = _between(rng, 2, 5)
    level = float(np.exp(rng.uniform(np.log(0.1), np.log(6.0))))
    return shuffled(rng, noisy.Laplace(n, level, min(n + 1, 4), along=_CELLS[n]))


def _laplace_seats(rng: Random) -> Arena:
    n = int(np.exp(rng.uniform(np.log(6), np.log(200))))
    level = float(np.exp(rng.uniform(np.log(0.1), np.log(4.0))))
    crowd = noisy.Laplace(n, level, 3 if n < 60 else 2, along=200)
    return OnLattice(crowd, float(rng.uniform(0.02, 0.9)), _cohort(rng, n))


def _leaky(rng: Random) -> Arena:
    n, designs = _between(rng, 2, 5), _between(rng, 1, 2)
    delta = float(np.exp(rng.uniform(np.log(1e-6), np.log(0.3))))
    if designs == 2:
        n = min(n, 4)
    return shuffled(rng, noisy.Leaky(n, any_level(rng), min(n + 1, 4), designs, delta))


def _rough(rng: Random) -> Arena:
    n, symbols = _between(rng, 2, 6), _between(rng, 2, 6)
    delta = float(np.exp(rng.uniform(np.log(1e-4), np.log(0.5))))
    return shuffled(rng, noisy.Rough(n, any_level(rng), min(n + 1, 4), symbols, delta))


def _enumerated_seats(rng: Random) -> Arena:
    n, name = _between(rng, 3, 6), rng.integers(0, 4)
    level = any_level(rng)
    crowd = [
        lambda: hemispheres.Circle(n, level, 4),
        lambda: pure.Designs(n, level, 4, 1),
        lambda: pure.Response(n, level, 4),
        lambda: caps.CapsOnCircle(n, min(level, 6.0), 4),
    ][name]()
    return Enumerated(crowd, float(rng.uniform(0.05, 0.95)), _cohort(rng, n))


@dataclass(frozen=True)
class Kind:
    """A way to draw arenas.

    `share`: of all attacks. `batch`: data sets at a time, more where a promise takes long to ask
    for. `heavy`: one comparison takes long.
    """

    draw: Callable[[Random], Arena]
    share: float
    batch: int = 12
    heavy: bool = False

    @property
    def size(self) -> dict[str, int]:
        """Of a campaign, as `climb.campaign` takes it."""
        if self.heavy:
            return {"alphas": 4, "batch": 5, "generations": 2, "moves": 2}
        return {"alphas": 8, "batch": self.batch, "generations": 3, "moves": 3}


KINDS = {
    "hemisphere/binary": Kind(_binary, 0.08),
    "hemisphere/circle": Kind(_circle, 0.12),
    "hemisphere/sphere": Kind(_sphere, 0.10),
    "any/designs": Kind(_designs, 0.15),
    "any/vertices": Kind(_vertices, 0.025),
    "any/inner": Kind(_inner, 0.055),
    "any/response": Kind(_response_as_any, 0.06),
    "response/dary": Kind(_response, 0.04),
    "sets/few": Kind(_sets, 0.04),
    "privunit/circle": Kind(_caps_on_circle, 0.04),
    "privunit/sphere": Kind(_caps_on_sphere, 0.02),
    "gaussian/line": Kind(_line, 0.08, batch=24),
    "gaussian/plane": Kind(_plane, 0.07, batch=32),
    "gaussian/few-cells": Kind(_few_cells, 0.07, batch=24),
    "gaussian/seats": Kind(_gaussian_seats, 0.004, heavy=True),
    "laplace/line": Kind(_laplace, 0.05),
    "laplace/seats": Kind(_laplace_seats, 0.002, heavy=True),
    "approximate/leaky": Kind(_leaky, 0.03),
    "approximate/rough": Kind(_rough, 0.015),
    "pure/labelled": Kind(_enumerated_seats, 0.005, heavy=True),
    "hemisphere/groups": Kind(_groups(_poles, 40.0), 0.004, heavy=True),
    "any/groups": Kind(_groups(_third_symbol, 12.0), 0.004, heavy=True),
    "response/groups": Kind(_groups(_symbols, 12.0), 0.001, heavy=True),
    "sets/groups": Kind(_groups(_few_sets, 12.0), 0.001, heavy=True),
    "hemisphere/alike": Kind(_alike(_poles, 90.0), 0.003, heavy=True),
    "any/alike": Kind(_alike(_third_symbol, 50.0), 0.003, heavy=True),
    "response/alike": Kind(_alike(_symbols, 25.0), 0.001, heavy=True),
    "sets/alike": Kind(_alike(_few_sets, 12.0), 0.001, heavy=True),
    "privunit/alike": Kind(_alike(_caps, 25.0), 0.001, heavy=True),
}
