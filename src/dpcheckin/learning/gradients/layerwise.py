"""Per-client gradients at about the cost of plain batches, for models of Linear and Conv2d layers.

One ordinary batched pass in channels-last layout keeps each layer's input and output gradient; per-client norms and
weighted sums follow from those. What is large (receptive fields, rows of all parameters) is formed for a few clients at
a time, so that it stays in the processor's cache, and in memory that the engine keeps, because fresh pages cost more
than the arithmetic. A linear head under cross-entropy has a closed form and needs no pass at all.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.func import functional_call

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.gradients.engine import (
    ChunkGradients,
    GradientEngine,
    Part,
    Rows,
    VmapGradients,
    refuse_batch_coupling,
    squared_lengths,
)
from dpcheckin.learning.models import Loss, cross_entropy

_BLOCK_NUMBERS = 400_000
"""Receptive fields are formed for as many clients as hold about this many numbers (1.6 MB)."""


class _Memory:
    """Buffers that are used again from chunk to chunk, by name."""

    def __init__(self) -> None:
        self._kept: dict[object, Tensor] = {}

    def take(self, name: object, like: Tensor, *shape: int) -> Tensor:
        """A tensor of this shape, on the device of another (like), with whatever was in the buffer before."""
        size = math.prod(shape)
        kept = self._kept.get(name)
        if kept is None or kept.numel() < size:
            kept = self._kept[name] = torch.empty(size, device=like.device)
        return kept[:size].view(shape)


def _fields(inputs: Tensor, layer: nn.Conv2d) -> Tensor:
    """Receptive fields of a convolution, (clients, rows, columns, tall, wide, channels), a view."""
    if not isinstance(layer.padding, str) and any(layer.padding):
        above, left = layer.padding
        inputs = nn.functional.pad(inputs, (left, left, above, above))
    (tall, wide), (down, along) = layer.kernel_size, layer.stride
    clients, channels, height, width = inputs.shape
    rows, columns = (height - tall) // down + 1, (width - wide) // along + 1
    s = inputs.stride()
    return inputs.as_strided(
        (clients, rows, columns, tall, wide, channels), (s[0], s[2] * down, s[3] * along, s[2], s[3], s[1])
    )


class _Outer(Part):
    """Weight of a linear layer: a client's gradient is an outer product, never formed for a sum.

    `energy` is the squared length of each client's row of `deltas`.
    """

    def __init__(self, inputs: Tensor, deltas: Tensor, energy: Tensor) -> None:
        self._inputs, self._deltas = inputs, deltas
        self.squared = energy * squared_lengths(inputs)

    def sum(self, weights: Tensor) -> Tensor:
        return ((weights[:, None] * self._deltas).T @ self._inputs).flatten()

    def write(self, rows: Tensor, weights: Tensor, some: slice) -> None:
        deltas, inputs = self._deltas[some], self._inputs[some]
        outer = rows.view(len(deltas), deltas.shape[1], inputs.shape[1])
        torch.mul((weights[some, None] * deltas)[:, :, None], inputs[:, None], out=outer)


class _Kernel(Part):
    """Weight of a convolution: a small matrix product per client over the image's positions.

    `deltas` are (clients, positions, channels out).
    """

    def __init__(self, layer: nn.Conv2d, fields: Tensor, deltas: Tensor, memory: _Memory) -> None:
        clients, rows, columns, *field = fields.shape
        size = math.prod(field)
        kernel = memory.take((layer, "kernel"), deltas, clients, deltas.shape[2], size)
        block = max(1, _BLOCK_NUMBERS // (rows * columns * size))
        for start in range(0, clients, block):
            some = slice(start, min(start + block, clients))
            near = memory.take("fields", deltas, some.stop - start, rows, columns, *field)
            near.copy_(fields[some])
            products = (deltas[some].transpose(1, 2), near.view(-1, rows * columns, size))
            torch.bmm(*products, out=kernel[some])
        self._kernel = kernel.flatten(1)
        self._shape = (layer.out_channels, *layer.kernel_size, layer.in_channels)
        self.squared = squared_lengths(self._kernel)

    def sum(self, weights: Tensor) -> Tensor:
        return (weights @ self._kernel).view(self._shape).permute(0, 3, 1, 2).flatten()

    def write(self, rows: Tensor, weights: Tensor, some: slice) -> None:
        kernel = self._kernel[some].view(-1, *self._shape).permute(0, 1, 4, 2, 3)
        torch.mul(weights[some].view(-1, 1, 1, 1, 1), kernel, out=rows.view(kernel.shape))


def _refuse_many_records(mask: Tensor | None) -> None:
    if mask is not None:
        raise InvalidParameter("mask", "given", "None: the fast engines have one record each")


class LayerwiseGradients(GradientEngine):
    """The fast engine for models of plain `Linear` and `Conv2d` layers; `supports` says whether one qualifies."""

    def __init__(self, module: nn.Module, loss: Loss) -> None:
        refuse_batch_coupling(module)
        self._module, self._loss, self._memory = module, loss, _Memory()
        self._layers = [m for m in module.modules() if isinstance(m, nn.Linear | nn.Conv2d)]
        module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # max-pooling is five times faster this way

    @staticmethod
    def supports(module: nn.Module) -> bool:
        """True when every parameter belongs to a plain Linear or Conv2d layer, in layer order."""
        owned: list[nn.Parameter] = []
        for layer in module.modules():
            if type(layer) is nn.Conv2d:
                plain = layer.groups == 1 and layer.dilation == (1, 1)
                if not plain or layer.padding_mode != "zeros" or isinstance(layer.padding, str):
                    return False
            elif type(layer) is not nn.Linear:
                continue
            owned += layer.parameters()
        return [id(p) for p in owned] == [id(p) for p in module.parameters()]

    def chunk(self, inputs: Tensor, targets: Tensor, mask: Tensor | None) -> ChunkGradients:
        _refuse_many_records(mask)
        seen: dict[nn.Module, tuple[Tensor, Tensor]] = {}

        def remember(layer: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
            if layer in seen:
                raise _CalledTwice
            if not output.requires_grad:  # the first layer: parameters themselves are detached
                output = output.detach().requires_grad_()
            seen[layer] = (args[0].detach(), output)
            return output

        hooks = [layer.register_forward_hook(remember) for layer in self._layers]
        fixed = {name: p.detach() for name, p in self._module.named_parameters()}
        try:
            losses = self._loss(functional_call(self._module, fixed, (inputs,)), targets)
            outputs = [seen[layer][1] for layer in self._layers]
            deltas = torch.autograd.grad(losses.sum(), outputs)
        finally:
            for hook in hooks:
                hook.remove()
        parts: list[Part] = []
        for layer, delta in zip(self._layers, deltas, strict=True):
            parts += self._weight_and_bias(layer, seen[layer][0], delta)
        return ChunkGradients(self._module, parts, losses.detach())

    def _weight_and_bias(self, layer: nn.Linear | nn.Conv2d, inputs: Tensor, deltas: Tensor) -> list[Part]:
        if isinstance(layer, nn.Linear):
            return _linear(layer, inputs, deltas, squared_lengths(deltas))
        by_place = deltas.permute(0, 2, 3, 1).flatten(1, 2)
        kernel = _Kernel(layer, _fields(inputs, layer), by_place, self._memory)
        return [kernel, Rows(by_place.sum(1))][: len(list(layer.parameters()))]


def _linear(layer: nn.Linear, inputs: Tensor, deltas: Tensor, energy: Tensor) -> list[Part]:
    parts: list[Part] = [_Outer(inputs, deltas, energy), Rows(deltas, energy)]
    return parts[: len(list(layer.parameters()))]


def head_of(module: nn.Module) -> nn.Linear | None:
    """The only layer with parameters, when the model is a linear map of the flattened record."""
    layers = list(module) if isinstance(module, nn.Sequential) else [module]
    if layers and type(layers[0]) is nn.Flatten and layers[0].start_dim == 1:
        layers = layers[1:]
    only = layers[0] if len(layers) == 1 else None
    return only if type(only) is nn.Linear else None


class LinearHeadGradients(GradientEngine):
    """A linear head under cross-entropy: (softmax of the logits less the class) times the record.

    Nothing needs autograd; `supports` says whether a model and a loss qualify.
    """

    def __init__(self, module: nn.Module) -> None:
        head = head_of(module)
        if head is None:
            raise InvalidParameter("module", type(module).__name__, "a linear head")
        self._head = head

    @staticmethod
    def supports(module: nn.Module, loss: Loss) -> bool:
        """Whether the model (module) is a linear head and the loss cross-entropy."""
        return loss is cross_entropy and head_of(module) is not None

    def chunk(self, inputs: Tensor, targets: Tensor, mask: Tensor | None) -> ChunkGradients:
        _refuse_many_records(mask)
        with torch.no_grad():
            records, places, bias = inputs.flatten(1), targets[None], self._head.bias
            # kept as (classes, clients): long rows are what a processor is fast at
            scores = self._head.weight @ records.T
            if bias is not None:
                scores += bias[:, None]
            scores = torch.log_softmax(scores, dim=0)
            losses = -scores.gather(0, places)[0]
            residuals = scores.exp_()
            residuals.scatter_add_(0, places, residuals.new_full((1, len(targets)), -1.0))
            energy = residuals.square().sum(dim=0)
            parts = _linear(self._head, records, residuals.T, energy)
        return ChunkGradients(self._head, parts, losses)


class _CalledTwice(Exception):
    """A layer is called more than once in a forward pass: the fast engine does not apply."""


def client_gradients(
    module: nn.Module, loss: Loss, inputs: Tensor, targets: Tensor, *, many_records: bool = False
) -> GradientEngine:
    """The fastest engine that is right for this module and loss, tried out on two example records.

    The trial matters: a model may use a layer's weight outside the layer (weight tying, a functional call), which no
    inspection of its modules would show. The examples are two or more inputs with their targets; `many_records` says
    whether clients hold several each.
    """
    general = VmapGradients(module, loss)
    if many_records or not LayerwiseGradients.supports(module):
        return general
    fast: GradientEngine = LayerwiseGradients(module, loss)
    if LinearHeadGradients.supports(module, loss):
        fast = LinearHeadGradients(module)
    slow_chunk = general.chunk(inputs[:2], targets[:2], None)
    ones = torch.ones_like(slow_chunk.squared_norms)
    try:
        fast_rows = fast.chunk(inputs[:2], targets[:2], None).matrix(ones)
    except (_CalledTwice, KeyError, RuntimeError, IndexError):
        return general
    slow_rows = slow_chunk.matrix(ones)
    if fast_rows.shape != slow_rows.shape:
        return general
    scale = slow_rows.abs().max().clamp(min=1e-12)
    return fast if bool((fast_rows - slow_rows).abs().max() / scale < 1e-3) else general
