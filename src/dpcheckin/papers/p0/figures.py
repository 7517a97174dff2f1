"""The figure that stands in P0's text."""

from __future__ import annotations

from dpcheckin.accounting.figures import rounded_down, rounded_up
from dpcheckin.papers import ours
from dpcheckin.papers.entry import CHECK_IN
from dpcheckin.papers.p0.entries import ENTRIES
from dpcheckin.papers.p1.entries import ENTRIES as P1_ENTRIES
from dpcheckin.papers.panel import Cells, Panel, Row


def claim() -> Panel:
    """P0's training run."""
    n = 60_000
    row = Row(
        "P0: MNIST, 90%",
        None,
        {"n": n, "rate": 0.1, "e0": 2.0, "rounds": 6800, "delta": 1 / n},
    )
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
            ours.entry(
                "exact sum over k", P1_ENTRIES, "Rényi over the number of check-ins", CHECK_IN
            ),
            guarantee,
            lower,
        ),
        "claim",
        "The text says ε ≃ 1 without a δ, which is no point of a picture. δ = 1/n is assumed here.",
        remarks,
    )
