"""Images that nobody took and drawings that nobody made, functions of a seed, for where no public images are at hand.

Dead leaves: discs and boxes of random size, place and colour fall onto each other (Matheron's model, with radii that
follow a power law). Edges, occlusion and shading are what the first layers of vision respond to, so principal
components of these images serve photographs. Strokes: one to three curves a drawing, centred and scaled as MNIST's
digits are, a few times each with other slant, size, place, thickness and tremble: what images of one drawing have in
common is what a writer meant, and directions that tell that from the rest serve handwriting of any kind.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.data.datasets import Dataset

LEAVES, STROKES = MADE_UP = ("dead-leaves", "strokes")

IMAGES = 2_500  # of dead leaves
_LAYERS = 12
_SMALLEST_LEAF = 2.0  # radius in pixels; the largest is the side
_IMAGES_AT_ONCE = 500
_TINTS = (1.0, 0.6, 1.2)  # green varies least beside the others, as it does in light

DRAWINGS = 4_000
TIMES = 3
"""Images of one drawing; they are neighbours."""
_DRAWINGS_AT_ONCE = 20
_CURVES = 3  # of a drawing at most
_POINTS = 48  # of a curve
_JOINED = 0.6  # how often a curve begins where the one before ended
_TREMBLE = 0.12  # of the points that bend a curve; the sheet is two wide
_SKEW, _SLANT = 0.12, 0.15  # deviations of turn and stretch, and of slant beside them
_BOX, _SHIFT = 19 / 28, 0.7 / 28  # of the side: longest extent, deviation of the place
_THIN, _THICK = 0.8 / 28, 1.3 / 28  # of the side: half the width of a stroke


def made_up(name: str, data: Dataset) -> Dataset:
    """Public images of a name, in the shape of somebody's data; nothing else of them is looked at."""
    shape, grey = data.shape, name == STROKES
    if len(shape) != 3 or shape[0] not in ((1,) if grey else (1, 3)) or shape[1] != shape[2]:
        channels = "one channel" if grey else "one or three channels"
        raise InvalidParameter("public", name, f"used with square images of {channels}")
    side = shape[1]
    images = strokes(DRAWINGS, TIMES, side) if grey else dead_leaves(IMAGES, shape[0], side)
    nothing = torch.zeros(len(images), dtype=torch.long)
    return Dataset(name, images, nothing, images[:1], nothing[:1])


def dead_leaves(count: int, channels: int = 3, side: int = 32, seed: int = 0) -> Tensor:
    """Images (count, channels, side, side), around zero, from a seed."""
    if channels not in (1, 3):
        raise InvalidParameter("channels", channels, "1 or 3")
    chance = torch.Generator().manual_seed(seed)
    sizes = [min(_IMAGES_AT_ONCE, count - s) for s in range(0, count, _IMAGES_AT_ONCE)]
    return torch.cat([_painted(size, channels, side, chance) for size in sizes])


def _painted(count: int, channels: int, side: int, chance: torch.Generator) -> Tensor:
    def uniform(*shape: int) -> Tensor:
        return torch.rand(count, *shape, generator=chance)

    def normal(*shape: int) -> Tensor:
        return torch.randn(count, *shape, generator=chance)

    tints = torch.tensor(_TINTS if channels == 3 else (0.0,)).view(1, -1, 1, 1)
    light = 0.1 * normal(channels, 1, 1)  # of the whole image
    grid = torch.arange(side, dtype=torch.float32)
    down, along = torch.meshgrid(grid, grid, indexing="ij")
    images = torch.zeros(count, channels, side, side)
    for layer in range(_LAYERS):
        # density r^-3 between the smallest radius and the side; the first leaf is the background
        radius = (_SMALLEST_LEAF**-2 + uniform(1, 1) * (side**-2 - _SMALLEST_LEAF**-2)) ** -0.5
        radius = radius if layer else torch.full_like(radius, 4.0 * side)
        y, x = down - side * uniform(1, 1), along - side * uniform(1, 1)
        turn, narrow = math.pi * uniform(1, 1), 0.4 + 0.6 * uniform(1, 1)
        first = y * turn.cos() + x * turn.sin()
        second = x * turn.cos() - y * turn.sin()
        a, b = first / radius, second / (radius * narrow)
        round_ = uniform(1, 1) < 0.5
        distance = torch.where(round_, (a**2 + b**2).sqrt(), torch.maximum(a.abs(), b.abs()))
        cover = ((1 - distance) * radius + 0.5).clamp(0, 1)[:, None]  # soft over one pixel
        colour = 0.28 * normal(1, 1, 1) + 0.1 * normal(channels, 1, 1) * tints + light
        shading = 0.15 * (normal(1, 1) * first + normal(1, 1) * second)[:, None] / side
        grain = 0.03 * normal(1, 1, 1).abs() * normal(1, side, side) if layer % 4 == 0 else 0
        images = images * (1 - cover) + (colour + shading + grain) * cover
    return images


def strokes(drawings: int, times: int = TIMES, side: int = 28, seed: int = 0) -> Tensor:
    """Images (drawings · times, 1, side, side) from 0 to 1, those of one drawing together, from a seed."""
    if drawings < 1 or times < 1:
        raise InvalidParameter("drawings", (drawings, times), "at least 1, at least once")
    chance = torch.Generator().manual_seed(seed)
    sizes = [min(_DRAWINGS_AT_ONCE, drawings - s) for s in range(0, drawings, _DRAWINGS_AT_ONCE)]
    return torch.cat([_drawn(size, times, side, chance) for size in sizes])


def _drawn(count: int, times: int, side: int, chance: torch.Generator) -> Tensor:
    meant = 2 * torch.rand(count, _CURVES, 4, 2, generator=chance) - 1
    meant[..., 1] *= 0.5 + 0.5 * torch.rand(count, 1, 1, generator=chance)  # higher than wide
    joined = torch.rand(count, _CURVES, 1, generator=chance) < _JOINED
    curves = torch.randint(1, _CURVES + 1, (count, 1), generator=chance)
    there = torch.arange(_CURVES) < curves
    images = [_once(meant, joined, there, side, chance) for _ in range(times)]
    return torch.stack(images, dim=1).flatten(0, 1)


def _once(meant: Tensor, joined: Tensor, there: Tensor, side: int, chance: torch.Generator) -> Tensor:
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
