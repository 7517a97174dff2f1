"""Per-client gradients at about the cost of plain batches, for models of Linear and Conv2d layers.

One ordinary batched pass in channels-last layout keeps each layer's input and output gradient;
per-client norms and weighted sums follow from those. Two things make it fast beyond that: what is
large (receptive fields, rows of all parameters) is formed for a few clients at a time, so that it
stays in the processor's cache, and in memory that the engine keeps, because fresh pages cost more
than the arithmetic. A linear head under cross-entropy has a closed form and needs no pass at all.
`client_gradients` picks between these two engines and the general one of
`learning.gradients.engine`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.gradients.engine import (
    ChunkGradients,
    GradientEngine,
    VmapGradients,
    refuse_batch_coupling,
    squared_lengths,
)
from dpcheckin.learning.losses import Loss, cross_entropy

_BLOCK_NUMBERS = 400_000
"""Receptive fields are formed for as many clients as hold about this many numbers (1.6 MB)."""


class _Memory:
    """Buffers that are used again from chunk to chunk, by name."""

    def __init__(self) -> None:
        self._kept: dict[object, Tensor] = {}

    def take(self, name: object, *shape: int) -> Tensor:
        """A tensor of this shape with whatever was in the buffer before."""
        size = math.prod(shape)
        kept = self._kept.get(name)
        if kept is None or kept.numel() < size:
            kept = self._kept[name] = torch.empty(size)
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
        (clients, rows, columns, tall, wide, channels),
        (s[0], s[2] * down, s[3] * along, s[2], s[3], s[1]),
    )


class _LinearPart:
    """Linear layer: the client's gradient is an outer product, never formed for a sum.

    `energy` is the squared length of each client's row of `deltas`.
    """

    def __init__(self, inputs: Tensor, deltas: Tensor, energy: Tensor, bias: bool) -> None:
        self._inputs, self._deltas = inputs, deltas
        self.squared = [energy * squared_lengths(inputs), energy][: 1 + bias]

    def sums(self, weights: list[Tensor]) -> list[Tensor]:
        parts = [((weights[0][:, None] * self._deltas).T @ self._inputs).flatten()]
        if len(weights) > 1:
            parts.append(self._deltas.T @ weights[1])
        return parts

    def write(self, rows: list[Tensor], weights: list[Tensor], some: slice) -> None:
        deltas, inputs = self._deltas[some], self._inputs[some]
        outer = rows[0].view(len(deltas), deltas.shape[1], inputs.shape[1])
        torch.mul((weights[0][some, None] * deltas)[:, :, None], inputs[:, None], out=outer)
        if len(weights) > 1:
            torch.mul(weights[1][some, None], deltas, out=rows[1])


class _ConvPart:
    """Convolution: one small matrix product per client over the positions of the image."""

    def __init__(self, layer: nn.Conv2d, inputs: Tensor, deltas: Tensor, memory: _Memory) -> None:
        fields = _fields(inputs, layer)
        clients, rows, columns, *field = fields.shape
        size = field[0] * field[1] * field[2]
        flat = deltas.permute(0, 2, 3, 1).reshape(clients, rows * columns, -1)
        self._kernel = memory.take((layer, "kernel"), clients, flat.shape[2], size)
        block = max(1, _BLOCK_NUMBERS // (rows * columns * size))
        for start in range(0, clients, block):
            some = slice(start, min(start + block, clients))
            near = memory.take("fields", some.stop - start, rows, columns, *field)
            near.copy_(fields[some])
            products = (flat[some].transpose(1, 2), near.view(-1, rows * columns, size))
            torch.bmm(*products, out=self._kernel[some])
        self._kernel = self._kernel.flatten(1)
        self._shape = (layer.out_channels, *layer.kernel_size, layer.in_channels)
        self.squared = [squared_lengths(self._kernel)]
        self._bias = flat.sum(1) if layer.bias is not None else None
        if self._bias is not None:
            self.squared.append(squared_lengths(self._bias))

    def sums(self, weights: list[Tensor]) -> list[Tensor]:
        kernel = (weights[0] @ self._kernel).view(self._shape).permute(0, 3, 1, 2)
        parts = [kernel.flatten()]
        if self._bias is not None:
            parts.append(weights[1] @ self._bias)
        return parts

    def write(self, rows: list[Tensor], weights: list[Tensor], some: slice) -> None:
        kernel = self._kernel[some].view(-1, *self._shape).permute(0, 1, 4, 2, 3)
        factor = weights[0][some].view(-1, 1, 1, 1, 1)
        torch.mul(factor, kernel, out=rows[0].view(kernel.shape))
        if self._bias is not None:
            torch.mul(weights[1][some, None], self._bias[some], out=rows[1])


class _LayeredChunk(ChunkGradients):
    def __init__(
        self, parts: Sequence[_LinearPart | _ConvPart], losses: Tensor, sizes: list[int]
    ) -> None:
        self._parts, self._sizes = parts, sizes
        self.losses = losses
        self.squared_norms = torch.stack([s for p in parts for s in p.squared], dim=1)

    def _split(self, columns: tuple[Tensor, ...]) -> list[list[Tensor]]:
        """One entry per parameter tensor, handed out to the parts."""
        left = iter(columns)
        return [[next(left) for _ in part.squared] for part in self._parts]

    def weighted_sum(self, weights: Tensor) -> Tensor:
        split = self._split(weights.unbind(1))
        return torch.cat([s for p, w in zip(self._parts, split, strict=True) for s in p.sums(w)])

    def matrix(self, weights: Tensor, first: int = 0, last: int | None = None) -> Tensor:
        some = slice(*slice(first, last).indices(len(self.losses)))
        rows = torch.empty(some.stop - some.start, sum(self._sizes))
        pieces = self._split(torch.split(rows, self._sizes, dim=1))
        for part, piece, w in zip(self._parts, pieces, self._split(weights.unbind(1)), strict=True):
            part.write(piece, w, some)
        return rows


def _refuse_many_records(mask: Tensor | None) -> None:
    if mask is not None:
        raise InvalidParameter("mask", "given", "None: the fast engines have one record each")


class LayerwiseGradients(GradientEngine):
    """The fast engine; `supports` says whether a model qualifies.

    Args:
        module: a model of plain `Linear` and `Conv2d` layers.
        loss: one loss per record, see `Loss`.
    """

    def __init__(self, module: nn.Module, loss: Loss) -> None:
        refuse_batch_coupling(module)
        self._module, self._loss, self._memory = module, loss, _Memory()
        self._layers = [m for m in module.modules() if isinstance(m, nn.Linear | nn.Conv2d)]
        self._sizes = [p.numel() for p in module.parameters()]
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
        parts = [self._part(m, seen[m][0], d) for m, d in zip(self._layers, deltas, strict=True)]
        return _LayeredChunk(parts, losses.detach(), self._sizes)

    def _part(self, layer: nn.Module, inputs: Tensor, deltas: Tensor) -> _LinearPart | _ConvPart:
        if isinstance(layer, nn.Conv2d):
            return _ConvPart(layer, inputs, deltas, self._memory)
        return _LinearPart(inputs, deltas, squared_lengths(deltas), layer.bias is not None)


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
        """Whether the model is a linear head and the loss cross-entropy."""
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
            part = _LinearPart(records, residuals.T, energy, bias is not None)
        return _LayeredChunk([part], losses, [p.numel() for p in self._head.parameters()])


class _CalledTwice(Exception):
    """A layer is called more than once in a forward pass: the fast engine does not apply."""


def client_gradients(
    module: nn.Module, loss: Loss, inputs: Tensor, targets: Tensor, *, many_records: bool = False
) -> GradientEngine:
    """The fastest engine that is right for this model, tried out on two example records.

    The trial matters: a model may use a layer's weight outside the layer (weight tying, a
    functional call), which no inspection of its modules would show.

    Args:
        module: the model.
        loss: one loss per record, see `Loss`.
        inputs: example records, two or more.
        targets: their classes.
        many_records: whether clients hold several records each.
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
