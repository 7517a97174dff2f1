"""P3's training figure."""

from __future__ import annotations

from dpcheckin.papers.training_figure import (
    OTHER_NETWORK,
    TrainingFigure,
    paper_run,
)

# Appendix G: clip 0.005, learning rates 12, 4 and 3.5, 200 epochs of 30 rounds
_FIGURE_6 = paper_run(
    protocol="subsampled-shuffle",
    local_epsilon=2.0,
    rate=1 / 30,
    rounds=6000,
    clip=0.005,
    delta=1e-5,
    settings={
        "learning_rate": 12 * 0.005,
        "schedule": "steps",
        "steps": ((900, 4 / 12), (1800, 3.5 / 12)),
    },
)

FIGURES = {
    "p3-figure6": TrainingFigure(
        "P3 Fig. 6: PrivUnit, 2,000 of 60,000 clients, ε₀ = 2, clip 0.005, learning rates 12, 4, "
        "3.5, 200 epochs, δ = 1e-5, 4 runs",
        {"subsampled shuffle": _FIGURE_6},
        ("PrivUnit has the cap of least variance; P3 does not print its own", OTHER_NETWORK),
        ("P3 upper bound", "exact clones, sampling, strong composition"),
        seeds=4,
        published=(
            (3.0, 81.15, "P3's bound"),
            (5.8, 89.7, "P3's bound"),
            (3.0, 76.46, "strong composition"),
            (18.3, 89.7, "strong composition"),
        ),
    ),
}
