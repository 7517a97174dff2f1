"""How an estimate is drawn: bars with intervals, or a distribution function with its band."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.display import axes_for, legend_beside, needed

WITHIN = " · "
"""Between a group and a category in the name of both."""
MOST_BARS = 40
_COLOURS = ("#5ab88a", "#7f9fd6", "#e0a458", "#c585b3", "#8f9aa3", "#b8b04a")
_EVERYWHERE = 0x250  # Latin letters: every font has them
_FONTS = (
    *(
        "Noto Sans CJK JP",
        "Noto Sans CJK SC",
        "Noto Sans CJK KR",
        "Noto Sans JP",
        "Source Han Sans",
        "WenQuanYi Zen Hei",
    ),
    *("WenQuanYi Micro Hei", "Droid Sans Fallback", "IPAGothic", "Hiragino Sans", "PingFang SC", "Microsoft YaHei"),
    *("Yu Gothic", "MS Gothic", "Malgun Gothic", "Arial Unicode MS", "Noto Emoji", "Segoe UI Emoji", "Symbola"),
)
"""Fonts with letters and signs that matplotlib's own lacks, where they are installed."""


def labels(names: Sequence[str]) -> list[str]:
    """What is written below bars: the names, or the place of a name that no installed font can write.

    >>> labels(("yes", "no"))
    ['yes', 'no']
    """
    written = all(ord(sign) < _EVERYWHERE for name in names for sign in name)
    if written or find_spec("matplotlib") is None:
        return list(names)
    fonts, font = needed("matplotlib.font_manager", "plot"), needed("matplotlib.ft2font", "plot").FT2Font
    known: set[int] = set().union(*(font(fonts.findfont(name)).get_charmap() for name in _families(fonts)))
    return [name if known.issuperset(map(ord, name)) else f"({i})" for i, name in enumerate(names, 1)]


def _families(fonts: Any) -> list[str]:
    installed = {entry.name for entry in fonts.fontManager.ttflist}
    return ["DejaVu Sans", *(name for name in _FONTS if name in installed)]


def grouped(names: Sequence[str]) -> dict[str, list[int]]:
    """The places of the figures of each group, of a histogram within groups; else one group without a name.

    >>> grouped(("north · car", "north · bus", "south · car", "south · bus"))
    {'north': [0, 1], 'south': [2, 3]}
    """
    groups: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        groups.setdefault(name.partition(WITHIN)[0] if WITHIN in name else "", []).append(place)
    return groups if "" not in groups else {"": list(range(len(names)))}


def largest(e: Any) -> NDArray[np.intp]:
    """The places of the figures of an estimate e that are drawn, the largest first."""
    return np.argsort(-e.values, kind="stable")[:MOST_BARS]


def listed(e: Any) -> NDArray[np.intp]:
    """The places of the figures of an estimate e in the order of a table: all of them, or the largest."""
    return largest(e) if len(e.names) > MOST_BARS else np.arange(len(e.names))


def draw(e: Any, axes: Any = None, truth: NDArray[np.float64] | None = None) -> Any:
    """Draw an estimate e on axes, or a new figure; the truth is what only a simulation knows."""
    axes = axes_for(axes, xlabel="", ylabel="")
    (_distribution if "edges" in e.more else _bars)(axes, e, truth)
    axes.grid(alpha=0.3)
    legend_beside(axes)
    return axes


def _distribution(axes: Any, e: Any, truth: NDArray[np.float64] | None) -> None:
    more = e.more
    edges = more["edges"]
    middle = more.get("shares", e.values)
    low, high = more.get("shares_lower", e.lower), more.get("shares_upper", e.upper)
    axes.fill_between(edges, low, high, step="post", alpha=0.3, label=f"{e.confidence:.0%} band")
    axes.step(edges, middle, where="post", label="estimate")
    if "shares" in more:
        for name, value in zip(e.names, e.values, strict=True):
            axes.axvline(value, linestyle=":", linewidth=1, label=f"quantile {name}")
    elif truth is not None:
        axes.step(edges, truth, where="post", linestyle="--", label="truth")
    axes.set_ylabel("share of the population")


def _bars(axes: Any, e: Any, truth: NDArray[np.float64] | None) -> None:
    """The largest figures as bars; more than fit on a page would be a carpet."""
    shown = largest(e) if "" in grouped(e.names) else listed(e)  # groups stay together
    places = np.arange(len(shown))
    values = e.values[shown]
    reach = np.maximum([values - e.lower[shown], e.upper[shown] - values], 0.0)
    groups = grouped([e.names[i] for i in shown])
    for place, (group, members) in enumerate(groups.items()):
        axes.bar(places[members], values[members], color=_COLOURS[place % len(_COLOURS)], label=group or "estimate")
    axes.errorbar(
        places, values, yerr=reach, fmt="none", ecolor="black", capsize=2,
        label=f"{e.confidence:.0%} interval",
    )  # fmt: skip
    if truth is not None:
        axes.plot(places, truth[shown], "x", color="#d62728", label="truth", markersize=4)
    order = listed(e)
    names = dict(zip(order.tolist(), labels([e.names[i] for i in order]), strict=True))
    told = [names[i] for i in shown.tolist()]
    foreign = any(ord(sign) >= _EVERYWHERE for name in told for sign in name)
    font = {"family": _families(needed("matplotlib.font_manager", "plot"))} if foreign else {}
    axes.set_xticks(places, told, rotation=60 if len(shown) > 8 else 0, fontsize=7, **font)
    notes = [f"the {len(shown)} largest of {len(e.names):,}"] if len(shown) < len(e.names) else []
    notes += ["numbered names: in the table"] if told != [e.names[i] for i in shown] else []
    axes.set_xlabel("; ".join(notes))
    axes.yaxis.set_major_formatter("{x:,.10g}")
