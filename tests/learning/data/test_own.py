"""Somebody's own data: arrays, torch Datasets, tables, folders; what does not fit is one line."""

from __future__ import annotations

import gzip

import numpy as np
import pandas
import pytest
import torch

from dpcheckin.errors import InvalidParameter, MissingExtra
from dpcheckin.learning import client_data
from dpcheckin.learning.data.own import parse_bounds

HEADER = "who,age,dose,well\n"
ROWS = [f"p{i // 2},{20 + i},{i % 7}.5,{'yes' if i % 3 else 'no'}\n" for i in range(40)]


@pytest.fixture
def table(tmp_path):
    """Write a CSV file and return its path."""

    def write(text, name="people.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_a_csv_becomes_clients_by_owner(table):
    """One client is one owner; columns keep their order; classes are the sorted words."""
    data = client_data(table(HEADER + "".join(ROWS)), target="well", owner="who")
    assert data.name == "people.csv" and data.shape == (2,)
    assert data.labels == ("no", "yes") and data.outputs == 2
    assert len(np.unique(data.owners)) == 16 and len(data.train_targets) == 32
    assert len(data.test_targets) == 8  # four owners with both their records
    ages = torch.cat([data.train_inputs[:, 0], data.test_inputs[:, 0]])
    assert sorted(ages.tolist()) == [20 + i for i in range(40)]
    for inputs, targets in ((data.train_inputs, data.train_targets),):
        for (age, dose), target in zip(inputs.tolist(), targets.tolist(), strict=True):
            i = round(age) - 20
            assert dose == i % 7 + 0.5 and target == (1 if i % 3 else 0)


def test_no_owner_is_in_both_halves(table):
    text = HEADER + "".join(ROWS)
    data = client_data(table(text), target="well", owner="who", test_share=0.5, seed=3)
    kept = {(int(age) - 20) // 2 for age in data.train_inputs[:, 0]}
    tested = {(int(age) - 20) // 2 for age in data.test_inputs[:, 0]}
    assert len(kept) == len(tested) == 10 and not kept & tested


def test_bounds_are_a_fixed_map_of_each_value(table):
    """[0, 4] becomes [-1, 1], values beyond are clipped: nothing depends on other records."""
    text = "dose,well\n" + "".join(f"{d},{i % 2}\n" for i, d in enumerate((0, 1, 2, 4, 9)))
    data = client_data(table(text), "well", bounds={"dose": (0, 4)}, test=(table(text, "t.csv")))
    assert data.train_inputs[:, 0].tolist() == [-1.0, -0.5, 0.0, 1.0, 1.0]
    assert data.test_inputs[:, 0].tolist() == data.train_inputs[:, 0].tolist()
    assert parse_bounds("dose=0:4,age=-1:1e2") == {"dose": (0.0, 4.0), "age": (-1.0, 100.0)}


def test_every_kind_of_source_gives_the_same_records(table, tmp_path):
    path = table(HEADER + "".join(ROWS))
    expected = client_data(path, "well", "who")
    frame = pandas.read_csv(path)
    packed = tmp_path / "people.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    inputs, targets = frame[["age", "dose"]].to_numpy(), frame["well"].to_numpy()
    items = list(zip(inputs.astype(np.float32), targets, frame["who"], strict=True))
    sources = {
        "frame": client_data(frame, "well", "who"),
        "gzip": client_data(packed, "well", "who"),
        "columns": client_data(path, "well", "who", columns=["age", "dose"]),
        "arrays": client_data((inputs, targets), owners=frame["who"].to_numpy()),
        "torch dataset": client_data(items),
    }
    for name, data in sources.items():
        for part in ("train_inputs", "train_targets", "test_inputs", "test_targets"):
            assert torch.equal(getattr(data, part), getattr(expected, part)), name
        assert (data.owners == expected.owners).all() and data.labels == expected.labels


def test_a_folder_holds_one_file_per_client(tmp_path):
    folder = tmp_path / "fleet"
    folder.mkdir()
    for client in range(6):
        rows = "".join(f"{client}.{r},{r % 2}\n" for r in range(client + 1))
        (folder / f"client{client}.csv").write_text("size,kind\n" + rows)
    data = client_data(folder, "kind")
    assert len(np.unique(data.owners)) == 5
    held = [np.floor(data.train_inputs[data.owners == o, 0].numpy()) for o in set(data.owners)]
    assert all(len(set(h)) == 1 and len(h) == h[0] + 1 for h in held)
    (folder / "odd.csv").write_text("other,kind\n1,0\n")
    with pytest.raises(InvalidParameter, match=r"odd\.csv"):
        client_data(folder, "kind")


def test_parquet_reads_as_csv_does(table, tmp_path):
    arrow = pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    from pyarrow import parquet

    path = table(HEADER + "".join(ROWS))
    frame = pandas.read_csv(path)
    columns = {name: frame[name].tolist() for name in frame.columns}
    parquet.write_table(arrow.table(columns), tmp_path / "people.parquet")
    one, other = (client_data(p, "well", "who") for p in (path, tmp_path / "people.parquet"))
    assert torch.equal(one.train_inputs, other.train_inputs)
    assert torch.equal(one.train_targets, other.train_targets)
    (tmp_path / "bad.parquet").write_text("no parquet")
    with pytest.raises(InvalidParameter, match="a readable parquet file"):
        client_data(tmp_path / "bad.parquet", "well")


def test_parquet_without_its_library_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "x.parquet").write_text("")
    with pytest.raises(MissingExtra, match=r"dpcheckin\[parquet\]"):
        client_data(tmp_path / "x.parquet", "well")


def test_numbers_and_classes_are_told_apart():
    inputs = np.zeros((60, 2))
    few, many = np.arange(60) % 3, np.arange(60)
    assert client_data((inputs, few)).train_targets.dtype == torch.int64
    numbers = client_data((inputs, many))
    assert numbers.train_targets.shape == (48, 1) and numbers.outputs == 1
    assert client_data((inputs, few), task="numbers").train_targets.is_floating_point()
    assert client_data((inputs, many), task="classes").outputs == 60
    given = client_data((inputs, few), classes=[2, 1, 0, 5])
    assert given.labels == ("2", "1", "0", "5") and given.outputs == 4


BAD_TABLES = {
    "missing target": (HEADER + "".join(ROWS), {"target": "ill"}, "target = 'ill'.*who, age"),
    "no target": (HEADER + "".join(ROWS), {"target": None}, "target = None.*a column of"),
    "missing owner": (HEADER + "".join(ROWS), {"owner": "id"}, "owner = 'id'"),
    "text": (HEADER + "p0,old,1,yes\n", {}, "column age = 'old'.*a number in row 1 of"),
    "empty cell": (HEADER + "p0,3,1,yes\np1,,1,no\n", {}, "column age = ''.*a number in row 2 of"),
    "nan": (HEADER + "p0,3,1,yes\np1,nan,1,no\n", {}, "nan.*column 'age', row 2"),
    "infinity": (HEADER + "p0,inf,1,yes\n", {}, "inf.*column 'age', row 1"),
    "empty target": (HEADER + "p0,3,1,\np1,3,1,yes\n", {}, "column 'well', row 1"),
    "ragged": (HEADER + "p0,3,1\n", {}, "3 cells in row 1"),
    "two columns": ("a,a,well\n1,2,3\n", {"owner": None}, "two columns 'a'"),
    "no records": (HEADER, {}, "a header and records"),
    "one class": (HEADER + "p0,3,1,yes\n" * 5, {}, "two classes"),
    "few clients": (HEADER + "p0,3,1,yes\np1,4,1,no\n", {}, "2 clients.*at least 2 beside 1"),
    "bounds": (HEADER + "".join(ROWS), {"bounds": {"age": (4, 4)}}, "bounds = 'age=4:4'"),
    "bounds' column": (HEADER + "".join(ROWS), {"bounds": {"size": (0, 4)}}, "bounds = 'size'"),
    "target as input": (HEADER + "".join(ROWS), {"columns": ["well"]}, "columns = 'well'"),
    "share": (HEADER + "".join(ROWS), {"test_share": 1.0}, "test_share = 1.0"),
    "class left out": (HEADER + "".join(ROWS), {"classes": ["no", "ill"]}, "'yes' in it"),
    "task": (HEADER + "".join(ROWS), {"task": "sorting"}, "task = 'sorting'"),
    "words as numbers": (HEADER + "".join(ROWS), {"task": "numbers"}, "a number with task"),
}


@pytest.mark.parametrize("text,changes,words", BAD_TABLES.values(), ids=BAD_TABLES.keys())
def test_a_bad_table_is_one_clear_line(table, text, changes, words):
    asked = {"target": "well", "owner": "who", "columns": ["age", "dose"], **changes}
    if asked["owner"] is None:
        asked["columns"] = None
    with pytest.raises(InvalidParameter, match=words) as problem:
        client_data(table(text), **asked)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize(
    "source,changes,words",
    [
        ((np.zeros((9, 2)), np.zeros(8)), {}, "targets = '8 of them'"),
        ((np.full((9, 2), np.nan), np.arange(9)), {}, "record 0"),
        ((np.zeros(9), np.arange(9)), {}, "one row for each record"),
        ((np.zeros((9, 2)), np.full(9, np.inf)), {}, "record 0"),
        ((np.zeros((9, 2), dtype=str), np.arange(9)), {}, "numbers"),
        ((np.zeros((9, 2)), np.arange(9)), {"owners": [1, 2]}, "owners = '2 of them'"),
        ((np.zeros((9, 2)), np.arange(9)), {"target": "x"}, "only tables have columns"),
        ((np.full((9, 2), 1e39), np.arange(9)), {}, "32 bits"),
        ([1, 2, 3], {}, "items"),
        (7, {}, "data = 7"),
        ("nowhere.csv", {"target": "x"}, "exists"),
        ("digits", {"target": "x"}, "no table"),
    ],
    ids=range(12),
)
def test_bad_arrays_are_one_clear_line(source, changes, words):
    with pytest.raises(InvalidParameter, match=words) as problem:
        client_data(source, **changes)
    assert "\n" not in str(problem.value)


def test_a_file_that_is_no_csv_is_one_line(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "y.csv.gz").write_bytes(b"no gzip")
    for name in ("x.csv", "y.csv.gz"):
        with pytest.raises(InvalidParameter, match="a readable CSV file"):
            client_data(tmp_path / name, "well")
