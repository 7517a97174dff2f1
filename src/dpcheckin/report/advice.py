"""Which randomizer of l2-bounded vectors loses least privacy at a given error per report.

Each family is tuned until one report of a vector at the clipping norm has the wanted mean squared error (in units of
the squared norm); then the same run of shuffled check-in is accounted for with its local pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpcheckin.accounting import CheckInRound, compose
from dpcheckin.errors import OutsideTheorem
from dpcheckin.numerals import at_least, positive
from dpcheckin.randomizers import Gaussian, IntegerVector, VectorRandomizer, registry
from dpcheckin.special.roots import switch

LARGEST_LOCAL_EPSILON = 30.0


@dataclass(frozen=True)
class Tuned:
    """One randomizer tuned to the error, and what the run costs with it (None: cannot)."""

    randomizer: str
    epsilon: float | None
    note: str | None = None


def advise(
    variance: float,
    dimension: int,
    population: int,
    rate: float,
    rounds: int,
    delta: float,
    on_randomizer: Callable[[str], None] = lambda _: None,
) -> list[Tuned]:
    """Randomizers of vectors tuned to the variance, with the epsilon of the run at `delta`, the least first.

    `variance` is the mean squared error of one report in units of the squared norm, `dimension` that of the vectors;
    `population`, `rate` and `rounds` are those of shuffled check-in. `on_randomizer` is told which one is next.

    >>> best = advise(2_000.0, 1_000, 10_000, 0.05, 100, 1e-5)[0]
    >>> best.randomizer.split(",")[0]
    'PrivUnit'
    """
    positive("variance", variance)
    at_least("dimension", dimension, 2)
    out = []
    for kind in registry.kinds().values():
        if not issubclass(kind, VectorRandomizer) or kind.norm != 2:
            continue
        if issubclass(kind, IntegerVector):  # has a price in sums only
            continue
        on_randomizer(kind.label)
        chosen = _tuned(kind, variance, dimension)
        if chosen is None:
            why = "its error stays above this at every local epsilon"
            out.append(Tuned(kind.label, None, why))
            continue
        try:
            one = CheckInRound(population, rate, chosen.pair)
            epsilon = compose([(one, rounds)]).epsilon(delta).upper
            out.append(Tuned(chosen.describe(), epsilon))
        except OutsideTheorem as reason:
            out.append(Tuned(chosen.describe(), None, str(reason)))
    return sorted(out, key=lambda a: (a.epsilon is None, a.epsilon or 0.0))


def _tuned(kind: type[VectorRandomizer], variance: float, dimension: int) -> VectorRandomizer | None:
    """The least local epsilon whose error is at most the wanted one, or so much normal noise."""
    if issubclass(kind, Gaussian):
        return kind(math.sqrt(variance / dimension))

    size = {"dimension": dimension} if "dimension" in registry.parameters(kind) else {}

    def make(local_epsilon: float) -> VectorRandomizer:
        made = registry.usual(kind, **size, **{kind.noise_field: local_epsilon})
        assert isinstance(made, VectorRandomizer)
        return made

    vector = np.zeros((1, dimension))
    vector[0, 0] = 1.0

    def error(local_epsilon: float) -> float:
        return float(make(local_epsilon).total_variance(vector)[0])

    low, high = math.log(1e-3), math.log(LARGEST_LOCAL_EPSILON)
    if error(LARGEST_LOCAL_EPSILON) > variance:
        return None
    enough, _ = switch(lambda power: error(math.exp(power)) <= variance, high, low, absolute=(high - low) * 2.0**-50)
    return make(math.exp(enough))
