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
    principal_components,
    random_projection,
    unit_rows,
)
from dpcheckin.learning.names import FEATURES
from dpcheckin.options import listed

_VERSION = 1  # raised when a transform changes: what was kept by an older one is not taken
_BATCH = 25  # what a batch makes stays in the processor's cache
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
    """

    name: str
    components: int | None = None
    public: Dataset | None = None

    def __post_init__(self) -> None:
        if self.name not in FEATURES or self.name == "none":
            allowed = tuple(name for name in FEATURES if name != "none")
            raise InvalidParameter("features", self.name, listed(allowed))
        if self.components is not None and self.components < 1:
            raise InvalidParameter("components", self.components, "at least 1")
        if self.public is not None and self.components is None:
            raise InvalidParameter("components", None, "a number when public data is given")

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
        digest = hashlib.sha256(f"{_VERSION} {self.name} {self.components}".encode())
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
    file = cache_folder() / f"{data.name}-{recipe.name}-{recipe.key(data)}.npz"
    if file.is_file():
        try:
            with open(file, "rb") as stream, np.load(stream, allow_pickle=False) as kept:
                train, test = torch.from_numpy(kept["train"]), torch.from_numpy(kept["test"])
            progress(f"features of {data.name} read from {file}")
            return replace(data, train_inputs=train, test_inputs=test)
        except (OSError, ValueError, KeyError, BadZipFile):
            progress(f"{file} cannot be read; features are computed again")
    began = time.perf_counter()
    transform = recipe.transform()
    reduce = _reduction(recipe, transform, data, progress)
    train = _rows(data.train_inputs, transform, reduce, f"{data.name}, training", progress)
    test = _rows(data.test_inputs, transform, reduce, f"{data.name}, test", progress)
    _keep(file, train, test)
    seconds = time.perf_counter() - began
    progress(
        f"{len(train) + len(test):,} records became {train.shape[1]} features each in "
        f"{seconds:.0f} s; kept in {file}"
    )
    return replace(data, train_inputs=train, test_inputs=test)


def _reduction(
    recipe: FeatureRecipe, transform: Transform, data: Dataset, progress: Progress
) -> Callable[[Tensor], Tensor]:
    if recipe.components is None:
        return unit_rows
    if recipe.public is None:
        width = transform(data.train_inputs[:1]).shape[1]
        projection: Projection = random_projection(width, recipe.components)
        return projection
    sample = recipe.public.train_inputs[:20_000]
    public = _rows(sample, transform, lambda rows: rows, f"{recipe.public.name}, public", progress)
    progress(f"principal components of {recipe.public.name}: {recipe.components}")
    return principal_components(public, recipe.components)


def _rows(
    inputs: Tensor,
    transform: Transform,
    reduce: Callable[[Tensor], Tensor],
    what: str,
    progress: Progress,
) -> Tensor:
    found: list[Tensor] = []
    told = time.monotonic()
    for start in range(0, len(inputs), _BATCH):
        found.append(reduce(transform(inputs[start : start + _BATCH])))
        if time.monotonic() - told > 2.0 or start == 0:
            told = time.monotonic()
            progress(f"features of {what}: {start + len(found[-1]):,} of {len(inputs):,}")
    return torch.cat(found).contiguous()


def _keep(file: Path, train: Tensor, test: Tensor) -> None:
    """Written beside and renamed: a file that is there is whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(f".{os.getpid()}.new")
    with open(fresh, "wb") as stream:
        np.savez(stream, train=train.numpy(), test=test.numpy())
    os.replace(fresh, file)
