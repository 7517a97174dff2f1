"""From the options of a run to a trainer that is ready: data, model, fleet, randomizer and plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from dpcheckin.display import told
from dpcheckin.errors import InvalidParameter, Superfluous
from dpcheckin.learning.data.datasets import Dataset, held_out, load_dataset
from dpcheckin.learning.data.fleet import Bootstrapped, Fleet, GroupedByOwner, OneRecordEach
from dpcheckin.learning.data.made_up import MADE_UP, STROKES, TIMES, made_up
from dpcheckin.learning.data.own import OWN, client_data, is_own_file, parse_bounds, stored_data
from dpcheckin.learning.features.extraction import FeatureRecipe, Progress, featured, silent
from dpcheckin.learning.gradients.engine import LocalSteps
from dpcheckin.learning.models import (
    ACCURACY,
    Loss,
    Score,
    build_model,
    count_parameters,
    cross_entropy,
    mean_loss,
    private_head,
    squared_error,
    usable_device,
)
from dpcheckin.learning.options import DATASETS, RunOptions
from dpcheckin.learning.plans import aimed, make_plan, make_randomizer
from dpcheckin.learning.simulation.backends import make_backend
from dpcheckin.learning.simulation.client_work import ClientWork, Reports
from dpcheckin.learning.simulation.training import Trainer
from dpcheckin.options import options_of
from dpcheckin.randomizers import SummableRandomizer, VectorRandomizer


def make_fleet(options: RunOptions, data: Dataset) -> Fleet:
    """Whose data is whose by the options: one record a client, owners' records together, or bootstrapped records."""
    if options.by_owner or (data.owners is not None and _is_own(options.data)):
        if options.population is not None:
            raise Superfluous("population", options.population, "leave it out: owners are clients")
        if data.owners is None:
            raise InvalidParameter("by_owner", True, f"data with owners; {data.name} has none")
        return GroupedByOwner(data.train_inputs, data.train_targets, data.owners)
    if options.population in (None, len(data.train_targets)):
        return OneRecordEach(data.train_inputs, data.train_targets)
    assert options.population is not None
    return Bootstrapped(data.train_inputs, data.train_targets, options.population)


def make_model(options: RunOptions, data: Dataset) -> nn.Module:
    """The model that the options name, or a private head for the data on features learned from public data."""
    has_features = options.features != "none"
    if has_features or options.public is None:
        name = "linear" if has_features and options.model == "auto" else options.model
        return build_model(name, data.shape, data.outputs)
    if options.model != "auto":
        raise Superfluous("model", options.model, "leave it out when --public is given")
    if options.public in MADE_UP:
        raise InvalidParameter("public", options.public, "used with --features: it has no classes")
    public = load_dataset(options.public, options.data_dir)
    return private_head(public, data, options.public_epochs, options.settings.seed)


def make_data(options: RunOptions, progress: Progress = silent) -> Dataset:
    """The records that the options name, as features if they ask for them; progress is told in lines."""
    data = _records(options)
    if options.features != "none":
        public = None
        if options.public is not None:
            made = options.public in MADE_UP
            public = made_up(options.public, data) if made else load_dataset(options.public, options.data_dir)
        together = TIMES if options.public == STROKES else 1
        device = usable_device(options.device)
        recipe = FeatureRecipe(options.features, options.components, public, options.whitening, device, together)
        data = featured(data, recipe, progress)
    return data if options.validate is None else held_out(data, options.validate)


def _is_own(name: str) -> bool:
    """Is this the path of somebody's table or images, or data handed over by a program?"""
    return name not in DATASETS and (name == OWN or is_own_file(name))


def _records(options: RunOptions) -> Dataset:
    """Somebody's own table as the options describe it, or data by name."""
    table = options.table
    if not _is_own(options.data):
        columns = {name: getattr(table, name) for name in ("target", "owner", "columns", "bounds")}
        return stored_data(options.data, options.data_dir, **columns)
    return client_data(
        options.data,
        table.target,
        table.owner,
        columns=None if table.columns is None else [c.strip() for c in table.columns.split(",")],
        bounds=parse_bounds(table.bounds),
        task=table.task,
        test_share=table.test_share,
        seed=options.settings.seed,
    )


def build(
    options: RunOptions,
    out: Path | None = None,
    data: Dataset | None = None,
    progress: Progress = silent,
    module: nn.Module | None = None,
    loss: Loss | None = None,
    score: Score | None = None,
) -> Trainer:
    """A trainer ready to run; everything that can be wrong with the options is raised here.

    Checkpoint and log go to `out`. `data` is what `make_data` gives for these options, if somebody holds it already;
    `progress` is told in a line what is computed before the first round. Without module, loss or score the model is the
    options' one, and the targets say which of the others.
    """
    device = usable_device(options.device)
    data = data or make_data(options, progress)
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.settings.seed)
    module = make_model(options, data) if module is None else module
    numbers = data.train_targets.is_floating_point()
    loss = loss or (squared_error if numbers else cross_entropy)
    score = score or (mean_loss(loss) if numbers else ACCURACY)
    if options.validate is not None:
        score = replace(score, label=score.label.replace("test ", "held-out "))
    fleet = make_fleet(options, data)
    options = aimed(options, fleet.population, count_parameters(module))
    randomizer = make_randomizer(options, count_parameters(module))
    plan = make_plan(options, fleet.population, randomizer)
    reported = plan.randomizer
    assert isinstance(reported, VectorRandomizer)
    summable = isinstance(reported, SummableRandomizer)
    reports = Reports(options.reports) if summable else Reports.EACH
    steps = options.local_steps
    local = None if steps == 1 else LocalSteps(steps, options.local_learning_rate)
    work = ClientWork(module, loss, fleet, reported, reports, options.per_tensor, local, device)
    return Trainer(
        plan=plan,
        work=work,
        settings=options.settings,
        test_inputs=data.test_inputs,
        test_targets=data.test_targets,
        delta=options.delta,
        epsilon_budget=options.epsilon_budget,
        out=out,
        backend=make_backend(options.backend, work, options.workers, options.threads),
        score=score,
        options=options,
        chosen={o.dashed: told(o.value(options)) for o in options_of(RunOptions) if o.changes_result},
    )
