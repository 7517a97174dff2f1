"""The tightness figure: audited lower bounds against certified upper bounds, cell by cell.

A cell is one plan; its audit takes the budget of one command. Finished cells are kept in a file, so
an interrupted figure goes on where it stopped.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcheckin.accounting.figures import rounded_down, rounded_up
from dpcheckin.audit.budget import Budget
from dpcheckin.audit.checks.plans import check_plan, plan_named, rounds_text
from dpcheckin.audit.examination import examine
from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import registry

Progress = Callable[[float, str], None]

AIM, COMPOSED_AIM = 0.7, 0.5  # of the certified epsilon, for one round and for many
_RESPONSES = ("binary", "dary:3")
_POPULATIONS = (100, 1000)
_RATES = (0.1, 1.0)
_EPSILONS = (1.0, 2.0, 3.0, 4.0)
_STRONG = ((100, 0.1, 4.0), (100, 1.0, 2.0), (1000, 1.0, 4.0))
_BEYOND = (100, 1.0, 4.0)


@dataclass(frozen=True)
class Cell:
    """One plan of the figure."""

    randomizer: str
    population: int
    rate: float
    local_epsilon: float
    rounds: int = 1
    delta: float = 1e-3

    @property
    def key(self) -> str:
        """Its name in the file of finished cells."""
        return (
            f"{self.randomizer} n={self.population} rate={self.rate:g} "
            f"eps0={self.local_epsilon:g} rounds={self.rounds} delta={self.delta:g}"
        )


def _delta(response: str, population: int, local_epsilon: float) -> float:
    """Binary response comes near its bound in large crowds only for small deltas."""
    far = (response, population) == ("binary", 1000) and local_epsilon <= 2
    return 1e-4 if far else 1e-3


def one_round_cells() -> list[Cell]:
    """Every response, population, rate and local epsilon, one round."""
    return [
        Cell(r, n, g, e, delta=_delta(r, n, e))
        for r in _RESPONSES
        for n in _POPULATIONS
        for e in _EPSILONS
        for g in _RATES
    ]


def composed_cells() -> list[Cell]:
    """A hundred rounds, where the certified epsilon is within reach of sampling.

    No sampling shows an epsilon much beyond the logarithm of the number of runs. So delta is 0.1
    where the certified epsilon is beyond 10 at 0.01, and a hundred full shuffles of 100 reports
    with local epsilon 4, certified at 94 or more whatever delta, are left out.
    """
    return [
        Cell(r, n, g, e, rounds=100, delta=0.1 if (n, g, e) in _STRONG else 0.01)
        for r in _RESPONSES
        for n in _POPULATIONS
        for e in (2.0, 4.0)
        for g in _RATES
        if (n, g, e) != _BEYOND
    ]


def audit_cells(
    cells: Sequence[Cell],
    budget: Budget,
    path: Path | None = None,
    *,
    confidence: float = 0.99,
    workers: int = 1,
    seed: int = 1,
    progress: Progress = lambda share, words: None,
) -> list[dict[str, Any]]:
    """Audit each cell within the budget; results in the order of the cells.

    Args:
        cells: the plans.
        budget: of each cell.
        path: file of finished cells, None to keep none.
        confidence: of the lower bound, in [0.5, 1).
        workers: number of processes.
        seed: of every audit.
        progress: called with the share that is done and a few words.
    """
    done = _load(path)
    for place, cell in enumerate(cells):
        if cell.key in done:
            continue
        randomizer = registry.randomizer(cell.randomizer, local_epsilon=cell.local_epsilon)
        plan = plan_named("shuffled-check-in", randomizer, cell.population, cell.rate, cell.rounds)
        # about theorems, not about the code that ships, which is slower
        check = check_plan(plan, cell.delta, confidence, turns=True, fast=True)

        def show(share: float, words: str, place: int = place, cell: Cell = cell) -> None:
            progress((place + share) / len(cells), f"{cell.key}: {words}")

        finding = examine(check, budget, seed=seed, workers=workers, progress=show)
        done[cell.key] = {**finding.to_json(), "cell": cell.__dict__, "budget": str(budget)}
        _save(path, done)
    return [done[cell.key] for cell in cells]


def _load(path: Path | None) -> dict[str, Any]:
    if path is None or not path.exists():
        return {}
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        read = None
    if not isinstance(read, dict):
        raise InvalidParameter("out", str(path), "a file of finished cells")
    return read


def _save(path: Path | None, done: dict[str, Any]) -> None:
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(done, indent=1), encoding="utf-8")
    os.replace(fresh, path)


def markdown(results: Sequence[dict[str, Any]]) -> str:
    """The table as it stands in docs/audit-tables.md."""
    lines = [
        "| response | n | γ | ε₀ | rounds | δ | certified ε ≤ | audited ε ≥ | ratio | plays "
        "| CPU seconds |\n",
        "|" + "---|" * 11 + "\n",
    ]
    for result in results:
        c = result["cell"]
        claimed, lower = result["claimed_epsilon"], result["lower_bound"]
        name = {"binary": "binary", "dary:3": "3-ary"}[c["randomizer"]]
        lines.append(
            f"| {name} | {c['population']} | {c['rate']:g} | {c['local_epsilon']:g} | "
            f"{c['rounds']} | {c['delta']:g} | {rounded_up(claimed)} | {rounded_down(lower)} | "
            f"{_ratio(lower / claimed, c['rounds'])} | "
            f"{result['pairs'] + result['pilot_pairs']:,} | {result['cpu_seconds']:.0f} |\n"
        )
    return "".join(lines)


def tables(done: Mapping[str, dict[str, Any]]) -> str:
    """Both tables, one round and a hundred, of finished cells by their keys."""
    one, many = (
        markdown([done[cell.key] for cell in cells if cell.key in done])
        for cells in (one_round_cells(), composed_cells())
    )
    return f"{one}\nA hundred rounds:\n\n{many}"


def _ratio(value: float, rounds: int) -> str:
    """Two digits, rounded down; in italics what falls short of the aim."""
    shown = f"{math.floor(100 * value) / 100:.2f}"
    return shown if value >= (AIM if rounds == 1 else COMPOSED_AIM) else f"*{shown}*"


def draw(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Certified curves with audited points, one panel per response and population."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7), layout="constrained")
    FigureCanvasAgg(figure)
    panels = [(r, n) for r in _RESPONSES for n in _POPULATIONS]
    axes = figure.subplots(2, 2, sharex=True)
    for (response, population), place in zip(panels, axes.ravel(), strict=True):
        for rate, colour in zip(_RATES, ("#1f77b4", "#d95f02"), strict=True):
            found = [
                r
                for r in results
                if (r["cell"]["randomizer"], r["cell"]["population"], r["cell"]["rate"])
                == (response, population, rate)
            ]
            x = [r["cell"]["local_epsilon"] for r in found]
            certified = [r["claimed_epsilon"] for r in found]
            place.plot(x, certified, "_-", color=colour, label=f"certified, γ = {rate:g}")
            lower = [r["lower_bound"] for r in found]
            place.plot(x, lower, "o:", color=colour, label=f"audited, γ = {rate:g}")
        place.set_yscale("log")
        name = {"binary": "binary response", "dary:3": "3-ary response"}[response]
        deltas = sorted({_delta(response, population, e) for e in _EPSILONS}, reverse=True)
        values = " and ".join(f"{delta:g}" for delta in deltas)
        title = f"{name}, n = {population:,}, {rounds_text(1)}, δ = {values}"
        place.set_title(title, fontsize=9)
        place.grid(alpha=0.3)
    for place in axes[-1]:
        place.set_xlabel("local epsilon")
    for place in axes[:, 0]:
        place.set_ylabel("epsilon")
    axes[0, 0].legend(fontsize=8)
    confidence = 100 * min(r["confidence"] for r in results)
    figure.suptitle(
        f"audited lower bounds ({confidence:g}% confidence) under certified upper bounds",
        fontsize=10,
    )
    figure.savefig(path, dpi=130)
