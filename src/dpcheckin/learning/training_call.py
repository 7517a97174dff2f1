"""`train`: any torch model on anybody's data, in one call, with progress, price and report."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.data.datasets import Dataset
from dpcheckin.learning.data.own import OWN
from dpcheckin.learning.losses import (
    ACCURACY,
    Loss,
    PerRecord,
    Score,
    cross_entropy,
    mean_loss,
    squared_error,
)
from dpcheckin.learning.models import count_parameters
from dpcheckin.learning.options import RunOptions
from dpcheckin.learning.progress import run_watched
from dpcheckin.learning.report import write_report
from dpcheckin.learning.simulation.runs import build
from dpcheckin.learning.simulation.training import Outcome
from dpcheckin.options import changed

_TAKEN = (
    *("data", "model", "features", "components", "public", "public_epochs", "data_dir"),
    *("target", "owner", "columns", "bounds", "task", "test_share", "table", "settings"),
)
"""Options whose place is taken by the model and the data themselves."""


def train(
    model: nn.Module,
    data: Dataset,
    loss: Loss | None = None,
    *,
    score: str | None = None,
    out: Path | str | None = None,
    progress: bool = True,
    **options: Any,
) -> Outcome:
    """Train a model over a simulated fleet; `print` the outcome for score and guarantee.

    Args:
        model: takes a batch of records, each by itself; it is trained in place, all of it.
        data: whose records are whose, see `client_data`.
        loss: (outputs, targets) -> one number for each record; None is cross-entropy for
            classes, squared error for numbers.
        score: "accuracy" or "loss" on the records held out; None is accuracy for classes.
        out: folder for checkpoint, log, model and report; a run found there goes on.
        progress: show a bar on stderr.
        **options: what `dpcheckin train --help` lists, such as rounds, rate, local_epsilon,
            clip, learning_rate, seed, protocol, randomizer or epsilon_budget.
    """
    for name in _TAKEN:
        if name in options:
            raise InvalidParameter(
                name, options[name], "left out: train takes a model and the data of client_data"
            )
    chosen = changed(RunOptions(data=OWN), options)
    numbers = data.train_targets.is_floating_point()
    usual = squared_error if numbers else cross_entropy
    used = usual if loss is None else PerRecord(loss)
    measured = _score(score, used, numbers)
    _try(model, data, used, measured)
    if chosen.backend != "local":
        _refuse_unpicklable(model=model, loss=used)
    folder = None if out is None else Path(out)
    trainer = build(chosen, folder, data=data, module=model, loss=used, score=measured)
    outcome = run_watched(trainer, progress)
    if folder is not None:
        torch.save(model.state_dict(), folder / "model.pt")
        write_report(folder, trainer, outcome, chosen, data.name)
    return outcome


def _score(score: str | None, loss: Loss, numbers: bool) -> Score:
    if score not in (None, "accuracy", "loss"):
        raise InvalidParameter("score", score, "accuracy or loss")
    if score == "accuracy" and numbers:
        raise InvalidParameter("score", score, "loss: the targets are numbers")
    return mean_loss(loss) if numbers or score == "loss" else ACCURACY


def _try(model: nn.Module, data: Dataset, loss: Loss, score: Score) -> None:
    """Let two records through, so that what does not fit is one line and not a stack of them."""
    if not isinstance(model, nn.Module):
        raise InvalidParameter("model", model, "a torch.nn.Module")
    inputs, targets = data.train_inputs[:2], data.train_targets[:2]
    try:
        with torch.no_grad():
            outputs = model(inputs)
            if len(outputs) == 2:
                loss(outputs, targets)
    except InvalidParameter:
        raise
    except (RuntimeError, TypeError, ValueError, IndexError) as problem:
        reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        raise InvalidParameter(
            "model", reason, f"a module for records of shape {data.shape}, and a loss that fits"
        ) from None
    if not count_parameters(model):
        raise InvalidParameter("model", type(model).__name__, "a module with parameters")
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            allowed = "only parameters to train: compute fixed features before, in the data"
            raise InvalidParameter("model", f"a frozen parameter {name!r}", allowed)
    shape, wanted = tuple(outputs.shape), data.outputs
    if shape[:1] != (2,):
        raise InvalidParameter("model", f"outputs {shape} for 2 records", "one row for each record")
    if score.name == "accuracy" and (len(shape) != 2 or shape[1] < wanted):
        raise InvalidParameter(
            "model", f"{shape[1:]} outputs for a record", f"({wanted},): one for each class"
        )


def _refuse_unpicklable(**parts: object) -> None:
    for name, part in parts.items():
        try:
            pickle.dumps(part)
        except Exception as problem:  # pickle raises what it likes
            raise InvalidParameter(
                name, str(problem), "something that other processes can import (no lambda)"
            ) from None
