"""P3 in the catalogue."""

from __future__ import annotations

from dpcheckin.accounting.figures import Kind
from dpcheckin.papers.entry import CONVERTED, SUBSAMPLE, PublishedBound
from dpcheckin.papers.p3 import bounds

_ORDERS = 300

ENTRIES = (
    PublishedBound(
        "P3 upper bound", "P3", "Thm 1",
        "Rényi bound of the subsampled shuffle, any discrete pure randomizer",
        Kind.GUARANTEE, (SUBSAMPLE,),
        lambda s: s.converted(bounds.upper_rdp(*s.pure_cohort(), _ORDERS)),
    ),
    PublishedBound(
        "shuffle Rényi, then sampling", "P3",
        "Lemma 2's comparator (arXiv 2105.05180v2 Thm 1 + arXiv 1808.00087v2 Thm 9)",
        "Rényi bound of the shuffle followed by Rényi amplification by sampling",
        Kind.GUARANTEE, (SUBSAMPLE,),
        lambda s: s.converted(bounds.lemma_2_rdp(*s.pure_cohort(), _ORDERS)),
    ),
    PublishedBound(
        "P3 binary response", "P3", "Thm 2, converted to epsilon",
        "exact Rényi curve of one pair, converted to epsilon (red in Figure 5)",
        Kind.CONJECTURE, (SUBSAMPLE,),
        lambda s: s.converted(bounds.lower_rdp(*s.pure_cohort(), _ORDERS)),
        CONVERTED + ". Typo: Appendix D swaps the rate and its complement in one display",
    ),
    PublishedBound(
        "ternary |chi|^alpha-DP of the shuffle", "P3", "Thms 4-6",
        "the moment bounds behind Theorem 1", Kind.GUARANTEE, (SUBSAMPLE,), None,
    ),
)  # fmt: skip
