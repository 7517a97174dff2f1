"""Random check-ins (P2): each client picks one slot of a window and reports at most once.

Three protocols. `fixed`: at each slot the server queries one of the clients that checked in, or makes a dummy update
when nobody did; a gradient step follows every `minibatch` slots (Algorithm 1). `averaged`: all clients of a slot are
averaged, an empty slot is skipped (Algorithm 2). `sliding`: client j's window is slots j, …, j + window - 1, and the
slots from `window` on are used (section 4.2). A simulated round is one gradient step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

import numpy as np

from dpcheckin.accounting import (
    Adjacency,
    Bracket,
    Guarantee,
    LocalPair,
    LowerBound,
    Round,
    WindowRound,
    averaged_window,
    compose,
    guarantee,
    lower_bound,
)
from dpcheckin.accounting.composition import clones
from dpcheckin.accounting.rounds.averaged import AveragedRound
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import at_least, count
from dpcheckin.protocols.plan import Clients, Cohort, Plan, Reveals, generator_for
from dpcheckin.randomizers import AnyRandomizer, DaryResponse, Randomizer

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

    `slots` is the length of the window. A fixed window has slots / minibatch rounds, an averaged one `slots`, a sliding
    one (population - slots + 1) / minibatch. Fixed and averaged windows may be repeated, one after the other, with
    fresh choices of every client (P2 Corollary 3.3): every client then reports at most once in each of them.

    Args:
        population: clients.
        slots: of the window.
        randomizer: what makes reports.
        window: which of the three protocols.
        check_in_probability: with which a client chooses a slot at all; not with averaged windows.
        minibatch: slots to a gradient step.
        repetitions: windows, one after the other.
    """

    population: int
    slots: int
    randomizer: Randomizer
    window: Window = Window.FIXED
    check_in_probability: float = 1.0
    minibatch: int = 1
    repetitions: int = 1

    reveals = Reveals.NAMED

    def __post_init__(self) -> None:
        at_least("population", self.population, 1)
        at_least("slots", self.slots, 1)
        at_least("minibatch", self.minibatch, 1)
        at_least("repetitions", self.repetitions, 1)
        if self.window is Window.SLIDING and self.repetitions != 1:
            raise InvalidParameter("repetitions", self.repetitions, "1 with the sliding window")
        if not 0 < self.check_in_probability <= 1:
            raise InvalidParameter("check_in_probability", self.check_in_probability, "in (0, 1]")
        if self.window is Window.AVERAGED and self.check_in_probability != 1:
            allowed = "1 with the averaged window (P2 Theorem 4.1)"
            raise InvalidParameter("check_in_probability", self.check_in_probability, allowed)
        if self.window is Window.AVERAGED and self.minibatch != 1:
            raise InvalidParameter("minibatch", self.minibatch, "1 with the averaged window")
        if self.window is Window.SLIDING and self.slots > self.population:
            raise InvalidParameter("slots", self.slots, f"at most {self.population:,} clients")
        if self.used_slots % self.minibatch:
            raise InvalidParameter("minibatch", self.minibatch, f"a divisor of {self.used_slots:,}")

    @property
    def used_slots(self) -> int:
        """Slots at which the model takes in a report."""
        if self.window is Window.SLIDING:
            return self.population - self.slots + 1
        return self.slots

    @property
    def steps(self) -> int:
        """Gradient steps of one window."""
        return self.used_slots // self.minibatch

    @property
    def rounds(self) -> int:  # type: ignore[override]
        """Gradient steps of the whole run."""
        return self.steps * self.repetitions

    def loads(self, seed: int, repetition: int = 0) -> Clients:
        """How many clients checked in to each slot of window `repetition`, by `seed`."""
        _, starts = _assigned(self, seed, repetition)
        return np.diff(starts)

    def slot_clients(self, seed: int, slot: int, repetition: int = 0) -> Clients:
        """Who checked in to a `slot` (counted from 0) of window `repetition`, by `seed`."""
        order, starts = _assigned(self, seed, repetition)
        return order[starts[slot] : starts[slot + 1]]

    def cohort(self, seed: int, round_index: int) -> Cohort:
        repetition, step = divmod(round_index, self.steps)
        if self.window is Window.AVERAGED:
            return Cohort(self.slot_clients(seed, step, repetition))
        first = step * self.minibatch
        if self.window is Window.SLIDING:
            first += self.slots - 1
        slots = [self.slot_clients(seed, first + i, repetition) for i in range(self.minibatch)]
        return one_of_each(slots, generator_for(seed, round_index, _QUERY))

    def spent(self, delta: float, rounds: int) -> Bracket:
        if self.window is not Window.AVERAGED:
            return compose(self._windows(rounds)).epsilon(delta)
        return self._averaged(delta, rounds).epsilon

    def _averaged(self, delta: float, rounds: int) -> Guarantee:
        """Whole windows, and the one that is not over."""
        whole, begun = divmod(rounds, self.steps)
        parts: list[tuple[int | None, int]] = [(None, whole), (begun, 1)]
        return averaged_guarantee(self.population, self.slots, self.randomizer.pair, parts, delta)

    def _windows(self, rounds: int) -> list[tuple[WindowRound, int]]:
        """Whole windows, and the one that is not over."""
        whole, begun = divmod(rounds, self.steps)
        parts = [(self._window(self.steps), whole)] if whole else []
        return [*parts, (self._window(begun), 1)] if begun else parts

    def _window(self, rounds: int | None) -> WindowRound:
        """The window as accounting describes it, after so many steps; None for all of them.

        Of a sliding window some client's may be over at any time.
        """
        if self.window is Window.SLIDING:
            return WindowRound(self.slots, self.randomizer.pair, self.check_in_probability)
        passed = None if rounds in (None, self.steps) else rounds * self.minibatch
        return WindowRound(
            self.slots, self.randomizer.pair, self.check_in_probability, passed, others=self.population - 1
        )

    def parts(self, delta: float) -> tuple[Round, int]:
        if self.window is not Window.AVERAGED:
            return self._window(None), self.repetitions
        # the sum of what stands for symbols is a count of each
        counted = isinstance(self.randomizer, DaryResponse | AnyRandomizer)
        averaged = AveragedRound(self.population, self.slots, self.randomizer.pair, counted=counted)
        return averaged, self.repetitions

    def lower_bound(self, delta: float) -> LowerBound:
        if self.window is Window.AVERAGED:
            averaged, times = self.parts(delta)
            if averaged.lower_seats(self.randomizer.pair) is None:
                return LowerBound(Bracket(0.0, math.inf), delta, Adjacency.REPLACE_ONE, ())
            return lower_bound([(averaged, times)], delta)
        one = self._window(None)
        if self.window is Window.SLIDING:  # open to as many clients as there are slots
            one = replace(one, others=one.slots - 1)
        return lower_bound([(one, self.repetitions)], delta)

    def guarantee(self, delta: float, rounds: int | None = None) -> Guarantee:
        rounds = self.rounds if rounds is None else count("rounds", rounds, 0, self.rounds)
        if self.window is not Window.AVERAGED:
            parts = self._windows(rounds) or [(self._window(1), 0)]
            return guarantee(parts, delta=delta)
        stated = self._averaged(delta, max(rounds, 1))
        return stated if rounds else replace(stated, epsilon=Bracket(0.0, 0.0))

    def describe(self) -> str:
        windows = "window" if self.repetitions == 1 else "windows"
        times = "" if self.repetitions == 1 else f"{self.repetitions:,} "
        return f"random check-ins, {times}{self.window.value} {windows} of {self.slots:,} slots"


