"""A training figure of a paper: its runs, what is printed, and where we had to depart.

The figures stand with their papers, in `papers.pN.figures`; `papers.training` plays and draws them. Learning rates are
in units of the clip, as everywhere here, so a paper's rate is multiplied by its clip. What a paper prints is used as
printed, seeds and delta included; what it leaves open, and where something else had to be used, is listed in
`departures` and written under the picture.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dpcheckin.learning.options import RunOptions, Settings

HEAD = {"data": "cifar10", "features": "efficientnet-lite0"}
"""Training of the last layer on CIFAR-10."""
CLIENTS = {"mnist": 60_000, "cifar10": 50_000}
"""One record each."""

NETWORK = "the CNN of P1 Table 3 with padding, pooling stride and tanh of ours: left open there"
OTHER_NETWORK = "its network is not in the text at hand: P1's CNN with our padding, stride and tanh"
CIFAR = (
    "CIFAR-10: a linear head on ImageNet features (EfficientNet-Lite0) instead of a network "
    "pre-trained on CIFAR-100, which is not to be had here"
)
OPEN_DELTA = "δ is not printed: 1/n here"
OPEN_RATE = "learning rate and schedule are not printed: 0.1 clips, falling linearly, here"


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


def paper_run(
    *, rounds: int, data: str = "mnist", settings: dict[str, Any] | None = None, **changes: Any
) -> RunOptions:
    """A run of so many rounds on these data, with delta 1/n unless it is among the changes of the options.

    The settings of the simulation are given where they are not the usual ones.
    """
    # an epsilon takes seconds to certify where noise is Gaussian: forty points are enough
    usual: dict[str, Any] = {"learning_rate": 0.1, "averaging": 0.0, "evaluate_every": max(20, rounds // 40)}
    usual |= settings or {}
    delta = 1 / (changes.get("population") or CLIENTS[data])
    return RunOptions(**{"data": data, "delta": delta, "rounds": rounds, "settings": Settings(**usual), **changes})


def gaussian_run(noise_multiplier: float, **changes: Any) -> RunOptions:
    """A run of Gaussian reports with this noise_multiplier and other changes of the options."""
    return paper_run(randomizer="gaussian", noise_multiplier=noise_multiplier, **changes)


QUICK = "A quick look, not the figure itself: 20 rounds on the embedded digits, one seed"


def shortened(options: RunOptions) -> RunOptions:
    """The same protocol and parameters for 20 rounds on the embedded digits."""
    settings = replace(options.settings, evaluate_every=10, checkpoint_every=10)
    population = None if options.population is None else 10**7
    rate = options.rate if population else max(options.rate, 0.05)
    return replace(
        options, data="digits", features="none", rounds=20, rate=rate, population=population, settings=settings
    )
