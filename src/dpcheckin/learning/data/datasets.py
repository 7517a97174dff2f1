"""Datasets by name: the embedded digits, image sets in idx files, CIFAR, or a folder's .npz.

`digits` comes with scikit-learn. The others are looked for in `data_dir`, or else in `../shared/data` beside the
repository and in `~/.cache/dpcheckin`, then downloaded through torchvision when that is installed and there is a
network; otherwise one clear error says where files were looked for.
"""

from __future__ import annotations

import gzip
import pickle
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpcheckin.errors import DatasetMissing, InvalidParameter
from dpcheckin.learning.options import DATASETS

_IMAGES = {  # torchvision's class, mean and deviation of the pixels
    "mnist": ("MNIST", 0.1307, 0.3081),
    "fashion-mnist": ("FashionMNIST", 0.2860, 0.3530),
    "cifar10": ("CIFAR10", 0.4734, 0.2516),
    "cifar100": ("CIFAR100", 0.4782, 0.2682),
}
_CIFAR = {  # folder, files with training records and, last, with test records, key of the labels
    "cifar10": ("cifar-10-batches-py", [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"], b"labels"),
    "cifar100": ("cifar-100-python", ["train", "test"], b"fine_labels"),
}
_ARRAYS = ("train_inputs", "train_targets", "test_inputs", "test_targets")
_Parts = list[NDArray[Any]]
"""The arrays of a data set, in this order."""


@dataclass(frozen=True, repr=False)
class Dataset:
    """Training records and records to evaluate on, one row each, with their classes or rows of numbers as targets.

    The `owners` are the users of the training records, if known; `labels` what the classes are called, if anybody said.
    """

    name: str
    train_inputs: Tensor
    train_targets: Tensor
    test_inputs: Tensor
    test_targets: Tensor
    owners: NDArray[np.int64] | None = None
    labels: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """The data in a line, not its numbers."""
        kind = f"{self.outputs:,} {'numbers' if self.train_targets.is_floating_point() else 'classes'}"
        owners = "" if self.owners is None else f" of {len(np.unique(self.owners)):,} owners"
        records = f"{len(self.train_targets):,} records{owners}, each of shape {self.shape}, {kind}"
        return f"<{self.name}: {records}; {len(self.test_targets):,} to evaluate on>"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one record."""
        return tuple(self.train_inputs.shape[1:])

    @property
    def classes(self) -> int:
        """Number of classes."""
        if self.labels:
            return len(self.labels)
        return int(max(self.train_targets.max(), self.test_targets.max())) + 1

    @property
    def outputs(self) -> int:
        """Numbers that a model has to give for a record: a score per class, or the targets."""
        if self.train_targets.is_floating_point():
            return int(self.train_targets[0].numel())
        return self.classes


def divided(data: Dataset, out: NDArray[np.bool_]) -> Dataset:
    """The training records of data, of which those marked in `out` are evaluated on instead."""
    kept, watched = (torch.from_numpy(np.flatnonzero(rows)) for rows in (~out, out))
    return replace(
        data,
        train_inputs=data.train_inputs[kept],
        train_targets=data.train_targets[kept],
        test_inputs=data.train_inputs[watched],
        test_targets=data.train_targets[watched],
        owners=None if data.owners is None else data.owners[~out],
    )


def held_out(data: Dataset, share: float) -> Dataset:
    """The training records of data alone: a fixed random share of them takes the place of the test records."""
    count = len(data.train_targets)
    held = round(share * count)
    if not 1 <= held < count:
        raise InvalidParameter("validate", share, f"a share of {count:,} records, not all or none")
    order = np.random.Generator(np.random.PCG64(0)).permutation(count)
    return divided(data, np.isin(np.arange(count), order[:held]))


def load_dataset(name: str, data_dir: Path | None = None) -> Dataset:
    """One of `options.DATASETS` by name, with files in `data_dir` or the usual places, or an .npz or its folder."""
    if name == "digits":
        return _digits()
    if name in _IMAGES:
        return _published(name, data_dir)
    path = Path(name).expanduser()
    if path.exists():
        return _npz(path)
    raise InvalidParameter("data", name, f"{', '.join(DATASETS)} or the path of an .npz, .csv or .parquet file")


def _digits() -> Dataset:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.Generator(np.random.PCG64(0)).permutation(len(labels))
    inputs = torch.tensor(images[order] / 16.0 - 0.3, dtype=torch.float32).view(-1, 1, 8, 8)
    targets = torch.tensor(labels[order], dtype=torch.int64)
    held = 360  # a fifth, the same one for everybody
    return Dataset("digits", inputs[held:], targets[held:], inputs[:held], targets[:held])


def _published(name: str, data_dir: Path | None) -> Dataset:
    """Images that others published, in one scale: from files, or downloaded."""
    folders, owners = _folders(name, data_dir), None
    readers = (_cifar_arrays, _cifar_batches) if name in _CIFAR else (_idx_images,)
    for read, folder in product(readers, folders):
        if (parts := read(name, folder)) is not None:
            owners = _writers(folder.parent) if name == "mnist" else None
            break
    else:
        parts = _download(name, folders)
    _, mean, deviation = _IMAGES[name]

    def inputs(images: NDArray[Any]) -> Tensor:
        pixels = torch.tensor(images, dtype=torch.float32) / 255.0
        return ((pixels - mean) / deviation).reshape(len(images), -1, *images.shape[-2:])

    labels = [torch.tensor(part, dtype=torch.int64) for part in parts[1::2]]
    return Dataset(name, inputs(parts[0]), labels[0], inputs(parts[2]), labels[1], owners)


def _folders(name: str, data_dir: Path | None) -> list[Path]:
    if data_dir is not None:
        return [data_dir / name, data_dir]
    beside = [parent / "shared" / "data" for parent in Path(__file__).resolve().parents[4:6]]
    home = Path.home() / ".cache" / "dpcheckin"
    return [Path("../shared/data") / name, *(b / name for b in beside), home / name]


def _read_idx(path: Path) -> NDArray[Any]:
    raw = path.read_bytes()
    if path.suffix == ".gz":
        raw = gzip.decompress(raw)
    kinds: dict[int, str] = {8: "u1", 12: ">i4"}
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in kinds:
        raise InvalidParameter("data", str(path), "an idx file of bytes or 32-bit integers")
    axes = raw[3]
    shape = np.frombuffer(raw, ">i4", axes, 4)
    values = np.frombuffer(raw, kinds[raw[2]], offset=4 + 4 * axes)
    return np.asarray(values.reshape(shape))


def _find(folder: Path, stem: str) -> Path | None:
    return next((p for p in (folder / f"{stem}.gz", folder / stem) if p.is_file()), None)


def _idx_images(name: str, folder: Path) -> _Parts | None:
    kinds = ("images-idx3-ubyte", "labels-idx1-ubyte")
    paths = [_find(folder, f"{part}-{kind}") for part in ("train", "t10k") for kind in kinds]
    return [_read_idx(path) for path in paths if path is not None] if all(paths) else None


def _writers(shared: Path) -> NDArray[np.int64] | None:
    """Who wrote each MNIST digit (QMNIST labels, column 2), when that file is there."""
    path = _find(shared / "mnist-writers", "qmnist-train-labels-idx2-int")
    return None if path is None else _read_idx(path)[:, 2].astype(np.int64)


def _cifar_arrays(name: str, folder: Path) -> _Parts | None:
    """An .npz that holds a named set: bytes, as they were published."""
    path = folder / f"{name}.npz"
    if not path.is_file():
        return None
    parts, _ = _arrays(path)
    for images in parts[::2]:
        if images.dtype != np.uint8 or images.shape[1:] != (3, 32, 32):
            given = f"{path} with {images.dtype} {images.shape}"
            raise InvalidParameter("data", given, "images of bytes, (records, 3, 32, 32)")
    return parts


def _cifar_batches(name: str, folder: Path) -> _Parts | None:
    inner, names, key = _CIFAR[name]
    files = [folder / inner / file for file in names]
    if not all(file.is_file() for file in files):
        return None
    batches = [pickle.loads(file.read_bytes(), encoding="bytes") for file in files]
    images = [np.asarray(b[b"data"]).reshape(-1, 3, 32, 32) for b in batches]
    labels = [np.asarray(b[key], dtype=np.int64) for b in batches]
    return [np.concatenate(images[:-1]), np.concatenate(labels[:-1]), images[-1], labels[-1]]


def _download(name: str, folders: list[Path]) -> _Parts:
    parts: _Parts = []
    try:
        from torchvision import datasets  # type: ignore[import-not-found,unused-ignore]

        for train in (True, False):
            got = getattr(datasets, _IMAGES[name][0])(folders[-1], train=train, download=True)
            data = np.asarray(got.data)
            parts += [np.moveaxis(data, -1, 1) if data.ndim == 4 else data, np.asarray(got.targets)]
    except (ImportError, OSError, RuntimeError) as problem:
        reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
        if isinstance(problem, ImportError):
            reason = "torchvision is not installed"
        kinds = f" ({name}.npz or {_CIFAR[name][0]})" if name in _CIFAR else ""
        looked = ", ".join(str(f) for f in folders)
        raise DatasetMissing(
            f"{name}{kinds} is not in {looked} and cannot be downloaded ({reason}); give --data-dir"
        ) from None
    return parts


def _arrays(path: Path) -> tuple[_Parts, NDArray[np.int64] | None]:
    """The arrays of an .npz and, if any, the owners."""
    with np.load(path, allow_pickle=False) as arrays:
        missing = [name for name in _ARRAYS if name not in arrays.files]
        if missing:
            raise InvalidParameter("data", str(path), f"an .npz with {', '.join(missing)}")
        owners = arrays["owners"].astype(np.int64) if "owners" in arrays.files else None
        return [arrays[name] for name in _ARRAYS], owners


def _npz(path: Path) -> Dataset:
    """The arrays of an .npz as they are: nothing is scaled."""
    if path.is_dir():
        files = sorted(path.glob("*.npz"))
        if len(files) != 1:
            raise InvalidParameter("data", str(path), f"a folder with one .npz, not {len(files):,}")
        path = files[0]
    parts, owners = _arrays(path)
    if not all(np.isfinite(p).all() for p in parts):
        raise InvalidParameter("data", str(path), "arrays without NaN or infinity")
    kinds = (torch.float32, torch.int64) * 2
    x, y, tx, ty = (torch.tensor(p, dtype=kind) for p, kind in zip(parts, kinds, strict=True))
    return Dataset(path.stem, x, y, tx, ty, owners)
