"""Shuffled Gaussian reports against one fixed background (P1 Theorem 3 and P4 Theorem 1's pair): LOWER bounds on
epsilon.

Everybody else holds one value, the target moves by `sensitivity` (in clipping norms, as is the noise multiplier). It is
one pair of datasets: the mechanism is at least as bad. The pair's loss distribution is computed in `accounting`.
"""

from __future__ import annotations

from dpcheckin.accounting import CheckInRound, Round, SubsampleRound, gaussian, lower_bound
from dpcheckin.accounting.statements import Bracket
from dpcheckin.numerals import count, positive


def check_in_epsilon(
    population: int, rate: float, noise_multiplier: float, rounds: int, delta: float, *, sensitivity: float = 2.0
) -> Bracket:
    """Epsilon at delta of this pair over so many rounds of shuffled check-in of a population, at least.

    Clients check in at this rate, with noise_multiplier and sensitivity in clipping norms.

    >>> mnist = check_in_epsilon(60_000, 1e-3, 0.86, 100_000, 1 / 60_000)  # P1 Figures 2 and 6
    >>> 3.759 < mnist.lower < 3.76
    True
    """
    positive("rate", rate, 1.0)
    one = CheckInRound(population, rate, gaussian(2.0 * noise_multiplier / positive("sensitivity", sensitivity)))
    return _lower(one, rounds, delta)


def subsample_epsilon(
    population: int, cohort: int, noise_multiplier: float, rounds: int, delta: float, *, sensitivity: float = 2.0
) -> Bracket:
    """The same for a random cohort of the population: noise_multiplier, sensitivity, rounds, delta."""
    count("cohort", cohort, largest=population)
    one = SubsampleRound(population, cohort, gaussian(2.0 * noise_multiplier / positive("sensitivity", sensitivity)))
    return _lower(one, rounds, delta)


def _lower(one: Round, rounds: int, delta: float) -> Bracket:
    return lower_bound([(one, rounds)], delta).epsilon
