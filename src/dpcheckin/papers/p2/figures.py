"""P2's Figure 2, and its main theorem for one window beside what can be proved."""

from __future__ import annotations

import numpy as np

from dpcheckin.accounting.composition.clones import numerical
from dpcheckin.accounting.figures import Kind
from dpcheckin.papers import ours
from dpcheckin.papers.p2 import bounds
from dpcheckin.papers.panel import Cells, Column, Panel, Parameters, rows_over

_G = Kind.GUARANTEE
_NO_AMPLIFICATION = Column("no amplification", _G, lambda p: p["e0"])


def _shuffle(p: Parameters) -> tuple[int, float, float]:
    return int(p["n"]), p["e0"], p["delta"]


def figure_2() -> list[Panel]:
    """One shuffle, a panel for every number of clients."""
    local_epsilons = np.round(np.linspace(0.1, 2.0, 20), 2).tolist()
    columns = (
        Column("P2 Theorem 5.1 (solid)", _G, lambda p: bounds.shuffling(*_shuffle(p)).epsilon),
        Column(
            "Erlingsson et al. (dotted)",
            _G,
            lambda p: bounds.shuffling_before(*_shuffle(p)).epsilon,
        ),
        Column("exact clones", _G, lambda p: numerical(p["e0"], int(p["n"]), p["delta"])),
        _NO_AMPLIFICATION,
        *ours.FULL_SHUFFLE,
    )
    return [
        Panel(
            f"p2-figure2-n{n}",
            f"P2 Figure 2: one shuffle, n = {n:,}, δ = 1e-6",
            rows_over("e0", local_epsilons, "{:.2f}", n=n, delta=1e-6),
            columns,
            "local ε",
            "Closed forms as printed; without amplification ε = ε0.",
        )
        for n in (1_000, 10_000, 100_000, 1_000_000)
    ]


def windows() -> Panel:
    """Theorem 3.2 against the number of slots; not a figure of the paper."""
    rows = rows_over("m", (10, 30, 100, 300, 1_000, 3_000), "{:,}", e0=1.0, delta=1e-6)

    def closed(p: Parameters) -> float:
        return bounds.fixed_window(int(p["m"]), 1.0, p["e0"], p["delta"]).epsilon

    def composed(p: Parameters) -> float:
        q = bounds.fixed_window_posteriors(int(p["m"]), 1.0, p["e0"])
        return bounds.composed_epsilon(q, p["e0"], p["delta"]).upper

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
            Column("P2 Theorem 3.2", _G, closed),
            Column("its proof, composed numerically", _G, composed),
            ours.WINDOW,
            _NO_AMPLIFICATION,
        ),
        "slots",
        "Not a figure of the paper: its main theorem beside what can be proved "
        "(docs/random-check-ins.md). Its Table 1 compares orders of growth and has no figures.",
        remarks,
        log_x=True,
    )
