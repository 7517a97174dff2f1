"""From the options of a run to a trainer that is ready: data, model, fleet, randomizer and plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import nn

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.data.datasets import Dataset, held_out, load_dataset
from dpcheckin.learning.data.fleet import Bootstrapped, Fleet, GroupedByOwner, OneRecordEach
from dpcheckin.learning.features.extraction import FeatureRecipe, Progress, featured, silent
from dpcheckin.learning.losses import cross_entropy
from dpcheckin.learning.models import build_model, count_parameters
from dpcheckin.learning.options import RunOptions
from dpcheckin.learning.pretraining import private_head
from dpcheckin.learning.simulation.backends import Backend, make_backend
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
from dpcheckin.protocols.names import protocol_name, spelling
from dpcheckin.randomizers import Gaussian, LdpSgd, PrivUnit, VectorRandomizer

_MakePlan = Callable[[RunOptions, int, VectorRandomizer], Plan]


def make_randomizer(options: RunOptions, dimension: int) -> VectorRandomizer:
    """The randomizer by name, for a model with so many parameters (`dimension`)."""
    if options.randomizer == "gaussian":
        return Gaussian(options.noise_multiplier, options.clip)
    kinds = {"privunit": PrivUnit, "hemisphere": LdpSgd}
    return kinds[spelling(options.randomizer)](options.local_epsilon, dimension, options.clip)


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


def _window(kind: Window) -> _MakePlan:
    return lambda options, population, randomizer: RandomCheckIns(
        population, options.slots or population, randomizer, kind, minibatch=options.minibatch
    )


def _subsampled(options: RunOptions, population: int, randomizer: VectorRandomizer) -> Plan:
    cohort = max(1, round(options.rate * population))
    return SubsampledShuffle(population, cohort, options.rounds, randomizer)


def _distributed(options: RunOptions, population: int, randomizer: VectorRandomizer) -> Plan:
    if not isinstance(randomizer, Gaussian):
        raise InvalidParameter("randomizer", options.randomizer, "gaussian with this protocol")
    return DistributedCheckIn(population, options.rate, options.rounds, randomizer)


PLANS: Mapping[str, _MakePlan] = {
    "shuffled-check-in": lambda o, n, r: ShuffledCheckIn(
        n, o.rate, o.rounds, r, o.lowest_rate, o.dropout
    ),
    "subsampled-shuffle": _subsampled,
    "shuffle": lambda o, n, r: FullShuffle(n, o.rounds, r),
    "random-check-in-fixed": _window(Window.FIXED),
    "random-check-in-averaged": _window(Window.AVERAGED),
    "random-check-in-sliding": _window(Window.SLIDING),
    "distributed-check-in": _distributed,
    "local-only": lambda o, n, r: LocalOnly(n, o.rate, o.rounds, r),
    "central": lambda o, n, r: CentralDpSgd(n, o.rate, o.rounds, o.noise_multiplier, o.clip),
}
"""How each protocol of `protocols.names` becomes a plan: options, population, randomizer."""


def make_plan(options: RunOptions, population: int, randomizer: VectorRandomizer) -> Plan:
    """The plan by name, for so many clients (`population`)."""
    spread = options.lowest_rate is not None or options.dropout
    if spread and options.protocol != "shuffled-check-in":
        raise InvalidParameter("protocol", options.protocol, "shuffled-check-in with these rates")
    return PLANS[protocol_name(options.protocol)](options, population, randomizer)


def make_model(options: RunOptions, data: Dataset) -> nn.Module:
    """The model by name, or a private head on features learned from public data."""
    if options.features != "none":
        name = "linear" if options.model == "auto" else options.model
        return build_model(name, data.shape, data.classes)
    if options.public is None:
        return build_model(options.model, data.shape, data.classes)
    if options.model != "auto":
        raise InvalidParameter("model", options.model, "left out when --public is given")
    public = load_dataset(options.public, options.data_dir)
    return private_head(public, data, options.public_epochs, options.settings.seed)


def make_data(options: RunOptions, progress: Progress = silent) -> Dataset:
    """The records by name, as features where the options ask for them.

    Args:
        options: of the run.
        progress: told in a line what is computed, and what it cost.
    """
    data = load_dataset(options.data, options.data_dir)
    if options.features != "none":
        public = None if options.public is None else load_dataset(options.public, options.data_dir)
        recipe = FeatureRecipe(options.features, options.components, public, options.whitening)
        data = featured(data, recipe, progress)
    return data if options.validate is None else held_out(data, options.validate)


def build(
    options: RunOptions,
    out: Path | None = None,
    on_round: OnRound | None = None,
    data: Dataset | None = None,
    progress: Progress = silent,
) -> Trainer:
    """A trainer ready to run; everything that can be wrong with the options is raised here.

    Args:
        options: the run.
        out: folder for checkpoint and log; None keeps nothing.
        on_round: called with the figures of every round as it ends.
        data: what `make_data` gives for these options, when somebody holds it already.
        progress: told in a line what is computed before the first round.
    """
    data = data or make_data(options, progress)
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
    backend: Backend | None = None
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
