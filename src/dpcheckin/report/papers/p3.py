"""P3's numerical figures, ours beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from dpcheckin.accounting.figures import Kind
from dpcheckin.accounting.published import clones, p3, strong_composition
from dpcheckin.accounting.renyi.conversion import RenyiCurve
from dpcheckin.errors import OutsideTheorem
from dpcheckin.report import ours
from dpcheckin.report.panel import Cell, Cells, Column, Panel, Row

P = Mapping[str, float]
_G, _L, _C, _R = Kind.GUARANTEE, Kind.LOWER_BOUND, Kind.CONJECTURE, Kind.REFUTED


def figures() -> list[Panel]:
    """Figures 4 and 5, a panel for every setting."""
    delta = 1e-8
    shapes = (
        ("p3-figure4-a", 1.0, 1_000_000, 1_000, None),
        ("p3-figure4-b", 1.0, 10_000_000, 10_000, None),
        ("p3-figure4-c", 1.0, None, 10_000, 100_000),
        ("p3-figure5-a", 3.0, 1_000_000, 1_000, None),
        ("p3-figure5-b", 3.0, 10_000_000, 1_000, None),
        ("p3-figure5-c", 3.0, None, 1_000, 100_000),
    )
    out = []
    for name, e0, n, cohort, rounds in shapes:
        if n is not None:
            points = [(n, t) for t in (100, 1_000, 3_000, 10_000, 30_000, 100_000)]
        else:
            points = [(m, int(rounds or 0)) for m in (100_000, 300_000, 10**6, 3 * 10**6, 10**7)]
        rows = tuple(
            Row(
                f"{t:,}" if n is not None else f"{m:,}",
                float(t if n is not None else m),
                {"n": m, "cohort": cohort, "e0": e0, "rounds": t, "delta": delta},
            )
            for m, t in points
        )

        def rdp(make: Callable[[int, int, float, int], RenyiCurve]) -> Callable[[P], Cell]:
            def compute(p: P) -> float:
                curve = make(int(p["n"]), int(p["cohort"]), p["e0"], 300)
                return curve.times(p["rounds"]).epsilon(p["delta"]).epsilon

            return compute

        def magenta(p: P) -> float:
            fraction = p["cohort"] / p["n"]
            per_round = min(0.5, p["delta"] / (2 * p["rounds"]) / fraction)
            try:
                shuffled = clones.closed_form(p["e0"], int(p["cohort"]), per_round)
            except OutsideTheorem:
                shuffled = p["e0"]
            one, _ = clones.subsampled(shuffled, 0.0, fraction)
            return strong_composition.classical(one, int(p["rounds"]), p["delta"] / 2)

        def kov(p: P) -> float:
            return clones.composed_subsample(
                int(p["n"]), int(p["cohort"]), p["e0"], int(p["rounds"]), p["delta"]
            )

        columns = (
            Column("P3 Theorem 1 (blue)", _G, rdp(p3.upper_rdp)),
            Column("shuffle Rényi + sampling (black)", _G, rdp(p3.lemma_2_rdp)),
            Column("clones, strong composition (magenta)", _G, magenta),
            Column("clones, Kairouz et al.", _G, kov),
            Column("P3 Theorem 2, converted (red)", _C, rdp(p3.lower_rdp)),
            Column("empty-seat guarantee", _G, ours.subsample),
            Column("3-ary lower bound", _L, ours.subsample_lower),
        )

        def remarks(cells: Cells, rows: tuple[Row, ...] = rows) -> list[str]:
            last = rows[-1].label
            blue = cells[(last, "P3 Theorem 1 (blue)")]
            pink = cells[(last, "clones, strong composition (magenta)")]
            mine = cells[(last, "empty-seat guarantee")]
            if not (blue and pink and mine):
                return []
            return [
                f"At {last}: magenta/blue = {pink / blue:.1f} (the text says 17 for ε0 = 3, "
                f"n = 10⁶, T = 10⁵; that ratio belongs to the classical strong composition, with "
                f"Kairouz et al. it is "
                f"{(cells[(last, 'clones, Kairouz et al.')] or math.nan) / blue:.1f}).",
                f"Ours is {blue / mine:.1f} times below blue.",
                "Red is, as the caption says, the lower bound on Rényi divergences converted to ε. "
                "The conversion bounds ε from above, so red is what the Rényi route cannot "
                "undercut, and no lower bound on ε: it may lie above a guarantee.",
            ]

        what = "rounds" if n is not None else "clients"
        fixed = f"n = {n:,}" if n is not None else f"T = {rounds:,}"
        out.append(
            Panel(
                name,
                f"P3 Figure {name[9:].replace('-', '')}: subsampled shuffle, ε0 = {e0:g}, "
                f"{fixed}, k = {cohort:,}, δ = 1e-8",
                rows,
                columns,
                what,
                "Figure 4b's caption and text give γ = 0.001.",
                remarks,
                log_x=True,
            )
        )
    return out
