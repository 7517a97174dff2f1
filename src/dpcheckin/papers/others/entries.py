"""What the papers build on: clones and amplification by sampling alone."""

from __future__ import annotations

from dpcheckin.accounting import DistributedRound, compose
from dpcheckin.accounting.composition.clones import numerical
from dpcheckin.accounting.figures import Kind
from dpcheckin.papers.entry import (
    CHECK_IN,
    DISTRIBUTED,
    SHUFFLE,
    SUBSAMPLE,
    PublishedBound,
    Setting,
)
from dpcheckin.papers.others import check_in_alone, clones

_G = Kind.GUARANTEE
_COMPOSED = "Thm 3.1 + BBG Thm 9 + KOV Thm 3.4"


def _shuffle(s: Setting) -> float:
    population, local_epsilon, delta = s.pure_shuffle()
    return clones.closed_form(local_epsilon, population, delta)


def _exact_shuffle(s: Setting) -> float:
    population, local_epsilon, delta = s.pure_shuffle()
    return numerical(local_epsilon, population, delta)


def _distributed(s: Setting) -> float:
    one = DistributedRound(s.population, s.need_rate(), s.need_noise())
    return compose([(one, s.rounds)]).epsilon(s.delta).upper


ENTRIES = (
    PublishedBound(
        "clones, sampling, strong composition", "FMT", _COMPOSED,
        "closed form at every k up to a high-probability number of check-ins", _G, (CHECK_IN,),
        lambda s: clones.composed_check_in(*s.pure_check_in()),
    ),
    PublishedBound(
        "clones, sampling, strong composition", "FMT", _COMPOSED,
        "closed form for a fixed cohort; local epsilon where its condition fails", _G, (SUBSAMPLE,),
        lambda s: clones.composed_subsample(*s.pure_cohort(), s.rounds, s.delta),
    ),
    PublishedBound(
        "exact clones, sampling, strong composition", "FMT", "Thm 3.2 + BBG Thm 9 + KOV Thm 3.4",
        "the pair of Theorem 3.2 evaluated exactly for a fixed cohort", _G, (SUBSAMPLE,),
        lambda s: clones.composed_subsample(*s.pure_cohort(), s.rounds, s.delta, exact=True),
    ),
    PublishedBound(
        "clones", "FMT", "Thm 3.1", "closed form, one shuffle", _G, (SHUFFLE,), _shuffle
    ),
    PublishedBound(
        "exact clones", "FMT", "Thm 3.2", "the pair of Theorem 3.2, one shuffle", _G, (SHUFFLE,),
        _exact_shuffle,
    ),
    PublishedBound(
        "check-in alone", "BBG", "Thm 9, averaged over the visible number of check-ins",
        "amplification by sampling only; nothing is gained from the shuffler", _G, (CHECK_IN,),
        lambda s: check_in_alone.pure_epsilon(*s.pure_check_in()).upper,
    ),
    PublishedBound(
        "check-in alone, Gaussian reports", "BBG", "Thm 9 as a curve, averaged over check-ins",
        "amplification by sampling only", _G, (CHECK_IN,),
        lambda s: check_in_alone.gaussian_epsilon(*s.gaussian_check_in()).upper,
    ),
    PublishedBound(
        "(eps0, delta0)-clones, Gaussian reports", "FMT", "Thm 3.8 + BBG Thm 9 + KOV Thm 3.4",
        "clones of an approximate randomizer, best eps0, paying n delta0", _G, (CHECK_IN,),
        lambda s: clones.gaussian_check_in(*s.gaussian_check_in()),
    ),
    PublishedBound(
        "distributed check-in, loss distribution", "BBG", "Thm 9 as a curve, averaged over k",
        "the tight one-round curve, composed numerically", _G, (DISTRIBUTED,), _distributed,
    ),
)  # fmt: skip
