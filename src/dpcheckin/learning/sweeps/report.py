"""The end of a sweep: everything as `sweep.json`, a line per run in `sweep.csv`, one table and one picture.

The table has a row for every point of the grid, with the mean over the seeds and their spread; the picture shows
accuracy against certified epsilon, one curve a point, or, when nothing was trained, epsilon against the first number
that was varied.
"""

from __future__ import annotations

import csv
import json
import math
import statistics
from pathlib import Path
from typing import Any

from dpcheckin.display import legend_beside, told
from dpcheckin.learning.sweeps.grid import VARIED, Result, Sweep
from dpcheckin.numerals import rounded_up

_RUN_COLUMNS = ("accuracy", "best_accuracy", "epsilon", "colluding_epsilon", "delta", "rounds_run")
_MOST_LABELS = 12


def table(results: list[Result]) -> list[dict[str, Any]]:
    """One row per point of the results: values, good runs, means over seeds, and the largest certified epsilon."""
    return [_row(same) for same in _by_point(results)]


def _by_point(results: list[Result]) -> list[list[Result]]:
    points: dict[str, list[Result]] = {}
    for result in results:
        points.setdefault(json.dumps(result["point"], default=str), []).append(result)
    return list(points.values())


def _row(same: list[Result]) -> dict[str, Any]:
    well = [r for r in same if "failed" not in r]
    row: dict[str, Any] = {**same[0]["point"], "runs": len(well)}
    scores = [r["accuracy"] for r in well if "accuracy" in r]
    if scores:
        row["accuracy"] = statistics.fmean(scores)
        row["accuracy_deviation"] = statistics.stdev(scores) if len(scores) > 1 else None
    if well:
        row["epsilon"] = max(r["epsilon"] for r in well)
        colluding = [r["colluding_epsilon"] for r in well if r.get("colluding_epsilon") is not None]
        if colluding:
            row["colluding_epsilon"] = max(colluding)
        row["delta"] = well[0]["delta"]
        row["rounds_run"] = max(r["rounds_run"] for r in well)
    failures = sorted({r["failed"] for r in same if "failed" in r})
    if failures:
        row["failed"] = "; ".join(failures)
    return row


def shown(rows: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells as people read them; epsilon is rounded up, never to nearest."""
    names = dict.fromkeys(name for row in rows for name in row if name != "accuracy_deviation")
    headings = [name.replace("_", " ") for name in names]
    return headings, [[_cell(row, name) for name in names] for row in rows]


def _cell(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if value is None:
        return ""
    if name == "accuracy":
        spread = row.get("accuracy_deviation")
        more = "" if spread is None else f" ± {100 * spread:.2f}"
        return f"{100 * value:.2f}{more} %"
    if name in ("epsilon", "colluding_epsilon"):
        return rounded_up(value)
    return told(value)


def write_sweep(sweep: Sweep, results: list[Result], out: Path) -> dict[str, Any]:
    """Write the four files of a sweep's results to `out`; returns the content of `sweep.json`."""
    rows = table(results)
    content = {
        "over": {name: list(values) for name, values in sweep.over.items()},
        "seeds": list(sweep.seeds),
        "trained": sweep.train,
        "table": rows,
        "runs": results,
    }
    (out / "sweep.json").write_text(json.dumps(content, indent=1, default=str) + "\n")
    columns = [*sweep.over, "seed", *_RUN_COLUMNS, "model", "failed"]
    with (out / "sweep.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows({**result, **result["point"]} for result in results)
    headings, cells = shown(rows)
    lines = ["| " + " | ".join(line) + " |" for line in [headings, ["---"] * len(headings), *cells]]
    (out / "sweep.md").write_text("\n".join([*lines, "", "![sweep](sweep.png)", ""]))
    if any("failed" not in result for result in results):
        _draw(sweep, results, rows, out / "sweep.png")
    return content


def _draw(sweep: Sweep, results: list[Result], rows: list[dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 5), layout="constrained")
    axes = figure.subplots()
    curves = _draw_training(axes, results) if sweep.train else _draw_prices(axes, sweep, rows)
    axes.grid(alpha=0.3)
    if 1 < curves <= _MOST_LABELS:
        legend_beside(axes)
    figure.savefig(path, dpi=120)


def _label(point: dict[str, Any], without: str | None = None) -> str:
    parts = [f"{n.replace('_', ' ')} {told(v)}" for n, v in point.items() if n != without]
    return ", ".join(parts) or "all"


def _draw_training(axes: Any, results: list[Result]) -> int:
    """Mean accuracy over the seeds against epsilon, with the range of the seeds behind it."""
    well = [result for result in results if "failed" not in result]
    points = _by_point(well)
    for same in points:
        label = _label(same[0]["point"])
        logs = list(zip(*(r["log"] for r in same), strict=False))
        epsilon = [max(row["epsilon"] for row in rows) for rows in logs]
        scores = [[100 * row["accuracy"] for row in rows] for rows in logs]
        (line,) = axes.plot(epsilon, [statistics.fmean(s) for s in scores], marker=".", label=label)
        if len(same) > 1:
            low, high = [min(s) for s in scores], [max(s) for s in scores]
            axes.fill_between(epsilon, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    deltas = sorted({result["delta"] for result in well})
    axes.set_xlabel(f"certified ε at δ = {', '.join(f'{d:g}' for d in deltas)}")
    axes.set_ylabel("accuracy, % (mean and range over seeds)")
    _widen(axes, [row["epsilon"] for result in well for row in result["log"]])
    return len(points)


def _draw_prices(axes: Any, sweep: Sweep, rows: list[dict[str, Any]]) -> int:
    """Epsilon against the first option with numbers; one curve for each choice of the others."""
    numbers = [n for n in sweep.over if VARIED[n].scalar in (int, float)]
    across = next((n for n in numbers if None not in sweep.over[n]), None)
    curves: dict[str, list[tuple[float, float]]] = {}
    for index, row in enumerate(rows):
        if "epsilon" not in row or not math.isfinite(row["epsilon"]):
            continue
        x = float(index) if across is None else float(row[across])
        label = _label({name: row[name] for name in sweep.over}, across)
        curves.setdefault(label if across else "all", []).append((x, row["epsilon"]))
    for label, dots in curves.items():
        dots.sort()
        axes.plot([x for x, _ in dots], [y for _, y in dots], marker="o", label=label)
    if across is None:
        axes.set_xticks(range(len(rows)), [_label({n: r[n] for n in sweep.over}) for r in rows])
        axes.tick_params(axis="x", labelsize=7, rotation=20)
    else:
        axes.set_xlabel(across.replace("_", " "))
        _widen(axes, [float(v) for v in sweep.over[across]])
    axes.set_yscale("log")
    axes.set_ylabel("certified ε")
    return len(curves)


def _widen(axes: Any, values: list[float]) -> None:
    """A logarithmic axis where a linear one would crowd most points into a corner."""
    if values and min(values) > 0 and max(values) >= 20 * min(values):
        axes.set_xscale("log")
