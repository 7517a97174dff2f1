"""Catalogue entries about Gaussian reports and distributed check-in."""

from __future__ import annotations

from dpcheckin.accounting.composition.account import Composition, compose
from dpcheckin.accounting.composition.lower_bounds import lower_bound
from dpcheckin.accounting.figures import Kind
from dpcheckin.accounting.published import (
    check_in_alone,
    clones,
    homogeneous_pair,
    p0,
    p1,
    p4,
    removal_sum,
)
from dpcheckin.accounting.published.catalogue.entry import PublishedBound, Setting
from dpcheckin.accounting.published.catalogue.shuffled import CHECK_IN, SHUFFLE, SUBSAMPLE
from dpcheckin.accounting.rounds.sums import DistributedRound

DISTRIBUTED = "distributed-check-in"
REMOVAL = "distributed-check-in-removal"

_G, _L, _C, _R = Kind.GUARANTEE, Kind.LOWER_BOUND, Kind.CONJECTURE, Kind.REFUTED
_HOMOGENEOUS = (
    "exact for one pair of datasets (everybody else at 0, the target at 0 or 1), not the worst "
    "case: 1.303 at order 2 for n = 20, noise 1 in the ball, 0.0961 at distance 1 with the target "
    "at two unit vectors 60 degrees apart, printed 0.0824; P1 (later, same authors) calls it a "
    "lower bound"
)
_ON_TOP = (
    "unproved: the theorem on sampling needs an upper bound and is given the homogeneous pair, "
    "which is a lower bound. Wrong for data of norm at most 1, where two values can be 2 apart; "
    "for data of diameter 1 no counterexample is known"
)


def _run(s: Setting) -> tuple[int, float, float, int, float]:
    return s.population, s.need_rate(), s.need_noise(), s.rounds, s.delta


def _p4_theorem_1(s: Setting) -> float:
    curve = p4.full_shuffle_rdp(s.population, s.need_noise(), 400, sensitivity=1.0)
    return curve.times(s.rounds).epsilon(s.delta).epsilon


def _p4_theorem_2(s: Setting) -> float:
    cohort = s.need_cohort()
    rate = cohort / s.population
    curve = p4.subsampled_rdp(rate, cohort, s.need_noise())
    return curve.times(s.rounds).epsilon(s.delta).epsilon


def _distributed(s: Setting) -> Composition:
    one = DistributedRound(s.population, s.need_rate(), s.need_noise())
    return compose([(one, s.rounds)])


