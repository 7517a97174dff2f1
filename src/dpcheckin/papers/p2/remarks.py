"""What is to be said about P2's Figure 2 and Table 1, and its main theorem for one window."""

from __future__ import annotations

from dpcheckin.papers.p2.bounds import shuffling_before
from dpcheckin.papers.p2.utility import fixed_window_dummies
from dpcheckin.papers.panel import Cells, Rows


def unamplified(local_epsilon: float) -> float:
    """Epsilon without shuffling."""
    return local_epsilon


def on_windows(rows: Rows, cells: Cells) -> list[str]:
    """How far the closed form is off in the last of the rows, by its cells."""
    last = rows[-1].label
    theirs, proved = cells[(last, "P2 Theorem 3.2")], cells[(last, "empty-seat guarantee")]
    if not (theirs and proved):
        return []
    empty = fixed_window_dummies(10**6, 10**3, 1e-3) / 10**3  # p = m/n
    return [
        f"At {last} slots the window bound is {theirs / proved:.1f} times below the closed form.",
        "Table 1 compares orders of growth, one epoch of n updates, ε0 > 1: e^{1.5 ε0} for check-ins, e^{2.5 ε0} for "
        "Theorem 5.1, e^{3 ε0} before. Ours grows with e^{ε0/2}, as the lower bounds do.",
        f'Its "factor of e more noise": at p = m/n a share {empty:.4f} = 1/e of the updates are dummies (Proposition '
        f"3.4), so the signal is {1 - empty:.3f} of what it was at the same noise: {1 / (1 - empty):.2f} in deviation, "
        f"{1 / (1 - empty) ** 2:.2f} in variance.",
    ]


def on_figure_2(rows: Rows, cells: Cells) -> list[str]:
    """Where a tenth of the users do as well as before, in the rows, by their cells: "an order of magnitude fewer"."""
    solid, better = "P2 Theorem 5.1 (solid)", []
    for row in rows:
        p = row.parameters
        before = shuffling_before(10 * int(p["reports"]), p["local_epsilon"], p["delta"]).epsilon
        better.append((row.label, cells[(row.label, solid)] or 0.0, before))
    first, few, many = better[0]
    said = [f"At ε0 = {first} Theorem 5.1 gives {few:.3g}, the bound before {many:.3g} with ten times the users."]
    reached = [label for label, mine, theirs in better if mine <= theirs]
    return [
        *said,
        f"From ε0 = {reached[0]} on a tenth of the users does, as the text says." if reached else "None does.",
    ]
