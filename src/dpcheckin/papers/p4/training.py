"""P4's training figure."""

from __future__ import annotations

from dpcheckin.papers.p1.training import LOCAL_EPSILON
from dpcheckin.papers.training_figure import (
    OPEN_RATE,
    OTHER_NETWORK,
    TrainingFigure,
    gaussian_run,
)

FIGURES = {
    "p4-figure1b": TrainingFigure(
        "P4 Fig. 1b: Gaussian reports, rate 0.1, σ = 5, clip 0.01, 5,540 rounds",
        {"shuffled check-in": gaussian_run(5.0, rate=0.1, clip=0.01, rounds=5540)},
        (
            "δ is not printed for this figure: 1/n here, as elsewhere in P4",
            OPEN_RATE,
            "P4 compares with the baseline and a generic bound of P0: those of its second version, "
            "P1, are drawn",
            LOCAL_EPSILON,
            OTHER_NETWORK,
        ),
        ("P4 shuffled check-in Gaussian", "P1 baseline", "P1 approach 1"),
        published=((None, 80.0, "no ε is printed"),),
    ),
}