def averaged_guarantee(
    population: int, slots: int, pair: LocalPair, parts: Sequence[tuple[int | None, int]], delta: float
) -> Guarantee:
    """Averaged windows of `slots` in a `population` at `delta`, by the best theorem.

    `pair`: what a report gives away. `parts`: slots that have passed, None for all, and how often.
    """
    parts = [part for part in parts if part[0] != 0 and part[1]]
    stated = guarantee([(AveragedRound(population, slots, pair, passed), n) for passed, n in parts], delta)
    if not pair.pure:
        return stated
    windows = sum(n for _, n in parts)
    unlucky = LOAD_SHARE * delta / windows
    steps = [(averaged_window(population, slots, pair, unlucky, passed), n) for passed, n in parts]
    stated = min(stated, guarantee(steps, delta), key=lambda one: one.epsilon.upper)
    as_shuffle = clones.numerical(pair.local_epsilon, population, delta) if windows == 1 else math.inf
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


def one_of_each(slots: Sequence[Clients], query: np.random.Generator) -> Cohort:
    """One client of each of the `slots`, drawn by `query`; a dummy for a slot where nobody is."""
    asked = [clients[query.integers(len(clients))] for clients in slots if len(clients)]
    return Cohort(np.array(asked, dtype=np.int64), len(slots) - len(asked), len(slots))


def by_slot(clients: Clients, picked: Clients, slots: int) -> tuple[Clients, Clients]:
    """The `clients` sorted by the slot that each has `picked`, and where each of the `slots` begins."""
    order = np.argsort(picked, kind="stable")
    return clients[order], np.searchsorted(picked[order], np.arange(slots + 1))


@lru_cache(maxsize=4)
def _assigned(plan: RandomCheckIns, seed: int, repetition: int) -> tuple[Clients, Clients]:
    draw = generator_for(seed, repetition, _SLOTS)
    clients = np.arange(plan.population, dtype=np.int64)
    if plan.check_in_probability < 1:
        clients = clients[draw.random(plan.population) < plan.check_in_probability]
    picked = draw.integers(plan.slots, size=len(clients))
    if plan.window is Window.SLIDING:
        return by_slot(clients, picked + clients, plan.population + plan.slots - 1)
    return by_slot(clients, picked, plan.slots)
