"""P3's numerical figures and the figures in its text, ours beside them, and its training figure."""

from __future__ import annotations

import math
from functools import partial

from dpcheckin.numerals import Kind, rounded_up
from dpcheckin.papers import ours
from dpcheckin.papers.entry import SUBSAMPLE
from dpcheckin.papers.others import clones, strong_composition
from dpcheckin.papers.others.bounds import ENTRIES as OTHERS
from dpcheckin.papers.p3 import bounds
from dpcheckin.papers.p3.bounds import ENTRIES
from dpcheckin.papers.panel import Cells, Panel, Parameters, Row, called, column, printed, rows_over
from dpcheckin.papers.training_figure import OTHER_NETWORK, TrainingFigure, paper_run
from dpcheckin.special.roots import whole_switch

_BLUE, _PINK, _KOV = "P3 Theorem 1 (blue)", "clones, strong composition (magenta)", "clones, Kairouz et al."
_C, _G = Kind.CONJECTURE, Kind.GUARANTEE
_SETTINGS = (  # of Figures 4 and 5: local epsilon, population or rounds, cohort
    ("4a", 1.0, {"population": 1_000_000}, 1_000),
    ("4b", 1.0, {"population": 10_000_000}, 10_000),
    ("4c", 1.0, {"rounds": 100_000}, 10_000),
    ("5a", 3.0, {"population": 1_000_000}, 1_000),
    ("5b", 3.0, {"population": 10_000_000}, 1_000),
    ("5c", 3.0, {"rounds": 100_000}, 1_000),
)


_COLUMNS = (
    column(_BLUE, _G, bounds.upper_rdp),
    column("shuffle Rényi + sampling (black)", _G, bounds.lemma_2_rdp),
    column(_PINK, _G, partial(clones.composed_subsample, compose=strong_composition.classical)),
    column(_KOV, _G, clones.composed_subsample),
    column("P3 Theorem 2, converted (red)", _C, bounds.lower_rdp),
    *ours.SUBSAMPLE,
)


def figures() -> list[Panel]:
    """Figures 4 and 5, a panel for every setting."""
    return [_figure(*setting) for setting in _SETTINGS]


def _figure(number: str, e0: float, fixed: dict[str, int], cohort: int) -> Panel:
    along, values, title, held = (
        ("rounds", (100, 1_000, 3_000, 10_000, 30_000, 100_000), "rounds", f"n = {fixed['population']:,}")
        if "population" in fixed
        else ("population", (100_000, 300_000, 10**6, 3 * 10**6, 10**7), "clients",
              f"T = {fixed['rounds']:,}")
    )  # fmt: skip
    rows = rows_over(along, values, "{:,}", **fixed, cohort=cohort, local_epsilon=e0, delta=1e-8)

    def remarks(cells: Cells) -> list[str]:
        last = rows[-1].label
        blue, pink = cells[(last, _BLUE)], cells[(last, _PINK)]
        mine = cells[(last, ours.SUBSAMPLE[0].label)]
        if not (blue and pink and mine):
            return []
        return [
            f"At {last}: magenta/blue = {pink / blue:.1f} (the text says 17 for ε0 = 3, "
            f"n = 10⁶, T = 10⁵; that ratio belongs to the classical strong composition, with "
            f"Kairouz et al. it is {(cells[(last, _KOV)] or math.nan) / blue:.1f}).",
            f"Ours is {blue / mine:.1f} times below blue.",
            "Red is, as the caption says, the lower bound on Rényi divergences converted to ε. "
            "The conversion bounds ε from above, so red is what the Rényi route cannot "
            "undercut, and no lower bound on ε: it may lie above a guarantee.",
        ]

    return Panel(
        f"p3-figure{number[0]}-{number[1]}",
        f"P3 Figure {number}: subsampled shuffle, ε0 = {e0:g}, {held}, k = {cohort:,}, δ = 1e-8",
        rows,
        _COLUMNS,
        title,
        "Figure 4b's caption and text give γ = 0.001.",
        remarks,
        log_x=True,
    )


def claims() -> Panel:
    """P3's training runs."""
    run = {
        "population": 60_000, "rate": 1 / 30, "cohort": 2_000, "local_epsilon": 2.0, "rounds": 6000, "delta": 1e-5,
    }  # fmt: skip
    rows = (
        Row("P3: MNIST, 89.7%", None, run | {"claim": 5.8}),
        Row("P3: MNIST, 89.7%, comparator", None, run | {"claim": 18.3}),
        Row("P3: MNIST, 81.15%", None, run | {"claim": 3.0, "rounds": 1500}),
    )
    formula, exact = "clones formula, condition ignored", "exact clones, Kairouz et al."

    def unconditional(rate: float, cohort: int, local_epsilon: float, rounds: int, delta: float) -> float:
        """The closed form where its condition fails: not a guarantee."""
        shuffled = clones.formula(local_epsilon, cohort, delta / (2 * rounds) / rate)
        one_round, _ = clones.subsampled(shuffled, 0.0, rate)
        return strong_composition.closed_form(one_round, rounds, delta / 2)

    def remarks(cells: Cells) -> list[str]:
        loose, unshuffled, tight = (cells[(rows[1].label, column)] or 0.0 for column in (formula, _KOV, exact))
        return [
            "5.8 is what Theorem 1 gives, and 3 what it gives after 50 epochs: valid and loose.",
            f"18.3, the comparator's ε at 89.7%, could not be reproduced: the closed form gives {loose:.1f} where its "
            f"condition is ignored and, where it is not, no gain from the shuffler ({rounded_up(unshuffled)}); the "
            f"exact clones pair gives {rounded_up(tight, 3)}. As an upper bound 18.3 is valid; evaluated exactly, the "
            "comparator is closer to 5.8 than printed.",
            f"76.46% is the comparator's accuracy at ε = 3, an experiment: only training shows it. "
            f"With the exact clones pair ε = 3 lasts for {_rounds_within(3.0, run):,} rounds.",
        ]

    return Panel(
        "claims-p3",
        "Figures stated in P3's text",
        rows,
        (
            printed("claim", "claim", _G),
            ours.entry("P3 Theorem 1, fixed cohort", ENTRIES, "P3 upper bound", SUBSAMPLE),
            column(formula, _C, unconditional),
            ours.entry(_KOV, OTHERS, "clones, sampling, strong composition", SUBSAMPLE),
            ours.entry(exact, OTHERS, "exact clones, sampling, strong composition", SUBSAMPLE),
            *ours.CHECK_IN,
        ),
        "claim",
        "P3's run samples a fixed cohort of 2,000; the last two columns use check-in at rate 1/30.",
        remarks,
    )


def _rounds_within(epsilon: float, run: Parameters) -> int:
    """For how many rounds the exact clones pair stays within ``epsilon``."""

    def holds(rounds: int) -> bool:
        return bool(called(clones.composed_subsample, {**run, "rounds": rounds, "exact": True}) <= epsilon)

    return whole_switch(holds, 1, int(run["rounds"]))


# Appendix G: clip 0.005, learning rates 12, 4 and 3.5, 200 epochs of 30 rounds
_FIGURE_6 = paper_run(
    protocol="subsampled-shuffle",
    local_epsilon=2.0,
    rate=1 / 30,
    rounds=6000,
    clip=0.005,
    delta=1e-5,
    settings={"learning_rate": 12 * 0.005, "schedule": "steps", "steps": ((900, 4 / 12), (1800, 3.5 / 12))},
)

TRAINING = {
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
    )
}
