"""Images that nobody took: dead leaves, for public directions where no public images are at hand.

Discs and boxes of random size, place and colour fall onto each other (the model of Matheron, with
radii that follow a power law as objects in photographs do). Edges, occlusion, shading and channels
that go together are what the first layers of vision respond to, so principal components of these
images serve photographs. They are a function of a seed and enter no record of anybody; number and
smallest size of the leaves were set by eye beside twenty training images of CIFAR-10.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.data.datasets import Dataset

NAME = "dead-leaves"
IMAGES = 2_500
_LAYERS = 12
_SMALLEST = 2.0  # radius of a leaf in pixels; the largest is the side
_BLOCK = 500  # images painted at once
_TINTS = (1.0, 0.6, 1.2)  # green varies least beside the others, as it does in light


def dead_leaves(count: int, channels: int = 3, side: int = 32, seed: int = 0) -> Tensor:
    """Images (count, channels, side, side), around zero.

    Args:
        count: number of images.
        channels: 1 for grey, 3 for colours.
        side: pixels.
        seed: of everything in them.
    """
    if channels not in (1, 3):
        raise InvalidParameter("channels", channels, "1 or 3")
    chance = torch.Generator().manual_seed(seed)
    starts = range(0, count, _BLOCK)
    return torch.cat([_painted(min(_BLOCK, count - s), channels, side, chance) for s in starts])


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
        radius = (_SMALLEST**-2 + uniform(1, 1) * (side**-2 - _SMALLEST**-2)) ** -0.5
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


def leaves_like(data: Dataset) -> Dataset:
    """Public images of the shape of somebody's records; nothing else of them is looked at.

    Args:
        data: square images with one or three channels.
    """
    shape = data.shape
    if len(shape) != 3 or shape[0] not in (1, 3) or shape[1] != shape[2]:
        raise InvalidParameter("public", NAME, "used with square images of one or three channels")
    images, nothing = dead_leaves(IMAGES, shape[0], shape[1]), torch.zeros(IMAGES, dtype=torch.long)
    return Dataset(NAME, images, nothing, images[:1], nothing[:1])
