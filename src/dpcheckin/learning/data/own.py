"""Your own data as a `Dataset`: arrays, a torch Dataset, a table, a file or a folder.

One client is one owner of records, or one record where no owners are given. Nothing here is learned from the data but
the list of classes, which can be given: columns are used as they are, or mapped by `bounds` that are known beforehand,
so that no preparation has to be charged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter, Superfluous
from dpcheckin.learning.data.datasets import Dataset, divided, load_dataset
from dpcheckin.learning.data.images import is_image_folder, read_images
from dpcheckin.learning.data.tables import Bounds, Choice, Table, is_table_file, not_finite, read_table
from dpcheckin.learning.options import TASKS
from dpcheckin.numerals import open_probability
from dpcheckin.options import listed

OWN = "own data"
"""What data is called that a program hands over without a name."""

LARGEST_CLASS_LIST = 20
"""Whole numbers with more distinct values than this are taken for numbers, not for classes."""

_MOST_CLASSES = 100
"""More than so many are no classes if hardly two records share one."""

_Raw = tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]
"""Inputs, targets and owners as arrays, before classes are numbered."""


def client_data(
    source: Any,
    target: str | None = None,
    owner: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    bounds: Bounds | None = None,
    owners: Any = None,
    task: str = "auto",
    classes: Sequence[Any] | None = None,
    test: Any = None,
    test_share: float = 0.2,
    seed: int = 0,
    name: str | None = None,
) -> Dataset:
    """Records of clients as tensors, with some clients held out to evaluate on.

    Args:
        source: a path of a .csv (or .csv.gz), .parquet or .npz file; a folder with one such table per client, or with
            one folder of images per class; a pandas DataFrame; a pair (inputs, targets) of arrays; a torch Dataset
            whose items are (input, target) or (input, target, owner).
        target: of tables: the column that is to be predicted.
        owner: of tables: the column that names each record's client.
        columns: of tables: the columns to learn from; None for all others, in their order.
        bounds: of tables: column -> (lowest, highest), known beforehand; values are clipped to them and mapped to
            [-1, 1].
        owners: of arrays and torch Datasets: the client of each record.
        task: "classes", "numbers", or "auto": text, booleans and whole numbers with at most 20 distinct values are
            classes.
        classes: the targets' values in the order of the model's outputs; None sorts those found.
        test: records to evaluate on, of the same kind as `source`.
        test_share: without `test`: the share of clients that is held out.
        seed: of the choice of clients that are held out.
        name: what reports call the data.
    """
    if task not in TASKS:
        raise InvalidParameter("task", task, listed(TASKS))
    named = isinstance(source, str | Path)
    if named and not is_own_file(source):
        return stored_data(str(source), target=target, owner=owner)
    choice = Choice(target, owner, None if columns is None else tuple(columns), bounds or {})
    called = name or (Path(source).name if named else OWN)
    raw, held = _raw(source, choice, owners, called), None
    if test is not None:
        held = _raw(test, choice, None, f"test records of {called}", asks_owner=False)
    targets = raw[1] if held is None else np.concatenate([raw[1], held[1]])
    known = _classes(targets, task, classes)
    data = _numbered(called, raw, known)
    if held is None:
        return _checked(_split(data, test_share, seed))
    watched = _numbered(called, held, known)
    return _checked(replace(data, test_inputs=watched.train_inputs, test_targets=watched.train_targets))


def stored_data(name: str, data_dir: Path | None = None, **columns: Any) -> Dataset:
    """An .npz file or a data set by name, see `load_dataset` (data_dir): its parts are fixed, it has no columns."""
    for parameter, value in columns.items():
        if value is not None:
            raise Superfluous(parameter, value, f"leave it out: {name} is no table, nor a folder that holds one")
    return load_dataset(name, data_dir)


def _raw(source: Any, choice: Choice, owners: Any, called: str, *, asks_owner: bool = True) -> _Raw:
    if isinstance(source, str | Path) and not is_image_folder(source):
        return read_table(Path(source)).records(choice, asks_owner)
    if hasattr(source, "columns"):
        columns = {str(name): np.asarray(source[name]) for name in source.columns}
        return Table(called, columns).records(choice, asks_owner)
    if choice.target is not None or choice.owner is not None:
        raise Superfluous("target", choice.target, "leave it out: only tables have columns")
    if isinstance(source, str | Path):
        source = read_images(Path(source))
    if isinstance(source, tuple) and len(source) == 2:
        inputs, targets = (np.asarray(part) for part in source)
    elif hasattr(source, "__getitem__") and hasattr(source, "__len__"):
        inputs, targets, *named = _items(source)
        owners = named[0] if named and owners is None else owners
    else:
        raise InvalidParameter("data", source, "a path, a DataFrame, a pair (inputs, targets) or a torch Dataset")
    _check_rows(inputs, targets, owners, called)
    return inputs, targets, None if owners is None else np.asarray(owners)


def is_own_file(source: str | Path) -> bool:
    """Is this a table, a folder of them, or a folder of images?"""
    return is_table_file(source) or is_image_folder(source)


def _items(source: Any) -> list[NDArray[Any]]:
    items = [source[i] for i in range(len(source))]
    sizes = {len(item) if isinstance(item, tuple | list) else 0 for item in items}
    if len(sizes) != 1 or not sizes <= {2, 3}:
        raise InvalidParameter("data", type(source).__name__, "items (input, target) or (input, target, owner)")
    return [np.stack([np.asarray(part) for part in column]) for column in zip(*items, strict=True)]


def _check_rows(inputs: NDArray[Any], targets: NDArray[Any], owners: Any, called: str) -> None:
    if inputs.ndim < 2:
        raise InvalidParameter("inputs", f"shape {inputs.shape}", "one row for each record")
    if len(inputs) != len(targets):
        raise InvalidParameter("targets", f"{len(targets):,} of them", f"{len(inputs):,}, as inputs")
    if owners is not None and len(owners) != len(targets):
        raise InvalidParameter("owners", f"{len(owners):,} of them", f"{len(targets):,}, as records")
    if inputs.dtype.kind not in "biuf":
        raise InvalidParameter("inputs", f"dtype {inputs.dtype}", "numbers")
    if (row := not_finite(inputs)) is not None:
        raise InvalidParameter("inputs", f"NaN or infinity in record {row}", "finite numbers")


def _classes(targets: NDArray[Any], task: str, classes: Sequence[Any] | None) -> Sequence[Any] | None:
    """The classes in the order of the model's outputs, None if the targets are numbers."""
    if targets.dtype.kind == "f" and (row := not_finite(targets)) is not None:
        raise InvalidParameter("target", f"NaN or infinity in record {row}", "finite numbers")
    if task == "numbers" or (task == "auto" and classes is None and not _class_like(targets)):
        if targets.dtype.kind not in "biuf":
            raise InvalidParameter("target", targets.ravel()[0], "a number with task 'numbers'")
        return None
    if targets.ndim != 1:
        raise InvalidParameter("targets", f"shape {targets.shape}", "one class for each record")
    present = np.unique(targets).tolist()
    if classes is not None and (missing := [c for c in present if c not in list(classes)]):
        raise InvalidParameter("classes", list(classes), f"a list with {missing[0]!r} in it")
    if len(present if classes is None else classes) < 2:
        raise InvalidParameter("target", present[0], "at least two classes among the records")
    if classes is None and len(present) > max(_MOST_CLASSES, len(targets) / 2):
        many = f"{len(present):,} different targets in {len(targets):,} records are no classes"
        raise InvalidParameter("task", task, f"'numbers': {many}")
    return present if classes is None else list(classes)


