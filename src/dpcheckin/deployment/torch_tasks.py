"""Training a torch model through the services: the client's and the analyzer's task.

A model travels as its parameters, float32 in little-endian order; its architecture is named in both parties'
configurations, so no code ever crosses the wire. The analyzer's step is the simulator's, so the same plan learns the
same way in both.
"""

from __future__ import annotations

import io
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dpcheckin.deployment.numpy_tasks import parameters_of
from dpcheckin.errors import InvalidParameter
from dpcheckin.learning import Dataset, Settings, accuracy, build_model, count_parameters
from dpcheckin.learning.models import cross_entropy
from dpcheckin.learning.simulation.client_work import get_parameters, set_parameters
from dpcheckin.learning.simulation.training import State, optimiser_step
from dpcheckin.service.tasks import TaskState


def to_bytes(parameters: Tensor) -> bytes:
    """Parameters as they travel."""
    return parameters.detach().numpy().astype("<f4").tobytes()


class TorchClientTask:
    """One owner's records: the mean gradient of the cross-entropy at the model it is sent, of the module's
    architecture."""

    def __init__(self, module: nn.Module, inputs: Tensor, targets: Tensor) -> None:
        if not len(targets) or len(inputs) != len(targets):
            raise InvalidParameter("records", len(targets), "at least one, with its target")
        self._module, self._inputs, self._targets = module, inputs, targets
        self._lock = threading.Lock()  # clients of one process may share a module

    def sharing(self, inputs: Tensor, targets: Tensor) -> TorchClientTask:
        """The task of another owner, with these `inputs` and `targets`, on the same module, for many clients in one
        process."""
        other = TorchClientTask(self._module, inputs, targets)
        other._lock = self._lock
        return other

    def value(self, model: bytes) -> NDArray[np.float64]:
        with self._lock:
            parameters = list(self._module.parameters())
            arrived = parameters_of(model, sum(p.numel() for p in parameters)).astype(np.float32)
            set_parameters(self._module, torch.from_numpy(arrived))
            loss = cross_entropy(self._module(self._inputs), self._targets).mean()
            gradients = torch.autograd.grad(loss, parameters)
        return torch.cat([g.flatten() for g in gradients]).double().numpy()


@dataclass
class TorchAnalyzerTask:
    """Optimiser steps on estimated mean gradients, and the accuracy on public test data."""

    module: nn.Module
    settings: Settings
    clip: float
    test_inputs: Tensor
    test_targets: Tensor

    @property
    def dimension(self) -> int:
        """Coordinates of a report."""
        return count_parameters(self.module)

    def start(self) -> TaskState:
        first = get_parameters(self.module)
        return self._packed(State(parameters=first, average=first.clone()))

    def step(self, state: TaskState, total: NDArray[np.float64], reports: int, index: int, steps: int) -> TaskState:
        found = State(**torch.load(io.BytesIO(state.private), weights_only=True))
        optimizer = self.settings.make_optimizer(self.module)
        if found.optimizer:
            optimizer.load_state_dict(found.optimizer)
        mean = torch.from_numpy(total / (reports * self.clip)).float()
        optimiser_step(found, self.module, optimizer, self.settings, mean, max(steps, index + 1))
        found.rounds = index + 1
        return self._packed(found)

    def _packed(self, state: State) -> TaskState:
        buffer = io.BytesIO()
        torch.save(dict(state.__dict__), buffer)
        set_parameters(self.module, state.average)
        right = accuracy(self.module, self.test_inputs, self.test_targets)
        return TaskState(to_bytes(state.parameters), buffer.getvalue(), {"accuracy": right})


def make_module(model: str, data: Dataset, seed: int) -> nn.Module:
    """A built-in `model` of the shapes that `data` have, with its first parameters drawn from the `seed`."""
    torch.manual_seed(seed)
    return build_model(model, data.shape, data.classes)


def learning_settings(table: dict[str, Any]) -> Settings:
    """The analyzer's learning settings from the `[task]` table."""
    known = {"optimizer", "learning_rate", "momentum", "schedule", "averaging", "weight_decay"}
    known |= {"warmup", "seed"}
    odd = sorted(table.keys() - known)
    if odd:
        raise InvalidParameter("task", odd, ", ".join(sorted(known)))
    return Settings(**{"learning_rate": 0.5, "averaging": 0.0, **table})
