"""Random check-ins (P2): each client picks one slot of a window and reports at most once.

Three protocols. `fixed`: at each slot the server queries one of the clients that checked in, or
makes a dummy update when nobody did; a gradient step follows every `minibatch` slots (Algorithm
1). `averaged`: all clients of a slot are averaged, an empty slot is skipped (Algorithm 2).
`sliding`: client j's window is slots j, …, j + window - 1, and the slots from `window` on are
used (section 4.2). A simulated round is one gradient step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpcheckin import accounting
from dpcheckin.accounting import (
    Bracket,
    Guarantee,
    LocalPair,
    WindowRound,
    averaged_window,
    compose,
)
from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols.plan import Cohort, Plan, Reveals, generator_for
from dpcheckin.randomizers import Randomizer
from dpcheckin.randomizers.base import at_least

_SLOTS, _QUERY = 21, 22
LOAD_SHARE = 0.5  # part of delta that pays for unlucky loads, as in the catalogue of bounds


class Window(Enum):
    """Which of the three protocols."""

    FIXED = "fixed"
    AVERAGED = "averaged"
    SLIDING = "sliding"


@dataclass(frozen=True)
class RandomCheckIns(Plan):
    """One pass over the population: every client reports at most once.

    `slots` is the length of the window. A fixed window has slots / minibatch rounds, an averaged
    one `slots`, a sliding one (population - slots + 1) / minibatch.
    """

    population: int
    slots: int
    randomizer: Randomizer
    window: Window = Window.FIXED
    check_in_probability: float = 1.0
    minibatch: int = 1

    reveals = Reveals.NAMED

    def __post_init__(self) -> None:
        at_least("population", self.population, 2)
        at_least("slots", self.slots, 2)
        at_least("minibatch", self.minibatch, 1)
        if not 0 < self.check_in_probability <= 1:
            raise InvalidParameter("check_in_probability", self.check_in_probability, "in (0, 1]")
        if self.window is not Window.FIXED and self.check_in_probability != 1:
            raise InvalidParameter(
                "check_in_probability",
                self.check_in_probability,
                f"1 with the {self.window.value} window (P2 Theorems 4.1 and 4.3)",
            )
        if self.window is Window.AVERAGED and self.minibatch != 1:
            raise InvalidParameter("minibatch", self.minibatch, "1 with the averaged window")
        if self.window is Window.SLIDING and self.slots > self.population:
            raise InvalidParameter("slots", self.slots, f"at most {self.population} clients")
        if self.used_slots % self.minibatch:
            raise InvalidParameter("minibatch", self.minibatch, f"a divisor of {self.used_slots}")

    @property
    def used_slots(self) -> int:
        """Slots at which the model takes in a report."""
        if self.window is Window.SLIDING:
            return self.population - self.slots + 1
        return self.slots

    @property
    def rounds(self) -> int:  # type: ignore[override]
        """Gradient steps of the whole run."""
        return self.used_slots // self.minibatch

    def loads(self, seed: int) -> NDArray[np.int64]:
        """How many clients checked in to each slot."""
        _, starts = _assigned(self, seed)
        return np.diff(starts)

    def slot_clients(self, seed: int, slot: int) -> NDArray[np.int64]:
        """Who checked in to a slot (counted from 0)."""
        order, starts = _assigned(self, seed)
        return order[starts[slot] : starts[slot + 1]]

    def cohort(self, seed: int, round_index: int) -> Cohort:
        if self.window is Window.AVERAGED:
            return Cohort(self.slot_clients(seed, round_index))
        first = round_index * self.minibatch
        if self.window is Window.SLIDING:
            first += self.slots - 1
        query = generator_for(seed, round_index, _QUERY)
        there = [self.slot_clients(seed, first + i) for i in range(self.minibatch)]
        asked = [clients[query.integers(len(clients))] for clients in there if len(clients)]
        dummies = self.minibatch - len(asked)
        return Cohort(np.array(asked, dtype=np.int64), dummies, self.minibatch)

    def spent(self, delta: float, rounds: int) -> Bracket:
        if self.window is not Window.AVERAGED:
            return compose([(self._window(rounds), 1)]).epsilon(delta)
        return averaged_guarantee(
            self.population, self.slots, self.randomizer.pair, 1, delta, elapsed=rounds
        ).epsilon

    def _window(self, rounds: int) -> WindowRound:
        """The window as accounting describes it; some client's whole sliding window may be over."""
        if self.window is Window.SLIDING:
            return WindowRound(self.slots, self.randomizer.pair)
        passed = rounds * self.minibatch
        return WindowRound(
            self.slots,
            self.randomizer.pair,
            self.check_in_probability,
            passed,
            others=self.population - 1,
        )

    def guarantee(self, delta: float, rounds: int | None = None) -> Guarantee:
        rounds = self._checked_rounds(rounds)
        if self.window is not Window.AVERAGED:
            return accounting.guarantee([(self._window(rounds), 1)], delta=delta)
        stated = averaged_guarantee(
            self.population, self.slots, self.randomizer.pair, 1, delta, elapsed=max(rounds, 1)
        )
        return stated if rounds else replace(stated, epsilon=Bracket(0.0, 0.0))

    def describe(self) -> str:
        return f"random check-ins, {self.window.value} window of {self.slots:,} slots"


def averaged_guarantee(
    population: int,
    slots: int,
    pair: LocalPair,
    windows: int,
    delta: float,
    elapsed: int | None = None,
) -> Guarantee:
    """Averaged windows by the better of two theorems.

    All reports of one window are one shuffle, and its slots are steps one after the other.

    Args:
        population: Clients, each of which picks a slot in every window.
        slots: Of a window.
        pair: A pure local pair.
        windows: How many there are.
        delta: Of the statement.
        elapsed: Slots that have passed; None for all.
    """
    unlucky = LOAD_SHARE * delta / max(windows, 1)
    steps = averaged_window(population, slots, pair, unlucky, elapsed)
    stated = accounting.guarantee([(steps, windows)], delta)
    if windows != 1:
        return stated
    from dpcheckin.accounting.published import clones  # brings the whole catalogue along

    as_shuffle = clones.numerical(pair.local_epsilon, population, delta)
    if as_shuffle > stated.epsilon.upper:
        return stated
    return replace(
        stated,
        epsilon=Bracket(min(as_shuffle, stated.epsilon.lower), as_shuffle),
        basis=(
            "Feldman, McMillan, Talwar (arXiv 2012.12803v3) Theorem 3.2 for adaptive "
            "sequences: given the slots' loads, all reports are one shuffle",
        ),
    )


@lru_cache(maxsize=4)
def _assigned(plan: RandomCheckIns, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Clients sorted by slot, and where each slot begins: one pass over the check-ins."""
    draw = generator_for(seed, 0, _SLOTS)
    clients = np.arange(plan.population, dtype=np.int64)
    if plan.check_in_probability < 1:
        clients = clients[draw.random(plan.population) < plan.check_in_probability]
    picked = draw.integers(plan.slots, size=len(clients))
    last = plan.slots
    if plan.window is Window.SLIDING:
        picked, last = picked + clients, plan.population + plan.slots - 1
    order = np.argsort(picked, kind="stable")
    starts = np.searchsorted(picked[order], np.arange(last + 1))
    return clients[order], starts
