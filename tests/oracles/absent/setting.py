"""What an attack is made of: a run as the package spells it, and the truth about some data sets of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oracles.absent.crowd import Array

Random = np.random.Generator
Truth = Callable[[Array], Array]
"""Exact delta (or less) at each epsilon for each data set: epsilons x data sets."""


@dataclass(frozen=True)
class Setting:
    """One run and many data sets; every data set is one attack.

    `text`: rounds and how often, with the package's public names. `data`: a word on each data set. `attained`: truth
    about data sets among which must be the one that the package's lower bound has in mind; none if that is not known.
    `crowded`: up to which epsilon hiding is left to the crowd; quotients beyond are told apart.
    """

    text: str
    epsilons: Array
    truth: Truth
    data: Callable[[int], str]
    attained: Truth | None = None
    crowded: float = -1.0


def epsilons(rng: Random, largest: float, clients: float, count: int = 8) -> Array:
    """Where to look: from 0 to about the local epsilon, denser where a crowd hides most."""
    scale = largest * min(1.0, float(rng.uniform(1.0, 8.0)) / np.sqrt(max(clients, 1.0)))
    found = np.concatenate([[0.0], rng.uniform(0.0, scale, count - 3), rng.uniform(0.0, 1.02 * largest, 2)])
    return np.sort(found)
