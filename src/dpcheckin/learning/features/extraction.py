"""A data set turned into features, once: computed in batches, reduced, and kept on disk.

What is kept is found again by a digest of the records and of everything that went into it, so
another data set, transform or number of components is computed anew. All of it is a function of
one client's record and of public data; `settings` of a run name it and nothing is charged for it.
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
from dpcheckin.learning.names import FEATURES
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
    """Which features, and how many numbers of them are kept.

    Args:
        name: 'scattering' or 'efficientnet-lite0'.
        components: numbers a record is reduced to; None keeps all.
        public: data whose principal components are used; None reduces by a random projection.
        together: neighbouring public images that show the same thing; from 2 on the directions that
            tell things apart are used in place of principal components.
        whitening: power of the public deviation by which each component is divided, 0 to 1.
    """

    name: str
    components: int | None = None
    public: Dataset | None = None
    whitening: float = 0.0
    together: int = 1

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
        if self.together < 1:
            raise InvalidParameter("together", self.together, "at least 1")

    def transform(self) -> Transform:
        """The map from images to rows, before any reduction."""
        if self.name == "scattering":
            from dpcheckin.learning.features.scattering import scattering

            return scattering
        from dpcheckin.learning.features.imagenet import imagenet_features, load_network

        network = load_network()
        return lambda images: imagenet_features(network, images)

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
    """The same records as rows of features of length one, from disk if they were made before.

    Args:
        data: images with their classes.
        recipe: which features.
        progress: told in a line what is going on, and what it cost.
    """
    if recipe.name in _COSTLY and recipe.components is not None:
        train, test, deviations = _reduced(data, recipe, progress)
    elif recipe.public is not None and recipe.components is not None:
        train, test, deviations = _first_directions(data, recipe, progress)
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
    _keep(file, train, test, deviations)
    seconds = time.perf_counter() - began
    progress(
        f"{len(train) + len(test):,} records became {train.shape[1]} features each in "
        f"{seconds:.0f} s; kept in {file}"
    )
    return train, test, deviations


def _first_directions(data: Dataset, recipe: FeatureRecipe, progress: Progress) -> Rows:
    """The first of the principal components that are kept, each row of length one again."""
    assert recipe.components is not None
    least = _DIRECTIONS if recipe.together == 1 else _TELLING
    widest = replace(recipe, components=max(least, recipe.components))
    train, test, deviations = _kept_or_made(data, widest, progress)
    if recipe.components > train.shape[1]:
        raise InvalidParameter("components", recipe.components, f"from 1 to {train.shape[1]}")
    some = slice(0, recipe.components)
    return unit_rows(train[:, some]), unit_rows(test[:, some]), deviations[some]


def _reduced(data: Dataset, recipe: FeatureRecipe, progress: Progress) -> Rows:
    """Fewer numbers of features that are kept whole, each record's scaled to length one before."""
    assert recipe.components is not None
    whole = FeatureRecipe(recipe.name)
    train, test, _ = _kept_or_made(data, whole, progress)
    if recipe.public is None:
        reduce = random_projection(train.shape[1], recipe.components)
    else:
        public, _, _ = _kept_or_made(recipe.public, whole, progress)
        reduce = _directions(recipe, public, recipe.components)
    return reduce(train), reduce(test), reduce.deviations


def _reduction(
    recipe: FeatureRecipe, transform: Transform, data: Dataset, progress: Progress
) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """What is done to the rows of a transform, and the public deviations of what comes of it."""
    if recipe.components is None:
        return unit_rows, torch.ones(1)
    projection: Projection
    if recipe.public is None:
        width = transform(data.train_inputs[:1]).shape[1]
        projection = random_projection(width, recipe.components)
        return projection, projection.deviations
    sample = recipe.public.train_inputs[: _PUBLIC if recipe.together == 1 else None]
    public = _rows(sample, transform, lambda rows: rows, f"{recipe.public.name}, public", progress)
    count = min(recipe.components, most_components(public) // recipe.together)
    progress(f"components of {recipe.public.name}: {count:,}")
    projection = _directions(recipe, public, count)
    return projection, projection.deviations


def _directions(recipe: FeatureRecipe, public: Tensor, count: int) -> Projection:
    """Principal components, or what tells things apart where public rows come in groups."""
    if recipe.together == 1:
        return principal_components(public, count)
    return telling_components(public, recipe.together, count)


def _rows(
    inputs: Tensor,
    transform: Transform,
    reduce: Callable[[Tensor], Tensor],
    what: str,
    progress: Progress,
) -> Tensor:
    found: list[Tensor] = []
    told = time.monotonic()
    for start in range(0, len(inputs), _BLOCK):
        batches = torch.split(inputs[start : start + _BLOCK], _BATCH)
        found.append(reduce(torch.cat([transform(batch) for batch in batches])))
        if time.monotonic() - told > 2.0 or start == 0:
            told = time.monotonic()
            progress(f"features of {what}: {start + len(found[-1]):,} of {len(inputs):,}")
    return torch.cat(found).contiguous()


def _keep(file: Path, *parts: Tensor) -> None:
    """Written beside and renamed: a file that is there is whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(f".{os.getpid()}.new")
    with open(fresh, "wb") as stream:
        arrays = dict(zip(_PARTS, (part.numpy() for part in parts), strict=True))
        np.savez(stream, allow_pickle=False, **arrays)
    os.replace(fresh, file)
