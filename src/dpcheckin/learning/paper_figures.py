"""The papers' training figures as runs: the same protocol and parameters, our accounting.

Each figure is a few labelled runs; `run_figure` plays those that are not finished yet, each in a
folder of its own that resumes after an interruption, and draws accuracy against certified epsilon.
`quick` plays the same protocols on the embedded digits in a minute, to see that everything works.
Learning rates are in units of the clip, as everywhere here; where a paper leaves one open, ours
is used. The accounting-only figures are not here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpcheckin.display import legend_beside
from dpcheckin.errors import DatasetMissing, InvalidParameter
from dpcheckin.learning.options import RunOptions
from dpcheckin.learning.report import write_report
from dpcheckin.learning.settings import Settings
from dpcheckin.learning.simulation.runs import build

Watch = Callable[[str, dict[str, Any]], None]


@dataclass(frozen=True)
class TrainingFigure:
    """A figure: its runs by label, its caption, and the gradients they need (for a forecast).

    `published` are points (epsilon, accuracy in per cent) that the paper's text states.
    """

    title: str
    runs: dict[str, RunOptions]
    gradients: float
    published: tuple[tuple[float, float], ...] = ()

    def hours(self, clients_per_second: float = 5000.0) -> float:
        """How long the runs take at this speed."""
        return self.gradients / clients_per_second / 3600


def _settings(**changes: Any) -> Settings:
    usual: dict[str, Any] = {"learning_rate": 0.5, "averaging": 0.9, "evaluate_every": 50}
    return Settings(**{**usual, **changes})


def _mnist(**changes: Any) -> RunOptions:
    usual: dict[str, Any] = {"data": "mnist", "local_epsilon": 4.0, "rate": 0.1}
    return RunOptions(**{**usual, "settings": _settings(), **changes})


_LDP_SGD = _mnist(randomizer="ldp-sgd", local_epsilon=2.0, rate=0.1, clip=0.1, rounds=6800)
_SLOW = _settings(learning_rate=0.1, averaging=0.99, evaluate_every=100)
_P3 = _mnist(
    protocol="subsampled-shuffle",
    local_epsilon=2.0,
    rate=1 / 30,
    rounds=6000,
    settings=_SLOW,
)
_P3_STEPS = replace(_SLOW, learning_rate=0.06, schedule="steps", steps=((900, 1 / 3), (1800, 0.29)))

_LEARNING_RATES: dict[str, dict[str, Any]] = {
    "constant": {"schedule": "constant"},
    "stepped": {"schedule": "steps", "steps": ((300, 0.5), (600, 0.1))},
}


def _federated(noise_multiplier: float, *, rounds: int, **changes: Any) -> RunOptions:
    # the epsilon of Gaussian reports takes seconds to certify: forty points a curve are enough
    looks = _settings(evaluate_every=max(50, rounds // 40))
    return _mnist(
        randomizer="gaussian",
        noise_multiplier=noise_multiplier,
        rounds=rounds,
        **{"settings": looks, **changes},
    )


FIGURES: dict[str, TrainingFigure] = {
    "p0-figure3a": TrainingFigure(
        "P0 Fig. 3a: LDP-SGD, 60,000 clients at rate 0.1, local epsilon 2",
        {"LDP-SGD": replace(_LDP_SGD, settings=_SLOW)},
        6800 * 6000,
    ),
    "p0-figure3b": TrainingFigure(
        "P0 Fig. 3b: ten million clients at rate 1e-4, Gaussian reports of local epsilon 8",
        {"Gaussian": _federated(0.873, population=10**7, rate=1e-4, clip=0.05, rounds=2000)},
        2000 * 1000,
    ),
    "p0-figure4": TrainingFigure(
        "P0 Fig. 4: distributed check-in at rate 1e-3",
        {
            f"noise multiplier {s:g}": _federated(
                s, protocol="distributed-check-in", rate=1e-3, clip=0.04, rounds=10_000
            )
            for s in (0.65, 0.86)
        },
        2 * 10_000 * 60,
    ),
    "p0-figure5a": TrainingFigure(
        "P0 Fig. 5a: LDP-SGD at different check-in rates",
        {f"rate {r:g}": replace(_LDP_SGD, rate=r, rounds=2000) for r in (0.05, 0.1, 0.2)},
        2000 * 21_000,
    ),
    "p0-figure5b": TrainingFigure(
        "P0 Fig. 5b: constant and stepped learning rates",
        {
            name: replace(_LDP_SGD, rounds=1000, settings=replace(_SLOW, **change))
            for name, change in _LEARNING_RATES.items()
        },
        2 * 1000 * 6000,
    ),
    "p1-figure2": TrainingFigure(
        "P1 Fig. 2: Gaussian reports at rate 1e-3, noise multiplier 0.86, 100 epochs",
        {"shuffled check-in": _federated(0.86, rate=1e-3, clip=0.05, rounds=100_000)},
        100_000 * 60,
    ),
    "p1-figure4": TrainingFigure(
        "P1 Fig. 4: shuffled Gaussian reports against central DP-SGD with the same total noise",
        {
            "shuffled check-in": _federated(2.0, rate=0.01, rounds=2000),
            "central": _federated(2.0 * 600**0.5, protocol="central", rate=0.01, rounds=2000),
        },
        2 * 2000 * 600,
    ),
    "p1-figure6": TrainingFigure(
        "P1 Fig. 6: Gaussian reports at rate 1e-3 (its MNIST half is Fig. 2)",
        {
            "CIFAR-10, last layer": _federated(
                0.86, data="cifar10", public="cifar100", rate=1e-3, clip=0.05, rounds=50_000
            ),
            "Fashion-MNIST": _federated(0.86, data="fashion-mnist", rate=1e-3, rounds=50_000),
        },
        50_000 * (50 + 60),
    ),
    "p3-figure6": TrainingFigure(
        "P3 Fig. 6: PrivUnit, 2,000 of 60,000 clients a round, local epsilon 2",
        {"linear schedule": _P3, "P3's steps": replace(_P3, settings=_P3_STEPS)},
        2 * 6000 * 2000,
        published=((3.0, 81.15), (5.8, 89.7)),
    ),
    "p4-figure1b": TrainingFigure(
        "P4 Fig. 1b: Gaussian reports, rate 0.1, noise multiplier 5",
        {"shuffled check-in": _federated(5.0, rate=0.1, clip=0.01, rounds=2000, settings=_SLOW)},
        2000 * 6000,
    ),
}


def _shortened(options: RunOptions) -> RunOptions:
    settings = replace(options.settings, evaluate_every=10, checkpoint_every=10)
    population = None if options.population is None else 10**7
    rate = options.rate if population else max(options.rate, 0.05)
    return replace(
        options,
        data="digits",
        public=None if options.public is None else "digits",
        rounds=20,
        rate=rate,
        population=population,
        settings=settings,
    )


def run_figure(
    name: str, folder: Path, *, quick: bool = False, watch: Watch | None = None
) -> dict[str, Any]:
    """Play a figure's unfinished runs and draw it; returns each run's summary by label.

    A run whose data is not to be had is left out, and the summary says so in its place.

    Args:
        name: one of `FIGURES`.
        folder: where runs and picture go.
        quick: play 20 rounds on the embedded digits instead.
        watch: called with a run's label and the figures of its latest round.
    """
    if name not in FIGURES:
        raise InvalidParameter("figure", name, ", ".join(FIGURES))
    figure = FIGURES[name]
    results: dict[str, Any] = {}
    logs: dict[str, list[dict[str, Any]]] = {}
    place = folder / (f"{name}-quick" if quick else name)
    for label, options in figure.runs.items():
        out = place / re.sub(r"[^\w.]+", "-", label)
        out.mkdir(parents=True, exist_ok=True)
        try:
            played = _shortened(options) if quick else options
            trainer = build(played, out)
        except DatasetMissing as problem:
            results[label] = {"left_out": str(problem)}
            continue
        if watch is not None:
            trainer.on_round = lambda row, label=label: watch(label, row)
        outcome = trainer.run()
        results[label], logs[label] = write_report(out, trainer, outcome, played), outcome.log
    if not logs:
        raise DatasetMissing("; ".join(left["left_out"] for left in results.values()))
    _draw(place / f"{name}.png", figure, logs, quick)
    (place / "summary.json").write_text(json.dumps(results, indent=1) + "\n")
    return results


def _draw(
    path: Path, figure: TrainingFigure, logs: dict[str, list[dict[str, Any]]], quick: bool
) -> None:
    from matplotlib.figure import Figure

    picture = Figure(figsize=(7, 4.5), layout="constrained")
    axes = picture.subplots()
    for label, log in logs.items():
        axes.plot(
            [r["epsilon"] for r in log],
            [100 * r["accuracy"] for r in log],
            marker="." if len(log) < 30 else None,
            label=label,
        )
    title = figure.title
    if quick:
        title += "\nA quick look: 20 rounds on the embedded digits, not the figure itself"
    elif figure.published:
        axes.plot(*zip(*figure.published, strict=True), "k*", label="published")
    axes.set_xlabel("certified ε")
    axes.set_ylabel("test accuracy, %")
    axes.set_title(title, fontsize=9)
    legend_beside(axes)
    axes.grid(alpha=0.3)
    picture.savefig(path, dpi=120)
