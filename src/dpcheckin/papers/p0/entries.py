"""P0 in the catalogue."""

from __future__ import annotations

from dpcheckin.accounting.figures import Kind
from dpcheckin.papers.entry import CHECK_IN, CONVERTED, REMOVAL, PublishedBound
from dpcheckin.papers.p0 import removal, removal_sum, shuffled

ENTRIES = (
    PublishedBound(
        "P0 upper bound", "P0", "Eq. 18 (Thm 2)", "Chernoff splitting of the sum over k",
        Kind.REFUTED, (CHECK_IN,), lambda s: shuffled.equation_18_epsilon(*s.pure_check_in()),
        "keeps the rate where k/n belongs; with k/n the term grows with k, so Lemma 7 fails. Below "
        "the truth for small n rate (n = 1000, rate = 1e-5, local epsilon 1, order 2: 1.97e-9, "
        "truly at least 1.08e-8); where n rate is large it is unproved",
    ),
    PublishedBound(
        "P0 lower bound, converted", "P0", "Eq. 8 (Thm 3), sharpened",
        "moments of binary response, everybody else on one value, converted to epsilon",
        Kind.CONJECTURE, (CHECK_IN,), lambda s: shuffled.equation_8_epsilon(*s.pure_check_in()),
        CONVERTED + ". As a bound on moments Eq. 8 holds; its printed derivation does not",
    ),
    PublishedBound(
        "P0 baseline", "P0", "App. D, composed by KOV Thm 3.4",
        "no gain from the shuffler; at most l check-ins but for probability delta'",
        Kind.GUARANTEE, (CHECK_IN,),
        lambda s: shuffled.baseline(
            s.population, s.need_rate(), s.need_reports(), s.rounds, s.delta, s.local_delta
        ),
        "one round holds as printed; the paper composes it by a conversion to Rényi that does not "
        "exist (P1 Lemma 1), here strong composition does it",
    ),
    PublishedBound(
        "tail lemmas", "P0", "Lemmas 4 and 5",
        "E[f(k)] of a check-in's k by Chernoff, for f >= 0 that never grows "
        "(`p0.shuffled.lemma_4`, `lemma_5`)",
        Kind.GUARANTEE, (CHECK_IN,), None,
        "typo: the probabilities of k are missing in both displays",
    ),
    PublishedBound(
        "sum and number, removal", "P0", "Thm 5's setting, the number of reports seen too",
        "any dimension, data of norm at most 1; the average with the number hidden costs no more",
        Kind.GUARANTEE, (REMOVAL,), lambda s: removal_sum.epsilon(*s.gaussian_check_in()).upper,
        "replaces the theorem, which is wrong as printed; proof in docs/errata.md",
    ),
    PublishedBound(
        "average of hidden size, removal", "P0", "Thm 5's pair, by loss distribution",
        "one dimension, distance 1, number of reports hidden; computed on a grid that is not "
        "certified",
        Kind.CONJECTURE, (REMOVAL,), lambda s: removal.epsilon(*s.gaussian_check_in()).upper,
        "the printed moment is wrong (prefactor of the reverse direction, wrong exponent, "
        "1/(1 - order) for 1/(order - 1)); the right one is infinite from order k + 1 on",
    ),
    PublishedBound(
        "removal average, Rényi", "P0", "Thm 5 as printed",
        "Equations 12 and 13, the sign of the logarithm's factor mended",
        Kind.REFUTED, (REMOVAL,), lambda s: removal.printed_epsilon(*s.gaussian_check_in()),
        "moments below 1 (n = 100, rate 0.5, noise 1, order 2: 0.985), which no moment is; see the "
        "guarantee beside it. Eq. 14 and 15 apply Lemma 4 to a function that grows",
    ),
)  # fmt: skip
