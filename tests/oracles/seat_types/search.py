"""Try to break the theorem of types: climb from random settings towards truth / bound > 1.

    python tests/oracles/seat_types/search.py --cases 1000 --seed 1 [--climb 12] [--kinds pure]

The truth is enumerated by `views`, the bound by `theorem`, both without the package. A case starts
at random and takes `--climb` random steps, keeping those that raise the quotient; every step is an
attack of its own. The rate^n term of the bound uses the local profile, as the theorem says. The
kind `smoothed` holds pure randomizers against type C alone with the smallest scale that is enough,
on a few local epsilons. The closest quotients are those with at least 1.5 check-ins a round. Exit
code 1 if anything crossed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

_TESTS = Path(__file__).resolve().parents[2]
if str(_TESTS) not in sys.path:
    sys.path.insert(0, str(_TESTS))

from oracles.seat_types import randomizers, seats, smoothing, theorem, views  # noqa: E402
from oracles.seat_types.laws import Array, local_profile, pure_ratio, seat_of, star, type_a, type_b, type_c  # noqa: E402

Random = np.random.Generator


@dataclass(frozen=True)
class Setting:
    """A data set and a question: rows of reports, local epsilon, coins or cohort, alpha."""

    local_epsilon: float
    epsilon: float
    rate: float
    cohort: int  # 0: everybody flips a coin
    shape: Array  # what `rows` makes the matrix of
    weights: Array

    @property
    def clients(self) -> int:
        """The target and the others."""
        return self.shape.shape[0] - 1


@dataclass(frozen=True)
class Kind:
    """How data sets of a kind are drawn, changed a little, and turned into rows; their types."""

    draw: Callable[[Random, int, float], tuple[Array, Array]]
    change: Callable[[Random, Setting], tuple[Array, Array]]
    rows: Callable[[Setting], Array]
    types: str
    grid: tuple[tuple[float, float], ...] = ()  # the only (local epsilon, epsilon) asked about


@lru_cache(maxsize=256)
def _scale(local_epsilon: float, epsilon: float) -> float:
    return smoothing.scale_for_c(local_epsilon, epsilon, 1e-4)


def _designs(rng: Random, n: int, e: float) -> tuple[Array, Array]:
    """Labels of the inputs in up to three designs (negative: low for one block at a time)."""
    count = int(rng.integers(1, 4))
    shape = np.empty((n + 1, count))
    for c in range(count):
        label = rng.integers(1, int(rng.integers(2, 5)) + 1, n + 1)
        if rng.random() < 0.8:
            label[1] = label[0] % label.max() + 1 if label.max() > 1 else 2
        shape[:, c] = label * (-1 if rng.random() < 0.2 else 1)
    return shape, rng.dirichlet(np.ones(count))


def _change_designs(rng: Random, at: Setting) -> tuple[Array, Array]:
    shape, weights = at.shape.copy(), at.weights
    if rng.random() < 0.6:
        who, where = rng.integers(0, len(shape)), rng.integers(0, shape.shape[1])
        sign = np.sign(shape[0, where])
        shape[who, where] = sign * rng.integers(1, np.abs(shape[:, where]).max() + 1)
    else:
        weights = weights * np.exp(rng.normal(0.0, 1.0, len(weights)))
    return shape, weights / weights.sum()


def _design_rows(at: Setting) -> Array:
    e, parts = np.exp(at.local_epsilon), []
    for c, weight in enumerate(at.weights):
        label = np.abs(at.shape[:, c])
        high = label[:, None] == np.unique(label)[None, :]
        if at.shape[0, c] < 0:
            high = ~high
        part = np.where(high, e, 1.0)
        parts.append(weight * part / part.sum(axis=1, keepdims=True))
    return np.hstack(parts)


_STEPS = 144  # of the circle


def _directions(rng: Random, n: int, e: float) -> tuple[Array, Array]:
    at = rng.integers(0, _STEPS, (n + 1, 1)).astype(float)
    if rng.random() < 0.5:  # near the worst: everybody near one of the target's two directions
        at[1] = (at[0] + _STEPS // 2) % _STEPS
        at[2:] = at[rng.integers(0, 2, n - 1)] + rng.integers(-4, 5, (n - 1, 1))
    return at, np.ones(1)


def _change_directions(rng: Random, at: Setting) -> tuple[Array, Array]:
    shape = at.shape.copy()
    who = rng.integers(0, len(shape))
    shape[who] = rng.choice([shape[who, 0] + rng.integers(-6, 7), rng.choice(shape[:, 0])])
    return shape, at.weights


def _direction_rows(at: Setting) -> Array:
    positions = (at.shape[:, 0] % _STEPS).astype(int).tolist()
    return randomizers.circle_rows(float(np.exp(at.local_epsilon)), positions, _STEPS)


def _bits(rng: Random, n: int, e: float) -> tuple[Array, Array]:
    values = rng.integers(0, 2, (n + 1, 1)).astype(float)
    values[:2, 0] = rng.permutation(2)
    return values, np.ones(1)


def _change_bits(rng: Random, at: Setting) -> tuple[Array, Array]:
    shape = at.shape.copy()
    shape[2 + rng.integers(0, len(shape) - 2)] = rng.integers(0, 2)
    return shape, at.weights


def _bit_rows(at: Setting) -> Array:
    return randomizers.dary_rows(float(np.exp(at.local_epsilon)), 2, at.shape[:, 0].astype(int))


_GRID = tuple((e0, share * e0) for e0 in (1.0, 1.5, 2.0, 3.0, 4.0) for share in (0.0, 0.02, 0.1))

KINDS = {
    "pure": Kind(_designs, _change_designs, _design_rows, "ABC"),
    "circle": Kind(_directions, _change_directions, _direction_rows, "AB"),
    "binary": Kind(_bits, _change_bits, _bit_rows, "AB"),
    "smoothed": Kind(_designs, _change_designs, _design_rows, "C", _GRID),
}
_TYPES = {"A": type_a, "B": type_b, "C": type_c}


def figures(kind: Kind, at: Setting) -> tuple[float, float, float]:
    """The true delta (both orders of the data sets), the labelled one, and the bound."""
    rows, n, alpha = kind.rows(at), at.clients, float(np.exp(at.epsilon))
    e = float(np.exp(at.local_epsilon))
    ratio = pure_ratio(e)
    types = [_TYPES[name](e, alpha) for name in kind.types]
    gauge = seats.smoothed_part(_scale(at.local_epsilon, at.epsilon) if kind.grid else 0.0)
    seating = theorem.Seating(n, types, star(ratio, alpha), alpha, gauge)
    ends = (rows, rows[[1, 0, *range(2, n + 1)]])
    if at.cohort:
        true = max(_both(views.cohort(rows, at.cohort), alpha))
        labelled = max(seats.cohort([seat_of(r[0], r[1], x, alpha) for x in r[2:]], at.cohort, alpha) for r in ends)
        return true, labelled, seating.largest(size=at.cohort).value
    true = max(_both(views.check_in(rows, at.rate), alpha))
    everybody = at.rate**n * local_profile(ratio, alpha)
    labelled = max(seats.check_in([seat_of(r[0], r[1], x, alpha) for x in r[2:]], at.rate, alpha) for r in ends)
    return true, labelled + everybody, seating.largest(rate=at.rate).value + everybody


def _both(pair: views.Pair, alpha: float) -> tuple[float, float]:
    return pair.delta(alpha), pair.swapped.delta(alpha)


def start(rng: Random, kind: Kind) -> Setting:
    """A random setting of two to five clients."""
    n = int(rng.integers(2, 6))
    local = float(np.exp(rng.uniform(np.log(0.1), np.log(5.0))))
    epsilon = local * float(rng.choice([0.0, rng.uniform(0.0, 0.3), rng.uniform(0.0, 0.95)]))
    if kind.grid:
        local, epsilon = kind.grid[rng.integers(0, len(kind.grid))]
    shape, weights = kind.draw(rng, n, float(np.exp(local)))
    cohort = int(rng.integers(1, n)) if rng.random() < 0.3 else 0
    return Setting(local, epsilon, float(rng.uniform(0.02, 0.95)), cohort, shape, weights)


def step(rng: Random, kind: Kind, at: Setting) -> Setting:
    """The setting with one thing changed a little."""
    what = rng.random()
    if what < 0.6:
        shape, weights = kind.change(rng, at)
        return replace(at, shape=shape, weights=weights)
    if what < 0.75 or kind.grid:
        return replace(at, rate=float(np.clip(at.rate + rng.normal(0.0, 0.1), 0.005, 0.99)))
    if what < 0.9:
        epsilon = max(at.epsilon + rng.normal(0.0, 0.1) * at.local_epsilon, 0.0)
        return replace(at, epsilon=float(min(epsilon, 0.98 * at.local_epsilon)))
    local = float(np.clip(at.local_epsilon * np.exp(rng.normal(0.0, 0.2)), 0.05, 7.0))
    return replace(at, local_epsilon=local, epsilon=min(at.epsilon, 0.98 * local))


class Climb:
    """One kind's search: how often it attacked, what crossed, how close it came for each n."""

    def __init__(self, name: str) -> None:
        self.name, self.kind = name, KINDS[name]
        self.attacks: Counter[int] = Counter()
        self.crossed = 0
        self.truth: dict[int, tuple[float, str]] = defaultdict(lambda: (0.0, ""))
        self.labelled: dict[int, float] = defaultdict(float)

    def attack(self, at: Setting) -> float:
        """truth / bound of one setting; 0 where the bound is too small to divide by."""
        true, labelled, bound = figures(self.kind, at)
        n = at.clients
        self.attacks[n] += 1
        if max(true, labelled) > bound * (1 + 1e-10) + 1e-15:
            self.crossed += 1
            print(f"crossed: {self.name} {at}: truth {true}, labelled {labelled}, bound {bound}")
        if bound < 1e-9:
            return 0.0
        if (at.cohort or at.rate * n) < 1.5:
            return true / bound  # hardly more than one check-in: every bound is the truth
        where = f"e0 {at.local_epsilon:.3g}, eps {at.epsilon:.3g}, " + (
            f"cohort {at.cohort}" if at.cohort else f"rate {at.rate:.3g}"
        )
        self.truth[n] = max(self.truth[n], (true / bound, where))
        self.labelled[n] = max(self.labelled[n], labelled / bound)
        return true / bound

    def case(self, rng: Random, steps: int) -> None:
        """Climb from one random setting."""
        at = start(rng, self.kind)
        top = self.attack(at)
        for _ in range(steps):
            tried = step(rng, self.kind, at)
            reached = self.attack(tried)
            if reached >= top:
                at, top = tried, reached

    def table(self) -> str:
        """One line for each number of clients."""
        return "\n".join(
            f"{self.name:8s} n {n}: {self.attacks[n]:7d} attacks, closest truth "
            f"{self.truth[n][0]:.6f} ({self.truth[n][1]}), labelled {self.labelled[n]:.6f}"
            for n in sorted(self.attacks)
        )


def main() -> int:
    """Run the search."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=300, help="starts of each kind")
    parser.add_argument("--climb", type=int, default=12, help="random steps from each start")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    options = parser.parse_args()
    crossed = 0
    for name in options.kinds:
        climb, began = Climb(name), time.process_time()
        for number in range(options.cases):
            climb.case(np.random.default_rng([options.seed, number]), options.climb)
        print(climb.table())
        print(f"{name}: {climb.attacks.total()} attacks in {time.process_time() - began:.0f} s")
        crossed += climb.crossed
    print(f"{crossed} crossings")
    return 1 if crossed else 0


if __name__ == "__main__":
    raise SystemExit(main())