ENTRIES = (
    PublishedBound(
        "check-in alone, Gaussian reports",
        "BBG",
        "Thm 9 as a curve, averaged over check-ins",
        "amplification by sampling only",
        _G,
        (CHECK_IN,),
        lambda s: check_in_alone.gaussian_epsilon(*_run(s)).upper,
    ),
    PublishedBound(
        "(eps0, delta0)-clones, Gaussian reports",
        "FMT",
        "Thm 3.8 + BBG Thm 9 + KOV Thm 3.4",
        "clones of an approximate randomizer, best eps0, paying n delta0",
        _G,
        (CHECK_IN,),
        lambda s: clones.gaussian_check_in(*_run(s)),
    ),
    PublishedBound(
        "homogeneous Gaussian pair",
        "P1",
        "Thm 3, for check-in, as a loss distribution",
        "everybody else on one value, the target moves across the ball",
        _L,
        (CHECK_IN,),
        lambda s: homogeneous_pair.check_in_epsilon(*_run(s)).lower,
    ),
    PublishedBound(
        "P4 shuffled check-in Gaussian",
        "P4",
        "Thm 3 (Eq. 18)",
        "Chernoff splitting of Equation 17",
        _R,
        (CHECK_IN,),
        lambda s: p4.theorem_3(*_run(s)),
        "keeps the rate where k/n belongs (Eq. 17, which also drops k = 0), so it fails for its "
        "own pair: n = 5, rate 0.1, noise 0.5, order 4: 5.36, truly 5.62; Thm 1 beneath it is "
        + _HOMOGENEOUS,
    ),
    PublishedBound(
        "P4 shuffle Gaussian",
        "P4",
        "Thm 1",
        "Rényi curve of the homogeneous pair",
        _R,
        (SHUFFLE,),
        _p4_theorem_1,
        _HOMOGENEOUS,
    ),
    PublishedBound(
        "subsampled shuffle Gaussian",
        "P1",
        "Thm 5 (P4 Thm 2)",
        "Rényi amplification by sampling on top of the homogeneous pair at distance 1",
        _C,
        (SUBSAMPLE,),
        _p4_theorem_2,
        _ON_TOP,
    ),
    PublishedBound(
        "homogeneous Gaussian pair",
        "P1",
        "Thm 3, fixed cohort, as a loss distribution",
        "everybody else on one value, the target moves across the ball",
        _L,
        (SUBSAMPLE,),
        lambda s: (
            homogeneous_pair.subsample_epsilon(
                s.population, s.need_cohort(), s.need_noise(), s.rounds, s.delta
            ).lower
        ),
    ),
    PublishedBound(
        "distributed check-in, Rényi",
        "P1",
        "Thm 4",
        "sampling without replacement given k, summed over k (k = 0 added)",
        _G,
        (DISTRIBUTED,),
        lambda s: p1.theorem_4(*_run(s)),
        "the k = 0 term is missing inside the logarithm, and a parenthesis is misplaced",
    ),
    PublishedBound(
        "distributed check-in, loss distribution",
        "BBG",
        "Thm 9 as a curve, averaged over k",
        "the tight one-round curve, composed numerically",
        _G,
        (DISTRIBUTED,),
        lambda s: _distributed(s).epsilon(s.delta).upper,
    ),
    PublishedBound(
        "sampled Gaussian sum",
        "P1",
        "section 5, everybody else on one value, as a loss distribution",
        "the exact pair of datasets, both directions, composed",
        _L,
        (DISTRIBUTED,),
        lambda s: lower_bound(_distributed(s).rounds, s.delta).epsilon.lower,
    ),
    PublishedBound(
        "sum and number, removal",
        "P0",
        "Thm 5's setting, the number of reports seen too",
        "any dimension, data of norm at most 1; the average with the number hidden costs no more",
        _G,
        (REMOVAL,),
        lambda s: removal_sum.epsilon(*_run(s)).upper,
        "replaces the theorem, which is wrong as printed; proof in docs/errata.md",
    ),
    PublishedBound(
        "average of hidden size, removal",
        "P0",
        "Thm 5's pair, by loss distribution",
        "one dimension, distance 1, number of reports hidden; computed on a grid that is not "
        "certified",
        _C,
        (REMOVAL,),
        lambda s: p0.epsilon(*_run(s)).upper,
        "the printed moment is wrong (prefactor of the reverse direction, wrong exponent, "
        "1/(1 - order) for 1/(order - 1)); the right one is infinite from order k + 1 on",
    ),
    PublishedBound(
        "ternary |chi|^alpha-DP of the shuffle",
        "P3",
        "Thms 4-6",
        "the moment bounds behind Theorem 1",
        _G,
        (SUBSAMPLE,),
        None,
    ),
    PublishedBound(
        "shuffle Gaussian is monotone in n",
        "P4",
        "Conjecture 1",
        "true: the mean of n terms is the average of its leave-one-out means, then Jensen",
        _G,
        (SHUFFLE,),
        None,
    ),
    PublishedBound(
        "removal average, Rényi",
        "P0",
        "Thm 5 as printed",
        "Equations 12 and 13, the sign of the logarithm's factor mended",
        _R,
        (REMOVAL,),
        lambda s: p0.printed_epsilon(*_run(s)),
        "moments below 1 (n = 100, rate 0.5, noise 1, order 2: 0.985), which no moment is; see the "
        "guarantee beside it. Eq. 14 and 15 apply Lemma 4 to a function that grows",
    ),
)
