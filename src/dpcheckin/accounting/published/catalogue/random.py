"""Catalogue entries about random check-ins, and P2's bound for shuffling."""

from __future__ import annotations

from dpcheckin.accounting.figures import Kind
from dpcheckin.accounting.published import clones, p2
from dpcheckin.accounting.published.catalogue.entry import PublishedBound, Setting
from dpcheckin.accounting.published.catalogue.shuffled import SHUFFLE
from dpcheckin.accounting.rounds import windows
from dpcheckin.errors import OutsideTheorem

FIXED = "random-check-in-fixed"
AVERAGED = "random-check-in-averaged"
SLIDING = "random-check-in-sliding"

_G = Kind.GUARANTEE


def _fixed(s: Setting) -> float:
    s.need_one_round()
    p = 1.0 if s.check_in_probability is None else s.check_in_probability
    return p2.fixed_window(s.need_slots(), p, s.need_local_epsilon(), s.delta).epsilon


def _fixed_numerical(s: Setting) -> float:
    p = 1.0 if s.check_in_probability is None else s.check_in_probability
    e0 = s.need_local_epsilon()
    q = p2.fixed_window_posteriors(s.need_slots(), p, e0)
    return p2.composed_epsilon(q, e0, s.delta, repeats=s.rounds).upper


def _sliding(s: Setting) -> float:
    s.need_one_round()
    return p2.sliding_window(s.need_slots(), s.need_local_epsilon(), s.delta).epsilon


def _sliding_numerical(s: Setting) -> float:
    s.need_one_round()
    e0 = s.need_local_epsilon()
    q = p2.fixed_window_posteriors(s.need_slots(), 1.0, e0)
    return p2.composed_epsilon(q, e0, s.delta).upper


def _averaged(s: Setting) -> float:
    s.need_one_round()
    half = s.delta / 2.0
    return p2.averaged(s.population, s.need_slots(), s.need_local_epsilon(), half, half).epsilon


def _averaged_numerical(s: Setting) -> float:
    e0, half = s.need_local_epsilon(), s.delta / 2.0
    q = windows.typical_averaged_posteriors(s.population, s.need_slots(), e0, half / s.rounds)
    return p2.composed_epsilon(q, e0, half, repeats=s.rounds).upper


def _averaged_clones(s: Setting) -> float:
    """Given the loads the run is a shuffled adaptive sequence, averaged per slot afterwards."""
    s.need_one_round()
    return clones.numerical(s.need_local_epsilon(), s.population, s.delta)


def _repeated(s: Setting) -> float:
    s.need_one_round()
    m = s.need_slots()
    half = s.delta / 2.0
    return p2.repeated_fixed_window(
        s.population, m, s.need_local_epsilon(), half * m / s.population, half
    ).epsilon


def _shuffling(s: Setting) -> float:
    s.need_one_round()
    return p2.shuffling(s.population, s.need_local_epsilon(), s.delta).epsilon


def _shuffling_before(s: Setting) -> float:
    s.need_one_round()
    return p2.shuffling_before(s.population, s.need_local_epsilon(), s.delta).epsilon


def _shuffling_numerical(s: Setting) -> float:
    s.need_one_round()
    e0 = s.need_local_epsilon()
    return p2.composed_epsilon(p2.shuffling_posteriors(s.population, e0), e0, s.delta).upper


def _with_local_delta(s: Setting) -> float:
    """The second halves: pure statements at 8 eps0, half of delta for the distance paid."""
    s.need_one_round()
    if s.local_epsilon is None or not s.local_delta > 0.0:
        raise OutsideTheorem("needs a local epsilon and a positive local delta")
    pure_delta = p2.smallest_pure_delta(s.local_epsilon, s.local_delta)
    wide, half = 8.0 * s.local_epsilon, s.delta / 2.0
    if s.protocol == SHUFFLE:
        steps, pure = s.population, p2.shuffling(s.population, wide, half)
    elif s.protocol == AVERAGED:
        # every client's randomizer is replaced, not one for each slot: n, not the printed m
        steps = s.population
        pure = p2.averaged(s.population, s.need_slots(), wide, half / 2.0, half / 2.0)
    else:
        steps = s.need_slots()
        p = 1.0 if s.check_in_probability is None else s.check_in_probability
        pure = p2.fixed_window(steps, p, wide, half)
    total = p2.with_local_delta(pure, steps, pure_delta)
    if total.delta > s.delta:
        raise OutsideTheorem(
            f"its delta is {total.delta:.3g}, above the {s.delta:g} asked for; local_delta must be "
            "far smaller"
        )
    return total.epsilon


ENTRIES = (
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
        "the pure statements at 8 eps0, plus (e^eps + 1) delta1 for every report that counts",
        _G,
        (FIXED, AVERAGED, SLIDING, SHUFFLE),
        _with_local_delta,
        "typos: Lemma A.3 has e^{5 eps0}, Thm A.4 e^{-2 eps0} for e^{-5 eps0}; Thms 4.1, A.5 and "
        "A.7 print m delta1 where n reports are replaced (n here; m is unproved)",
    ),
)
