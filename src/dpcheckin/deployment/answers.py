"""An owner's answers, by topic; each is one value, or a few columns, of a CSV, JSON or SQLite file.

The owner's own configuration names file, column and row; a plan never does. The file is read anew for every answer, so
that an answer is about today.

    [data.answers.colour]              # answers questions about "colour"
    file = "me.csv"                    # .csv, .csv.gz, .json, .sqlite or .db
    column = "colour"                  # several, as a list, for vectors
    row = 1                            # the first; or
    where = { id = "17" }              # the one row with these values
    table = "people"                   # of an SQLite file
    kinds = ["histogram"]              # only such questions; all without it
"""

from __future__ import annotations

import csv
import gzip
import json
import sqlite3
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from dpcheckin.deployment.questions import Question, asked_index, read_question
from dpcheckin.errors import InvalidParameter, ServiceError
from dpcheckin.service.wire.documents import PlanDocument
from dpcheckin.survey.questions import KINDS
from dpcheckin.survey.questions.query import Query

_KNOWN = {"file", "column", "row", "where", "table", "kinds"}
_SQLITE = (".sqlite", ".sqlite3", ".db")
Row = Mapping[str, Any]


class NotAnswered(ServiceError):
    """The owner has no answer to this question."""


@dataclass(frozen=True)
class Answer:
    """One owner's answer to one topic: one value, or several for vectors, of the row that `row` (from 1) or `where`
    tells."""

    file: Path
    columns: tuple[str, ...]
    row: int | None = None
    where: tuple[tuple[str, Any], ...] = ()
    table: str | None = None
    kinds: tuple[str, ...] = KINDS

    def __post_init__(self) -> None:
        if self.row is not None and (self.where or self.row < 1):
            raise InvalidParameter("row", self.row, "1 or more, and not together with where")
        if (self.table is not None) != (self.file.suffix in _SQLITE):
            raise InvalidParameter("table", self.table, "given with an SQLite file, and only then")
        odd = sorted(set(self.kinds) - set(KINDS))
        if odd or not self.kinds:
            raise InvalidParameter("kinds", odd, "some of " + ", ".join(KINDS))

    def check(self) -> None:
        """Refuse a file that is not there, or lacks a column: without looking at any value."""
        if not self.file.is_file():
            raise InvalidParameter("file", str(self.file), "a CSV, JSON or SQLite file")
        needed = (*self.columns, *(name for name, _ in self.where))
        with closing(self._rows()) as rows:
            first = next(rows, None)
            if first is None:
                raise InvalidParameter("file", str(self.file), "a file with at least one row")
            for name in needed:
                if name not in first:
                    raise InvalidParameter("column", name, f"one of {', '.join(first)}")

    def value(self) -> Any:
        """The owner's value today: text or a number; a list for several columns."""
        row = self._own()
        values = [row.get(name) for name in self.columns]
        if any(value is None or value == "" for value in values):
            raise InvalidParameter("column", ", ".join(self.columns), "a column with a value")
        return values[0] if len(values) == 1 else values

    def _own(self) -> Row:
        with closing(self._rows()) as rows:
            if self.row is not None:
                for number, row in enumerate(rows, start=1):
                    if number == self.row:
                        return row
                raise InvalidParameter("row", self.row, "a row of the file")
            own = [row for row in rows if all(_same(row.get(n), v) for n, v in self.where)]
        if len(own) != 1:
            allowed = "one row (say which by row or where)"
            raise InvalidParameter("file", f"{len(own):,} rows of {self.file}", allowed)
        return own[0]

    def _rows(self) -> Generator[Row]:
        try:
            if self.file.suffix in _SQLITE:
                yield from self._of_sqlite()
            elif self.file.suffix == ".json":
                yield from self._of_json()
            else:
                yield from self._of_csv()
        except (OSError, ValueError, csv.Error, sqlite3.Error) as problem:
            raise InvalidParameter("file", str(self.file), f"readable ({problem})") from None

    def _of_csv(self) -> Iterator[Row]:
        with _text(self.file) as stream:
            lines = csv.DictReader(stream, skipinitialspace=True)
            for line in lines:
                yield {str(k).strip(): (v or "").strip() for k, v in line.items() if k is not None}

    def _of_json(self) -> Iterator[Row]:
        found = json.loads(self.file.read_text(encoding="utf-8"))
        for row in found if isinstance(found, list) else [found]:
            if not isinstance(row, dict):
                raise ValueError("an object, or a list of objects, is expected")
            yield row

    def _of_sqlite(self) -> Iterator[Row]:
        address = f"{self.file.resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as opened:
            name = '"' + str(self.table).replace('"', '""') + '"'
            asked = opened.execute(f"SELECT * FROM {name} ORDER BY rowid")
            names = [one[0] for one in asked.description]
            for row in asked:
                yield dict(zip(names, row, strict=True))


def _text(file: Path) -> TextIO:
    if file.suffix == ".gz":
        return gzip.open(file, "rt", newline="", encoding="utf-8")
    return file.open(newline="", encoding="utf-8")


def _same(one: Any, other: Any) -> bool:
    """Text of a CSV file and numbers of a settings file are the same if they read the same."""
    return one == other or str(one) == str(other)


def read_answer(table: Mapping[str, Any], folder: Path) -> Answer:
    """An answer's `table` of the owner's settings; its file is relative to the `folder`."""
    if not {"file", "column"} <= table.keys() <= _KNOWN:
        raise InvalidParameter("answers", sorted(table), "file, column and perhaps row, where, …")
    column = table["column"]
    columns = tuple(column) if isinstance(column, list) else (column,)
    if not columns or not all(isinstance(name, str) for name in columns):
        raise InvalidParameter("column", column, "a name, or a list of names")
    row, where = table.get("row"), table.get("where", {})
    if row is not None and type(row) is not int:
        raise InvalidParameter("row", row, "a whole number")
    if not isinstance(where, dict):
        raise InvalidParameter("where", where, "a table of columns and values")
    made = Answer(
        file=folder / str(table["file"]),
        columns=columns,
        row=row,
        where=tuple(where.items()),
        table=table.get("table"),
        kinds=tuple(table.get("kinds", KINDS)),
    )
    made.check()
    return made


class AnsweringTask:
    """One owner's answers, by topic; the topic "" answers questions about anything."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self._answers = dict(answers)
        self._asked: tuple[Query, Answer] | None = None

    def join(self, plan: PlanDocument) -> int | None:
        """The most rounds it takes part in; raises `NotAnswered` when it has no answer at all. Nothing here depends on
        the owner's value: that a client stays away is seen."""
        try:
            question = read_question(plan.task, plan.rounds)
        except InvalidParameter as problem:
            raise NotAnswered(f"the plan asks nothing that can be answered: {problem}") from None
        answer = self._answer_to(question)
        self._asked = (question.query, answer)
        return question.answers

    def _answer_to(self, question: Question) -> Answer:
        found = self._answers.get(question.about) or self._answers.get("")
        if found is None:
            raise NotAnswered(f"this client answers nothing about {question.about!r}")
        if question.query.kind not in found.kinds:
            raise NotAnswered(f"this client answers no {question.query.kind} here")
        return found

    def value(self, model: bytes) -> NDArray[Any]:
        """The owner's value as this round asks for it, not yet randomized."""
        if self._asked is None:
            raise NotAnswered("no question has been accepted yet")
        query, answer = self._asked
        try:
            found = answer.value()
        except InvalidParameter:  # no file, row or value: nothing is an answer too
            found = None
        encoded = query.encode_any(found)
        return np.asarray(query.asked(encoded, asked_index(model)))
