"""P1 in the catalogue."""

from __future__ import annotations

from dpcheckin.accounting import DistributedRound, Kind, lower_bound
from dpcheckin.papers.entry import CHECK_IN, DISTRIBUTED, SUBSAMPLE, PublishedBound, Setting
from dpcheckin.papers.p1 import bounds, coupling, homogeneous_pair
from dpcheckin.papers.p4.bounds import subsampled_rdp

_LEMMA_1 = (
    "Lemma 1 turns (epsilon, delta) into Rényi; no such bound exists for delta > 0. The formula is "
    "the smallest Rényi divergence compatible with delta, so the result can lie below the truth"
)
_ONE_VALUE = "everybody else on one value, the target moves across the ball"


def _cell(s: Setting) -> tuple[int, float, float, int, float, float | None]:
    """The parameters of a cell of Table 2."""
    return (
        s.population, s.need_rate(), s.need_reports(), s.rounds, s.delta, s.local_delta or None,
    )  # fmt: skip


def _theorem_2(s: Setting) -> float:
    return s.converted(bounds.mixed_theorem_1(s.population, s.need_rate(), s.need_local_epsilon()))


def _coupling(s: Setting) -> float:
    s.need_one_round()
    return coupling.epsilon_of_one_round(
        s.population, s.need_rate(), s.need_local_epsilon(), s.delta
    )


def _theorem_5(s: Setting) -> float:
    cohort = s.need_cohort()
    return s.converted(subsampled_rdp(cohort / s.population, cohort, s.need_noise()))


def _fixed_cohort_pair(s: Setting) -> float:
    return homogeneous_pair.subsample_epsilon(
        s.population, s.need_cohort(), s.need_noise(), s.rounds, s.delta
    ).lower


def _sampled_sum(s: Setting) -> float:
    one = DistributedRound(s.population, s.need_rate(), s.need_noise())
    return lower_bound([(one, s.rounds)], s.delta).epsilon.lower


ENTRIES = (
    PublishedBound(
        "P1 baseline", "P1", "Thm 1 + Lemma 1",
        "clones at a high-probability number of check-ins, converted to Rényi",
        Kind.REFUTED, (CHECK_IN,), lambda s: bounds.baseline(*_cell(s)), _LEMMA_1,
    ),
    PublishedBound(
        "P1 approach 1", "P1", "Thm 2 + Lemma 1 (shuffling conversion)",
        "shuffle (epsilon, delta) to Rényi, then sampling, then the sum over check-ins",
        Kind.REFUTED, (CHECK_IN,), lambda s: bounds.approach_1(*_cell(s)), _LEMMA_1,
    ),
    PublishedBound(
        "P1 approach 2", "P1", "Thm 2 + Lemma 1 (subsampled shuffling conversion)",
        "subsampled shuffle (epsilon, delta) to Rényi, then the sum over check-ins",
        Kind.REFUTED, (CHECK_IN,), lambda s: bounds.approach_2(*_cell(s)), _LEMMA_1,
    ),
    PublishedBound(
        "Rényi over the number of check-ins", "P1", "Thm 2 with P3 Thm 1",
        "exact sum over visible k of the subsampled-shuffle Rényi bound, k = 0 included",
        Kind.GUARANTEE, (CHECK_IN,), _theorem_2,
    ),
    PublishedBound(
        "check-in by coupling", "P1", "App. D.1, first term mended",
        "one round from the profiles of full shuffles (exact clones pair)",
        Kind.GUARANTEE, (CHECK_IN,), _coupling,
        "the printed first term is the profile of a shuffle of nobody, which is 0; it must be the "
        "sum over k of the profiles at the same parameter",
    ),
    PublishedBound(
        "homogeneous Gaussian pair", "P1", "Thm 3, for check-in, as a loss distribution",
        _ONE_VALUE, Kind.LOWER_BOUND, (CHECK_IN,),
        lambda s: homogeneous_pair.check_in_epsilon(*s.gaussian_check_in()).lower,
    ),
    PublishedBound(
        "subsampled shuffle Gaussian", "P1", "Thm 5 (P4 Thm 2)",
        "Rényi amplification by sampling on top of the homogeneous pair at distance 1",
        Kind.CONJECTURE, (SUBSAMPLE,), _theorem_5,
        "unproved: the theorem on sampling needs an upper bound and is given the homogeneous pair, "
        "which is a lower bound. Wrong for data of norm at most 1, where two values can be 2 "
        "apart; for data of diameter 1 no counterexample is known",
    ),
    PublishedBound(
        "homogeneous Gaussian pair", "P1", "Thm 3, fixed cohort, as a loss distribution",
        _ONE_VALUE, Kind.LOWER_BOUND, (SUBSAMPLE,), _fixed_cohort_pair,
    ),
    PublishedBound(
        "distributed check-in, Rényi", "P1", "Thm 4",
        "sampling without replacement given k, summed over k (k = 0 added)",
        Kind.GUARANTEE, (DISTRIBUTED,), lambda s: bounds.theorem_4(*s.gaussian_check_in()),
        "the k = 0 term is missing inside the logarithm, and a parenthesis is misplaced",
    ),
    PublishedBound(
        "sampled Gaussian sum", "P1",
        "section 5, everybody else on one value, as a loss distribution",
        "the exact pair of datasets, both directions, composed",
        Kind.LOWER_BOUND, (DISTRIBUTED,), _sampled_sum,
    ),
)  # fmt: skip
