"""Pictures of audits: what is claimed, what was shown, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from dpcheckin.audit.finding import Finding

_CLAIM, _SHOWN, _BAD = "black", "#1f77b4", "#d62728"


def draw_findings(findings: Sequence[Finding], path: Path) -> None:
    """One bar per finding: the audited lower bound, with the claim as a mark.

    Args:
        findings: one bar each.
        path: of the picture.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 1.7 + 0.55 * len(findings)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    places = range(len(findings))
    colours = [_BAD if f.refuted else _SHOWN for f in findings]
    axes.barh(places, [f.lower for f in findings], height=0.45, color=colours)
    for place, f in zip(places, findings, strict=True):
        if math.isfinite(f.claimed):
            axes.plot([f.claimed] * 2, [place - 0.33, place + 0.33], color=_CLAIM, linewidth=2.5)
    axes.set_yticks(places, [_label(f) for f in findings], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(left=0.0)
    axes.set_xlabel("epsilon")
    confident = ", ".join(sorted({f"{100 * f.confidence:g}%" for f in findings}))
    axes.set_title(
        f"bar: audited lower bound, confidence {confident} (red: claim violated)\n"
        "black mark: claimed epsilon",
        fontsize=9,
    )
    figure.savefig(path, dpi=130)


def _label(f: Finding) -> str:
    words = f.name.replace("; ", "\n")
    return f"{words}\nδ = {f.delta:g}, {f.pairs:,} {f.unit}"
