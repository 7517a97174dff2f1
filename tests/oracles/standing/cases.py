"""Random runs of one to three rounds, each found again by its kind, seed and index."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from oracles.standing.protocols import PROTOCOLS, DrawnRound
from oracles.standing.randomizers import RANDOMIZERS, Random

# A run's rounds, the number of clients and the alphabets shrink together, so that a case costs
# milliseconds: the most clients by number of rounds.
_LARGEST = {1: 6, 2: 4, 3: 3}

MIXED = "mixed"  # a run whose rounds are of different protocols and pairs

KINDS = (*(f"{protocol}/{randomizer}" for protocol in PROTOCOLS for randomizer in RANDOMIZERS), MIXED)


@dataclass(frozen=True)
class Case:
    """A run and the questions asked about it."""

    kind: str
    seed: int
    index: int
    rounds: tuple[tuple[DrawnRound, int], ...]
    delta: float
    epsilon: float
    continuous: bool

    @property
    def text(self) -> str:
        """The run with the package's public names."""
        return "[" + ", ".join(f"({one.text}, {count})" for one, count in self.rounds) + "]"

    @property
    def source(self) -> str:
        """How to get this very case again."""
        if self.kind not in KINDS:
            return self.kind
        return (
            "from oracles.standing import cases, checks; "
            f"checks.examine(cases.draw({self.kind!r}, seed={self.seed}, index={self.index}))"
        )

    @property
    def length(self) -> int:
        """The number of rounds."""
        return sum(count for _, count in self.rounds)


def _one(rng: Random, protocol: str, randomizer: str, length: int) -> tuple[DrawnRound, bool]:
    drawn = RANDOMIZERS[randomizer](rng, length > 1)
    symbols = max(m.shape[1] for m in (*drawn.covered, *drawn.attained))
    largest = max(_LARGEST[length] - max(symbols - 4, 0) // 2, 2)
    if length > 1 and protocol in ("uneven", "dropout", "window-crowd"):
        largest = min(largest, 3)  # every client has a rate or a slot besides its data
    return PROTOCOLS[protocol](rng, drawn, largest), drawn.continuous


def draw(kind: str, seed: int, index: int) -> Case:
    """Case number `index` of this kind."""
    rng = np.random.default_rng([seed, zlib.crc32(kind.encode()), index])
    length = int(rng.choice([1, 2, 3], p=[0.45, 0.4, 0.15]))
    rounds: list[tuple[DrawnRound, int]] = []
    continuous = False
    if kind == MIXED:
        length = max(length, 2)
        for _ in range(length):
            protocol = str(rng.choice(list(PROTOCOLS)))
            randomizer = str(rng.choice([r for r in RANDOMIZERS if r not in ("laplace", "gaussian")]))
            rounds.append((_one(rng, protocol, randomizer, length)[0], 1))
    else:
        protocol, randomizer = kind.split("/")
        one, continuous = _one(rng, protocol, randomizer, length)
        rounds.append((one, length))
    small = rng.random() < 0.15
    exponent = rng.uniform(-9, -5) if small else rng.uniform(-4, -0.3)
    delta = float(f"{10**exponent:.2g}")
    epsilon = float(rng.choice([0.0, round(rng.uniform(0, 1), 2), round(rng.exponential(2.0), 2)]))
    return Case(kind, seed, index, tuple(rounds), delta, epsilon, continuous)
