"""A data set turned into features, once: computed in batches, reduced, and kept on disk.

What is kept is found again by a digest of the records and of everything that went into it. All of it is a function of
one client's record and of public data; nothing is charged for it.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from dpcheckin.errors import InvalidParameter
from dpcheckin.files import replacing
from dpcheckin.learning.data.datasets import Dataset
from dpcheckin.learning.features.reduction import (
    Projection,
    most_components,
    principal_components,
    random_projection,
    telling_components,
    unit_rows,
    whitened,
)
from dpcheckin.learning.options import FEATURES
from dpcheckin.options import listed

_VERSIONS = {"scattering": 3, "efficientnet-lite0": 3}
"""Raised when a transform changes: what was kept by an older one is not taken."""
_COSTLY = ("efficientnet-lite0",)
"""Features kept whole before they are reduced: another number of components then costs seconds."""
_DIRECTIONS = 1000
"""Principal components kept at least: fewer of them are the first of these, and cost nothing."""
_PUBLIC = 3_000  # public records that give them
_TELLING = 200
"""The same where public images come in groups: directions that tell things apart are few."""
_BATCH = 10  # what a batch makes stays in the processor's cache
_BLOCK = 200  # records reduced at once: the matrix of directions is read from memory each time
_PARTS = ("train", "test", "deviations")
Rows = tuple[Tensor, Tensor, Tensor]
"""Training rows, test rows, and the public deviation of each of their numbers."""
Transform = Callable[[Tensor], Tensor]
Progress = Callable[[str], None]


def silent(_: str) -> None:
    """Somebody who does not want to be told."""


@dataclass(frozen=True)
class FeatureRecipe:
    """Which features, and how many numbers of them are kept."""

    name: str
    components: int | None = None
    """Numbers a record is reduced to; None keeps all."""
    public: Dataset | None = None
    """Data whose principal components are used; None reduces by a random projection."""
    whitening: float = 0.0
    """Power of the public deviation by which each component is divided, 0 to 1."""
    device: str | torch.device = "cpu"
    """Where they are computed; what is kept does not depend on it, but for rounding."""
    together: int = 1
    """Neighbouring public images that show the same thing; from 2 on the directions that tell
    things apart are used in place of principal components."""

    def __post_init__(self) -> None:
        if self.name not in FEATURES or self.name == "none":
            allowed = tuple(name for name in FEATURES if name != "none")
            raise InvalidParameter("features", self.name, listed(allowed))
        if self.components is not None and self.components < 1:
            raise InvalidParameter("components", self.components, "at least 1")
        if self.public is not None and self.components is None:
            raise InvalidParameter("components", None, "a number when public data is given")
        if not 0 <= self.whitening <= 1:
            raise InvalidParameter("whitening", self.whitening, "from 0 to 1")
        if self.whitening and self.public is None:
            raise InvalidParameter("whitening", self.whitening, "0 without public data")

    def transform(self) -> Transform:
        """The map from images to rows, before any reduction."""
        if self.name == "scattering":
            from dpcheckin.learning.features.transforms import scattering

            return lambda images: scattering(images.to(self.device)).cpu()
        from dpcheckin.learning.features.transforms import imagenet_features, load_network

        network = load_network().to(self.device)
        return lambda images: imagenet_features(network, images.to(self.device)).cpu()

    def key(self, data: Dataset) -> str:
        """A digest of the records and of all that is done to them."""
        digest = hashlib.sha256(f"{_VERSIONS[self.name]} {self.name} {self.components}".encode())
        digest.update(f" {self.together}".encode() if self.together > 1 else b"")
        parts = [data.train_inputs, data.test_inputs]
        parts += [self.public.train_inputs] if self.public is not None else []
        for part in parts:
            digest.update(str(tuple(part.shape)).encode())
            digest.update(part.contiguous().numpy().tobytes())
        return digest.hexdigest()[:32]


def cache_folder() -> Path:
    """Where features are kept: below XDG_CACHE_HOME, or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "dpcheckin" / "features"


def featured(data: Dataset, recipe: FeatureRecipe, progress: Progress = silent) -> Dataset:
    """The records of data as rows of length one by a recipe, from disk if made before; progress is told in lines."""
    count = recipe.components
    if count is not None and recipe.name in _COSTLY:
        train, test, deviations = _reduced(data, recipe, count, progress)
    elif count is not None and recipe.public is not None:
        train, test, deviations = _first_directions(data, recipe, count, progress)
    else:
        train, test, deviations = _kept_or_made(data, recipe, progress)
    return replace(
        data,
        train_inputs=whitened(train, deviations, recipe.whitening),
        test_inputs=whitened(test, deviations, recipe.whitening),
    )


