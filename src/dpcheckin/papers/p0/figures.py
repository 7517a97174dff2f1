"""The figure that stands in P0's text, and its training figures."""

from __future__ import annotations

from typing import Any

from dpcheckin.learning.options import RunOptions
from dpcheckin.numerals import rounded_down, rounded_up
from dpcheckin.papers import ours
from dpcheckin.papers.entry import CHECK_IN
from dpcheckin.papers.p0.bounds import ENTRIES
from dpcheckin.papers.p1.bounds import ENTRIES as P1_ENTRIES
from dpcheckin.papers.panel import Cells, Panel, Row
from dpcheckin.papers.training_figure import (
    CIFAR,
    HEAD,
    NETWORK,
    OPEN_DELTA,
    OPEN_RATE,
    TrainingFigure,
    gaussian_run,
    paper_run,
)


def claim() -> Panel:
    """P0's training run."""
    run = {"population": 60_000, "rate": 0.1, "local_epsilon": 2.0, "rounds": 6800, "delta": 1 / 60_000}
    row = Row("P0: MNIST, 90%", None, run)
    guarantee, lower = ours.CHECK_IN

    def remarks(cells: Cells) -> list[str]:
        def figure(column: str) -> float:
            return cells[(row.label, column)] or 0.0

        return [
            f"P0 says ε ≃ 1, by its upper bound (Equation 18). As printed that bound gives "
            f"{figure('P0 Equation 18'):.2f}; the lower bound on moments (Equation 8), converted, "
            f"gives {figure('P0 Equation 8, converted'):.2f}.",
            "The paper does not state δ for this run; 1/n is assumed here. With it the proved "
            f"value is {rounded_up(figure(guarantee.label))}, and no statement about every "
            f"ε0-LDP randomizer can be below {rounded_down(figure(lower.label))}. "
            "That does not refute ≃ 1 for the paper's own randomizer or for another δ.",
        ]

    return Panel(
        "claims-p0",
        "Figures stated in P0's text",
        (row,),
        (
            ours.entry("P0 Equation 18", ENTRIES, "P0 upper bound", CHECK_IN),
            ours.entry("P0 Equation 8, converted", ENTRIES, "P0 lower bound, converted", CHECK_IN),
            ours.entry("P0 baseline, composed", ENTRIES, "P0 baseline", CHECK_IN),
            ours.entry("exact sum over k", P1_ENTRIES, "Rényi over the number of check-ins", CHECK_IN),
            guarantee,
            lower,
        ),
        "claim",
        "The text says ε ≃ 1 without a δ, which is no point of a picture. δ = 1/n is assumed here.",
        remarks,
    )


_ACCOUNTANTS = ("P0 upper bound", "clones, sampling, strong composition")
_FIGURE_5_ROUNDS = 700  # P0 prints what happens at epochs 30 and 60, and no end
_LDP_SGD = (
    "the step is the mean of the reports' unbiased estimates; the server of LDP-SGD as cited "
    "normalises their sum and projects the parameters"
)
_CLONES = (
    "strong composition is drawn of the clones' closed form at every likely number of check-ins, "
    "which is loose; P0 composes Girgis et al. 2021c, in a way it does not print"
)


def _ldp_sgd(rounds: int, **changes: Any) -> RunOptions:
    """P0 Appendix D: 60,000 clients at rate 0.1, local epsilon 2, clip 0.1."""
    usual = {"randomizer": "ldp-sgd", "local_epsilon": 2.0, "rate": 0.1, "clip": 0.1}
    return paper_run(rounds=rounds, **{**usual, **changes})


