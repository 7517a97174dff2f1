"""An owner's answer is read from the file, column and row that the owner's settings name."""

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dpcheckin.deployment.answers import read_answer
from dpcheckin.deployment.tasks import client_task
from dpcheckin.errors import InvalidParameter

PEOPLE = [{"id": 7, "colour": "red", "age": 30, "x": 0.5}, {"id": 17, "colour": "blue", "age": 41, "x": 0.25}]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = ["id, colour, age, x", *(", ".join(map(str, row.values())) for row in PEOPLE)]
    (tmp_path / "p.csv").write_text("\n".join(lines) + "\n")
    with gzip.open(tmp_path / "p.csv.gz", "wt") as stream:
        stream.write("\n".join(lines))
    (tmp_path / "p.json").write_text(json.dumps(PEOPLE))
    (tmp_path / "me.json").write_text(json.dumps(PEOPLE[1]))
    with closing(sqlite3.connect(tmp_path / "p.sqlite")) as opened:
        opened.execute('CREATE TABLE "my people" (id INTEGER, colour TEXT, age INTEGER, x REAL)')
        opened.executemany('INSERT INTO "my people" VALUES (?, ?, ?, ?)', [tuple(row.values()) for row in PEOPLE])
        opened.commit()
    return tmp_path


def table(file: str, **more: Any) -> dict[str, Any]:
    also = {"table": "my people"} if file.endswith("sqlite") else {}
    return {"file": file, "column": "colour", **also, **more}


@pytest.mark.parametrize("file", ["p.csv", "p.csv.gz", "p.json", "p.sqlite"])
def test_every_kind_of_file_gives_the_same_row(folder: Path, file: str) -> None:
    assert read_answer(table(file, row=2), folder).value() == "blue"
    assert read_answer(table(file, where={"id": 7}), folder).value() == "red"
    assert read_answer(table(file, where={"id": "17", "colour": "blue"}), folder).value() == "blue"
    numbers = read_answer(table(file, column=["age", "x"], row=1), folder).value()
    assert [float(one) for one in numbers] == [30.0, 0.5]


def test_one_row_needs_no_choice_and_is_read_anew(folder: Path) -> None:
    answer = read_answer(table("me.json"), folder)
    assert answer.value() == "blue"
    (folder / "me.json").write_text(json.dumps({"colour": "green"}))
    assert answer.value() == "green"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"file": "none.csv"}, "a CSV, JSON or SQLite file"),
        ({"column": "weight"}, "column = 'weight'"),
        ({"where": {"name": "me"}}, "column = 'name'"),
        ({"row": 0}, "row = 0"),
        ({"row": "1"}, "a whole number"),
        ({"row": 1, "where": {"id": 7}}, "not together with where"),
        ({"where": [7]}, "where"),
        ({"table": "people"}, "only then"),
        ({"file": "p.sqlite"}, "given with an SQLite file"),
        ({"file": "p.sqlite", "table": "others"}, "no such table"),
        ({"column": []}, "a list of names"),
        ({"kinds": ["vote"]}, "kinds"),
        ({"colum": "x"}, "colum"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_asked(folder: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        read_answer({"file": "p.csv", "column": "colour", **changes}, folder)


def test_files_that_cannot_be_read_are_named(folder: Path) -> None:
    (folder / "bad.json").write_text("[1, 2]")
    with pytest.raises(InvalidParameter, match="a list of objects"):
        read_answer(table("bad.json"), folder)
    (folder / "bad.json").write_text("{")
    with pytest.raises(InvalidParameter, match="readable"):
        read_answer(table("bad.json"), folder)
    (folder / "empty.csv").write_text("colour\n")
    with pytest.raises(InvalidParameter, match="at least one row"):
        read_answer(table("empty.csv"), folder)


def test_a_missing_value_or_row_fails_when_it_is_asked_for_and_not_before(folder: Path) -> None:
    """Whether a client takes part must not depend on its value: that it stays away is seen."""
    (folder / "p.csv").write_text("id,colour\n7,\n")
    with pytest.raises(InvalidParameter, match="a column with a value"):
        read_answer(table("p.csv"), folder).value()
    with pytest.raises(InvalidParameter, match="row = 9"):
        read_answer(table("p.json", row=9), folder).value()
    with pytest.raises(InvalidParameter, match="0 rows of"):
        read_answer(table("p.json", where={"id": 8}), folder).value()
    with pytest.raises(InvalidParameter, match="2 rows of"):
        read_answer(table("p.json"), folder).value()


def test_data_tables_that_are_neither_are_refused(folder: Path) -> None:
    with pytest.raises(InvalidParameter, match="tables, one a topic"):
        client_task({"answers": {"colour": "me.csv"}}, folder)
