"""Playing and drawing the papers' training figures: accuracy against certified and printed epsilon.

`run_figure` plays the runs that are not finished yet, each in a folder of its own that resumes after an interruption,
and draws the mean over seeds against the certified epsilon and, dashed, against the epsilon of the paper's own
accountants. Everything that differs from what is printed stands under the picture. `quick` plays the same protocols on
the embedded digits in a minute, to see that everything works.
"""

from __future__ import annotations

import hashlib
import json
import math
import statistics
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from itertools import cycle
from pathlib import Path
from typing import Any

from dpcheckin.errors import DatasetMissing, InvalidParameter, MissingExtra
from dpcheckin.learning.options import RunOptions
from dpcheckin.learning.run import run_watched, write_report
from dpcheckin.learning.simulation.runs import build
from dpcheckin.numerals import Kind, at_least, rounded_down, rounded_up
from dpcheckin.papers.catalogue import catalogue
from dpcheckin.papers.entry import Setting
from dpcheckin.papers.figures import TRAINING
from dpcheckin.papers.training_figure import QUICK, PaperRun, TrainingFigure
from dpcheckin.protocols.questions import protocol_name

Watch = Callable[[PaperRun, dict[str, Any]], None]
Log = list[dict[str, Any]]

REPORT, LOG = "report.json", "log.json"
_POINTS = 20  # of a curve of a published accountant
_WIDE = 60  # letters of a legend's entry beside which there is no room for another
_DASHES = ("--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 0.7)))
_FARTHEST = 100.0  # of the axis: what lies beyond promises nothing


@dataclass(frozen=True)
class Machine:
    """Where and by whom runs are played, which changes no result: so many `workers`, data sets in `data_dir`."""

    workers: int = 1
    data_dir: Path | None = None

    def __post_init__(self) -> None:
        at_least("workers", self.workers, 1)

    def equipped(self, options: RunOptions) -> RunOptions:
        """The options of the same run on this machine."""
        options = replace(options, data_dir=self.data_dir)
        if self.workers == 1:
            return options
        return replace(options, backend="processes", workers=self.workers, threads=1)


THIS_PROCESS = Machine()


def run_figure(
    name: str, folder: Path, *, quick: bool = False, watch: Watch | None = None, machine: Machine = THIS_PROCESS
) -> dict[str, Any]:
    """Play the unfinished runs of a figure of this name on a machine and draw it; returns each run's summary by label.

    Runs and picture go into the folder; if it is `quick`, 20 rounds are played on the embedded digits instead, with one
    seed. `watch` is called with a run and the figures of its latest round. In a summary `accuracy` is the mean over the
    seeds, `accuracies` are theirs, `papers_epsilon` what the paper's accountants say of the whole run. A run whose data
    is not to be had is left out, and the summary says so in its place.
    """
    if name not in TRAINING:
        raise InvalidParameter("figure", name, ", ".join(TRAINING))
    figure = TRAINING[name]
    results: dict[str, Any] = {}
    curves: dict[str, list[Log]] = {}
    theirs: dict[str, dict[str, list[tuple[float, int]]]] = {}
    place = folder / (f"{name}-quick" if quick else name)
    runs = figure.all_runs(quick)
    for label in figure.runs:
        seeds = [run for run in runs if run.label == label]
        played = seeds[0].options
        try:
            summary, logs = _play(seeds, folder, watch, machine)
        except (DatasetMissing, MissingExtra) as problem:
            results[label] = {"left_out": str(problem)}
            continue
        theirs[label] = accounted_by_papers(figure.accountants, played, logs[0], summary["population"])
        ends = {bound: points[-1][0] for bound, points in theirs[label].items()}
        results[label], curves[label] = {**summary, "papers_epsilon": ends}, logs
    if not curves:
        raise DatasetMissing("; ".join(left["left_out"] for left in results.values()))
    place.mkdir(parents=True, exist_ok=True)
    notes = caption(figure, quick)
    _draw(place / f"{name}.png", figure, curves, theirs, notes, quick)
    kept = {"title": figure.title, "caption": notes, "runs": results}
    (place / "summary.json").write_text(json.dumps(kept, indent=1) + "\n")
    return results


def caption(figure: TrainingFigure, quick: bool) -> list[str]:
    """What stands under the picture of a figure, a sentence each; a `quick` look is called one."""
    return [QUICK, *figure.departures] if quick else list(figure.departures)


def _play(
    runs: list[PaperRun], folder: Path, watch: Watch | None, machine: Machine
) -> tuple[dict[str, Any], list[Log]]:
    """All seeds of one curve: the last one's summary with the mean accuracy, and all logs."""
    played = [play_run(run, folder, watch=watch, machine=machine) for run in runs]
    accuracies = [facts["accuracy"] for facts, _ in played]
    summary = {**played[-1][0], "accuracy": statistics.fmean(accuracies), "accuracies": accuracies}
    return summary, [log for _, log in played]


def play_run(
    run: PaperRun, folder: Path, *, watch: Watch | None = None, machine: Machine = THIS_PROCESS
) -> tuple[dict[str, Any], Log]:
    """One run with one seed, played on a machine or taken up where it was left: its report and its log.

    `watch` is called with the run and the figures of its latest round. A run's folder, below `runs` in that of the
    figures, is named by its options, so that figures that show the same run share it. Of a finished one only
    `report.json` and `log.json` are read.
    """
    out = run_folder(run.options, run.seed, folder)
    if is_finished(run, folder):
        report, log = (json.loads((out / name).read_text()) for name in (REPORT, LOG))
        return report, log
    settings = replace(run.options.settings, seed=run.seed)
    mine = machine.equipped(replace(run.options, settings=settings))
    out.mkdir(parents=True, exist_ok=True)
    trainer = build(mine, out)
    if watch is not None:
        trainer.on_round = lambda row: watch(run, row)
    outcome = run_watched(trainer, show=False)
    return write_report(out, trainer, outcome), outcome.log


def is_finished(run: PaperRun, folder: Path) -> bool:
    """Whether a run, kept in the folder of the figures, needs not be played again."""
    out = run_folder(run.options, run.seed, folder)
    return all((out / name).is_file() for name in (REPORT, LOG))


def run_folder(options: RunOptions, seed: int, folder: Path) -> Path:
    """Where in the folder of the figures a run with these options is kept; the seed takes the place of their own."""
    plain, chosen = RunOptions(), []
    for made, default in ((options, plain), (options.settings, plain.settings)):
        # what was left as it is does not count: a new option gives no run another name
        for name in sorted(field.name for field in fields(made)):
            if name != "settings" and getattr(made, name) != getattr(default, name):
                chosen.append((name, getattr(made, name)))
    mark = hashlib.sha256(repr(chosen).encode()).hexdigest()[:12]
    return folder / "runs" / f"{options.protocol}-{mark}" / f"seed-{seed}"


def accounted_by_papers(
    names: tuple[str, ...], options: RunOptions, log: Log, population: int
) -> dict[str, list[tuple[float, int]]]:
    """What bounds of these names say of a run with these options and population: (epsilon, row of its log)."""
    protocol = protocol_name(options.protocol)
    rows = sorted({round(i * (len(log) - 1) / (_POINTS - 1)) for i in range(_POINTS)})
    accounted: dict[str, list[tuple[float, int]]] = {}
    for bound in catalogue():
        if bound.name not in names or protocol not in bound.protocols:
            continue
        points = []
        for row in rows:
            setting = _setting(options, protocol, population, log[row]["round"])
            value = bound.evaluate(setting).epsilon
            if value is not None and math.isfinite(value):
                points.append((value, row))
        if points:
            accounted[f"{bound.name} ({bound.kind.value})"] = points
    return accounted


def _setting(options: RunOptions, protocol: str, population: int, rounds: int) -> Setting:
    """The run as the catalogue asks for it."""
    cohort = max(1, round(options.rate * population))
    sampled = {"cohort": cohort} if protocol == "subsampled-shuffle" else {"rate": options.rate}
    gaussian = options.randomizer == "gaussian"
    report = {"noise_multiplier": options.noise_multiplier} if gaussian else {"local_epsilon": options.local_epsilon}
    return Setting(protocol, population, rounds, options.delta, **sampled, **report)  # type: ignore[arg-type]


def _draw(
    path: Path,
    figure: TrainingFigure,
    curves: dict[str, list[Log]],
    theirs: dict[str, dict[str, list[tuple[float, int]]]],
    notes: list[str],
    quick: bool,
) -> None:
    from matplotlib.figure import Figure

    lines = [line for note in notes for line in textwrap.wrap(f"– {note}", 120)]
    picture = Figure(figsize=(8, 4.8 + 0.16 * len(lines)), layout="constrained")
    axes = picture.subplots()
    for index, (label, logs) in enumerate(curves.items()):
        colour, first = f"C{index}", logs[0]
        scores = [[100 * log[i]["accuracy"] for log in logs] for i in range(len(first))]
        means = [statistics.fmean(s) for s in scores]
        spent = [row["epsilon"] for row in first]
        whose = f"{label}, " if len(curves) > 1 else ""
        axes.plot(spent, means, color=colour, marker=".", label=f"{whose}certified ε")
        if len(logs) > 1:
            low = [m - statistics.stdev(s) for m, s in zip(means, scores, strict=True)]
            high = [m + statistics.stdev(s) for m, s in zip(means, scores, strict=True)]
            axes.fill_between(spent, low, high, color=colour, alpha=0.15, linewidth=0)
        for dashes, (bound, points) in zip(cycle(_DASHES), theirs[label].items()):
            x, y = [p[0] for p in points], [means[p[1]] for p in points]
            safely = rounded_down if bound.endswith(f"({Kind.LOWER_BOUND.value})") else rounded_up
            name = f"{whose}{bound}, ends at {safely(x[-1])}"
            axes.plot(x, y, linestyle=dashes, color=colour, alpha=0.7, label=name)
    stated = [] if quick else [point for point in figure.published if point[0] is not None]
    for mark, by in zip("*xP", dict.fromkeys(point[2] for point in stated), strict=False):
        places = [(x, y) for x, y, accountant in stated if accountant == by]
        axes.plot(*zip(*places, strict=True), f"k{mark}", label=f"printed in the text, {by}")
    axes.set_xscale("log")
    axes.set_xlim(right=min(axes.get_xlim()[1], _FARTHEST))
    axes.set_xlabel("ε")
    axes.set_ylabel("test accuracy, %")
    axes.set_title("\n".join(textwrap.wrap(figure.title, 100)), fontsize=9)
    widest = max(len(str(name)) for name in axes.get_legend_handles_labels()[1])
    picture.legend(loc="outside upper center", ncols=2 if widest < _WIDE else 1, fontsize=7)
    axes.grid(alpha=0.3)
    picture.supxlabel("\n".join(lines), fontsize=7, ha="left", x=0.01)
    picture.savefig(path, dpi=120)
