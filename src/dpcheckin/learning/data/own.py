"""Your own data as a `Dataset`: arrays, a torch Dataset, a table, a file or a folder.

One client is one owner of records, or one record where no owners are given. Clients, never single
records of a client, are held out to evaluate on. Nothing here is learned from the data but the list
of classes, which can be given: columns are used as they are, or mapped by `bounds` that are known
beforehand, so that no preparation has to be charged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.data.datasets import Dataset, load_dataset
from dpcheckin.learning.data.tables import Bounds, Choice, Table, is_table_file, read_table
from dpcheckin.learning.names import TASKS
from dpcheckin.options import listed

OWN = "own data"
"""What data is called that a program hands over without a name."""

LARGEST_CLASS_LIST = 20
"""Whole numbers with more distinct values than this are taken for numbers, not for classes."""

_MOST_CLASSES = 100
"""More than so many are no classes if hardly two records share one."""

_Parts = tuple[Tensor, Tensor, NDArray[np.int64] | None, tuple[str, ...]]
"""Inputs, targets, the owner of each record, the names of the classes."""


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
        source: a path of a .csv (or .csv.gz), .parquet or .npz file; a folder with one such
            table per client; a pandas DataFrame; a pair (inputs, targets) of arrays; a
            torch Dataset whose items are (input, target) or (input, target, owner).
        target: of tables: the column that is to be predicted.
        owner: of tables: the column that names each record's client.
        columns: of tables: the columns to learn from; None for all others, in their order.
        bounds: of tables: column -> (lowest, highest), known beforehand; values are clipped to
            them and mapped to [-1, 1].
        owners: of arrays and torch Datasets: the client of each record.
        task: "classes", "numbers", or "auto": text, booleans and whole numbers with at most
            20 distinct values are classes.
        classes: the targets' values in the order of the model's outputs; None sorts those found.
        test: records to evaluate on, of the same kind as `source`.
        test_share: without `test`: the share of clients that is held out.
        seed: of the choice of clients that are held out.
        name: what reports call the data.
    """
    if task not in TASKS:
        raise InvalidParameter("task", task, listed(TASKS))
    if isinstance(source, str | Path) and not is_table_file(source):
        return _stored(source, target, owner)
    choice = Choice(target, owner, None if columns is None else tuple(columns), bounds or {})
    called = name or (Path(source).name if isinstance(source, str | Path) else OWN)
    raw = _raw(source, choice, owners, called)
    labels = classes
    if test is not None:
        held = _raw(test, choice, None, f"test records of {called}", asks_owner=False)
        everything = np.concatenate([raw[1], held[1]])
        kind, labels = _kind(everything, task, labels)
        parts, test_parts = _tensors(raw, kind, labels), _tensors(held, kind, labels)
        return _checked(Dataset(called, *parts[:2], *test_parts[:2], parts[2], parts[3]))
    kind, labels = _kind(raw[1], task, labels)
    return _checked(_split(_tensors(raw, kind, labels), test_share, seed, called))


def _stored(source: str | Path, target: str | None, owner: str | None) -> Dataset:
    """An .npz file or a named data set: its parts are fixed already."""
    for parameter, value in (("target", target), ("owner", owner)):
        if value is not None:
            raise InvalidParameter(
                parameter, value, f"left out: {source} is no table (.csv, .parquet or a folder)"
            )
    return load_dataset(str(source))


_Raw = tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]


def _raw(source: Any, choice: Choice, owners: Any, called: str, *, asks_owner: bool = True) -> _Raw:
    """Inputs, targets and owners as arrays, before classes are numbered."""
    if isinstance(source, str | Path):
        return read_table(Path(source)).records(choice, asks_owner)
    if hasattr(source, "columns"):
        held = {str(one): np.asarray(source[one]) for one in source.columns}
        return Table(called, held).records(choice, asks_owner)
    if choice.target is not None or choice.owner is not None:
        raise InvalidParameter("target", choice.target, "left out: only tables have columns")
    if isinstance(source, tuple) and len(source) == 2:
        inputs, targets = (np.asarray(part) for part in source)
    elif hasattr(source, "__getitem__") and hasattr(source, "__len__"):
        inputs, targets, found = _items(source)
        owners = found if owners is None else owners
    else:
        raise InvalidParameter(
            "data", source, "a path, a DataFrame, a pair (inputs, targets) or a torch Dataset"
        )
    _check_rows(inputs, targets, owners, called)
    return inputs, targets, None if owners is None else np.asarray(owners)


