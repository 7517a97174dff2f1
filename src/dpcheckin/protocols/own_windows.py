"""Random check-ins in windows of the clients' own (P2, arXiv 2007.06605v2, Definition 3.1).

Client j picks a slot of its own set R_j with probability p_j, each slot asks one of those who picked it, evenly, and an
empty slot gets a randomized dummy. What a client is guaranteed depends on its own window alone, so the shortest window
with the highest probability prices the plan for everybody (docs/random-check-ins.md). A simulated round is one gradient
step of `minibatch` slots.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpcheckin import accounting
from dpcheckin.accounting import Bracket, Guarantee, Round, WindowRound, compose
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import at_least, count
from dpcheckin.protocols.plan import Clients, Cohort, Plan, Reveals, generator_for
from dpcheckin.protocols.random_check_ins import by_slot, one_of_each
from dpcheckin.randomizers import Randomizer

_SLOTS, _QUERY = 23, 24


class ClientWindows:
    """Each client's set of slots, and the probability that it checks in at all.

    Args:
        slots: for each client, the slots it may choose from, counted from 0.
        probabilities: for each client, or one number for all.

    >>> windows = ClientWindows([range(0, 4), range(2, 8)], 0.5)
    >>> windows.population, windows.shortest, windows.last
    (2, 4, 7)
    """

    def __init__(self, slots: Iterable[Sequence[int]], probabilities: float | Sequence[float] = 1.0) -> None:
        sets = [np.asarray(window, dtype=np.int64) for window in slots]
        for client, window in enumerate(sets):
            if not len(window) or window.min() < 0 or len(np.unique(window)) != len(window):
                typed = f"client {client}: {window.tolist()}"
                raise InvalidParameter("slots", typed, "different numbers of at least 0")
        if not sets:
            raise InvalidParameter("slots", 0, "the window of at least one client")
        chances = np.broadcast_to(np.asarray(probabilities, dtype=np.float64), len(sets))
        if not ((chances > 0) & (chances <= 1)).all():
            raise InvalidParameter("probabilities", probabilities, "in (0, 1]")
        self.flat = np.concatenate(sets)
        self.lengths = np.array([len(window) for window in sets], dtype=np.int64)
        self.probabilities = chances.copy()
        parts = (self.flat, self.lengths, self.probabilities)
        self._digest = hashlib.sha256(b"|".join(part.tobytes() for part in parts)).hexdigest()

    @property
    def population(self) -> int:
        """Number of clients."""
        return len(self.lengths)

    @property
    def shortest(self) -> int:
        """Slots of the smallest window."""
        return int(self.lengths.min())

    @property
    def highest_probability(self) -> float:
        """The largest probability of a check-in."""
        return float(self.probabilities.max())

    @property
    def last(self) -> int:
        """The last slot that anybody may choose."""
        return int(self.flat.max())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClientWindows) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        return f"ClientWindows({self.population:,} clients, {self._digest[:16]})"


@dataclass(frozen=True)
class OwnWindows(Plan):
    """One pass: every client reports at most once, in a slot of its own window.

    Args:
        slots: of the whole run; windows lie within them.
        randomizer: what makes reports.
        windows: whose slots are whose.
        minibatch: slots to a gradient step.
    """

    slots: int
    randomizer: Randomizer
    windows: ClientWindows
    minibatch: int = 1

    reveals = Reveals.NAMED

    def __post_init__(self) -> None:
        at_least("population", self.population, 2)
        at_least("slots", self.slots, 1)
        at_least("minibatch", self.minibatch, 1)
        if self.windows.last >= self.slots:
            raise InvalidParameter("windows", f"slot {self.windows.last}", f"slots 0 to {self.slots - 1}")
        if self.slots % self.minibatch:
            raise InvalidParameter("minibatch", self.minibatch, f"a divisor of {self.slots:,}")

    @property
    def population(self) -> int:  # type: ignore[override]
        return self.windows.population

    @property
    def rounds(self) -> int:  # type: ignore[override]
        """Gradient steps of the whole run."""
        return self.slots // self.minibatch

    def slot_clients(self, seed: int, slot: int) -> Clients:
        """Who checked in to a `slot` (counted from 0), by `seed`."""
        order, starts = _assigned(self, seed)
        return order[starts[slot] : starts[slot + 1]]

    def cohort(self, seed: int, round_index: int) -> Cohort:
        first = round_index * self.minibatch
        slots = [self.slot_clients(seed, first + i) for i in range(self.minibatch)]
        return one_of_each(slots, generator_for(seed, round_index, _QUERY))

    def accounting_round(self, rounds: int) -> WindowRound:
        """The window worst off after so many steps, at least one: the shortest, all over as soon as it can be."""
        shortest = self.windows.shortest
        passed = min(rounds * self.minibatch, shortest)
        return WindowRound(shortest, self.randomizer.pair, self.windows.highest_probability, passed)

    def parts(self, delta: float) -> tuple[Round, int]:
        return self.accounting_round(max(self.rounds, 1)), 1

    def spent(self, delta: float, rounds: int) -> Bracket:
        return compose([(self.accounting_round(rounds), 1)]).epsilon(delta)

    def guarantee(self, delta: float, rounds: int | None = None) -> Guarantee:
        rounds = self.rounds if rounds is None else count("rounds", rounds, 0, self.rounds)
        counted = 1 if rounds else 0
        return accounting.guarantee([(self.accounting_round(max(rounds, 1)), counted)], delta=delta)

    def describe(self) -> str:
        return (
            f"random check-ins, {self.population:,} clients' own windows of at least "
            f"{self.windows.shortest:,} of {self.slots:,} slots"
        )


@lru_cache(maxsize=4)
def _assigned(plan: OwnWindows, seed: int) -> tuple[Clients, Clients]:
    draw, windows = generator_for(seed, 0, _SLOTS), plan.windows
    there = draw.random(windows.population) < windows.probabilities
    starts = np.concatenate([[0], np.cumsum(windows.lengths)[:-1]])
    chosen = starts + draw.integers(windows.lengths)
    clients = np.flatnonzero(there).astype(np.int64)
    return by_slot(clients, windows.flat[chosen[clients]], plan.slots)
