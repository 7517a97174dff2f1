"""A training figure of a paper: its runs, what is printed, and where we had to depart.

The figures stand with their papers, in `figures.toml`; `papers.training` plays and draws them. Learning rates are
in units of the clip, as everywhere here, so a paper's rate is multiplied by its clip. What a paper prints is used as
printed, seeds and delta included; what it leaves open, and where something else had to be used, is listed in
`departures` and written under the picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpcheckin.learning.options import RunOptions, Settings
from dpcheckin.numerals import number

CLIENTS = {"mnist": 60_000, "cifar10": 50_000}
"""One record each."""


@dataclass(frozen=True)
class PaperRun:
    """One run of a figure, for the curve of this label; its seed takes the place of the options' own."""

    label: str
    options: RunOptions
    seed: int

    @property
    def gradients(self) -> float:
        """Gradients that clients compute in it, on average."""
        o = self.options
        return o.rounds * o.rate * (o.population or CLIENTS[o.data])

    @property
    def title(self) -> str:
        """Its curve and seed."""
        return f"{self.label}, seed {self.seed}"


@dataclass(frozen=True)
class TrainingFigure:
    """A figure: its runs by label, and how they relate to what is printed.

    `departures` are sentences about what the paper leaves open and what differs from it, `accountants` the published
    bounds to be drawn beside ours, by name in the catalogue. Each run is played with so many `seeds`. `published` are
    points (epsilon, accuracy in per cent) that the paper's text states, with the accountant they are for; None where it
    states no epsilon.
    """

    title: str
    runs: dict[str, RunOptions]
    departures: tuple[str, ...] = ()
    accountants: tuple[str, ...] = ()
    seeds: int = 1
    published: tuple[tuple[float | None, float, str], ...] = ()

    def all_runs(self, quick: bool = False) -> list[PaperRun]:
        """Every curve with every seed, in the order in which they are played; `shortened` and once if it is `quick`."""
        return [
            PaperRun(label, shortened(options) if quick else options, seed)
            for label, options in self.runs.items()
            for seed in range(1 if quick else self.seeds)
        ]


def training_figure(
    known: dict[str, Any], title: str, runs: dict[str, Any], departures: list[str], accountants: Sequence[str] = (),
    seeds: int = 1, published: Sequence[Any] = (),
) -> TrainingFigure:  # fmt: skip
    """A figure as it stands in a file: title, runs, departures, accountants, seeds and published as above.

    A run may be `like` one of those that are known by name; a published point may have no epsilon.
    """
    made = {}
    for label, run in runs.items():
        chosen = {**known.get(run.get("like", ""), {}), **run}
        chosen.pop("like", None)
        made[label] = paper_run(**chosen)
    points = tuple((e if isinstance(e, float) else None, reached, by) for e, reached, by in published)
    return TrainingFigure(title, made, tuple(departures), tuple(accountants), seeds, points)


def paper_run(*, rounds: int, data: str = "mnist", printed_rate: float | None = None, **changes: Any) -> RunOptions:
    """A run of so many rounds on these data, with other changes of the options and settings; delta is 1/n if left out.

    The paper's learning rate is the `printed_rate`. Reports are Gaussian where there is a noise multiplier.
    """
    # an epsilon takes seconds to certify where noise is Gaussian: forty points are enough
    usual: dict[str, Any] = {"learning_rate": 0.1, "averaging": 0.0, "evaluate_every": max(20, rounds // 40)}
    if printed_rate is not None:
        usual["learning_rate"] = printed_rate * changes["clip"]
    usual |= {name: changes.pop(name) for name in ("schedule", "steps") if name in changes}
    usual["steps"] = tuple((start, number(str(factor))) for start, factor in usual.get("steps", ()))
    if "noise_multiplier" in changes:
        changes["randomizer"] = "gaussian"
    if isinstance(rate := changes.get("rate"), str):
        changes["rate"] = number(rate)
    delta = 1 / (changes.get("population") or CLIENTS[data])
    return RunOptions(**{"data": data, "delta": delta, "rounds": rounds, "settings": Settings(**usual), **changes})


QUICK = "A quick look, not the figure itself: 20 rounds on the embedded digits, one seed"


def shortened(options: RunOptions) -> RunOptions:
    """The same protocol and parameters for 20 rounds on the embedded digits."""
    settings = replace(options.settings, evaluate_every=10, checkpoint_every=10)
    population = None if options.population is None else 10**7
    rate = options.rate if population else max(options.rate, 0.05)
    return replace(
        options, data="digits", features="none", rounds=20, rate=rate, population=population, settings=settings
    )
