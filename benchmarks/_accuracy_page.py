"""The table and the picture of docs/accuracy.md, from what `accuracy.py` stored."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from _accuracy_goals import FEW, GOALS, TASKS

from dpcheckin.numerals import rounded_up

PAGE_HEAD = (
    "| data | ε, certified | if the shuffler colludes | check-ins a client | test accuracy | goal | central DP-SGD "
    "| loss in points | without privacy |",
    "|---|---|---|---|---|---|---|---|---|",
)
FEW_HEAD = (
    "| most check-ins | clients | reports | ε, certified | if the shuffler colludes | check-ins a client "
    "| test accuracy |",
    "|---|---|---|---|---|---|---|",
)
NAMES = {
    "mnist": "MNIST",
    "fashion-mnist": "Fashion-MNIST",
    "cifar10-scattering": "CIFAR-10, scattering",
    "cifar10-imagenet": "CIFAR-10, ImageNet features",
}


def colluding(ours: dict[str, Any]) -> str:
    """The second trust figure, as the run's own statement has it."""
    found = re.search(r"If the shuffler colludes, what is left is \(([\d.,]+?)[;,] ", ours["statement"])
    assert found is not None, ours["statement"]
    return found[1] if "," in found[1] else f"{float(found[1]):,.10g}"


def check_ins(ours: dict[str, Any]) -> str:
    """Check-ins of a client, on average: its rate times the rounds."""
    rate = re.search(r"--rate (\S+)", ours["command"])
    assert rate is not None, ours["command"]  # the benchmark's rates are not the default
    return f"{float(rate[1]) * ours['rounds']:,.0f}"


def reached(ours: dict[str, Any]) -> str:
    """The mean accuracy, rounded down, with how many seeds and their range."""
    scores = [math.floor(1e4 * score + 1e-6) / 100 for score in ours["accuracies"]]
    spread = f"{len(scores)} seeds, {min(scores):.2f}–{max(scores):.2f}"
    return f"{math.floor(1e4 * ours['accuracy'] + 1e-6) / 100:.2f}% ({'one seed' if len(scores) == 1 else spread})"


def few_row(row: dict[str, Any]) -> str:
    """A line of the table of few check-ins."""
    ours = row["shuffled"]
    dealt = "" if row["population"] == 60_000 else ", dealt"
    return (
        f"| {row['passes']} | {row['population']:,}{dealt} | {ours['randomizer']} | {rounded_up(ours['epsilon'])} "
        f"| {colluding(ours)} | {check_ins(ours)} | {reached(ours)} |"
    )


def page_row(row: dict[str, Any]) -> str:
    """A goal as a line of the page: ours rounded down, the loss against central up."""
    ours, trusted = row["shuffled"], row["central"]
    loss = math.ceil(1e4 * (trusted["accuracy"] - ours["accuracy"]) - 1e-6) / 100
    return (
        f"| {NAMES[row['task']]} | {rounded_up(ours['epsilon'])} | {colluding(ours)} | {check_ins(ours)} "
        f"| {reached(ours)} | {100 * row['goal']:g}%: {'met' if row['met'] else 'missed'} "
        f"| {100 * trusted['accuracy']:.2f}% at {rounded_up(trusted['epsilon'])} | {loss:.2f} "
        f"| {100 * row['without_privacy']:.2f}% |"
    )


def write_page(page: Path, rows: dict[str, Any]) -> None:
    """Put the table between the page's marks, and the picture beside the page."""
    from matplotlib.figure import Figure

    lines = [*PAGE_HEAD, *(page_row(rows[g.name]) for g in GOALS if g.name in rows)]
    few = [*FEW_HEAD, *(few_row(rows[g.name]) for g in FEW if g.name in rows)]
    for mark, block in (("table", lines), ("few", few)):
        if f"<!-- {mark} -->" not in page.read_text():
            continue
        before, _, rest = page.read_text().partition(f"<!-- {mark} -->\n")
        _, _, after = rest.partition(f"<!-- end of {mark} -->\n")
        page.write_text(before + "\n".join([f"<!-- {mark} -->", *block, "", f"<!-- end of {mark} -->", ""]) + after)
    rows = {g.name: rows[g.name] for g in GOALS if g.name in rows}
    figure = Figure(figsize=(9, 4), layout="constrained")
    tasks = [t for t in TASKS if any(row["task"] == t for row in rows.values())]
    for axes, task in zip(figure.subplots(1, len(tasks), squeeze=False)[0], tasks, strict=True):
        some = sorted((r for r in rows.values() if r["task"] == task), key=lambda r: r["goal"])
        for label, colour in (("shuffled", "#0b7268"), ("central", "#8a5a00")):
            points = [(r[label]["epsilon"], s) for r in some for s in r[label]["accuracies"]]
            axes.plot([p[0] for p in points], [100 * p[1] for p in points], "o", color=colour,
                      label={"shuffled": "shuffled, nobody trusted with data"}.get(
                          label, "central DP-SGD (add or remove)"))  # fmt: skip
        best = max(100 * r["without_privacy"] for r in some)
        axes.axhline(best, color="#555", linestyle=":", label="without privacy")
        axes.set_title(NAMES[task].replace(", ", "\n"), fontsize=10)
        axes.set_xscale("log")
        axes.set_xlim(0.3, 5.0)
        axes.set_xticks([0.5, 1.0, 3.0], ["0.5", "1", "3"])
        axes.minorticks_off()
        axes.set_xlabel("certified ε at δ = 1e-5")
        axes.set_ylabel("test accuracy, %")
        axes.grid(alpha=0.3)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    figure.savefig(page.parent / "images" / "accuracy.png", dpi=110)
