"""P2's Figure 2, and its main theorem for one window beside what can be proved."""

from __future__ import annotations

import numpy as np

from dpcheckin.accounting.composition.clones import numerical
from dpcheckin.accounting.statements import Bracket
from dpcheckin.numerals import Kind
from dpcheckin.papers import ours
from dpcheckin.papers.p2 import bounds
from dpcheckin.papers.panel import Cells, Column, Panel, column, rows_over

_G = Kind.GUARANTEE
_NO_AMPLIFICATION = Column("no amplification", _G, lambda p: p["local_epsilon"])


def figure_2() -> list[Panel]:
    """One shuffle, a panel for every number of clients."""
    local_epsilons = np.round(np.linspace(0.1, 2.0, 20), 2).tolist()
    columns = (
        column("P2 Theorem 5.1 (solid)", _G, bounds.shuffling),
        column("Erlingsson et al. (dotted)", _G, bounds.shuffling_before),
        column("exact clones", _G, numerical),
        _NO_AMPLIFICATION,
        *ours.FULL_SHUFFLE,
    )
    return [
        Panel(
            f"p2-figure2-n{n}",
            f"P2 Figure 2: one shuffle, n = {n:,}, δ = 1e-6",
            rows_over("local_epsilon", local_epsilons, "{:.2f}", population=n, reports=n, delta=1e-6),
            columns,
            "local ε",
            "Closed forms as printed; without amplification ε = ε0.",
        )
        for n in (1_000, 10_000, 100_000, 1_000_000)
    ]


def windows() -> Panel:
    """Theorem 3.2 against the number of slots; not a figure of the paper."""
    run = {"check_in_probability": 1.0, "local_epsilon": 1.0, "delta": 1e-6}
    rows = rows_over("slots", (10, 30, 100, 300, 1_000, 3_000), "{:,}", **run)

    def composed(slots: int, check_in_probability: float, local_epsilon: float, delta: float) -> Bracket:
        q = bounds.fixed_window_posteriors(slots, check_in_probability, local_epsilon)
        return bounds.composed_epsilon(q, local_epsilon, delta)

    def remarks(cells: Cells) -> list[str]:
        last = rows[-1].label
        theirs, proved = cells[(last, "P2 Theorem 3.2")], cells[(last, ours.WINDOW.label)]
        if not (theirs and proved):
            return []
        times = f"{theirs / proved:.1f} times"
        return [f"At {last} slots the window bound is {times} below the closed form."]

    return Panel(
        "p2-windows",
        "P2 Theorem 3.2: one window of random check-ins, ε0 = 1, p = 1, δ = 1e-6",
        rows,
        (
            column("P2 Theorem 3.2", _G, bounds.fixed_window),
            column("its proof, composed numerically", _G, composed),
            ours.WINDOW,
            _NO_AMPLIFICATION,
        ),
        "slots",
        "Not a figure of the paper: its main theorem beside what can be proved "
        "(docs/random-check-ins.md). Its Table 1 compares orders of growth and has no figures.",
        remarks,
        log_x=True,
    )
