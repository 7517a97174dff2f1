"""Drawings that nobody made: random strokes, each drawn several times by an unsteady hand.

One to three curves a drawing, some beginning where the one before ended, centred and scaled into
the middle of the image as MNIST's digits are. Every drawing comes a few times: other slant, size,
place and thickness, and a hand that trembles. What the images of one drawing have in common is what
a writer meant, and how they differ is what a writer did not: directions that tell the one from the
other serve handwriting of any kind. They are a function of a seed and enter no record of anybody.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.data.datasets import Dataset

NAME = "strokes"
DRAWINGS = 4_000
TIMES = 3
"""Images of one drawing; they are neighbours."""
_CURVES = 3  # of a drawing at most
_POINTS = 48  # of a curve
_JOINED = 0.6  # how often a curve begins where the one before ended
_TREMBLE = 0.12  # of the points that bend a curve; the sheet is two wide
_SKEW, _SLANT = 0.12, 0.15  # deviations of turn and stretch, and of slant beside them
_BOX, _SHIFT = 19 / 28, 0.7 / 28  # of the side: longest extent, deviation of the place
_THIN, _THICK = 0.8 / 28, 1.3 / 28  # of the side: half the width of a stroke
_BLOCK = 20  # drawings made at once


def strokes(drawings: int, times: int = TIMES, side: int = 28, seed: int = 0) -> Tensor:
    """Images (drawings · times, 1, side, side) from 0 to 1, those of one drawing together.

    Args:
        drawings: how many different ones.
        times: images of each.
        side: pixels.
        seed: of everything in them.
    """
    if drawings < 1 or times < 1:
        raise InvalidParameter("drawings", (drawings, times), "at least 1, at least once")
    chance = torch.Generator().manual_seed(seed)
    starts = range(0, drawings, _BLOCK)
    return torch.cat([_drawn(min(_BLOCK, drawings - s), times, side, chance) for s in starts])


def _drawn(count: int, times: int, side: int, chance: torch.Generator) -> Tensor:
    meant = 2 * torch.rand(count, _CURVES, 4, 2, generator=chance) - 1
    meant[..., 1] *= 0.5 + 0.5 * torch.rand(count, 1, 1, generator=chance)  # higher than wide
    joined = torch.rand(count, _CURVES, 1, generator=chance) < _JOINED
    curves = torch.randint(1, _CURVES + 1, (count, 1), generator=chance)
    there = torch.arange(_CURVES) < curves
    images = [_once(meant, joined, there, side, chance) for _ in range(times)]
    return torch.stack(images, dim=1).flatten(0, 1)


def _once(
    meant: Tensor, joined: Tensor, there: Tensor, side: int, chance: torch.Generator
) -> Tensor:
    """One image of each drawing, (drawings, 1, side, side)."""
    count = len(meant)

    def normal(*shape: int) -> Tensor:
        return torch.randn(count, *shape, generator=chance)

    bends = meant + _TREMBLE * normal(_CURVES, 4, 2)
    for k in range(1, _CURVES):
        bends[:, k, 0] = torch.where(joined[:, k], bends[:, k - 1, 3], bends[:, k, 0])
    along = torch.linspace(0, 1, _POINTS)
    rest = 1 - along
    cubic = torch.stack([rest**3, 3 * along * rest**2, 3 * along**2 * rest, along**3], dim=1)
    skew = torch.eye(2) + _SKEW * normal(2, 2)
    skew[:, 1, 0] += _SLANT * normal()
    points = cubic @ bends @ skew[:, None]  # (drawings, curves, points, 2)
    # a curve that is not there lies on the first, where it shows no more
    points = torch.where(there[:, :, None, None], points, points[:, :1]).flatten(1, 2)
    low, high = points.amin(dim=1), points.amax(dim=1)
    extent = (high - low).amax(dim=1).clamp(min=0.3)
    weights = there.float().repeat_interleave(_POINTS, dim=1)[:, :, None]
    centre = (points * weights).sum(dim=1) / weights.sum(dim=1)
    points = (points - centre[:, None]) * (_BOX * side / extent)[:, None, None]
    points = points + (side - 1) / 2 + _SHIFT * side * normal(1, 2)
    grid = torch.arange(side, dtype=torch.float32)
    pixels = torch.cartesian_prod(grid, grid).expand(count, -1, -1)
    width = side * (_THIN + (_THICK - _THIN) * torch.rand(count, 1, generator=chance))
    nearest = torch.cdist(pixels, points).amin(dim=2)
    return (width - nearest + 0.5).clamp(0, 1).view(count, 1, side, side)  # soft over one pixel


def strokes_like(data: Dataset) -> Dataset:
    """Public drawings of the shape of somebody's records; nothing else of them is looked at.

    Args:
        data: square images with one channel.
    """
    shape = data.shape
    if len(shape) != 3 or shape[0] != 1 or shape[1] != shape[2]:
        raise InvalidParameter("public", NAME, "used with square images of one channel")
    images = strokes(DRAWINGS, TIMES, shape[1])
    nothing = torch.zeros(len(images), dtype=torch.long)
    return Dataset(NAME, images, nothing, images[:1], nothing[:1])
