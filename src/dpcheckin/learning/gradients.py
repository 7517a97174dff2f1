"""One gradient per client, without one backward pass per client.

Two engines with one interface. `LayerwiseGradients` runs an ordinary batched pass in
channels-last layout, keeps each layer's input and output gradient, and forms per-client norms and
weighted sums from those: about the cost of plain mini-batch training. It serves models whose
parameters all sit in `Linear` and `Conv2d` layers that are each called once. `VmapGradients`
(torch.func) serves any model that treats its records independently, and clients with many
records. `client_gradients` picks the engine and checks the fast one against the general one.

Clipping, noise and reports are decided elsewhere (`learning.rounds`).
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
    """The gradients of one chunk of clients, kept in whatever form is cheapest."""

    losses: Tensor
    """Mean loss of each client before the step, shape (clients,)."""

    squared_norms: Tensor
    """Squared l2 norm of each client's gradient in each parameter tensor, (clients, tensors)."""

    @abstractmethod
    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Sum over clients of weight times gradient, flat; weights are (clients, tensors)."""

    @abstractmethod
    def matrix(self, weights: Tensor) -> Tensor:
        """Each client's weighted flat gradient as a row, (clients, parameters)."""


class GradientEngine(ABC):
    """Computes the gradients of a chunk of clients at the module's present parameters."""

    @abstractmethod
    def chunk(self, inputs: Tensor, targets: Tensor, mask: Tensor | None) -> ChunkGradients:
        """Inputs are (clients, …), or (clients, records, …) with a 0/1 mask."""


def refuse_batch_coupling(module: nn.Module) -> None:
    """A layer that mixes records of a batch has no per-client gradient: say so at once."""
    for name, layer in module.named_modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            raise InvalidParameter(
                "model",
                f"{type(layer).__name__} at {name!r}",
                "layers that treat each record alone (use GroupNorm instead of BatchNorm)",
            )


class _DenseChunk(ChunkGradients):
    def __init__(self, gradients: list[Tensor], losses: Tensor) -> None:
        self._rows = [g.flatten(1) for g in gradients]
        self.losses = losses
        self.squared_norms = torch.stack([(r * r).sum(1) for r in self._rows], dim=1)

    def weighted_sum(self, weights: Tensor) -> Tensor:
        return torch.cat([weights[:, j] @ row for j, row in enumerate(self._rows)])

    def matrix(self, weights: Tensor) -> Tensor:
        return torch.cat([weights[:, j : j + 1] * r for j, r in enumerate(self._rows)], dim=1)


class VmapGradients(GradientEngine):
    """The general engine: `vmap(grad)` over the clients of a chunk."""

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
        return _DenseChunk([gradients[n] for n in self._names], losses.detach())


def _patches(inputs: Tensor, layer: nn.Conv2d) -> Tensor:
    """The receptive fields of a convolution as (clients, positions, height*width*channels)."""
    if not isinstance(layer.padding, str) and any(layer.padding):
        above, left = layer.padding
        inputs = nn.functional.pad(inputs, (left, left, above, above))
    (tall, wide), (down, along) = layer.kernel_size, layer.stride
    clients, channels, height, width = inputs.shape
    rows, columns = (height - tall) // down + 1, (width - wide) // along + 1
    s = inputs.stride()
    fields = inputs.as_strided(
        (clients, rows, columns, tall, wide, channels),
        (s[0], s[2] * down, s[3] * along, s[2], s[3], s[1]),
    )
    return fields.reshape(clients, rows * columns, tall * wide * channels)


class _LinearPart:
    """Linear layer: the client's gradient is an outer product, never formed for a sum."""

    def __init__(self, layer: nn.Linear, inputs: Tensor, deltas: Tensor) -> None:
        self._inputs, self._deltas = inputs, deltas
        energy = (deltas * deltas).sum(1)
        self.squared = [energy * (inputs * inputs).sum(1)]
        if layer.bias is not None:
            self.squared.append(energy)

    def sums(self, weights: list[Tensor]) -> list[Tensor]:
        parts = [((weights[0][:, None] * self._deltas).T @ self._inputs).flatten()]
        if len(weights) > 1:
            parts.append(weights[1] @ self._deltas)
        return parts

    def rows(self, weights: list[Tensor]) -> list[Tensor]:
        outer = torch.bmm((weights[0][:, None] * self._deltas)[:, :, None], self._inputs[:, None])
        parts = [outer.flatten(1)]
        if len(weights) > 1:
            parts.append(weights[1][:, None] * self._deltas)
        return parts


class _ConvPart:
    """Convolution: one small matrix product per client over the positions of the image."""

    def __init__(self, layer: nn.Conv2d, inputs: Tensor, deltas: Tensor) -> None:
        flat = deltas.permute(0, 2, 3, 1).reshape(deltas.shape[0], -1, deltas.shape[1])
        self._kernel = torch.bmm(flat.transpose(1, 2), _patches(inputs, layer)).flatten(1)
        self._shape = (layer.out_channels, *layer.kernel_size, layer.in_channels)
        self.squared = [(self._kernel * self._kernel).sum(1)]
        self._bias = flat.sum(1) if layer.bias is not None else None
        if self._bias is not None:
            self.squared.append((self._bias * self._bias).sum(1))

    def sums(self, weights: list[Tensor]) -> list[Tensor]:
        kernel = (weights[0] @ self._kernel).view(self._shape).permute(0, 3, 1, 2)
        parts = [kernel.flatten()]
        if self._bias is not None:
            parts.append(weights[1] @ self._bias)
        return parts

    def rows(self, weights: list[Tensor]) -> list[Tensor]:
        kernel = (weights[0][:, None] * self._kernel).view(-1, *self._shape)
        parts = [kernel.permute(0, 1, 4, 2, 3).flatten(1)]
        if self._bias is not None:
            parts.append(weights[1][:, None] * self._bias)
        return parts


