"""P1's training figures."""

from __future__ import annotations

from typing import Any

from dpcheckin.papers.training_figure import (
    CIFAR,
    HEAD,
    NETWORK,
    OPEN_DELTA,
    OPEN_RATE,
    TrainingFigure,
    gaussian_run,
)

_ACCOUNTANTS = ("P1 baseline", "P1 approach 1", "P1 approach 2")
LOCAL_EPSILON = (
    "P1's accountants get ε₀ = 2 √(2 ln(1.25/δ₀))/σ, sensitivity twice the clip as its Appendix "
    "D.2 asks, with δ₀ = δ²; neither is printed for the figure, and much depends on both"
)
_ONE_CLIP = (
    "with a sensitivity of one clip P1's baseline and approaches would end at 1.285, 4.48 and "
    "3.618 for MNIST; in neither reading are they in the order that its text describes, which "
    "may lie in what is not printed"
)
_STEP = (
    "100 epochs are read as 100,000 rounds at a constant rate, and a step as the rate times the "
    "mean of the reports, of which P1 writes the sum"
)
_FIGURE_2: dict[str, Any] = {  # section 5: clip 0.05, rate 0.1, 100 epochs of 1,000 rounds
    "rounds": 100_000,
    "rate": 1e-3,
    "clip": 0.05,
    "settings": {"learning_rate": 0.1 * 0.05, "schedule": "constant"},
}

FIGURES = {
    "p1-figure2": TrainingFigure(
        "P1 Fig. 2: Gaussian reports, rate 1e-3, σ = 0.86, clip 0.05, learning rate 0.1, "
        "100 epochs, δ = 1/n",
        {"shuffled check-in": gaussian_run(0.86, **_FIGURE_2)},
        (_STEP, LOCAL_EPSILON, _ONE_CLIP, NETWORK),
        _ACCOUNTANTS,
    ),
    "p1-figure4": TrainingFigure(
        "P1 Fig. 4: shuffled Gaussian reports against central DP-SGD with the same total noise",
        {
            "subsampled shuffle": gaussian_run(
                2.0, protocol="subsampled-shuffle", rate=0.01, rounds=2000
            ),
            "central": gaussian_run(2.0 * 600**0.5, protocol="central", rate=0.01, rounds=2000),
        },
        (
            "no setting but √B is printed: 600 of 60,000 clients, σ = 2, clip 1, 2,000 rounds here",
            "central is accounted for adding or removing a record, which is weaker than replacing "
            "one, and its records are drawn by coins, 600 on average",
            OPEN_DELTA,
            OPEN_RATE,
            NETWORK,
        ),
        ("subsampled shuffle Gaussian",),
    ),
    "p1-figure6": TrainingFigure(
        "P1 Fig. 6: Gaussian reports, rate 1e-3, σ = 0.86, clip 0.05, learning rate 0.1, δ = 1/n",
        {
            "MNIST": gaussian_run(0.86, **_FIGURE_2),
            "CIFAR-10, last layer": gaussian_run(0.86, **_FIGURE_2, **HEAD),
        },
        (
            CIFAR,
            "CIFAR-10's settings are not printed: those of MNIST here",
            "P1's lower bound is not drawn: with this little noise ours of that pair does not fit "
            "the lattice on which it is computed",
            _STEP,
            LOCAL_EPSILON,
            _ONE_CLIP,
            NETWORK,
        ),
        _ACCOUNTANTS,
    ),
}
