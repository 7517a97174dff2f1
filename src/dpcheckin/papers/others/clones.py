"""Amplification by shuffling "among the clones": closed form, its condition, and the exact pair.

Feldman, McMillan and Talwar, arXiv 2012.12803v3: Theorem 3.1 (closed form, pure local epsilon), Theorem 3.2 (the pair
behind it, evaluated in `accounting.composition.clones`), Theorem 3.8 ((epsilon_0, delta_0) randomizers). Sound, and
superseded in this package by the empty-seat theorem; kept because four of the five papers build on it. Sampling and
composition on top are at the end of the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpcheckin.accounting.composition.clones import approximate_delta, check_local, numerical, numerical_delta
from dpcheckin.accounting.engine.curves import CurveFunction
from dpcheckin.accounting.engine.sampling import mixture, refined, visible_counts
from dpcheckin.accounting.pairs.gaussian import gaussian
from dpcheckin.errors import OutsideTheorem
from dpcheckin.numerals import count, positive, probability
from dpcheckin.papers.others import strong_composition
from dpcheckin.special import intervals
from dpcheckin.special.normal import gaussian_profile
from dpcheckin.special.roots import switch


def smallest_shuffle(local_epsilon: float, delta: float) -> float:
    """The number of reports of a local_epsilon that the closed form needs: n >= 16 e^eps0 log(2/delta).

    >>> round(smallest_shuffle(2.0, 1e-4))
    1171
    """
    check_local(local_epsilon, delta)
    return 16.0 * math.exp(local_epsilon) * math.log(2.0 / delta)


def closed_form(local_epsilon: float, reports: int, delta: float) -> float:
    """Theorem 3.1 for reports of this local_epsilon at delta; `OutsideTheorem` when there are too few of them.

    >>> round(closed_form(1.0, 10_000, 1e-6), 4)
    0.214
    """
    need = smallest_shuffle(local_epsilon, delta)
    if reports < need:
        raise OutsideTheorem(
            f"clones (arXiv 2012.12803v3, Thm 3.1) needs at least {math.ceil(need):,} reports for "
            f"local_epsilon = {local_epsilon:g} and delta = {delta:g}, got {reports:,}; "
            "use the exact pair (clones.numerical) or the empty-seat theorem"
        )
    return min(local_epsilon, formula(local_epsilon, reports, delta))


def formula(local_epsilon: float, reports: float, delta: float) -> float:
    """The closed form for reports, local_epsilon, delta without its condition, for P1 Table 2: not a guarantee."""
    e0 = math.exp(local_epsilon)
    inside = 8.0 * math.sqrt(e0 * math.log(4.0 / delta) / reports) + 8.0 * e0 / reports
    return math.log1p(math.tanh(local_epsilon / 2.0) * inside)


def subsampled(epsilon: float, delta: float, fraction: float) -> tuple[float, float]:
    """epsilon and delta on a fraction drawn without replacement (Balle et al., arXiv 1807.01647v2, Theorem 9)."""
    probability("fraction", fraction)
    return math.log1p(fraction * math.expm1(epsilon)), fraction * delta


def composed_subsample(
    population: int, cohort: int, local_epsilon: float, rounds: int, delta: float, *, exact: bool = False,
    compose: Callable[[float, int, float], float] = strong_composition.closed_form,
) -> float:  # fmt: skip
    """Clones, then subsampling, then strong composition, by `compose`; half of delta for each of the last two.

    A cohort of the population with reports of this local_epsilon, over so many rounds. With `exact` the pair of Theorem
    3.2 replaces the closed form. Where the closed form does not apply there is no amplification by shuffling, only by
    subsampling (P3, Appendix G).
    """
    count("cohort", cohort, largest=population)
    fraction = cohort / population
    per_round = min(0.5, delta / (2.0 * rounds) / fraction)  # before subsampling shrinks it
    shuffled = _shuffled(local_epsilon, cohort, per_round, exact)
    one_round, _ = subsampled(shuffled, per_round, fraction)
    return compose(one_round, rounds, delta / 2.0)


def composed_check_in(population: int, rate: float, local_epsilon: float, rounds: int, delta: float) -> float:
    """The same for shuffled check-in at a rate: P1 Theorem 1 with its slips repaired, strongly composed.

    Of a population, with reports of this local_epsilon. A quarter of delta, spread over the rounds, pays for rounds
    with more than l check-ins; the bound must hold for every k up to l, and since it grows with k on either side of the
    point where the closed form starts to apply, two values of k decide.
    """
    positive("rate", rate, 1.0)
    tail = delta / (4.0 * rounds)
    most = min(population, intervals.upper_quantile(tail, population, rate) + 1)
    per_round = min(0.5, delta / (4.0 * rounds) / (most / population))
    one_round = _at_most(most, population, local_epsilon, per_round)
    return strong_composition.closed_form(one_round, rounds, delta / 2.0)


def exact_check_in(population: int, rate: float, local_epsilon: float, rounds: int, delta: float) -> float:
    """The exact pair at every number of check-ins, sampled, composed as loss distributions.

    Of a population at a rate, with reports of this local_epsilon, over so many rounds, at delta. The number is seen,
    so its curves are averaged. Chords of a curve lie above it.
    """
    check_local(local_epsilon, delta)

    def shuffled(reports: float) -> CurveFunction:
        k = int(reports)
        deviation = 2.0 * math.tanh(local_epsilon / 2.0) / math.sqrt(1.0 + k * math.exp(-local_epsilon))
        near = deviation * np.concatenate([np.arange(0.0, 6.0, 0.1), np.arange(6.0, 10.0, 0.25)])
        losses = np.unique(np.minimum(np.append(near, local_epsilon), local_epsilon))
        values = [numerical_delta(local_epsilon, k, loss) for loss in losses.tolist()]
        return lambda alpha: np.interp(alpha, np.exp(losses), values)

    counts = visible_counts(population, rate, 24 if population * rate > 50.0 else 192, delta / rounds)
    one_round = mixture(population, counts, shuffled, lambda reports: np.zeros_like, delta / rounds)
    return min(rounds * local_epsilon, refined([(one_round, rounds)], delta)[1])


def _at_most(most: int, population: int, local_epsilon: float, delta: float) -> float:
    """Shuffled and sampled, whatever number of reports up to `most`."""
    starts = math.ceil(smallest_shuffle(local_epsilon, delta))
    return max(
        subsampled(_shuffled(local_epsilon, k, delta, False), 0.0, k / population)[0]
        for k in {most, max(1, min(most, starts - 1))}
    )


def _shuffled(local_epsilon: float, reports: int, delta: float, exact: bool) -> float:
    if exact:
        return numerical(local_epsilon, reports, delta)
    try:
        return closed_form(local_epsilon, reports, delta)
    except OutsideTheorem:
        return local_epsilon


def gaussian_check_in(population: int, rate: float, noise_multiplier: float, rounds: int, delta: float) -> float:
    """(eps_0, delta_0)-clones (Theorem 3.8), sampling, strong composition; best eps_0 of a grid.

    For a population at a rate with reports of this noise_multiplier, over so many rounds, at delta.
    """
    distance = 2.0 / noise_multiplier
    budget = delta / (4.0 * rounds)
    most = min(population, intervals.upper_quantile(budget, population, rate) + 1)
    fraction = most / population
    best = math.inf
    for local_epsilon in np.geomspace(0.05, 16.0, 120):
        e0 = float(local_epsilon)
        d0 = float(gaussian_profile(distance, np.array([math.exp(e0)]))[0])
        widest = approximate_delta(e0, d0, most, e0, 0.0)
        spare = budget / fraction - widest
        if spare <= 0.0:
            continue
        one_round = _at_most(most, population, e0, spare)
        best = min(best, strong_composition.closed_form(one_round, rounds, delta / 2.0))
    if math.isinf(best):
        raise OutsideTheorem(
            "n delta_0 exceeds the delta of a round for every local epsilon up to 16; "
            "the empty-seat theorem has no such term"
        )
    return best


def gaussian_shuffles(
    reports: int, noise_multiplier: float, rounds: int, delta: float, *, distance: float = 2.0, classical: bool = False
) -> float:
    """Full shuffles of Gaussian reports: Theorem 3.8 at the best eps_0, epsilons added up.

    There are so many rounds, each with delta / rounds. Two values are this distance apart, in clipping norms, as is the
    noise_multiplier of the reports. How the clones row of P4 Table 1 is made, with `classical` (a report's eps_0 by d
    sqrt(2 log(1.25/delta_0)) / sigma, which needs eps_0 <= 1; no guarantee) and distance 2, though the table says
    sensitivity 1.

    >>> round(gaussian_shuffles(60_000, 9.48, 1, 1 / 60_000, classical=True), 4)
    0.1851
    """
    shift, budget = distance / noise_multiplier, delta / rounds
    report = gaussian(2.0 / shift)  # two values 2 clipping norms apart

    def at(log_local_delta: float) -> tuple[float, float]:
        d0 = math.exp(log_local_delta)
        e0 = shift * math.sqrt(2.0 * math.log(1.25 / d0)) if classical else report.epsilon_within(d0)
        if e0 <= 0.0 or reports < smallest_shuffle(e0, d0):
            return e0, math.inf
        shuffled = closed_form(e0, reports, d0)
        return shuffled, approximate_delta(e0, d0, reports, shuffled, d0)

    low, high = math.log(1e-18), math.log(budget)
    if at(low)[1] > budget:
        raise OutsideTheorem("n delta_0 exceeds the delta of a shuffle for every eps_0")
    # the larger delta_0, the smaller epsilon
    best, _ = switch(lambda log: at(log)[1] <= budget, low, high, absolute=(high - low) / 2**50)
    return rounds * at(best)[0]
