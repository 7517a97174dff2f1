"""A grid over the options of a run, each point with several seeds.

`Sweep` says what is to be played and lists it as `Cell`s. A cell's result is a function of its
options alone, so that it does not matter who plays it (`sweeps.runners`) or when. What may be
varied is read from `RunOptions`: every option that changes the result, but for the seed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from dpcheckin import __version__
from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.data.datasets import Dataset
from dpcheckin.learning.options import RunOptions
from dpcheckin.learning.simulation.runs import build, make_data
from dpcheckin.options import Option, changed, options_of

VARIED: Mapping[str, Option] = {
    one.name: one
    for one in options_of(RunOptions)
    if one.changes_result and one.scalar is not None and one.name != "seed"
}
"""The options that a grid may range over, by name."""


@dataclass(frozen=True)
class Cell:
    """One point of the grid with one seed."""

    point: tuple[tuple[str, Any], ...]
    options: RunOptions
    train: bool

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self.options.settings.seed

    @property
    def key(self) -> str:
        """A name that follows from everything the result depends on, and from nothing else."""
        content = asdict(self.options)
        for one in options_of(RunOptions):
            if not one.changes_result:
                del content[one.name]
        text = json.dumps([__version__, self.train, content], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Sweep:
    """A grid: options of a run that stay, those that range over values, and seeds."""

    base: RunOptions
    over: Mapping[str, Sequence[Any]]
    seeds: Sequence[int] = (0,)
    train: bool = True
    """False: only state what each plan costs; nothing is trained and one seed is enough."""

    def __post_init__(self) -> None:
        for name, values in self.over.items():
            if name not in VARIED:
                raise InvalidParameter("over", name, f"one of {', '.join(sorted(VARIED))}")
            if not values or len(set(values)) < len(values):
                raise InvalidParameter(f"over {name}", list(values), "different values")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise InvalidParameter("seeds", list(self.seeds), "different seeds, one or more")

    def cells(self) -> list[Cell]:
        """Every point with every seed, points in the order of the grid."""
        seeds = self.seeds if self.train else self.seeds[:1]
        found = []
        for values in product(*self.over.values()):
            point = tuple(zip(self.over, values, strict=True))
            for seed in seeds:
                options = changed_options(self.base, {**dict(point), "seed": seed})
                found.append(Cell(point, options, self.train))
        return found

    def check(self) -> None:
        """Raise what is wrong with any point before the first one is played."""
        data: dict[tuple[object, ...], Dataset] = {}
        for cell in self.cells():
            if cell.seed != self.seeds[0]:
                continue
            options = cell.options
            records = (options.data, options.data_dir, options.public)
            where = (*records, options.features, options.components)
            if where not in data:
                data[where] = make_data(options)
            build(options, data=data[where]).rounds_allowed()


def changed_options(base: RunOptions, changes: Mapping[str, Any]) -> RunOptions:
    """The options with changes by name, to be played in one process with one thread.

    One thread and one process a cell give the same sums whoever plays it.
    """
    return changed(base, {**changes, "backend": "local", "threads": 1})
