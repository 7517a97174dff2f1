"""P4 in the catalogue."""

from __future__ import annotations

from dpcheckin.accounting.figures import Kind
from dpcheckin.papers.entry import CHECK_IN, SHUFFLE, PublishedBound, Setting
from dpcheckin.papers.p4 import bounds

_HOMOGENEOUS = (
    "exact for one pair of datasets (everybody else at 0, the target at 0 or 1), not the worst "
    "case: 1.303 at order 2 for n = 20, noise 1 in the ball, 0.0961 at distance 1 with the target "
    "at two unit vectors 60 degrees apart, printed 0.0824; P1 (later, same authors) calls it a "
    "lower bound"
)


def _theorem_1(s: Setting) -> float:
    return s.converted(bounds.full_shuffle_rdp(s.population, s.need_noise(), 400, sensitivity=1.0))


ENTRIES = (
    PublishedBound(
        "P4 shuffled check-in Gaussian", "P4", "Thm 3 (Eq. 18)",
        "Chernoff splitting of Equation 17",
        Kind.REFUTED, (CHECK_IN,), lambda s: bounds.theorem_3(*s.gaussian_check_in()),
        "keeps the rate where k/n belongs (Eq. 17, which also drops k = 0), so it fails for its "
        "own pair: n = 5, rate 0.1, noise 0.5, order 4: 5.36, truly 5.62; Thm 1 beneath it is "
        + _HOMOGENEOUS,
    ),
    PublishedBound(
        "P4 shuffle Gaussian", "P4", "Thm 1", "Rényi curve of the homogeneous pair",
        Kind.REFUTED, (SHUFFLE,), _theorem_1, _HOMOGENEOUS,
    ),
    PublishedBound(
        "shuffle Gaussian is monotone in n", "P4", "Conjecture 1",
        "true: the mean of n terms is the average of its leave-one-out means, then Jensen",
        Kind.GUARANTEE, (SHUFFLE,), None,
    ),
)  # fmt: skip
