"""What the clients of one round do: gradient, clip, report, sum. A pure function of its seed.

A round's cohort is cut into chunks; each chunk draws its chance from (seed, round, chunk) and nothing else, so chunks
may run in any process, in any order, again after a crash, and the result is the same. `ClientWork.chunk` is that unit.
Who runs it is `simulation.backends`' business, what happens to the sum is `simulation.training`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np
import torch
from torch import Tensor, nn

from dpcheckin.errors import InvalidParameter, NumericalFailure, Superfluous
from dpcheckin.learning.data.fleet import Clients, Fleet
from dpcheckin.learning.gradients.engine import ChunkGradients, GradientEngine, LocalSteps, VmapGradients
from dpcheckin.learning.gradients.layerwise import LinearHeadGradients, client_gradients
from dpcheckin.learning.models import Loss, count_parameters
from dpcheckin.randomizers import SeededSource, SummableRandomizer, VectorRandomizer

CLIENT_CHUNK = 500
"""Clients whose gradients are held at once; also the unit of seeding, so it is not a setting."""

HEAD_CHUNK, HEAD_NUMBERS = 12_000, 1_200_000
"""The same for a linear head, whose gradients are never formed: so many clients, or fewer where
their records hold more numbers than this, a few megabytes. There is little else to do for a chunk
beside its arithmetic."""

REPORT_BLOCK_NUMBERS = 250_000
"""Reports are formed for as many clients as hold about this many numbers: a megabyte, which stays
in the processor's cache from gradient to sum. Like the chunk it fixes the order of draws."""


class Reports(Enum):
    """Whether each client's report is drawn, or only the sum that the analyzer uses."""

    EACH = "each"
    SUM = "sum"


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """The analyzer's share of one chunk: the sum of the estimates, and a few plain statistics."""

    estimate_sum: Tensor
    clients: int
    loss_sum: float
    clipped: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """One unit of work: which clients, and the seed of all that is random in it."""

    clients: Clients
    seed: tuple[int, ...]


def set_parameters(module: nn.Module, flat: Tensor) -> None:
    """Copy a flat vector into the module's parameters."""
    with torch.no_grad():
        for p, piece in pieces(module, flat):
            p.copy_(piece)


def pieces(module: nn.Module, flat: Tensor) -> Iterator[tuple[nn.Parameter, Tensor]]:
    """Each parameter of a module with its part of a flat vector, in its shape."""
    parameters = list(module.parameters())
    parts = torch.split(flat, [p.numel() for p in parameters])
    return ((p, part.view_as(p)) for p, part in zip(parameters, parts, strict=True))


def get_parameters(module: nn.Module) -> Tensor:
    """The module's parameters as one flat vector (a copy)."""
    return torch.cat([p.detach().flatten() for p in module.parameters()]).cpu()


