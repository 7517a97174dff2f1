"""Catalogue entries about shuffled check-in and the subsampled shuffle with pure randomizers."""

from __future__ import annotations

import math

import numpy as np

from dpcheckin.accounting.engine.sampling import visible_counts
from dpcheckin.accounting.figures import Kind
from dpcheckin.accounting.published import check_in_alone, clones, p1, p3
from dpcheckin.accounting.published.catalogue.entry import PublishedBound, Setting
from dpcheckin.accounting.renyi.conversion import RenyiCurve
from dpcheckin.errors import OutsideTheorem

CHECK_IN = "shuffled-check-in"
SUBSAMPLE = "subsampled-shuffle"
SHUFFLE = "shuffle"

_MAX_ORDER = 300


def _clones_check_in(s: Setting) -> float:
    return clones.composed_check_in(
        s.population, s.need_rate(), s.need_local_epsilon(), s.rounds, s.delta
    )


def _clones_subsample(s: Setting) -> float:
    return clones.composed_subsample(
        s.population, s.need_cohort(), s.need_local_epsilon(), s.rounds, s.delta
    )


def _exact_clones_subsample(s: Setting) -> float:
    return clones.composed_subsample(
        s.population, s.need_cohort(), s.need_local_epsilon(), s.rounds, s.delta, exact=True
    )


def _clones_shuffle(s: Setting) -> float:
    s.need_one_round()
    return clones.closed_form(s.need_local_epsilon(), s.population, s.delta)


def _exact_clones_shuffle(s: Setting) -> float:
    s.need_one_round()
    return clones.numerical(s.need_local_epsilon(), s.population, s.delta)


def _check_in_alone(s: Setting) -> float:
    return check_in_alone.pure_epsilon(
        s.population, s.need_rate(), s.need_local_epsilon(), s.rounds, s.delta
    ).upper


def _p1(column: str, s: Setting) -> float:
    local_epsilon = s.local_epsilon
    if local_epsilon is None:
        raise OutsideTheorem("needs a local epsilon")
    compute = getattr(p1, column)
    local_delta = s.local_delta if s.local_delta > 0.0 else None
    return float(
        compute(s.population, s.need_rate(), local_epsilon, s.rounds, s.delta, local_delta)
    )


def _p3_theorem_1(s: Setting) -> float:
    curve = p3.upper_rdp(s.population, s.need_cohort(), s.need_local_epsilon(), _MAX_ORDER)
    return curve.times(s.rounds).epsilon(s.delta).epsilon


def _p3_lemma_2(s: Setting) -> float:
    curve = p3.lemma_2_rdp(s.population, s.need_cohort(), s.need_local_epsilon(), _MAX_ORDER)
    return curve.times(s.rounds).epsilon(s.delta).epsilon


def _p3_theorem_2(s: Setting) -> float:
    curve = p3.lower_rdp(s.population, s.need_cohort(), s.need_local_epsilon(), _MAX_ORDER)
    return curve.times(s.rounds).epsilon(s.delta).epsilon


def mixed_theorem_1(s: Setting) -> RenyiCurve:
    """P1 Theorem 2 with P3 Theorem 1 inside: log E_k exp((order-1) eps_k(order)), k = 0 included.

    Each group of k takes the larger of its two ends: the bound is not monotone in k, but its parts
    are (k^2 grows, 1/kbar shrinks), so numerator and denominator are taken apart.
    """
    counts = visible_counts(s.population, s.need_rate())
    e0 = s.need_local_epsilon()
    orders = np.arange(2.0, _MAX_ORDER + 1.0)
    total = np.full(orders.size, -np.inf)
    for low, high, weight in zip(counts.low, counts.high, counts.probability, strict=True):
        if high <= 0.0 or weight <= 0.0:
            continue
        moment = p3.upper_log_moments_between(
            s.population, max(1, int(low)), int(high), e0, _MAX_ORDER
        )
        total = np.logaddexp(total, math.log(weight) + moment)
    # Outside the grouped range: the local bound itself, with the tail's probability.
    if counts.tail > 0.0:
        total = np.logaddexp(total, math.log(counts.tail) + orders * e0)
    if counts.low[0] <= 0.0:
        total = np.logaddexp(total, float(s.population) * math.log1p(-s.need_rate()))
    return RenyiCurve(orders, np.maximum(total, 0.0) / (orders - 1.0))


def _p1_theorem_2(s: Setting) -> float:
    return mixed_theorem_1(s).times(s.rounds).epsilon(s.delta).epsilon


CONVERTED = (
    "a lower bound on Rényi divergences put through the usual conversion, which gives upper bounds "
    "on epsilon: neither a guarantee nor a lower bound on epsilon, but what the Rényi route cannot "
    "undercut"
)

