"""What `accuracy.py` aims at, and with which settings: tasks, goals, and the command of a run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from dpcheckin.learning import RunOptions, Settings

HELD_OUT = 1 / 6
Changes = dict[str, Any]
TASKS: dict[str, Changes] = {
    "mnist": {"data": "mnist", "features": "scattering", "components": 600, "public": "fashion-mnist"},
    "fashion-mnist": {"data": "fashion-mnist", "features": "scattering", "components": 300, "public": "mnist"},
    "cifar10-scattering": {"data": "cifar10", "features": "scattering", "components": 600, "public": "dead-leaves"},
    "cifar10-imagenet": {
        "data": "cifar10",
        "features": "efficientnet-lite0",
        "components": 400,
        "public": "dead-leaves",
    },
}
COMMON: Changes = {"rate": 0.1, "schedule": "linear", "evaluate_every": 100_000, "threads": 1, "checkpoint_every": 500}


@dataclass(frozen=True)
class Goal:
    """One line of the table: what is wanted, and what is tried for it.

    Args:
        task: key of `TASKS`.
        epsilon: that must not be passed.
        accuracy: hoped for, in per cent.
        candidates: settings from which the held-out records choose.
        central: the same for central DP-SGD.
        passes: most check-ins of a client, on average, where that is what the line is about; 0 elsewhere.
        population: clients that the records are dealt to, with replacement; 0 for one a record.
    """

    task: str
    epsilon: float
    accuracy: float
    candidates: tuple[Changes, ...]
    central: tuple[Changes, ...]
    passes: int = 0
    population: int = 0

    @property
    def name(self) -> str:
        if self.passes:
            return f"few-{self.passes}-{self.population or 60_000}"
        return f"{self.task}-{self.epsilon:g}"


def privunit(local_epsilon: float, rounds: int, **more: Any) -> Changes:
    """PrivUnit reports through the shuffler; rounds as `dpcheckin plan` affords them."""
    return {"local_epsilon": local_epsilon, "rounds": rounds, "averaging": 0.99, **more}


def gaussian(noise: float, rounds: int, **more: Any) -> Changes:
    """Gaussian reports through the shuffler; rounds as `dpcheckin advise` affords them."""
    given = {"randomizer": "gaussian", "noise_multiplier": noise, "rate": 0.3, "weight_decay": 1e-4}
    return {**given, "rounds": rounds, **more}


def central(noise: float, rounds: int, **more: Any) -> Changes:
    """Central DP-SGD at the same rate: a trusted server adds the noise once a round."""
    given = {"protocol": "central", "randomizer": "gaussian", "noise_multiplier": noise}
    return {**given, "rounds": rounds, "averaging": 0.9, **more}


DRAWN: Changes = {"components": 150, "public": "strokes"}
"""Directions that tell drawings apart: better for digits than Fashion-MNIST's components."""
FEWER: Changes = {**DRAWN, "components": 100}

GOALS = (
    Goal(
        "mnist",
        0.5,
        96.5,
        (privunit(2.0, 1638, learning_rate=2.0, clip=0.5, whitening=0.6),),
        (central(14.0, 391, learning_rate=10.0, clip=0.5, whitening=0.6),),
    ),
    Goal(
        "mnist",
        1.0,
        97.5,
        (gaussian(2.0, 8064, learning_rate=1.5, clip=0.2, averaging=0.9985, **DRAWN),),
        tuple(central(8.0, 448, learning_rate=r, clip=0.3, **DRAWN) for r in (20.0, 40.0, 80.0)),
    ),
    Goal(
        "mnist",
        3.0,
        98.1,
        (privunit(3.0, 3864, rate=0.3, learning_rate=5.2, clip=0.3, averaging=0.997, **FEWER),),
        tuple(central(4.0, 781, learning_rate=r, clip=0.3, **FEWER) for r in (15.0, 30.0, 60.0)),
    ),
    Goal(
        "fashion-mnist",
        1.0,
        84.0,
        (privunit(2.5, 2974, learning_rate=4.0, clip=0.5, whitening=0.7),),
        (central(8.0, 448, learning_rate=20.0, clip=0.5, whitening=0.7),),
    ),
    Goal(
        "fashion-mnist",
        3.0,
        86.5,
        (privunit(4.0, 3728, learning_rate=4.0, clip=0.5, whitening=0.7, components=600),),
        (central(4.0, 781, learning_rate=20.0, clip=0.5, whitening=0.7, components=600),),
    ),
    Goal(
        "cifar10-scattering",
        3.0,
        55.0,
        (privunit(4.0, 3107, learning_rate=4.0, clip=0.5, whitening=0.5),),
        (central(4.0, 781, learning_rate=20.0, clip=0.5, whitening=0.5),),
    ),
    Goal(
        "cifar10-imagenet",
        1.0,
        76.0,
        (privunit(2.5, 2479, learning_rate=1.8, clip=0.5, whitening=0.7),),
        (central(8.0, 448, learning_rate=20.0, clip=0.5, whitening=0.7),),
    ),
    Goal(
        "cifar10-imagenet",
        3.0,
        80.0,
        (privunit(4.0, 3107, learning_rate=3.8, clip=0.5, whitening=0.7),),
        (central(4.0, 781, learning_rate=20.0, clip=0.5, whitening=0.7),),
    ),
)


def few(passes: int, population: int, local_epsilon: float, rounds: int, **more: Any) -> Goal:
    """MNIST at ε ≤ 1 with so many check-ins: what `dpcheckin advise --passes` puts first."""
    changes = privunit(local_epsilon, rounds, clip=0.3, **{**DRAWN, **more})
    if population != 60_000:
        changes["population"] = population
    return Goal("mnist", 1.0, 0.0, (changes,), (), passes, population)


FEW = (
    few(10, 60_000, 5.5, 200, rate=0.05, learning_rate=12.0, weight_decay=1e-4, averaging=0.94),
    few(50, 60_000, 4.0, 500, learning_rate=12.0, weight_decay=1e-4, averaging=0.976),
    few(200, 60_000, 3.0, 1610, learning_rate=4.3, weight_decay=1e-4, averaging=0.99),
    few(10, 1_000_000, 8.0, 200, rate=0.05, learning_rate=60.0, weight_decay=1e-5, averaging=0.94),
    few(50, 1_000_000, 6.0, 500, learning_rate=40.0, weight_decay=1e-5, averaging=0.976),
    few(200, 1_000_000, 5.5, 1746, learning_rate=23.0, weight_decay=1e-5, averaging=0.99),
)


def options_for(goal: Goal, changes: Changes, seed: int, held: bool) -> RunOptions:
    """The options of one run: task, settings, seed, and the budget unless it only chooses."""
    given = {**TASKS[goal.task], **COMMON, **changes, "seed": seed}
    given |= {"validate": HELD_OUT} if held else {"epsilon_budget": goal.epsilon}
    learning = {f.name for f in fields(Settings)}
    settings = Settings(**{k: v for k, v in given.items() if k in learning})
    return RunOptions(**{k: v for k, v in given.items() if k not in learning}, settings=settings)


def command(options: RunOptions) -> str:
    """The same run as a command line, naming what differs from the defaults."""
    plain = RunOptions()
    words = ["dpcheckin train"]
    for made, default in ((options, plain), (options.settings, plain.settings)):
        for field in fields(made):
            value = getattr(made, field.name)
            if field.name != "settings" and value != getattr(default, field.name):
                words.append(f"--{field.name.replace('_', '-')} {value}")
    return " ".join(words)
