"""What is to be said about P1's Table 2 and Figure 5."""

from __future__ import annotations

from dpcheckin.numerals import rounded_down
from dpcheckin.papers.panel import Cells, Rows


def on_table_2(rows: Rows, cells: Cells) -> list[str]:
    """A sentence for every printed figure, in the table's rows and cells, that cannot be."""
    out = []
    for row in rows:
        low = cells[(row.label, "3-ary lower bound")]
        for printed in ("baseline", "approach 1", "approach 2"):
            value = cells[(row.label, printed)]
            if value is not None and low is not None and value < low:
                out.append(
                    f"**Impossible:** the printed {printed} at {row.label} is {value:g}, below the exact lower "
                    f"bound {rounded_down(low)}: P1 Lemma 1 converts in the wrong direction."
                )
    return out


def on_figure_5(rows: Rows, cells: Cells) -> list[str]:
    """Where its two curves lie, by the cells of all rows."""
    curves = ("fixed cohort, Rényi (blue)", "Theorem 4 (red)")
    fixed, red = ([cells[(row.label, curve)] or 0 for row in rows] for curve in curves)
    if any(mine < other * 0.999 for mine, other in zip(red, fixed, strict=True)):
        return []
    return [
        "The paper draws distributed check-in far below sampling a fixed cohort. With k/n as sampling rate and k "
        "= 0 included the red line is never below the blue one, and from ten rounds on the two coincide within 1%."
    ]