LEMMA_1_ERRATUM = (
    "Lemma 1 turns (epsilon, delta) into Rényi; no such bound exists for delta > 0. The formula is "
    "the smallest Rényi divergence compatible with delta, so the result can lie below the truth"
)

ENTRIES = (
    PublishedBound(
        "clones, sampling, strong composition",
        "FMT",
        "Thm 3.1 + BBG Thm 9 + KOV Thm 3.4",
        "closed form at every k up to a high-probability number of check-ins",
        Kind.GUARANTEE,
        (CHECK_IN,),
        _clones_check_in,
    ),
    PublishedBound(
        "clones, sampling, strong composition",
        "FMT",
        "Thm 3.1 + BBG Thm 9 + KOV Thm 3.4",
        "closed form for a fixed cohort; local epsilon where its condition fails",
        Kind.GUARANTEE,
        (SUBSAMPLE,),
        _clones_subsample,
    ),
    PublishedBound(
        "exact clones, sampling, strong composition",
        "FMT",
        "Thm 3.2 + BBG Thm 9 + KOV Thm 3.4",
        "the pair of Theorem 3.2 evaluated exactly for a fixed cohort",
        Kind.GUARANTEE,
        (SUBSAMPLE,),
        _exact_clones_subsample,
    ),
    PublishedBound(
        "clones",
        "FMT",
        "Thm 3.1",
        "closed form, one shuffle",
        Kind.GUARANTEE,
        (SHUFFLE,),
        _clones_shuffle,
    ),
    PublishedBound(
        "exact clones",
        "FMT",
        "Thm 3.2",
        "the pair of Theorem 3.2, one shuffle",
        Kind.GUARANTEE,
        (SHUFFLE,),
        _exact_clones_shuffle,
    ),
    PublishedBound(
        "check-in alone",
        "BBG",
        "Thm 9, averaged over the visible number of check-ins",
        "amplification by sampling only; nothing is gained from the shuffler",
        Kind.GUARANTEE,
        (CHECK_IN,),
        _check_in_alone,
    ),
    PublishedBound(
        "P1 baseline",
        "P1",
        "Thm 1 + Lemma 1",
        "clones at a high-probability number of check-ins, converted to Rényi",
        Kind.REFUTED,
        (CHECK_IN,),
        lambda s: _p1("baseline", s),
        LEMMA_1_ERRATUM,
    ),
    PublishedBound(
        "P1 approach 1",
        "P1",
        "Thm 2 + Lemma 1 (shuffling conversion)",
        "shuffle (epsilon, delta) to Rényi, then sampling, then the sum over check-ins",
        Kind.REFUTED,
        (CHECK_IN,),
        lambda s: _p1("approach_1", s),
        LEMMA_1_ERRATUM,
    ),
    PublishedBound(
        "P1 approach 2",
        "P1",
        "Thm 2 + Lemma 1 (subsampled shuffling conversion)",
        "subsampled shuffle (epsilon, delta) to Rényi, then the sum over check-ins",
        Kind.REFUTED,
        (CHECK_IN,),
        lambda s: _p1("approach_2", s),
        LEMMA_1_ERRATUM,
    ),
    PublishedBound(
        "Rényi over the number of check-ins",
        "P1",
        "Thm 2 with P3 Thm 1",
        "exact sum over visible k of the subsampled-shuffle Rényi bound, k = 0 included",
        Kind.GUARANTEE,
        (CHECK_IN,),
        _p1_theorem_2,
    ),
    PublishedBound(
        "P3 upper bound",
        "P3",
        "Thm 1",
        "Rényi bound of the subsampled shuffle, any discrete pure randomizer",
        Kind.GUARANTEE,
        (SUBSAMPLE,),
        _p3_theorem_1,
    ),
    PublishedBound(
        "shuffle Rényi, then sampling",
        "P3",
        "Lemma 2's comparator (arXiv 2105.05180v2 Thm 1 + arXiv 1808.00087v2 Thm 9)",
        "Rényi bound of the shuffle followed by Rényi amplification by sampling",
        Kind.GUARANTEE,
        (SUBSAMPLE,),
        _p3_lemma_2,
    ),
    PublishedBound(
        "P3 binary response",
        "P3",
        "Thm 2, converted to epsilon",
        "exact Rényi curve of one pair, converted to epsilon (red in Figure 5)",
        Kind.CONJECTURE,
        (SUBSAMPLE,),
        _p3_theorem_2,
        CONVERTED + ". Typo: Appendix D swaps the rate and its complement in one display",
    ),
)
