"""Holding what is true against what the package promises, and keeping count.

One attack is one data set of one run, at several epsilons and in both directions.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import dpcheckin as dp
from dpcheckin.errors import InvalidParameter, NumericalFailure, OutsideTheorem, Unreachable
from oracles.absent.crowd import Array
from oracles.absent.setting import Random, Setting

REFUSALS = (InvalidParameter, OutsideTheorem, Unreachable)
Draw = Callable[[Random], Setting]
Promise = Callable[[str, Array], Array]
RELATIVE, ABSOLUTE = 1e-9, 1e-13  # what sums of doubles may be off by
IDLE = 60  # refusals in a row after which a kind is left alone
TELLING = 1e-11  # deltas below this count for no quotient


class _FrontDoor(dict[str, Any]):
    """The package's public names."""

    def __missing__(self, name: str) -> Any:
        return getattr(dp, name)


def named(text: str) -> Any:
    """What this text says, in the package's public names."""
    return eval(text, {"__builtins__": {}}, _FrontDoor())  # our own text


def promised(text: str, at: Array) -> Array:
    """The package's delta of these rounds at each epsilon."""
    found = dp.compose(named(text)).delta(np.asarray(at)).upper
    dp.clear_cache()
    return np.asarray(found, dtype=float)


@dataclass
class Tally:
    """What came of the attacks of one kind."""

    attacks: int = 0
    settings: int = 0
    refused: int = 0
    lower: int = 0
    closest: tuple[float, str] = (0.0, "")
    crowded: tuple[float, str] = (0.0, "")
    done: bool = False  # everything is refused
    crossings: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)  # no figure, and not for want of a theorem
    refusals: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


def attack(setting: Setting, promise: Promise, tally: Tally, told: str) -> None:
    """All data sets of one run."""
    promises = promise(setting.text, setting.epsilons)  # refuses before anything is computed
    truths = setting.truth(setting.epsilons)
    tally.attacks += truths.shape[1]
    stands = truths <= promises[:, None] * (1.0 + RELATIVE) + ABSOLUTE
    for i, j in np.argwhere(~stands)[:3]:
        tally.crossings.append(
            f"delta({setting.epsilons[i]!r}) of {setting.text} promised {promises[i]!r}, true {truths[i, j]!r}: "
            f"{setting.data(int(j))}; {told}"
        )
    with np.errstate(invalid="ignore", divide="ignore"):
        quotients = np.where(truths > TELLING, truths / promises[:, None], 0.0)
    tally.closest = max(tally.closest, _largest(setting, quotients, told))
    inside = (setting.epsilons <= setting.crowded)[:, None]
    tally.crowded = max(tally.crowded, _largest(setting, np.where(inside, quotients, 0.0), told))


def _largest(setting: Setting, quotients: Array, told: str) -> tuple[float, str]:
    i, j = np.unravel_index(int(np.argmax(quotients)), quotients.shape)
    where = f"delta({setting.epsilons[i]:.6g}) of {setting.text}, {setting.data(int(j))}; {told}"
    return float(quotients[i, j]), where


def lower_bound(rng: Random, setting: Setting, tally: Tally, told: str) -> None:
    """What the package calls a lower bound is lost on some data set."""
    if setting.attained is None:
        return
    top = float(setting.attained(np.zeros(1)).max())
    delta = top * float(10.0 ** rng.uniform(-5.0, -0.3))
    if not 1e-9 < delta < 0.9:
        return
    claimed = dp.lower_bound(named(setting.text), delta).epsilon.lower
    dp.clear_cache()
    tally.lower += 1
    truth = float(setting.attained(np.array([claimed])).max())
    if claimed != 0 and not truth >= delta * (1.0 - RELATIVE):
        tally.crossings.append(
            f"LOWER BOUND of {setting.text} at delta {delta!r} claims {claimed!r}, where {truth!r} is lost; {told}"
        )


def campaign(
    name: str,
    draw: Draw,
    seed: int,
    attacks: int,
    tally: Tally,
    promise: Promise = promised,
    seconds: float = float("inf"),
    lower: float = 0.15,
) -> None:
    """Settings one after the other, until there were so many attacks in all; they are numbered by the tally."""
    idle = 0
    ends = time.process_time() + seconds
    while tally.attacks < attacks and time.process_time() < ends and not tally.done:
        rng = np.random.default_rng([seed, *name.encode(), tally.settings])
        told = f"repeat({name!r}, {seed}, {tally.settings})"
        tally.settings += 1
        began, before = time.process_time(), tally.attacks
        setting = draw(rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                attack(setting, promise, tally, told)
                if rng.random() < lower:
                    lower_bound(rng, setting, tally, told)
            except REFUSALS as refusal:
                tally.refused += 1
                tally.refusals[f"{type(refusal).__name__}: {refusal}"[:110]] += 1
            except NumericalFailure as failure:
                tally.failures.append(f"{failure}: {setting.text} at {setting.epsilons.tolist()}; {told}")
        idle = 0 if tally.attacks > before else idle + 1
        tally.done = idle >= IDLE
        tally.seconds += time.process_time() - began
