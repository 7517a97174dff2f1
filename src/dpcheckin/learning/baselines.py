"""What the same model reaches where more is trusted: under central DP-SGD at the same epsilon, and without privacy."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import nn

from dpcheckin.learning.data.datasets import Dataset
from dpcheckin.learning.models import usable_device
from dpcheckin.learning.simulation.runs import build
from dpcheckin.learning.simulation.training import Outcome, Trainer
from dpcheckin.options import changed

PASSES, STEPS = 20, 2000  # so many passes over the records, or so many steps where those are fewer
_BATCH, _LEARNING_RATE = 128, 3e-3


def baselines(trainer: Trainer, outcome: Outcome, data: Dataset, start: nn.Module) -> dict[str, float]:
    """Scores beside the outcome of a trainer, each from a copy of the model at its `start`.

    `data` are the records of the run. Central DP-SGD has its rounds, check-ins, clip and learning rate, and the noise
    that leaves its epsilon (for adding or removing one, which is the weaker promise); without privacy it is Adam, for
    `PASSES` passes or `STEPS` steps, with a learning rate that falls to zero.
    """
    options, score = trainer.options, trainer.score
    assert options is not None  # who asks for baselines built the trainer from options
    found = {"without_privacy": score.of(*_fitted(trainer, data, deepcopy(start)))}
    if outcome.guarantee is not None:
        reports = sum(row["check_ins"] for row in outcome.log) / len(outcome.log)
        trusting = {
            "protocol": "central",
            "randomizer": "gaussian",
            "rounds": outcome.rounds,
            "rate": min(reports / trainer.plan.population, 1.0),
            "epsilon": outcome.guarantee.epsilon.upper,
            "epsilon_budget": None,
            "backend": "local",
        }
        usual = {name: getattr(type(options)(), name) for name in _OTHER_PROTOCOLS}
        same = changed(options, {**trusting, **usual})
        central = build(same, data=data, module=deepcopy(start), loss=trainer.work.loss, score=score)
        found["central"] = central.run().score
    return found


_OTHER_PROTOCOLS = ("lowest_rate", "dropout", "slots", "minibatch", "check_in_probability", "repetitions", "windows")
"""Options that central DP-SGD has no use for."""


def _fitted(trainer: Trainer, data: Dataset, module: nn.Module) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """A module fitted to the records without clip or noise, and the records that it is judged on."""
    device = usable_device(str(trainer.work.device))
    module.to(device)
    optimizer = torch.optim.Adam(module.parameters(), _LEARNING_RATE)
    order, count = torch.Generator().manual_seed(trainer.settings.seed), len(data.train_targets)
    steps = max(STEPS, PASSES * count // _BATCH)
    falling = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
    for _ in range(steps):
        batch = torch.randint(count, (min(_BATCH, count),), generator=order)
        optimizer.zero_grad()
        outputs = module(data.train_inputs[batch].to(device))
        trainer.work.loss(outputs, data.train_targets[batch].to(device)).mean().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        falling.step()
    return module, trainer.test_inputs, trainer.test_targets