def _items(source: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    items = [source[i] for i in range(len(source))]
    sizes = {len(item) for item in items if isinstance(item, tuple | list)}
    if len(sizes) != 1 or not sizes <= {2, 3} or not isinstance(items[0], tuple | list):
        raise InvalidParameter(
            "data", type(source).__name__, "items (input, target) or (input, target, owner)"
        )
    parts = [np.stack([np.asarray(part) for part in column]) for column in zip(*items, strict=True)]
    return parts[0], parts[1], parts[2] if len(parts) == 3 else None


def _check_rows(inputs: NDArray[Any], targets: NDArray[Any], owners: Any, called: str) -> None:
    if inputs.ndim < 2:
        raise InvalidParameter("inputs", f"shape {inputs.shape}", "one row for each record")
    if len(inputs) != len(targets):
        raise InvalidParameter(
            "targets", f"{len(targets):,} of them", f"{len(inputs):,}, as inputs"
        )
    if owners is not None and len(owners) != len(targets):
        raise InvalidParameter(
            "owners", f"{len(owners):,} of them", f"{len(targets):,}, as records"
        )
    if inputs.dtype.kind not in "biuf":
        raise InvalidParameter("inputs", f"dtype {inputs.dtype}", "numbers")
    finite = np.isfinite(inputs.reshape(len(inputs), -1)).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InvalidParameter("inputs", f"NaN or infinity in record {row}", "finite numbers")


def _kind(
    targets: NDArray[Any], task: str, classes: Sequence[Any] | None
) -> tuple[str, list[Any] | None]:
    """Whether targets are classes, and which, or numbers."""
    if targets.dtype.kind == "f" and not np.isfinite(targets).all():
        row = int(np.argmin(np.isfinite(targets.reshape(len(targets), -1)).all(axis=1)))
        raise InvalidParameter("target", f"NaN or infinity in record {row}", "finite numbers")
    if task == "numbers" or (task == "auto" and classes is None and not _class_like(targets)):
        if targets.dtype.kind not in "biuf":
            raise InvalidParameter("target", targets.ravel()[0], "a number with task 'numbers'")
        return "numbers", None
    if targets.ndim != 1:
        raise InvalidParameter("targets", f"shape {targets.shape}", "one class for each record")
    found = np.unique(targets).tolist()
    if classes is not None and (missing := [c for c in found if c not in list(classes)]):
        raise InvalidParameter("classes", list(classes), f"a list with {missing[0]!r} in it")
    known = found if classes is None else list(classes)
    if len(known) < 2:
        raise InvalidParameter("target", found[0], "at least two classes among the records")
    if classes is None and len(found) > max(_MOST_CLASSES, len(targets) / 2):
        many = f"{len(found):,} different targets in {len(targets):,} records are no classes"
        raise InvalidParameter("task", task, f"'numbers': {many}")
    return "classes", known


def _class_like(targets: NDArray[Any]) -> bool:
    if targets.ndim != 1:
        return False
    if targets.dtype.kind in "OUSb":
        return True
    whole = bool((targets == np.round(targets)).all())
    return whole and len(np.unique(targets)) <= LARGEST_CLASS_LIST


def _tensors(raw: _Raw, kind: str, classes: Sequence[Any] | None) -> _Parts:
    inputs, targets, owners = raw
    x = torch.tensor(np.ascontiguousarray(inputs), dtype=torch.float32)
    if not bool(torch.isfinite(x).all()):
        raise InvalidParameter("inputs", "a number above 3e38", "numbers that fit 32 bits")
    numbered = None if owners is None else np.unique(owners, return_inverse=True)[1]
    if kind == "numbers":
        y = torch.tensor(np.ascontiguousarray(targets), dtype=torch.float32)
        return x, y.reshape(len(y), -1), numbered, ()
    assert classes is not None
    place = {value: index for index, value in enumerate(classes)}
    numbers = np.array([place[value] for value in targets.tolist()], dtype=np.int64)
    return x, torch.from_numpy(numbers), numbered, tuple(_label(c) for c in classes)


def _label(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _split(parts: _Parts, share: float, seed: int, called: str) -> Dataset:
    """Hold out whole clients, so that nobody is both trained on and evaluated on."""
    if not 0 < share < 1:
        raise InvalidParameter("test_share", share, "strictly between 0 and 1")
    inputs, targets, owners, labels = parts
    clients = np.arange(len(targets)) if owners is None else owners
    count = int(clients.max()) + 1 if len(clients) else 0
    held = max(1, round(share * count))
    if count - held < 2:
        raise InvalidParameter(
            "data", f"{count:,} clients in {called}", f"at least 2 beside {held:,} held out"
        )
    order = np.random.Generator(np.random.PCG64(seed)).permutation(count)
    out = np.isin(clients, order[:held])
    kept, tested = (torch.from_numpy(np.flatnonzero(which)) for which in (~out, out))
    return Dataset(
        called,
        inputs[kept],
        targets[kept],
        inputs[tested],
        targets[tested],
        None if owners is None else owners[~out],
        labels,
    )


def _checked(data: Dataset) -> Dataset:
    clients = len(data.train_targets) if data.owners is None else len(np.unique(data.owners))
    if clients < 2:
        raise InvalidParameter("data", f"{clients:,} clients in {data.name}", "at least 2")
    if data.train_inputs.shape[1:] != data.test_inputs.shape[1:]:
        raise InvalidParameter(
            "test", f"records of shape {tuple(data.test_inputs.shape[1:])}", f"{data.shape}"
        )
    return data


def parse_bounds(text: str | None) -> Mapping[str, tuple[float, float]]:
    """Bounds as the command line takes them.

    Args:
        text: COLUMN=LOWEST:HIGHEST, separated by commas.

    >>> parse_bounds("age=0:100,visits=0:20")
    {'age': (0.0, 100.0), 'visits': (0.0, 20.0)}
    """
    found: dict[str, tuple[float, float]] = {}
    for part in (text or "").split(",") if text else ():
        column, _, ends = part.rpartition("=")
        low, _, high = ends.partition(":")
        try:
            found[column.strip()] = float(low), float(high)
        except ValueError:
            raise InvalidParameter("bounds", part, "COLUMN=LOWEST:HIGHEST") from None
    return found
