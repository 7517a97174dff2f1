"""Per-client gradients of a linear head under cross-entropy, in closed form.

The gradient of one record is an outer product: (softmax of the logits less the class) times the
record. Nothing needs autograd, and neither the norms nor the weighted sum need any client's
gradient to be formed. `gradients.layerwise` serves every other model, and chooses between them.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.gradients.engine import (
    ChunkGradients,
    GradientEngine,
    Loss,
    squared_lengths,
)
from dpcheckin.learning.losses import cross_entropy


def head_of(module: nn.Module) -> nn.Linear | None:
    """The only layer with parameters, when the model is a linear map of the flattened record."""
    layers = list(module) if isinstance(module, nn.Sequential) else [module]
    if layers and type(layers[0]) is nn.Flatten and layers[0].start_dim == 1:
        layers = layers[1:]
    only = layers[0] if len(layers) == 1 else None
    return only if type(only) is nn.Linear else None


class _HeadChunk(ChunkGradients):
    """Residuals are kept as (classes, clients): long rows are what a processor is fast at."""

    def __init__(self, records: Tensor, residuals: Tensor, losses: Tensor, bias: bool) -> None:
        self._records, self._residuals, self.losses = records, residuals, losses
        energy = residuals.square().sum(dim=0)
        squared = [energy * squared_lengths(records)]
        self.squared_norms = torch.stack([*squared, energy] if bias else squared, dim=1)

    def weighted_sum(self, weights: Tensor) -> Tensor:
        parts = [((self._residuals * weights[:, 0]) @ self._records).flatten()]
        if weights.shape[1] > 1:
            parts.append(self._residuals @ weights[:, 1])
        return torch.cat(parts)

    def matrix(self, weights: Tensor, first: int = 0, last: int | None = None) -> Tensor:
        some = slice(first, last)
        residuals, records = self._residuals[:, some].T, self._records[some]
        scaled = weights[some, :1] * residuals
        rows = [(scaled[:, :, None] * records[:, None]).flatten(1)]
        if weights.shape[1] > 1:
            rows.append(weights[some, 1:] * residuals)
        return torch.cat(rows, dim=1)


class LinearHeadGradients(GradientEngine):
    """The closed form; `supports` says whether a model and a loss qualify.

    Args:
        module: a linear layer, perhaps after a flattening.
    """

    def __init__(self, module: nn.Module) -> None:
        head = head_of(module)
        if head is None:
            raise InvalidParameter("module", type(module).__name__, "a linear head")
        self._head = head

    @staticmethod
    def supports(module: nn.Module, loss: Loss) -> bool:
        """Whether the model is a linear head and the loss cross-entropy."""
        return loss is cross_entropy and head_of(module) is not None

    def chunk(self, inputs: Tensor, targets: Tensor, mask: Tensor | None) -> ChunkGradients:
        if mask is not None:
            raise InvalidParameter("mask", "given", "None: this engine has one record each")
        with torch.no_grad():
            records = inputs.flatten(1)
            bias, places = self._head.bias, targets[None]
            scores = self._head.weight @ records.T
            if bias is not None:
                scores += bias[:, None]
            scores = torch.log_softmax(scores, dim=0)
            losses = -scores.gather(0, places)[0]
            residuals = scores.exp_()
            residuals.scatter_add_(0, places, residuals.new_full((1, len(targets)), -1.0))
            return _HeadChunk(records, residuals, losses, bias is not None)
