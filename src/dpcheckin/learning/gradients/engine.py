"""One gradient per client, without one backward pass per client: the interface and the general way.

`VmapGradients` (torch.func) serves any model that treats its records independently, and clients
with many records. The fast engine for models of `Linear` and `Conv2d` layers, and the choice
between the two, are in `learning.gradients.layerwise`; clipping, noise and reports in
`learning.simulation.client_work`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from dpcheckin.errors import InvalidParameter

Loss = Callable[[Tensor, Tensor], Tensor]
"""Maps a batch of model outputs and targets to one loss per record (no reduction)."""


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
            raise InvalidParameter(
                "model",
                f"{type(layer).__name__} at {name!r}",
                "layers without chance of their own (the reports' noise is enough)",
            )
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            raise InvalidParameter(
                "model",
                f"{type(layer).__name__} at {name!r}",
                "layers that treat each record alone (use GroupNorm instead of BatchNorm)",
            )


def squared_lengths(rows: Tensor) -> Tensor:
    """Squared l2 norm of each row, in one pass over the memory."""
    lengths: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return lengths.square()


class DenseChunk(ChunkGradients):
    """Gradients as they are: one row a client and parameter tensor.

    Args:
        gradients: for each parameter tensor, (clients, its shape).
        losses: of the clients.
    """

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


class VmapGradients(GradientEngine):
    """The general engine: `vmap(grad)` over the clients of a chunk.

    Args:
        module: the model.
        loss: one loss per record, see `Loss`.
    """

    def __init__(self, module: nn.Module, loss: Loss) -> None:
        refuse_batch_coupling(module)
        self._module = module
        self._names = [name for name, _ in module.named_parameters()]

        def client_loss(
            parameters: dict[str, Tensor], inputs: Tensor, targets: Tensor, mask: Tensor
        ) -> Tensor:
            outputs = functional_call(module, parameters, (inputs,))
            return (loss(outputs, targets) * mask).sum() / mask.sum().clamp(min=1.0)

        self._gradient = vmap(grad_and_value(client_loss), in_dims=(None, 0, 0, 0))

    def chunk(self, inputs: Tensor, targets: Tensor, mask: Tensor | None) -> ChunkGradients:
        if mask is None:
            inputs, targets = inputs.unsqueeze(1), targets.unsqueeze(1)
            mask = torch.ones(len(targets), 1, dtype=inputs.dtype)
        parameters = {n: p.detach() for n, p in self._module.named_parameters()}
        gradients, losses = self._gradient(parameters, inputs, targets, mask)
        return DenseChunk([gradients[n] for n in self._names], losses.detach())
