"""LOWER bound: three-valued response, everybody else on the third value.

Exact for one pair of datasets, so no guarantee for all pure randomizers can lie below it.  Thin
wrappers round :mod:`dpcheckin.accounting.lower_bounds` for callers that hold plain numbers.
"""

from __future__ import annotations

from dpcheckin.accounting.local_pairs import dary_response
from dpcheckin.accounting.lower_bounds import lower_bound
from dpcheckin.accounting.rounds import CheckInRound, SubsampleRound


def three_valued_lower(
    population: int, rate: float, local_epsilon: float, rounds: int, delta: float
) -> float:
    """Lower bound on epsilon of shuffled check-in with some pure randomizer.

    >>> 0.068 < three_valued_lower(10_000, 1e-2, 2.0, 100, 1e-4) < 0.0736
    True
    """
    one = CheckInRound(population, rate, dary_response(local_epsilon, 3))
    return lower_bound([(one, rounds)], delta).epsilon.lower


def three_valued_subsample_lower(
    population: int, cohort: int, local_epsilon: float, rounds: int, delta: float
) -> float:
    """The same for a fixed cohort."""
    one = SubsampleRound(population, cohort, dary_response(local_epsilon, 3))
    return lower_bound([(one, rounds)], delta).epsilon.lower
