"""One gradient per client, without one backward pass per client: the interface and the general way.

`VmapGradients` (torch.func) serves any model that treats its records independently, clients with
many records, and clients that take several steps of their own before they report. The fast engines
and the choice between all of them are in `learning.gradients.layerwise`; clipping, noise and
reports in `learning.simulation.client_work`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from dpcheckin.accounting.parameters import positive
from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.losses import Loss


class ChunkGradients(ABC):
    """The gradients of one chunk of clients, kept in whatever form is cheapest.

    They may live in memory that their engine uses again: they are valid until its next chunk.
    """

    losses: Tensor
    """Mean loss of each client before the step, shape (clients,)."""

    squared_norms: Tensor
    """Squared l2 norm of each client's gradient in each parameter tensor, (clients, tensors)."""

    @abstractmethod
    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Sum over clients of weight times gradient, flat; weights are (clients, tensors)."""

    @abstractmethod
    def matrix(self, weights: Tensor, first: int = 0, last: int | None = None) -> Tensor:
        """Weighted flat gradients of clients first, …, last - 1 as rows, (clients, parameters)."""


class GradientEngine(ABC):
    """Computes the gradients of a chunk of clients at the module's present parameters."""

    @abstractmethod
    def chunk(self, inputs: Tensor, targets: Tensor, mask: Tensor | None) -> ChunkGradients:
        """Inputs are (clients, …), or (clients, records, …) with a 0/1 mask."""


def refuse_batch_coupling(module: nn.Module) -> None:
    """What has no gradient of one client, or none that can be computed again: say so at once."""
    for name, layer in module.named_modules():
        if isinstance(layer, nn.modules.dropout._DropoutNd) and layer.p > 0:
            allowed = "layers without chance of their own (the reports' noise is enough)"
        elif isinstance(layer, nn.modules.batchnorm._BatchNorm):
            allowed = "layers that treat each record alone (use GroupNorm instead of BatchNorm)"
        else:
            continue
        raise InvalidParameter("model", f"{type(layer).__name__} at {name!r}", allowed)


def squared_lengths(rows: Tensor) -> Tensor:
    """Squared l2 norm of each row, in one pass over the memory."""
    lengths: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return lengths.square()


class DenseChunk(ChunkGradients):
    """Gradients as they are: for each parameter tensor, (clients, its shape)."""

    def __init__(self, gradients: list[Tensor], losses: Tensor) -> None:
        self._rows = [g.flatten(1) for g in gradients]
        self.losses = losses
        self.squared_norms = torch.stack([squared_lengths(r) for r in self._rows], dim=1)

    def weighted_sum(self, weights: Tensor) -> Tensor:
        return torch.cat([weights[:, j] @ row for j, row in enumerate(self._rows)])

    def matrix(self, weights: Tensor, first: int = 0, last: int | None = None) -> Tensor:
        some = slice(first, last)
        parts = [weights[some, j : j + 1] * row[some] for j, row in enumerate(self._rows)]
        return torch.cat(parts, dim=1)


@dataclass(frozen=True)
class LocalSteps:
    """Steps that a client takes over all of its records before it reports (federated averaging).

    The report is about the difference between the published model and the client's, clipped and
    randomized as a gradient would be. It is a function of the client's own records and of what has
    been published, so every theorem about reports holds for it as it stands, at the same price.
    """

    steps: int
    learning_rate: float

    def __post_init__(self) -> None:
        if self.steps < 2:
            raise InvalidParameter("local_steps", self.steps, "at least 2 (1 reports a gradient)")
        positive("local_learning_rate", self.learning_rate)


class VmapGradients(GradientEngine):
    """The general engine: `vmap(grad)` over the clients of a chunk.

    Args:
        module: the model.
        loss: one loss per record, see `Loss`.
        local: steps of each client, whose differences take the place of gradients; None: one.
    """

    def __init__(self, module: nn.Module, loss: Loss, local: LocalSteps | None = None) -> None:
        refuse_batch_coupling(module)
        self._module = module
        Parameters = dict[str, Tensor]

        def client_loss(at: Parameters, inputs: Tensor, targets: Tensor, mask: Tensor) -> Tensor:
            outputs = functional_call(module, at, (inputs,))
            return (loss(outputs, targets) * mask).sum() / mask.sum().clamp(min=1.0)

        step = grad_and_value(client_loss)

        def difference(start: Parameters, *records: Tensor) -> tuple[Parameters, Tensor]:
            gradient, before = step(start, *records)
            if local is None:
                return gradient, before
            moved = {n: local.learning_rate * g for n, g in gradient.items()}
            for _ in range(local.steps - 1):
                gradient, _ = step({n: p - moved[n] for n, p in start.items()}, *records)
                moved = {n: moved[n] + local.learning_rate * g for n, g in gradient.items()}
            return moved, before

        self._differences = vmap(difference, in_dims=(None, 0, 0, 0))

    def chunk(self, inputs: Tensor, targets: Tensor, mask: Tensor | None) -> ChunkGradients:
        if mask is None:
            inputs, targets = inputs.unsqueeze(1), targets.unsqueeze(1)
            mask = torch.ones(len(targets), 1, dtype=inputs.dtype)
        parameters = {n: p.detach() for n, p in self._module.named_parameters()}
        moved, losses = self._differences(parameters, inputs, targets, mask)
        return DenseChunk([moved[n] for n in parameters], losses.detach())