@dataclass
class ClientWork:
    """Everything a worker needs to play the clients of any chunk.

    The model (module) at the parameters of the round, a loss per record, whose data is whose (fleet), and what makes
    reports, whose `clip` bounds a gradient's norm. `reports` says whether every report is drawn or only their sum,
    `per_tensor` whether each parameter tensor is clipped to an equal share of the norm, `local` which steps a client
    takes on its own; None reports the gradient itself. Gradients are computed on a device; what leaves it is the sum.
    """

    module: nn.Module
    loss: Loss
    fleet: Fleet
    randomizer: VectorRandomizer
    reports: Reports = Reports.SUM
    per_tensor: bool = False
    local: LocalSteps | None = None
    device: str | torch.device = "cpu"

    def __post_init__(self) -> None:
        self.module.to(self.device)
        if self.per_tensor and self.randomizer.norm != 2:
            raise Superfluous("per_tensor", True, f"leave it out: {self.randomizer.describe()} clips another norm")
        if self.reports is Reports.SUM and not isinstance(self.randomizer, SummableRandomizer):
            raise InvalidParameter("reports", "sum", f"'each': a sum of {self.randomizer.describe()} has no short cut")
        self._engine: GradientEngine | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_engine": None}  # engines hold closures; a worker makes its own

    def chunks(self, cohort: Clients, seed: tuple[int, ...]) -> list[Chunk]:
        """Cut a cohort, with a seed for each chunk; an empty cohort gives no chunk."""
        size = CLIENT_CHUNK
        plain = self.local is None and not self.fleet.many_records
        if plain and LinearHeadGradients.supports(self.module, self.loss):
            width = max(p.shape[-1] for p in self.module.parameters() if p.ndim == 2)
            size = max(CLIENT_CHUNK, min(HEAD_CHUNK, HEAD_NUMBERS // max(width, 1)))
            cohort = np.sort(cohort)  # a sum has no order; neighbours in memory are read faster
        starts = range(0, len(cohort), size)
        return [Chunk(cohort[s : s + size], (*seed, i)) for i, s in enumerate(starts)]

    def chunk(self, chunk: Chunk) -> ChunkResult:
        """Run one chunk at the module's present parameters."""
        inputs, targets, mask = self.fleet.records(chunk.clients)
        inputs, targets = inputs.to(self.device), targets.to(self.device)
        mask = None if mask is None else mask.to(self.device)
        if self._engine is None:
            self._engine = self._make_engine(inputs, targets, mask)
        gradients = self._engine.chunk(inputs, targets, mask)
        source = SeededSource(chunk.seed, arrays="torch")
        scale, norms = self._per_tensor_scale(gradients)
        if not bool(torch.isfinite(norms).all()):
            raise NumericalFailure("a client's gradient is not finite; lower learning_rate")
        if self.reports is Reports.SUM:
            total = self._sum(gradients, scale, norms, source)
            clipped = int((norms > self.randomizer.clip).sum())
        else:
            total, clipped = self._reported(gradients, scale, source)
        return ChunkResult(total, len(chunk.clients), float(gradients.losses.sum()), clipped)

    def dummies(self, count: int, seed: tuple[int, ...]) -> Tensor:
        """The sum for a count of clients that hold zeros: the dummy updates of random check-ins, from a seed."""
        zeros = torch.zeros(count, count_parameters(self.module))
        return self._estimates(zeros, SeededSource(seed, arrays="torch"))

    def _estimates(self, rows: Tensor, source: SeededSource) -> Tensor:
        """One report for each row; the sum of what the analyzer reads from them."""
        summed = self.randomizer.sum_estimates(self.randomizer.randomize(rows, source))
        return torch.as_tensor(summed, dtype=torch.float32)

    def _make_engine(self, inputs: Tensor, targets: Tensor, mask: Tensor | None) -> GradientEngine:
        if self.local is not None:
            return VmapGradients(self.module, self.loss, self.local)
        first = (inputs[:, 0], targets[:, 0]) if mask is not None else (inputs, targets)
        return client_gradients(self.module, self.loss, *first, many_records=self.fleet.many_records)

    def _reported(self, gradients: ChunkGradients, scale: Tensor, source: SeededSource) -> tuple[Tensor, int]:
        """The sum of the reports' estimates, and how many vectors were longer than the clip."""
        size, clients, clipped = count_parameters(self.module), len(scale), 0
        block, total = max(1, REPORT_BLOCK_NUMBERS // size), torch.zeros(size)
        for start in range(0, clients, block):
            rows = gradients.matrix(scale, start, start + block).cpu()
            lengths = torch.linalg.vector_norm(rows, ord=self.randomizer.norm, dim=1)
            clipped += int((lengths > self.randomizer.clip).sum())
            total += self._estimates(rows, source)
        return total, clipped

    def _per_tensor_scale(self, gradients: ChunkGradients) -> tuple[Tensor, Tensor]:
        """Weights (clients, tensors) before the randomizer's own clip, and the norms they leave.

        Per-tensor clipping gives each of m parameter tensors an equal share clip/√m of the norm, so that no tensor
        crowds out the others; the whole then has norm at most clip.
        """
        squared = gradients.squared_norms
        scale = torch.ones_like(squared)
        if self.per_tensor:
            share = self.randomizer.clip / squared.shape[1] ** 0.5
            scale = share / squared.sqrt().clamp(min=share)
        return scale, (squared * scale * scale).sum(dim=1).sqrt()

    def _sum(self, gradients: ChunkGradients, scale: Tensor, norms: Tensor, source: SeededSource) -> Tensor:
        assert isinstance(self.randomizer, SummableRandomizer)
        size = count_parameters(self.module)
        drawn = self.randomizer.summed(norms.cpu().double().numpy(), size, source)
        weights = torch.from_numpy(drawn.weights.astype(np.float32)).to(self.device)
        total = gradients.weighted_sum(scale * weights[:, None]).cpu()
        noise: Tensor = source.normal((size,))
        return total + noise * drawn.noise_deviation
