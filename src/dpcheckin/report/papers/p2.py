"""P2's Figure 2, and its main theorem for one window beside what can be proved."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpcheckin.accounting.figures import Kind
from dpcheckin.accounting.published import clones, p2
from dpcheckin.report import ours
from dpcheckin.report.panel import Cells, Column, Panel, Row

P = Mapping[str, float]
_G, _L, _C, _R = Kind.GUARANTEE, Kind.LOWER_BOUND, Kind.CONJECTURE, Kind.REFUTED


def figure_2() -> list[Panel]:
    """One shuffle, a panel for every number of clients."""
    out = []
    for n in (1_000, 10_000, 100_000, 1_000_000):
        rows = tuple(
            Row(f"{e0:.2f}", float(e0), {"n": n, "e0": float(e0), "delta": 1e-6})
            for e0 in np.round(np.linspace(0.1, 2.0, 20), 2)
        )

        def closed(p: P) -> float:
            return p2.shuffling(int(p["n"]), p["e0"], p["delta"]).epsilon

        def before(p: P) -> float:
            return p2.shuffling_before(int(p["n"]), p["e0"], p["delta"]).epsilon

        def exact_clones(p: P) -> float:
            return clones.numerical(p["e0"], int(p["n"]), p["delta"])

        out.append(
            Panel(
                f"p2-figure2-n{n}",
                f"P2 Figure 2: one shuffle, n = {n:,}, δ = 1e-6",
                rows,
                (
                    Column("P2 Theorem 5.1 (solid)", _G, closed),
                    Column("Erlingsson et al. (dotted)", _G, before),
                    Column("exact clones", _G, exact_clones),
                    Column("no amplification", _G, lambda p: p["e0"]),
                    Column("our guarantee", _G, ours.full_shuffle),
                    Column("3-ary lower bound", _L, ours.full_shuffle_lower),
                ),
                "local ε",
                "Closed forms as printed; without amplification ε = ε0.",
            )
        )
    return out


def windows() -> Panel:
    """Theorem 3.2 against the number of slots; not a figure of the paper."""
    rows = tuple(
        Row(f"{m:,}", float(m), {"m": m, "e0": 1.0, "delta": 1e-6})
        for m in (10, 30, 100, 300, 1_000, 3_000)
    )

    def closed(p: P) -> float:
        return p2.fixed_window(int(p["m"]), 1.0, p["e0"], p["delta"]).epsilon

    def composed(p: P) -> float:
        q = p2.fixed_window_posteriors(int(p["m"]), 1.0, p["e0"])
        return p2.composed_epsilon(q, p["e0"], p["delta"]).upper

    def remarks(cells: Cells) -> list[str]:
        last = rows[-1].label
        one, two = cells[(last, "P2 Theorem 3.2")], cells[(last, "empty-seat guarantee")]
        if not (one and two):
            return []
        return [f"At {last} slots the window bound is {one / two:.1f} times below the closed form."]

    return Panel(
        "p2-windows",
        "P2 Theorem 3.2: one window of random check-ins, ε0 = 1, p = 1, δ = 1e-6",
        rows,
        (
            Column("P2 Theorem 3.2", _G, closed),
            Column("its proof, composed numerically", _G, composed),
            Column("empty-seat guarantee", _G, ours.window),
            Column("no amplification", _G, lambda p: p["e0"]),
        ),
        "slots",
        "Not a figure of the paper: its main theorem beside what can be proved "
        "(docs/random-check-ins.md). Its Table 1 compares orders of growth and has no figures.",
        remarks,
        log_x=True,
    )
