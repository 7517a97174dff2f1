"""Catalogue entries of P0 about shuffled check-in, and P1's coupling."""

from __future__ import annotations

from dpcheckin.accounting.figures import Kind
from dpcheckin.accounting.published import p0_shuffled, p1_coupling
from dpcheckin.accounting.published.catalogue.entry import PublishedBound, Setting
from dpcheckin.accounting.published.catalogue.shuffled import CHECK_IN, CONVERTED
from dpcheckin.errors import OutsideTheorem


def _p0(formula: str, s: Setting) -> float:
    compute = getattr(p0_shuffled, formula)
    return float(compute(s.population, s.need_rate(), s.need_local_epsilon(), s.rounds, s.delta))


def _p0_baseline(s: Setting) -> float:
    if s.local_epsilon is None:
        raise OutsideTheorem("needs a local epsilon")
    return p0_shuffled.baseline(
        s.population, s.need_rate(), s.local_epsilon, s.rounds, s.delta, s.local_delta
    )


def _p1_coupling(s: Setting) -> float:
    s.need_one_round()
    return p1_coupling.epsilon_of_one_round(
        s.population, s.need_rate(), s.need_local_epsilon(), s.delta
    )


ENTRIES = (
    PublishedBound(
        "P0 upper bound",
        "P0",
        "Eq. 18 (Thm 2)",
        "Chernoff splitting of the sum over k",
        Kind.REFUTED,
        (CHECK_IN,),
        lambda s: _p0("equation_18_epsilon", s),
        "keeps the rate where k/n belongs; with k/n the term grows with k, so Lemma 7 fails. Below "
        "the truth for small n rate (n = 1000, rate = 1e-5, local epsilon 1, order 2: 1.97e-9, "
        "truly at least 1.08e-8); where n rate is large it is unproved",
    ),
    PublishedBound(
        "P0 lower bound, converted",
        "P0",
        "Eq. 8 (Thm 3), sharpened",
        "moments of binary response, everybody else on one value, converted to epsilon",
        Kind.CONJECTURE,
        (CHECK_IN,),
        lambda s: _p0("equation_8_epsilon", s),
        CONVERTED + ". As a bound on moments Eq. 8 holds; its printed derivation does not",
    ),
    PublishedBound(
        "P0 baseline",
        "P0",
        "App. D, composed by KOV Thm 3.4",
        "no gain from the shuffler; at most l check-ins but for probability delta'",
        Kind.GUARANTEE,
        (CHECK_IN,),
        _p0_baseline,
        "one round holds as printed; the paper composes it by a conversion to Rényi that does not "
        "exist (P1 Lemma 1), here strong composition does it",
    ),
    PublishedBound(
        "tail lemmas",
        "P0",
        "Lemmas 4 and 5",
        "E[f(k)] of a check-in's k by Chernoff, for f >= 0 that never grows "
        "(`p0_shuffled.lemma_4`, `lemma_5`)",
        Kind.GUARANTEE,
        (CHECK_IN,),
        None,
        "typo: the probabilities of k are missing in both displays",
    ),
    PublishedBound(
        "check-in by coupling",
        "P1",
        "App. D.1, first term mended",
        "one round from the profiles of full shuffles (exact clones pair)",
        Kind.GUARANTEE,
        (CHECK_IN,),
        _p1_coupling,
        "the printed first term is the profile of a shuffle of nobody, which is 0; it must be the "
        "sum over k of the profiles at the same parameter",
    ),
)
