"""The page of an audit: what was claimed, what an attack has shown, and how sure that is."""

from __future__ import annotations

import math
from pathlib import Path

from dpcheckin.accounting.figures import rounded_down, rounded_up
from dpcheckin.audit.finding import Finding, Verdict
from dpcheckin.document import Document, Table, versions


def write_page(finding: Finding, words: str, picture: Path | None, path: Path) -> None:
    """Write `report.html` of one audit.

    Args:
        finding: what the attack has shown.
        words: the finding as it is printed, with what follows from it.
        picture: of the finding, None if there is none.
        path: of the page.
    """
    claimed = f"≤\u00a0{rounded_up(finding.claimed)}" if math.isfinite(finding.claimed) else "none"
    classical = finding.clopper_pearson
    rows = {
        "attacked": finding.name,
        "played": finding.played or "–",
        "event": str(finding.event),
        f"{finding.unit}, to choose the event": f"{finding.pilot_pairs:,}",
        "classical bound on the same event": "–" if classical is None else rounded_down(classical),
        "seconds": f"{finding.seconds:,.1f}",
        "CPU seconds": f"{finding.cpu_seconds:,.1f}",
        "seed": finding.seed,
    }
    Document(
        kind="Audit report",
        title=f"ε\u00a0≥\u00a0{rounded_down(finding.lower)} shown, {claimed} claimed",
        chip=finding.verdict.value,
        statement=words,
        figures={
            "audited ε": f"≥ {rounded_down(finding.lower)}",
            "claimed ε": claimed,
            "δ": f"{finding.delta:g}",
            "confidence": f"{100 * finding.confidence:g}%",
            finding.unit: f"{finding.pairs:,}",
        },
        pictures={} if picture is None else {picture: "What was shown beside what is claimed"},
        tables=(Table("The attack", list(rows.items())), versions()),
        bad=finding.verdict is not Verdict.NOT_VIOLATED,
    ).write(path)