def _kept_or_made(data: Dataset, recipe: FeatureRecipe, progress: Progress) -> Rows:
    """Rows before whitening, which costs nothing and is not kept."""
    file = cache_folder() / f"{data.name}-{recipe.name}-{recipe.key(data)}.npz"
    if file.is_file():
        try:
            with open(file, "rb") as stream, np.load(stream, allow_pickle=False) as kept:
                train, test, deviations = (torch.from_numpy(kept[name]) for name in _PARTS)
            progress(f"features of {data.name} read from {file}")
            return train, test, deviations
        except (OSError, ValueError, KeyError, BadZipFile):
            progress(f"{file} cannot be read; features are computed again")
    began = time.perf_counter()
    transform = recipe.transform()
    reduce, deviations = _reduction(recipe, transform, data, progress)
    train = _rows(data.train_inputs, transform, reduce, f"{data.name}, training", progress)
    test = _rows(data.test_inputs, transform, reduce, f"{data.name}, test", progress)
    file.parent.mkdir(parents=True, exist_ok=True)
    arrays = (part.numpy() for part in (train, test, deviations))
    with replacing(file, "wb") as fresh:
        np.savez(fresh, allow_pickle=False, **dict(zip(_PARTS, arrays, strict=True)))
    seconds = time.perf_counter() - began
    progress(
        f"{len(train) + len(test):,} records became {train.shape[1]} features each in {seconds:.0f} s; kept in {file}"
    )
    return train, test, deviations


def _first_directions(data: Dataset, recipe: FeatureRecipe, count: int, progress: Progress) -> Rows:
    """The first of the principal components that are kept, each row of length one again."""
    least = _DIRECTIONS if recipe.together == 1 else _TELLING
    widest = replace(recipe, components=max(least, count))
    train, test, deviations = _kept_or_made(data, widest, progress)
    if count > train.shape[1]:
        raise InvalidParameter("components", count, f"from 1 to {train.shape[1]}")
    return unit_rows(train[:, :count]), unit_rows(test[:, :count]), deviations[:count]


def _reduced(data: Dataset, recipe: FeatureRecipe, count: int, progress: Progress) -> Rows:
    """Fewer numbers of features that are kept whole, each record's scaled to length one before."""
    whole, public = FeatureRecipe(recipe.name), None
    train, test, _ = _kept_or_made(data, whole, progress)
    if recipe.public is not None:
        public, _, _ = _kept_or_made(recipe.public, whole, progress)
    projection = _projection(recipe, train.shape[1], public, count)
    return projection(train), projection(test), projection.deviations


def _reduction(
    recipe: FeatureRecipe, transform: Transform, data: Dataset, progress: Progress
) -> tuple[Transform, Tensor]:
    """What is done to the rows of a transform, and the public deviations of what comes of it."""
    if recipe.components is None:
        return unit_rows, torch.ones(1)
    count, width, public = recipe.components, transform(data.train_inputs[:1]).shape[1], None
    if recipe.public is not None:
        name = recipe.public.name
        sample = recipe.public.train_inputs[: _PUBLIC if recipe.together == 1 else None]
        public = _rows(sample, transform, lambda rows: rows, f"{name}, public", progress)
        count = min(count, most_components(public) // recipe.together)
        progress(f"components of {name}: {count:,}")
    projection = _projection(recipe, width, public, count)
    return projection, projection.deviations


def _projection(recipe: FeatureRecipe, width: int, public: Tensor | None, count: int) -> Projection:
    """Random directions, principal components of public rows, or what tells their groups apart."""
    if public is None:
        return random_projection(width, count)
    if recipe.together == 1:
        return principal_components(public, count)
    return telling_components(public, recipe.together, count)


def _rows(inputs: Tensor, transform: Transform, reduce: Transform, what: str, progress: Progress) -> Tensor:
    blocks: list[Tensor] = []
    reported = time.monotonic()
    for start in range(0, len(inputs), _BLOCK):
        batches = torch.split(inputs[start : start + _BLOCK], _BATCH)
        blocks.append(reduce(torch.cat([transform(batch) for batch in batches])))
        if time.monotonic() - reported > 2.0 or start == 0:
            reported = time.monotonic()
            progress(f"features of {what}: {start + len(blocks[-1]):,} of {len(inputs):,}")
    return torch.cat(blocks).contiguous()
