"""Catalogue entries about Gaussian reports, distributed check-in and random check-ins."""

from __future__ import annotations

from dpcheckin.accounting import (
    clones,
    distributed,
    gaussian_published,
    homogeneous_pair,
    random_check_ins,
    removal,
    shuffle_gaussian,
    slots,
)
from dpcheckin.accounting.kinds import Kind
from dpcheckin.accounting.published.entry import PublishedBound, Setting
from dpcheckin.accounting.published.shuffled import CHECK_IN, SHUFFLE, SUBSAMPLE
from dpcheckin.errors import OutsideTheorem

DISTRIBUTED = "distributed-check-in"
REMOVAL = "distributed-check-in-removal"
FIXED = "random-check-in-fixed"
AVERAGED = "random-check-in-averaged"
SLIDING = "random-check-in-sliding"

_HOMOGENEOUS = (
    "exact for one pair of datasets, at distance 1 in a ball of diameter 2; P4 calls it the worst "
    "case, P1 (later, same authors) a lower bound"
)


def _run(s: Setting) -> tuple[int, float, float, int, float]:
    return s.population, s.need_rate(), s.need_noise(), s.rounds, s.delta


def _p4_theorem_1(s: Setting) -> float:
    curve = shuffle_gaussian.full_shuffle_rdp(s.population, s.need_noise(), 400, sensitivity=1.0)
    return curve.times(s.rounds).epsilon(s.delta).epsilon


def _p4_theorem_2(s: Setting) -> float:
    cohort = s.need_cohort()
    rate = cohort / s.population
    curve = gaussian_published.p4_subsampled_rdp(rate, cohort, s.need_noise())
    return curve.times(s.rounds).epsilon(s.delta).epsilon


def _fixed(s: Setting) -> float:
    s.need_one_round()
    p = 1.0 if s.check_in_probability is None else s.check_in_probability
    return random_check_ins.fixed_window(s.need_slots(), p, s.need_local_epsilon(), s.delta).epsilon


def _fixed_numerical(s: Setting) -> float:
    p = 1.0 if s.check_in_probability is None else s.check_in_probability
    e0 = s.need_local_epsilon()
    q = slots.fixed_window_posteriors(s.need_slots(), p, e0)
    return slots.composed_epsilon(q, e0, s.delta, repeats=s.rounds).upper


def _sliding(s: Setting) -> float:
    s.need_one_round()
    return random_check_ins.sliding_window(s.need_slots(), s.need_local_epsilon(), s.delta).epsilon


def _sliding_numerical(s: Setting) -> float:
    s.need_one_round()
    e0 = s.need_local_epsilon()
    q = slots.fixed_window_posteriors(s.need_slots(), 1.0, e0)
    return slots.composed_epsilon(q, e0, s.delta).upper


def _averaged(s: Setting) -> float:
    s.need_one_round()
    half = s.delta / 2.0
    return random_check_ins.averaged(
        s.population, s.need_slots(), s.need_local_epsilon(), half, half
    ).epsilon


def _averaged_numerical(s: Setting) -> float:
    e0, half = s.need_local_epsilon(), s.delta / 2.0
    q = slots.typical_averaged_posteriors(s.population, s.need_slots(), e0, half / s.rounds)
    return slots.composed_epsilon(q, e0, half, repeats=s.rounds).upper


def _averaged_clones(s: Setting) -> float:
    """Given the loads the run is a shuffled adaptive sequence, averaged per slot afterwards."""
    s.need_one_round()
    return clones.numerical(s.need_local_epsilon(), s.population, s.delta)


def _repeated(s: Setting) -> float:
    s.need_one_round()
    m = s.need_slots()
    half = s.delta / 2.0
    return random_check_ins.repeated_fixed_window(
        s.population, m, s.need_local_epsilon(), half * m / s.population, half
    ).epsilon


def _shuffling(s: Setting) -> float:
    s.need_one_round()
    return random_check_ins.shuffling(s.population, s.need_local_epsilon(), s.delta).epsilon


def _shuffling_before(s: Setting) -> float:
    s.need_one_round()
    return random_check_ins.shuffling_before(s.population, s.need_local_epsilon(), s.delta).epsilon


def _shuffling_numerical(s: Setting) -> float:
    s.need_one_round()
    e0 = s.need_local_epsilon()
    return slots.composed_epsilon(slots.shuffling_posteriors(s.population, e0), e0, s.delta).upper


def _with_local_delta(s: Setting) -> float:
    """The second halves: pure statements at 8 eps0, half of delta for the distance paid."""
    s.need_one_round()
    if s.local_epsilon is None or not s.local_delta > 0.0:
        raise OutsideTheorem("needs a local epsilon and a positive local delta")
    pure_delta = random_check_ins.smallest_pure_delta(s.local_epsilon, s.local_delta)
    wide, half = 8.0 * s.local_epsilon, s.delta / 2.0
    if s.protocol == SHUFFLE:
        steps, pure = s.population, random_check_ins.shuffling(s.population, wide, half)
    elif s.protocol == AVERAGED:
        steps = s.need_slots()
        pure = random_check_ins.averaged(s.population, steps, wide, half / 2.0, half / 2.0)
    else:
        steps = s.need_slots()
        p = 1.0 if s.check_in_probability is None else s.check_in_probability
        pure = random_check_ins.fixed_window(steps, p, wide, half)
    total = random_check_ins.with_local_delta(pure, steps, pure_delta)
    if total.delta > s.delta:
        raise OutsideTheorem(
            f"its delta is {total.delta:.3g}, above the {s.delta:g} asked for; local_delta must be "
            "far smaller"
        )
    return total.epsilon


