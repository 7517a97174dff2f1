"""One gradient per client, without one backward pass per client: the interface and the general way.

`VmapGradients` (torch.func) serves any model that treats its records independently, clients with many records, and
clients that take several steps of their own before they report. `gradients.layerwise` has the fast engines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, vmap

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.models import Loss
from dpcheckin.numerals import positive


def squared_lengths(rows: Tensor) -> Tensor:
    """Squared l2 norm of each row, in one pass over the memory."""
    lengths: Tensor = torch.linalg.vector_norm(rows, dim=1)
    return lengths.square()


class Part(ABC):
    """The clients' gradients in one parameter tensor, kept in whatever form is cheapest."""

    squared: Tensor
    """Squared l2 norm of each client's, shape (clients,)."""

    @abstractmethod
    def sum(self, weights: Tensor) -> Tensor:
        """Sum over clients of weight times gradient, flat."""

    @abstractmethod
    def write(self, rows: Tensor, weights: Tensor, some: slice) -> None:
        """Gradients of some clients times their weights into `rows`, flat, one a client."""


class Rows(Part):
    """Gradients as they are, one row a client."""

    def __init__(self, rows: Tensor, squared: Tensor | None = None) -> None:
        self._rows = rows
        self.squared = squared_lengths(rows) if squared is None else squared

    def sum(self, weights: Tensor) -> Tensor:
        return self._rows.T @ weights

    def write(self, rows: Tensor, weights: Tensor, some: slice) -> None:
        torch.mul(weights[some, None], self._rows[some], out=rows)


class ChunkGradients:
    """The gradients of one chunk of clients, a part for each of the model's parameter tensors.

    They may live in memory that their engine uses again: they are valid until its next chunk. Weights are (clients,
    tensors) everywhere.
    """

    def __init__(self, module: nn.Module, parts: Sequence[Part], losses: Tensor) -> None:
        self._parts, self._sizes = parts, [p.numel() for p in module.parameters()]
        self.losses = losses
        """Mean loss of each client before the step, shape (clients,)."""
        self.squared_norms = torch.stack([part.squared for part in parts], dim=1)
        """Squared l2 norm of each client's gradient in each parameter tensor."""

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Sum over clients of weight times gradient, flat."""
        pairs = zip(self._parts, weights.unbind(1), strict=True)
        return torch.cat([part.sum(w) for part, w in pairs])

    def matrix(self, weights: Tensor, first: int = 0, last: int | None = None) -> Tensor:
        """Flat gradients of clients first, …, last - 1 times their weights, as rows (clients, parameters)."""
        some = slice(*slice(first, last).indices(len(self.losses)))
        rows = torch.empty(some.stop - some.start, sum(self._sizes), device=weights.device)
        pieces = torch.split(rows, self._sizes, dim=1)
        for part, piece, w in zip(self._parts, pieces, weights.unbind(1), strict=True):
            part.write(piece, w, some)
        return rows


class GradientEngine(ABC):
    """Computes the gradients of a chunk of clients at the module's present parameters."""

    @abstractmethod
    def chunk(self, inputs: Tensor, targets: Tensor, mask: Tensor | None) -> ChunkGradients:
        """The gradients of inputs (clients, …), or (clients, records, …) with a 0/1 mask, and their targets."""


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


@dataclass(frozen=True)
class LocalSteps:
    """Steps that a client takes over all of its records before it reports (federated averaging).

    The report is about the difference between the published model and the client's, clipped and randomized as a
    gradient would be. It is a function of the client's own records and of what has been published, so every theorem
    about reports holds for it as it stands, at the same price.
    """

    steps: int
    learning_rate: float

    def __post_init__(self) -> None:
        if self.steps < 2:
            raise InvalidParameter("local_steps", self.steps, "at least 2 (1 reports a gradient)")
        positive("local_learning_rate", self.learning_rate)


class VmapGradients(GradientEngine):
    """The general engine: `vmap(grad)` of a model and a loss over clients, or their differences after `local` steps."""

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
            mask = torch.ones(len(targets), 1, dtype=inputs.dtype, device=inputs.device)
        parameters = {n: p.detach() for n, p in self._module.named_parameters()}
        moved, losses = self._differences(parameters, inputs, targets, mask)
        parts = [Rows(moved[name].flatten(1)) for name in parameters]
        return ChunkGradients(self._module, parts, losses.detach())
