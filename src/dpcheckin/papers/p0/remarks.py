"""What is to be said about the figure that stands in P0's text."""

from __future__ import annotations

from dpcheckin.numerals import rounded_down, rounded_up
from dpcheckin.papers.panel import Cells, Rows


def on_claim(rows: Rows, cells: Cells) -> list[str]:
    """About P0's training run, the only one of the rows, by its cells."""

    def figure(column: str) -> float:
        return cells[(rows[0].label, column)] or 0.0

    return [
        f"P0 says ε ≃ 1, by its upper bound (Equation 18). As printed that bound gives "
        f"{figure('P0 Equation 18'):.2f}; the lower bound on moments (Equation 8), converted, "
        f"gives {figure('P0 Equation 8, converted'):.2f}.",
        "The paper does not state δ for this run; 1/n is assumed here. With it the proved "
        f"value is {rounded_up(figure('empty-seat guarantee'))}, and no statement about every "
        f"ε0-LDP randomizer can be below {rounded_down(figure('3-ary lower bound'))}. "
        "That does not refute ≃ 1 for the paper's own randomizer or for another δ.",
    ]
