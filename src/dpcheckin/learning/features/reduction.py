"""Fewer numbers a record, chosen without looking at private data.

Fewer features mean fewer parameters of the head, and noise grows with their number. Every row is scaled to length one
at the end, by itself: the gradient of a linear head is then bounded before it is clipped.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dpcheckin.errors import InvalidParameter

_SAMPLE = 20_000  # public records whose components are taken: more change nothing that is seen
_RIDGE = 0.5  # added to what varies in one thing, over its mean: rare directions are not trusted
_SPARE, _TURNS = 100, 12  # of the iteration that finds directions: more of them, and how often


@dataclass(frozen=True)
class Projection:
    """An affine map to fewer dimensions (the columns of `axes`), then length one."""

    centre: Tensor
    axes: Tensor
    deviations: Tensor
    """Of the public rows along each direction; ones without public rows."""

    def __call__(self, rows: Tensor) -> Tensor:
        """Project rows and scale each to length one (a row at the centre stays zero)."""
        return unit_rows((rows - self.centre) @ self.axes)


def whitened(rows: Tensor, deviations: Tensor, power: float) -> Tensor:
    """Rows with each number divided by a power of its public deviation (deviations), then of length one.

    Directions of small variance tell classes apart as well as others do; left small, they need steps so large that the
    noise of all directions grows with them. Power 0 leaves the rows as they are, 1 gives public rows equal variance in
    all directions.
    """
    if power == 0:
        return rows
    return unit_rows(rows / deviations.clamp(min=1e-6 * float(deviations.max())) ** power)


def unit_rows(rows: Tensor) -> Tensor:
    """Each row divided by its length."""
    return torch.nn.functional.normalize(rows, dim=1)


def most_components(public: Tensor) -> int:
    """Directions in which public rows can differ from their mean."""
    return min(len(public[:_SAMPLE]) - 1, public.shape[1])


def principal_components(public: Tensor, count: int) -> Projection:
    """The `count` directions of largest variance of public rows."""
    rows = public[:_SAMPLE].double()
    most = most_components(rows)
    if not 1 <= count <= most:
        raise InvalidParameter("components", count, f"from 1 to {most}")
    centre = rows.mean(dim=0)
    centred = rows - centre
    wide = rows.shape[1] > rows.shape[0]  # then the products of rows are fewer than of columns
    values, vectors = torch.linalg.eigh(centred @ centred.T if wide else centred.T @ centred)
    values, axes = values[-count:].flip(0).clamp(min=0), vectors[:, -count:].flip(1)
    deviations = (values / len(rows)).sqrt()
    if wide:
        axes = torch.nn.functional.normalize(centred.T @ axes, dim=0)
    return Projection(centre.float(), _signed(axes).float(), deviations.float())


def telling_components(public: Tensor, together: int, count: int) -> Projection:
    """A count of directions in which things differ most, over how much images of the *same* thing do.

    Fisher's discriminant directions with every public thing a class of its own, whose `together` rows are neighbours.
    Each direction is scaled so that images of one thing have about deviation one in it; `deviations` are those of all
    images.
    """
    things, width = len(public) // together, public.shape[1]
    most = min(things - 1, width)
    if together < 2 or not 1 <= count <= most:
        raise InvalidParameter("components", count, f"from 1 to {most}")
    rows = public[: things * together]
    centre = rows.mean(dim=0)
    grouped = (rows - centre).view(things, together, width)
    within = (grouped - grouped.mean(dim=1, keepdim=True)).flatten(0, 1)
    spread = (within.T @ within).double() / (things * (together - 1))
    everything = grouped.flatten(0, 1)
    total = (everything.T @ everything).double() / len(rows)
    spread += _RIDGE * spread.diagonal().mean() * torch.eye(width, dtype=torch.float64)
    root = torch.linalg.cholesky(spread)
    half = torch.linalg.solve_triangular(root, total, upper=False)
    ratio = torch.linalg.solve_triangular(root, half.T.contiguous(), upper=False).float()
    values, vectors = _largest(ratio, count)
    axes = torch.linalg.solve_triangular(root.T.contiguous(), vectors, upper=True)
    return Projection(centre, _signed(axes).float(), values.clamp(min=0).sqrt().float())


def _largest(matrix: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest eigenvalues of a symmetric matrix and their vectors, by subspace iteration."""
    chance = torch.Generator().manual_seed(0)
    basis = torch.randn(len(matrix), min(count + _SPARE, len(matrix)), generator=chance)
    for _ in range(_TURNS):
        basis, _triangle = torch.linalg.qr(matrix @ basis)
    values, turned = torch.linalg.eigh((basis.T @ (matrix @ basis)).double())
    return values.flip(0)[:count], basis.double() @ turned.flip(1)[:, :count]


def _signed(axes: Tensor) -> Tensor:
    """The sign of a direction is the solver's whim: let its largest entry be positive."""
    return axes * axes.gather(0, axes.abs().argmax(dim=0, keepdim=True)).sign()


def random_projection(dimension: int, count: int, seed: int = 0) -> Projection:
    """A count of random directions (from a seed) in a space of this dimension, for when no public data is at hand."""
    if not 1 <= count <= dimension:
        raise InvalidParameter("components", count, f"from 1 to {dimension:,}")
    chance = torch.Generator().manual_seed(seed)
    gaussian = torch.randn(dimension, count, generator=chance, dtype=torch.float64)
    axes, _ = torch.linalg.qr(gaussian)
    return Projection(torch.zeros(dimension), axes.float(), torch.ones(count))
