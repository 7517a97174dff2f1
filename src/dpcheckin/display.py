"""How values look in a notebook: HTML tables, pandas frames, plots with the legend beside them.

Nothing here is needed for a figure. pandas and matplotlib are loaded when a frame or a plot is asked for, and a missing
one is named together with the extra that brings it.
"""

from __future__ import annotations

import html
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from dpcheckin.errors import MissingExtra
from dpcheckin.numerals import written

Record = Mapping[str, Any]
COLOURS = {
    "guarantee": ("#1b9e4b", "#5ab88a", "#2f7f7a", "#8fb339", "#4f9d9d", "#a3c293"),
    "lower bound": ("#1f5fbf", "#5a9bd8", "#7a86c9"),
    "conjecture": ("#e08214", "#f0a852"),
    "refuted claim": ("#d62728", "#e8696a", "#b04a5a", "#f09a8a", "#8c2d2d", "#e377a2"),
}
"""Colours of curves by the kind of their figures, the usual one first."""


class Tabular:
    """Something that is a table: each record is a row with the same columns."""

    __slots__ = ()

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """The rows, with every digit."""

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame, with every digit."""
        return frame(self.records())

    def shown(self) -> list[dict[str, str]]:
        """The rows as they may be read: figures rounded to their safe side."""
        return [{k: told(v) for k, v in record.items()} for record in self.records()]

    @property
    def caption(self) -> str:
        """What stands above the table."""
        return ""

    def _repr_html_(self) -> str:
        return html_table(self.shown(), self.caption)


def html_table(rows: Sequence[Mapping[str, str]], caption: str = "") -> str:
    """A table of these rows under its caption, with one column for every key of the first row."""
    columns = list(rows[0]) if rows else []
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(row.get(name, ''))}</td>" for name in columns) + "</tr>" for row in rows
    )
    above = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{above}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_facts(facts: Mapping[str, str], below: str = "") -> str:
    """A table of two columns, names and facts, and a sentence below.

    >>> html_facts({"epsilon": "< 1"})
    '<table><tbody><tr><th>epsilon</th><td>&lt; 1</td></tr></tbody></table>'
    """
    rows = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in facts.items()
    )
    sentence = f"<p>{html.escape(below)}</p>" if below else ""
    return f"<table><tbody>{rows}</tbody></table>{sentence}"


def told(value: object) -> str:
    """A value as it may be read.

    >>> told(60_000), told(0.02), told(True), told(None), told("laplace")
    ('60,000', '0.02', 'yes', '–', 'laplace')
    """
    if value is None or value == ():
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return written(value) if isinstance(value, int | float) else str(value)


def frame(records: Sequence[Record]) -> Any:
    """The records as a pandas DataFrame."""
    return needed("pandas", "frame").DataFrame.from_records(list(records))


def needed(module: str, extra: str) -> Any:
    """An optional module, or one line that says which extra brings it."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(module.partition(".")[0], extra) from None


def axes_for(axes: Any = None, *, xlabel: str, ylabel: str) -> Any:
    """The axes to draw on, labelled by xlabel and ylabel: the given ones, or those of a new figure.

    A new figure belongs to pyplot where that is in use, so that a notebook shows it.
    """
    if axes is None:
        pyplot = needed("matplotlib.pyplot", "plot")
        _, axes = pyplot.subplots(figsize=(8.0, 4.2), layout="constrained")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    return axes


def legend_beside(axes: Any) -> None:
    """The legend to the right of the plot, where it covers nothing."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, fontsize=8)


def readable_ticks(axes: Any) -> None:
    """Ticks of logarithmic axes as numbers that people read, 0.02 and not 2 × 10⁻², and few of them."""
    ticker = needed("matplotlib.ticker", "plot")
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0), numticks=9))
            axis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{x:,.10g}" if 1e-4 < x < 1e7 else f"{x:g}"))
            axis.set_minor_formatter(ticker.NullFormatter())