def _class_like(targets: NDArray[Any]) -> bool:
    if targets.ndim != 1 or targets.dtype.kind in "OUSb":
        return targets.ndim == 1
    whole = bool((targets == np.round(targets)).all())
    return whole and len(np.unique(targets)) <= LARGEST_CLASS_LIST


def _numbered(called: str, raw: _Raw, classes: Sequence[Any] | None) -> Dataset:
    """All records as training records, classes and owners numbered from 0."""
    inputs, targets, owners = raw
    x = torch.tensor(np.ascontiguousarray(inputs), dtype=torch.float32)
    if not bool(torch.isfinite(x).all()):
        raise InvalidParameter("inputs", "a number above 3e38", "numbers that fit 32 bits")
    numbered = None if owners is None else np.unique(owners, return_inverse=True)[1]
    if classes is None:
        y = torch.tensor(np.ascontiguousarray(targets), dtype=torch.float32).reshape(len(x), -1)
        return Dataset(called, x, y, x[:0], y[:0], numbered)
    place = {value: index for index, value in enumerate(classes)}
    y = torch.tensor([place[value] for value in targets.tolist()], dtype=torch.int64)
    labels = tuple(f"{c:g}" if isinstance(c, float) else str(c) for c in classes)
    return Dataset(called, x, y, x[:0], y[:0], numbered, labels)


def _split(data: Dataset, share: float, seed: int) -> Dataset:
    """Hold out whole clients, so that nobody is both trained on and evaluated on."""
    open_probability("test_share", share)
    clients = np.arange(len(data.train_targets)) if data.owners is None else data.owners
    count = int(clients.max()) + 1 if len(clients) else 0
    held = max(1, round(share * count))
    if count - held < 2:
        raise InvalidParameter("data", f"{count:,} clients in {data.name}", f"at least 2 beside {held:,} held out")
    order = np.random.Generator(np.random.PCG64(seed)).permutation(count)
    return divided(data, np.isin(clients, order[:held]))


def _checked(data: Dataset) -> Dataset:
    clients = len(data.train_targets) if data.owners is None else len(np.unique(data.owners))
    if clients < 2:
        raise InvalidParameter("data", f"{clients:,} clients in {data.name}", "at least 2")
    if data.train_inputs.shape[1:] != data.test_inputs.shape[1:]:
        raise InvalidParameter("test", f"records of shape {tuple(data.test_inputs.shape[1:])}", f"{data.shape}")
    return data


def parse_bounds(text: str | None) -> Bounds:
    """Bounds as the command line takes them: COLUMN=LOWEST:HIGHEST, separated by commas.

    >>> parse_bounds("age=0:100,visits=0:20")
    {'age': (0.0, 100.0), 'visits': (0.0, 20.0)}
    """
    bounds: dict[str, tuple[float, float]] = {}
    for part in text.split(",") if text else ():
        column, _, ends = part.rpartition("=")
        low, _, high = ends.partition(":")
        try:
            bounds[column.strip()] = float(low), float(high)
        except ValueError:
            raise InvalidParameter("bounds", part, "COLUMN=LOWEST:HIGHEST") from None
    return bounds
