"""What is to be said about P2's main theorem for one window beside what can be proved."""

from __future__ import annotations

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
    return [f"At {last} slots the window bound is {theirs / proved:.1f} times below the closed form."]
