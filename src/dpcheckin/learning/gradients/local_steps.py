"""Clients that take several gradient steps of their own before they report (federated averaging).

The report is about the difference between the published model and the client's, clipped and
randomized as a gradient would be. It is a function of the client's own records and of what has been
published, so every theorem about reports holds for it as it stands, at the same price.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.gradients.engine import (
    ChunkGradients,
    DenseChunk,
    GradientEngine,
    Loss,
    refuse_batch_coupling,
)


@dataclass(frozen=True)
class LocalSteps:
    """How a client trains on its own.

    Args:
        steps: gradient steps over all of its records.
        learning_rate: of these steps.
    """

    steps: int
    learning_rate: float

    def __post_init__(self) -> None:
        if self.steps < 2:
            raise InvalidParameter("local_steps", self.steps, "at least 2 (1 reports a gradient)")
        if not (self.learning_rate > 0 and math.isfinite(self.learning_rate)):
            raise InvalidParameter(
                "local_learning_rate", self.learning_rate, "a finite number above 0"
            )


class LocalDifferences(GradientEngine):
    """Model differences of the clients of a chunk, in the place of their gradients.

    Args:
        module: the model, at the parameters of the round.
        loss: one loss per record, see `Loss`.
        local: steps and learning rate of each client.
    """

    def __init__(self, module: nn.Module, loss: Loss, local: LocalSteps) -> None:
        refuse_batch_coupling(module)
        self._module = module
        self._names = [name for name, _ in module.named_parameters()]

        def client_loss(
            parameters: dict[str, Tensor], inputs: Tensor, targets: Tensor, mask: Tensor
        ) -> Tensor:
            outputs = functional_call(module, parameters, (inputs,))
            return (loss(outputs, targets) * mask).sum() / mask.sum().clamp(min=1.0)

        step = grad_and_value(client_loss)

        def difference(
            parameters: dict[str, Tensor], inputs: Tensor, targets: Tensor, mask: Tensor
        ) -> tuple[dict[str, Tensor], Tensor]:
            gradient, before = step(parameters, inputs, targets, mask)
            moved = {n: local.learning_rate * g for n, g in gradient.items()}
            for _ in range(local.steps - 1):
                here = {n: p - moved[n] for n, p in parameters.items()}
                gradient, _ = step(here, inputs, targets, mask)
                moved = {n: moved[n] + local.learning_rate * g for n, g in gradient.items()}
            return moved, before

        self._differences = vmap(difference, in_dims=(None, 0, 0, 0))

    def chunk(self, inputs: Tensor, targets: Tensor, mask: Tensor | None) -> ChunkGradients:
        if mask is None:
            inputs, targets = inputs.unsqueeze(1), targets.unsqueeze(1)
            mask = torch.ones(len(targets), 1, dtype=inputs.dtype)
        parameters = {n: p.detach() for n, p in self._module.named_parameters()}
        moved, losses = self._differences(parameters, inputs, targets, mask)
        return DenseChunk([moved[n] for n in self._names], losses.detach())
