"""A training figure of a paper: its runs, what is printed, and where we had to depart.

The figures themselves stand with their papers, in `papers.pN.training`.

P0 to P4 are named as in docs/errata.md. Learning rates are in units of the clip, as everywhere
here, so a paper's rate is multiplied by its clip. What a paper prints is used as printed, seeds and
delta included; what it leaves open, and where something else had to be used, is listed in
`departures` and written under the picture. Playing and drawing is `papers.training`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dpcheckin.learning.options import RunOptions
from dpcheckin.learning.settings import Settings

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
    """One run of a figure.

    Args:
        label: of its curve.
        options: what is played.
        seed: that takes the place of the options' own.
    """

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

    Args:
        title: what the figure shows.
        runs: the options of each curve.
        departures: what the paper leaves open and what differs from it, one sentence each.
        accountants: published bounds to be drawn beside ours, by name in the catalogue.
        seeds: how often each run is played.
        published: points (epsilon, accuracy in per cent) that the paper's text states, with
            the accountant they are for; None where it states no epsilon.
    """

    title: str
    runs: dict[str, RunOptions]
    departures: tuple[str, ...] = ()
    accountants: tuple[str, ...] = ()
    seeds: int = 1
    published: tuple[tuple[float | None, float, str], ...] = ()

    def all_runs(self, quick: bool = False) -> list[PaperRun]:
        """Every curve with every seed, in the order in which they are played.

        Args:
            quick: 20 rounds on the embedded digits instead, with one seed.
        """
        return [
            PaperRun(label, shortened(options) if quick else options, seed)
            for label, options in self.runs.items()
            for seed in range(1 if quick else self.seeds)
        ]


def _settings(rounds: int, **changes: Any) -> Settings:
    # an epsilon takes seconds to certify where noise is Gaussian: forty points are enough
    usual: dict[str, Any] = {
        "learning_rate": 0.1,
        "averaging": 0.0,
        "evaluate_every": max(20, rounds // 40),
    }
    return Settings(**{**usual, **changes})


def paper_run(
    *, rounds: int, data: str = "mnist", settings: Any = None, **changes: Any
) -> RunOptions:
    """A run with delta 1/n unless it is given.

    Args:
        rounds: how many.
        data: its data set.
        settings: of the simulation, where they are not the usual ones.
        changes: other options.
    """
    delta = 1 / (changes.get("population") or CLIENTS[data])
    looks = _settings(rounds, **(settings or {}))
    return RunOptions(**{"data": data, "delta": delta, "rounds": rounds, "settings": looks,
                         **changes})  # fmt: skip


def gaussian_run(noise_multiplier: float, **changes: Any) -> RunOptions:
    """A run of Gaussian reports.

    Args:
        noise_multiplier: of one report.
        changes: other options.
    """
    return paper_run(randomizer="gaussian", noise_multiplier=noise_multiplier, **changes)


QUICK = "A quick look, not the figure itself: 20 rounds on the embedded digits, one seed"


def shortened(options: RunOptions) -> RunOptions:
    """The same protocol and parameters for 20 rounds on the embedded digits.

    Args:
        options: of a figure's run.
    """
    settings = replace(options.settings, evaluate_every=10, checkpoint_every=10)
    population = None if options.population is None else 10**7
    rate = options.rate if population else max(options.rate, 0.05)
    return replace(
        options,
        data="digits",
        features="none",
        rounds=20,
        rate=rate,
        population=population,
        settings=settings,
    )
