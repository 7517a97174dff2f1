"""What is to be said about P4's Table 1, and a column of its own in Figure 1a."""

from __future__ import annotations

import math

from dpcheckin.accounting import gaussian
from dpcheckin.papers.panel import Cells, Rows


def unshuffled(noise_multiplier: float, rounds: int, delta: float) -> float:
    """Epsilon at delta of so many rounds of reports with this noise_multiplier, which everybody sees."""
    # rounds add up to less noise; two values of gaussian() are 2 apart, here they are 1
    return gaussian(2.0 * noise_multiplier / math.sqrt(rounds)).epsilon_within(delta)


def on_table_1(rows: Rows, cells: Cells) -> list[str]:
    """What its printed rows are, by the cells of all rows."""
    same = all(round(cells[(r.label, "orders up to 30")] or 0.0, 5) == cells[(r.label, "ours (P4)")] for r in rows)
    longest = cells[("1", "orders up to 4000")]
    cheaper = sum(
        (cells[(r.label, "clones, distance 1")] or math.inf) < (cells[(r.label, "ours (P4)")] or 0.0) for r in rows
    )
    return [
        f"Orders up to 30 reproduce the printed row to all digits: {'yes' if same else 'NO'}.",
        f"The row is an artefact of stopping at order 30: with orders up to 4000 the first "
        f"entry is {longest:.5f}. The paper's sum over integer partitions could not go there.",
        "The printed clones row is the clones theorem at distance 2, where σ = 9.48 is the "
        "textbook's (1, 1/n)-LDP, to about 3%; the paper's own row is Theorem 1 at distance 1. "
        f"At distance 1 clones cost less for the first {cheaper} rows, not for the first only.",
        "The Rényi rows are about one pair of datasets at distance 1. Theorem 1, which calls it the worst, is "
        "refuted; the figures are not, since a guarantee lies below them. That guarantee holds for all data at "
        "the same distance.",
    ]