_G, _L, _C, _R = Kind.GUARANTEE, Kind.LOWER_BOUND, Kind.CONJECTURE, Kind.REFUTED

ENTRIES = (
    PublishedBound(
        "check-in alone, Gaussian reports",
        "BBG",
        "Thm 9 as a curve, averaged over check-ins",
        "amplification by sampling only",
        _G,
        (CHECK_IN,),
        lambda s: gaussian_published.check_in_alone(*_run(s)).upper,
    ),
    PublishedBound(
        "(eps0, delta0)-clones, Gaussian reports",
        "FMT",
        "Thm 3.8 + BBG Thm 9 + KOV Thm 3.4",
        "clones of an approximate randomizer, best eps0, paying n delta0",
        _G,
        (CHECK_IN,),
        lambda s: gaussian_published.clones_check_in(*_run(s)),
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
        lambda s: gaussian_published.p4_theorem_3(*_run(s)),
        _HOMOGENEOUS + "; Eq. 17 keeps the rate where k/n belongs and drops k = 0",
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
        "Rényi amplification by sampling on top of the homogeneous pair",
        _R,
        (SUBSAMPLE,),
        _p4_theorem_2,
        _HOMOGENEOUS,
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
        lambda s: distributed.theorem_4(*_run(s)),
        "the k = 0 term is missing inside the logarithm, and a parenthesis is misplaced",
    ),
    PublishedBound(
        "distributed check-in, loss distribution",
        "BBG",
        "Thm 9 as a curve, averaged over k",
        "the tight one-round curve, composed numerically",
        _G,
        (DISTRIBUTED,),
        lambda s: distributed.epsilon(*_run(s)).upper,
    ),
    PublishedBound(
        "sampled Gaussian sum",
        "P1",
        "section 5, everybody else on one value, as a loss distribution",
        "the exact pair of datasets, both directions, composed",
        _L,
        (DISTRIBUTED,),
        lambda s: distributed.lower_epsilon(*_run(s)),
    ),
    PublishedBound(
        "average of hidden size, removal",
        "P0",
        "Thm 5, by loss distribution",
        "one-dimensional average, number of reports hidden, removal adjacency",
        _C,
        (REMOVAL,),
        lambda s: removal.epsilon(*_run(s)).upper,
        "the printed moment is wrong (prefactor of the reverse direction, wrong exponent, "
        "1/(1 - order) for 1/(order - 1)); the right one is infinite from order k + 1 on",
    ),
    PublishedBound(
        "fixed window",
        "P2",
        "Thm 3.2",
        "closed form, one window",
        _G,
        (FIXED,),
        _fixed,
    ),
    PublishedBound(
        "fixed window, composed",
        "P2",
        "Thm A.4 with whole curves",
        "posterior bounds of the proof, composed as loss distributions",
        _G,
        (FIXED,),
        _fixed_numerical,
    ),
    PublishedBound(
        "repeated fixed window",
        "P2",
        "Cor. 3.3",
        "n/m windows of m slots with check-in probability m/n",
        _G,
        (FIXED + "-repeated",),
        _repeated,
        "the conditions do not imply the step epsilon_1 <= 1/2 of the proof when "
        "log(1/beta) > 2; checked directly here",
    ),
    PublishedBound(
        "sliding window",
        "P2",
        "Thm 4.3",
        "closed form",
        _G,
        (SLIDING,),
        _sliding,
    ),
    PublishedBound(
        "sliding window, composed",
        "P2",
        "Thm A.4 with whole curves",
        "posterior bounds of the proof, composed as loss distributions",
        _G,
        (SLIDING,),
        _sliding_numerical,
    ),
    PublishedBound(
        "averaged updates",
        "P2",
        "Thm 4.1",
        "closed form; clients must not collude",
        _G,
        (AVERAGED,),
        _averaged,
    ),
    PublishedBound(
        "averaged updates as a shuffle",
        "FMT",
        "Thm 3.2 (adaptive sequences), given the loads",
        "n reports in random order, each slot averaged afterwards; clients must not collude",
        _G,
        (AVERAGED,),
        _averaged_clones,
    ),
    PublishedBound(
        "averaged updates, composed",
        "P2",
        "Thm A.5 with whole curves",
        "typical loads, posterior bounds of the proof; clients must not collude",
        _G,
        (AVERAGED,),
        _averaged_numerical,
    ),
    PublishedBound(
        "shuffling by swapping",
        "P2",
        "Thm 5.1",
        "closed form",
        _G,
        (SHUFFLE,),
        _shuffling,
    ),
    PublishedBound(
        "shuffling by swapping, composed",
        "P2",
        "Thm A.7 with whole curves",
        "posterior bounds of the proof, composed as loss distributions",
        _G,
        (SHUFFLE,),
        _shuffling_numerical,
    ),
    PublishedBound(
        "amplification by shuffling, 2019",
        "EFMRTT",
        "Thm 7 (as quoted by P2)",
        "the bound Theorem 5.1 improves on",
        _G,
        (SHUFFLE,),
        _shuffling_before,
    ),
    PublishedBound(
        "(eps0, delta0) random check-ins",
        "P2",
        "Thms 3.2, 4.1, 4.3, 5.1, second halves",
        "the pure statements at 8 eps0, plus m (e^eps + 1) delta1",
        _G,
        (FIXED, AVERAGED, SLIDING, SHUFFLE),
        _with_local_delta,
        "Lemma A.3's proof prints e^{5 eps0} for e^{-5 eps0}",
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
        "Equations 12 and 13",
        _R,
        (REMOVAL,),
        None,
        "see the entry by loss distribution",
    ),
)
