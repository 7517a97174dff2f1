"""From the words of the command line to a ready trainer: one flat description of a run.

`RunOptions` holds what a user can say; `build` turns it into plan, work and trainer. Parsing of
arguments and printing are the command's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.data.datasets import Dataset, load_dataset
from dpcheckin.learning.data.fleet import Bootstrapped, Fleet, GroupedByOwner, OneRecordEach
from dpcheckin.learning.losses import cross_entropy
from dpcheckin.learning.models import build_model, count_parameters
from dpcheckin.learning.pretraining import private_head
from dpcheckin.learning.settings import Settings
from dpcheckin.learning.simulation.backends import make_backend
from dpcheckin.learning.simulation.client_work import ClientWork, Reports
from dpcheckin.learning.simulation.training import OnRound, Trainer
from dpcheckin.protocols import (
    CentralDpSgd,
    DistributedCheckIn,
    FullShuffle,
    LocalOnly,
    Plan,
    RandomCheckIns,
    ShuffledCheckIn,
    SubsampledShuffle,
    Window,
)
from dpcheckin.randomizers import Gaussian, LdpSgd, PrivUnit, VectorRandomizer

PROTOCOLS = (
    "shuffled-check-in",
    "subsampled-shuffle",
    "full-shuffle",
    "random-check-ins-fixed",
    "random-check-ins-averaged",
    "random-check-ins-sliding",
    "distributed-check-in",
    "local-only",
    "central",
)
RANDOMIZERS = ("privunit", "ldp-sgd", "gaussian")


@dataclass(frozen=True)
class RunOptions:
    """Everything that defines a run; equal options give equal models, bit for bit."""

    data: str = "digits"
    data_dir: Path | None = None
    model: str = "auto"
    public: str | None = None
    public_epochs: int = 5
    protocol: str = "shuffled-check-in"
    randomizer: str = "privunit"
    local_epsilon: float = 4.0
    noise_multiplier: float = 1.0
    clip: float = 1.0
    per_tensor: bool = False
    population: int | None = None
    rate: float = 0.1
    lowest_rate: float | None = None
    dropout: float = 0.0
    slots: int | None = None
    minibatch: int = 1
    rounds: int = 200
    by_owner: bool = False
    reports: str = "sum"
    settings: Settings = field(default_factory=Settings)
    delta: float = 1e-5
    epsilon_budget: float | None = None
    backend: str = "local"
    workers: int = 2
    threads: int | None = None


def make_randomizer(options: RunOptions, dimension: int) -> VectorRandomizer:
    """The randomizer by name, for this model's number of parameters."""
    if options.randomizer == "privunit":
        return PrivUnit(options.local_epsilon, dimension, options.clip)
    if options.randomizer == "ldp-sgd":
        return LdpSgd(options.local_epsilon, dimension, options.clip)
    if options.randomizer == "gaussian":
        return Gaussian(options.noise_multiplier, options.clip)
    raise InvalidParameter("randomizer", options.randomizer, ", ".join(RANDOMIZERS))


def make_fleet(options: RunOptions, data: Dataset) -> Fleet:
    """One record a client, owners' records together, or a bootstrapped population."""
    if options.by_owner:
        if data.owners is None:
            raise InvalidParameter("by_owner", True, f"data with owners; {data.name} has none")
        return GroupedByOwner(data.train_inputs, data.train_targets, data.owners)
    if options.population in (None, len(data.train_targets)):
        return OneRecordEach(data.train_inputs, data.train_targets)
    assert options.population is not None
    return Bootstrapped(data.train_inputs, data.train_targets, options.population)


def make_plan(options: RunOptions, population: int, randomizer: VectorRandomizer) -> Plan:
    """The plan by name."""
    rate, rounds = options.rate, options.rounds
    cohort = max(1, round(rate * population))
    slots = options.slots or population
    if options.protocol == "shuffled-check-in":
        return ShuffledCheckIn(
            population, rate, rounds, randomizer, options.lowest_rate, options.dropout
        )
    if options.lowest_rate is not None or options.dropout:
        raise InvalidParameter("protocol", options.protocol, "shuffled-check-in with these rates")
    if options.protocol == "subsampled-shuffle":
        return SubsampledShuffle(population, cohort, rounds, randomizer)
    if options.protocol == "full-shuffle":
        return FullShuffle(population, rounds, randomizer)
    if options.protocol == "local-only":
        return LocalOnly(population, rate, rounds, randomizer)
    if options.protocol.startswith("random-check-ins-"):
        window = Window(options.protocol.removeprefix("random-check-ins-"))
        return RandomCheckIns(population, slots, randomizer, window, minibatch=options.minibatch)
    if options.protocol == "distributed-check-in":
        if not isinstance(randomizer, Gaussian):
            raise InvalidParameter("randomizer", options.randomizer, "gaussian with this protocol")
        return DistributedCheckIn(population, rate, rounds, randomizer)
    if options.protocol == "central":
        return CentralDpSgd(population, rate, rounds, options.noise_multiplier, options.clip)
    raise InvalidParameter("protocol", options.protocol, ", ".join(PROTOCOLS))


def make_model(options: RunOptions, data: Dataset) -> nn.Module:
    """The model by name, or a private head on features learned from public data."""
    if options.public is None:
        return build_model(options.model, data.shape, data.classes)
    if options.model != "auto":
        raise InvalidParameter("model", options.model, "left out when --public is given")
    public = load_dataset(options.public, options.data_dir)
    return private_head(public, data, options.public_epochs, options.settings.seed)


def build(
    options: RunOptions,
    out: Path | None = None,
    on_round: OnRound | None = None,
    data: Dataset | None = None,
) -> Trainer:
    """A trainer ready to run; everything that can be wrong with the options is raised here.

    `data` spares loading what `options.data` names when somebody holds it already.
    """
    if options.reports not in ("each", "sum"):
        raise InvalidParameter("reports", options.reports, "'each' or 'sum'")
    if not 0 < options.delta < 1:
        raise InvalidParameter("delta", options.delta, "strictly between 0 and 1")
    data = data or load_dataset(options.data, options.data_dir)
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    torch.manual_seed(options.settings.seed)
    module = make_model(options, data)
    fleet = make_fleet(options, data)
    randomizer = make_randomizer(options, count_parameters(module))
    plan = make_plan(options, fleet.population, randomizer)
    reported = plan.randomizer
    assert isinstance(reported, VectorRandomizer)
    work = ClientWork(
        module, cross_entropy, fleet, reported, Reports(options.reports), options.per_tensor
    )
    backend: Any = None
    if options.backend != "local":
        backend = make_backend(options.backend, work, options.workers, options.threads or 1)
    return Trainer(
        plan=plan,
        work=work,
        settings=options.settings,
        test_inputs=data.test_inputs,
        test_targets=data.test_targets,
        delta=options.delta,
        epsilon_budget=options.epsilon_budget,
        out=out,
        backend=backend,
        on_round=on_round,
    )