class _LayeredChunk(ChunkGradients):
    def __init__(self, parts: list[_LinearPart | _ConvPart], losses: Tensor) -> None:
        self._parts = parts
        self.losses = losses
        self.squared_norms = torch.stack([s for p in parts for s in p.squared], dim=1)

    def _split(self, weights: Tensor) -> list[list[Tensor]]:
        columns, split = iter(weights.unbind(1)), []
        for part in self._parts:
            split.append([next(columns) for _ in part.squared])
        return split

    def weighted_sum(self, weights: Tensor) -> Tensor:
        split = self._split(weights)
        return torch.cat([s for p, w in zip(self._parts, split, strict=True) for s in p.sums(w)])

    def matrix(self, weights: Tensor) -> Tensor:
        split = self._split(weights)
        rows = [r for p, w in zip(self._parts, split, strict=True) for r in p.rows(w)]
        return torch.cat(rows, dim=1)


class LayerwiseGradients(GradientEngine):
    """The fast engine; `supports` says whether a model qualifies."""

    def __init__(self, module: nn.Module, loss: Loss) -> None:
        refuse_batch_coupling(module)
        self._module, self._loss = module, loss
        self._layers = [m for m in module.modules() if isinstance(m, nn.Linear | nn.Conv2d)]
        module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # max-pooling is five times faster this way

    @staticmethod
    def supports(module: nn.Module) -> bool:
        """True when every parameter belongs to a plain Linear or Conv2d layer, in layer order."""
        owned: list[nn.Parameter] = []
        for layer in module.modules():
            if type(layer) is nn.Linear:
                owned += list(layer.parameters())
            elif type(layer) is nn.Conv2d:
                plain = layer.groups == 1 and layer.dilation == (1, 1)
                if not plain or layer.padding_mode != "zeros" or isinstance(layer.padding, str):
                    return False
                owned += list(layer.parameters())
        everything = list(module.parameters())
        return len(owned) == len(everything) and all(
            a is b for a, b in zip(owned, everything, strict=True)
        )

    def chunk(self, inputs: Tensor, targets: Tensor, mask: Tensor | None) -> ChunkGradients:
        if mask is not None:
            raise InvalidParameter(
                "mask", "given", "None: the layerwise engine has one record each"
            )
        seen: dict[nn.Module, tuple[Tensor, Tensor]] = {}

        def remember(layer: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
            if layer in seen:
                raise _CalledTwice
            if not output.requires_grad:  # the first layer: parameters themselves are frozen
                output = output.detach().requires_grad_()
            seen[layer] = (args[0].detach(), output)
            return output

        hooks = [layer.register_forward_hook(remember) for layer in self._layers]
        frozen = [(p, p.requires_grad) for p in self._module.parameters()]
        try:
            for p, _ in frozen:
                p.requires_grad_(False)
            losses = self._loss(self._module(inputs), targets)
            outputs = [seen[layer][1] for layer in self._layers]
            deltas = torch.autograd.grad(losses.sum(), outputs)
        finally:
            for hook in hooks:
                hook.remove()
            for p, wanted in frozen:
                p.requires_grad_(wanted)
        parts: list[_LinearPart | _ConvPart] = []
        for layer, delta in zip(self._layers, deltas, strict=True):
            if isinstance(layer, nn.Linear):
                parts.append(_LinearPart(layer, seen[layer][0], delta))
            else:
                assert isinstance(layer, nn.Conv2d)
                parts.append(_ConvPart(layer, seen[layer][0], delta))
        return _LayeredChunk(parts, losses.detach())


class _CalledTwice(Exception):
    """A layer is called more than once in a forward pass: the fast engine does not apply."""


def client_gradients(
    module: nn.Module, loss: Loss, inputs: Tensor, targets: Tensor, *, many_records: bool = False
) -> GradientEngine:
    """The fastest engine that is right for this model, tried out on two example records.

    The trial matters: a model may use a layer's weight outside the layer (weight tying, a
    functional call), which no inspection of its modules would show.
    """
    general = VmapGradients(module, loss)
    if many_records or not LayerwiseGradients.supports(module):
        return general
    fast = LayerwiseGradients(module, loss)
    slow_chunk = general.chunk(inputs[:2], targets[:2], None)
    ones = torch.ones_like(slow_chunk.squared_norms)
    try:
        fast_rows = fast.chunk(inputs[:2], targets[:2], None).matrix(ones)
    except (_CalledTwice, KeyError, RuntimeError, IndexError):
        return general
    slow_rows = slow_chunk.matrix(ones)
    scale = slow_rows.abs().max().clamp(min=1e-12)
    same = fast_rows.shape == slow_rows.shape and bool(
        ((fast_rows - slow_rows).abs().max() / scale) < 1e-3
    )
    return fast if same else general
