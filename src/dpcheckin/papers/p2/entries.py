"""P2 in the catalogue, and what else was said of its protocols."""

from __future__ import annotations

from dpcheckin.accounting.composition.clones import numerical
from dpcheckin.accounting.figures import Kind
from dpcheckin.accounting.rounds import windows
from dpcheckin.errors import OutsideTheorem
from dpcheckin.papers.entry import AVERAGED, FIXED, SHUFFLE, SLIDING, PublishedBound, Setting
from dpcheckin.papers.p2 import bounds

_G = Kind.GUARANTEE
_POSTERIORS = "posterior bounds of the proof, composed as loss distributions"


def _check_in_probability(s: Setting) -> float:
    return 1.0 if s.check_in_probability is None else s.check_in_probability


def _fixed(s: Setting) -> float:
    s.need_one_round()
    p, local_epsilon = _check_in_probability(s), s.need_local_epsilon()
    return bounds.fixed_window(s.need_slots(), p, local_epsilon, s.delta).epsilon


def _fixed_composed(s: Setting) -> float:
    local_epsilon = s.need_local_epsilon()
    q = bounds.fixed_window_posteriors(s.need_slots(), _check_in_probability(s), local_epsilon)
    return bounds.composed_epsilon(q, local_epsilon, s.delta, repeats=s.rounds).upper


def _sliding(s: Setting) -> float:
    s.need_one_round()
    return bounds.sliding_window(s.need_slots(), s.need_local_epsilon(), s.delta).epsilon


def _sliding_composed(s: Setting) -> float:
    s.need_one_round()
    local_epsilon = s.need_local_epsilon()
    q = bounds.fixed_window_posteriors(s.need_slots(), 1.0, local_epsilon)
    return bounds.composed_epsilon(q, local_epsilon, s.delta).upper


def _averaged(s: Setting) -> float:
    s.need_one_round()
    slots, local_epsilon, half = s.need_slots(), s.need_local_epsilon(), s.delta / 2.0
    return bounds.averaged(s.population, slots, local_epsilon, half, half).epsilon


def _averaged_composed(s: Setting) -> float:
    local_epsilon, half = s.need_local_epsilon(), s.delta / 2.0
    q = windows.typical_averaged_posteriors(
        s.population, s.need_slots(), local_epsilon, half / s.rounds
    )
    return bounds.composed_epsilon(q, local_epsilon, half, repeats=s.rounds).upper


def _averaged_clones(s: Setting) -> float:
    """Given the loads the run is a shuffled adaptive sequence, averaged per slot afterwards."""
    population, local_epsilon, delta = s.pure_shuffle()
    return numerical(local_epsilon, population, delta)


def _repeated(s: Setting) -> float:
    s.need_one_round()
    slots, half = s.need_slots(), s.delta / 2.0
    return bounds.repeated_fixed_window(
        s.population, slots, s.need_local_epsilon(), half * slots / s.population, half
    ).epsilon


def _shuffling_composed(s: Setting) -> float:
    population, local_epsilon, delta = s.pure_shuffle()
    q = bounds.shuffling_posteriors(population, local_epsilon)
    return bounds.composed_epsilon(q, local_epsilon, delta).upper


def _with_local_delta(s: Setting) -> float:
    """The second halves: pure statements at 8 eps0, half of delta for the distance paid."""
    s.need_one_round()
    if s.local_epsilon is None or not s.local_delta > 0.0:
        raise OutsideTheorem("needs a local epsilon and a positive local delta")
    pure_delta = bounds.smallest_pure_delta(s.local_epsilon, s.local_delta)
    wide, half = 8.0 * s.local_epsilon, s.delta / 2.0
    if s.protocol == SHUFFLE:
        steps, pure = s.population, bounds.shuffling(s.population, wide, half)
    elif s.protocol == AVERAGED:
        # every client's randomizer is replaced, not one for each slot: n, not the printed m
        steps = s.population
        pure = bounds.averaged(s.population, s.need_slots(), wide, half / 2.0, half / 2.0)
    else:
        steps = s.need_slots()
        pure = bounds.fixed_window(steps, _check_in_probability(s), wide, half)
    total = bounds.with_local_delta(pure, steps, pure_delta)
    if total.delta > s.delta:
        raise OutsideTheorem(
            f"its delta is {total.delta:.3g}, above the {s.delta:g} asked for; local_delta must be "
            "far smaller"
        )
    return total.epsilon


ENTRIES = (
    PublishedBound(
        "fixed window", "P2", "Thm 3.2", "closed form, one window", _G, (FIXED,), _fixed
    ),
    PublishedBound(
        "fixed window, composed", "P2", "Thm A.4 with whole curves", _POSTERIORS, _G, (FIXED,),
        _fixed_composed,
    ),
    PublishedBound(
        "repeated fixed window", "P2", "Cor. 3.3",
        "n/m windows of m slots with check-in probability m/n", _G, (FIXED + "-repeated",),
        _repeated,
    ),
    PublishedBound("sliding window", "P2", "Thm 4.3", "closed form", _G, (SLIDING,), _sliding),
    PublishedBound(
        "sliding window, composed", "P2", "Thm A.4 with whole curves", _POSTERIORS, _G, (SLIDING,),
        _sliding_composed,
    ),
    PublishedBound(
        "averaged updates", "P2", "Thm 4.1", "closed form; clients must not collude", _G,
        (AVERAGED,), _averaged,
    ),
    PublishedBound(
        "averaged updates as a shuffle", "FMT", "Thm 3.2 (adaptive sequences), given the loads",
        "n reports in random order, each slot averaged afterwards; clients must not collude", _G,
        (AVERAGED,), _averaged_clones,
    ),
    PublishedBound(
        "averaged updates, composed", "P2", "Thm A.5 with whole curves",
        "typical loads, posterior bounds of the proof; clients must not collude", _G, (AVERAGED,),
        _averaged_composed,
    ),
    PublishedBound(
        "shuffling by swapping", "P2", "Thm 5.1", "closed form", _G, (SHUFFLE,),
        lambda s: bounds.shuffling(*s.pure_shuffle()).epsilon,
    ),
    PublishedBound(
        "shuffling by swapping, composed", "P2", "Thm A.7 with whole curves", _POSTERIORS, _G,
        (SHUFFLE,), _shuffling_composed,
    ),
    PublishedBound(
        "amplification by shuffling, 2019", "EFMRTT", "Thm 7 (as quoted by P2)",
        "the bound Theorem 5.1 improves on", _G, (SHUFFLE,),
        lambda s: bounds.shuffling_before(*s.pure_shuffle()).epsilon,
    ),
    PublishedBound(
        "(eps0, delta0) random check-ins", "P2", "Thms 3.2, 4.1, 4.3, 5.1, second halves",
        "the pure statements at 8 eps0, plus (e^eps + 1) delta1 for every report that counts",
        _G, (FIXED, AVERAGED, SLIDING, SHUFFLE), _with_local_delta,
        "typos: Lemma A.3 has e^{5 eps0}, Thm A.4 e^{-2 eps0} for e^{-5 eps0}; Thms 4.1, A.5 and "
        "A.7 print m delta1 where n reports are replaced (n here; m is unproved)",
    ),
)  # fmt: skip