TRAINING = {
    "p0-figure3a": TrainingFigure(
        "P0 Fig. 3a: LDP-SGD, 60,000 clients at rate 0.1, ε₀ = 2, clip 0.1, 6,800 rounds",
        {"LDP-SGD": _ldp_sgd(6800)},
        (OPEN_DELTA, OPEN_RATE, _LDP_SGD, _CLONES, NETWORK),
        _ACCOUNTANTS,
        published=((1.0, 90.0, "P0's bound"), (3.0, 90.0, "strong composition")),
    ),
    "p0-figure3b": TrainingFigure(
        "P0 Fig. 3b: ten million clients at rate 1e-4, Gaussian reports, ε₀ = 8, clip 0.05",
        {"Gaussian": gaussian_run(0.873, rounds=2000, population=10**7, rate=1e-4, clip=0.05)},
        (
            "the paper draws accuracy against rounds, up to a number it does not print: 2,000 here",
            "σ = √(2 ln(1.25/δ₀))/ε₀ with the printed δ₀ = n^-1.5; the formula is not printed",
            OPEN_DELTA,
            OPEN_RATE,
            NETWORK,
        ),
        published=((None, 90.0, "no ε is printed"),),
    ),
    "p0-figure4": TrainingFigure(
        "P0 Fig. 4: distributed check-in, rate 1e-3, clip 0.04, mean of 5 runs",
        {
            f"noise multiplier {s:g}": gaussian_run(
                s,
                protocol="distributed-check-in",
                rate=1e-3,
                clip=0.04,
                rounds=10_000,
                settings={"learning_rate": 0.1 * 0.04, "schedule": "constant"},
            )
            for s in (0.65, 0.86)
        },
        (
            "the numbers of clients and rounds are not printed: 60,000 and 10,000 here",
            "P0's Equation 11, to which it applies its Lemmas 4 and 5, is not in the text at hand: "
            "P1 Theorem 4 is drawn instead",
            OPEN_DELTA,
            "learning rate and schedule are not printed: P1's here, 0.1 and constant",
            NETWORK,
        ),
        ("distributed check-in, Rényi",),
        seeds=5,
    ),
    "p0-figure5a": TrainingFigure(
        "P0 Fig. 5a: LDP-SGD at different check-in rates",
        {
            f"rate {r:g}": _ldp_sgd(_FIGURE_5_ROUNDS, rate=r, settings={"schedule": "constant"})
            for r in (0.025, 0.05, 0.1)
        },
        (
            "rates, rounds and learning rate are not in the text: 0.025, 0.05, 0.1, 700 rounds and "
            "constant 0.1 clips here, so that rate 0.1 is the first run of Fig. 5b",
            "ε₀ = 2 and clip 0.1 are those of Fig. 3a",
            OPEN_DELTA,
            _LDP_SGD,
            _CLONES,
            NETWORK,
        ),
        _ACCOUNTANTS,
    ),
    "p0-figure5b": TrainingFigure(
        "P0 Fig. 5b: constant learning rate, and 50% from epoch 30, 10% from epoch 60; 3 seeds",
        {
            "constant": _ldp_sgd(_FIGURE_5_ROUNDS, settings={"schedule": "constant"}),
            "stepped": _ldp_sgd(_FIGURE_5_ROUNDS, settings={"schedule": "steps", "steps": ((300, 0.5), (600, 0.1))}),
        },
        (
            "learning rate and length are not printed: 0.1 clips and 70 epochs of 10 rounds here",
            "ε₀ = 2, clip 0.1 and check-in rate 0.1 are those of Fig. 3a",
            OPEN_DELTA,
            _LDP_SGD,
            _CLONES,
            NETWORK,
        ),
        _ACCOUNTANTS,
        seeds=3,
    ),
    "p0-figure6": TrainingFigure(
        "P0 Fig. 6: LDP-SGD on the last layer, CIFAR-10",
        {"CIFAR-10, last layer": _ldp_sgd(2000, **HEAD)},
        (
            CIFAR,
            "no setting is printed: those of Fig. 3a and 2,000 rounds here",
            OPEN_DELTA,
            OPEN_RATE,
            _LDP_SGD,
            _CLONES,
        ),
        _ACCOUNTANTS,
    ),
}
