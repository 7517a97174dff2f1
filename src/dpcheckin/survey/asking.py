"""Questions as they are typed: kinds with options, the columns of a file that answer them, several in one TOML file.

    [[question]]
    kind = "histogram"
    column = "way"
    categories = ["car", "bus"]
    by = "region"                  # a histogram within each group, by one report
    groups = ["north", "south"]

Beside kind, column, by, name and `weight` (of the budget; 1 if left out), a question takes the options of the command
line that are about it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import positive
from dpcheckin.options import options_of, read_as
from dpcheckin.survey.data import CATEGORY, read_columns, settled
from dpcheckin.survey.options import SurveyOptions
from dpcheckin.survey.questions.histogram import Histogram
from dpcheckin.survey.questions.query import Query

_COMMON = {
    "population",
    "epsilon",
    "delta",
    "error",
    "largest_local_epsilon",
    "confidence",
    "simultaneous",
    "colluding",
}
_KEYS = {one.name: one for one in options_of(SurveyOptions) if one.name not in _COMMON | {"colluding_clients"}}
_OWN: dict[str, type[Any]] = {"kind": str, "column": str, "by": str, "name": str, "weight": float}


@dataclass(frozen=True)
class Question:
    """A question of a `kind` with its `options`, answered by a `column` of a file (several with commas for vectors).

    Histograms may be asked within the groups of another column (`by`). Of the budget of several questions this one has
    its part by `weight`.
    """

    kind: str
    options: SurveyOptions
    column: str | None = None
    by: str | None = None
    name: str = ""
    weight: float = 1.0

    def query(self) -> Query:
        """What is asked, by the options alone."""
        return self.options.query(self.kind)

    def answers(self, data: Path) -> tuple[Any, Query, str]:
        """The values of the file `data`, the query, and what was done about what is missing or was not said.

        Bounds, categories and groups must be public knowledge. What is no value of the question is refused here.
        """
        if not self.column:
            raise InvalidParameter("column", self.column, f"a column of {data}")
        if self.by is not None and self.kind != "histogram":
            raise InvalidParameter("by", self.by, "left out: only a histogram is asked within groups")
        if self.options.groups is not None and self.by is None:
            raise InvalidParameter("by", None, "the column of the groups")
        several = self.kind == "vector-mean" or self.by is not None
        parted = self.column.split(",") if self.kind == "vector-mean" else [self.column]
        columns = tuple(part.strip() for part in (*([self.by] if self.by else []), *parted))
        given = read_columns(data, columns, empty=self.options.missing != "refuse")
        try:
            values, told = settled(given if several else given[:, 0], self.kind, self.options.missing)
            query, guessed = self._asked(values, len(parted))
            query.encode(values)
        except InvalidParameter as problem:
            if problem.name != "values":
                raise
            place = " within ".join(filter(None, (self.column, self.by)))
            raise InvalidParameter("data", f"{problem.value} in {place}", problem.allowed) from None
        return values, query, "; ".join(filter(None, (told, guessed)))

    def _asked(self, values: Any, entries: int) -> tuple[Query, str]:
        """The query, with categories and groups as they are found in the values where none were said."""
        if self.kind != "histogram":
            return replace(self.options, dimension=entries).query(self.kind), ""
        asked, guessed = self._named("categories", values[:, -1] if self.by else values)
        if self.by is None:
            return asked, guessed
        groups, more = self._named("groups", values[:, 0])
        return asked.within(groups.names), "; ".join(filter(None, (guessed, more)))

    def _named(self, option: str, column: Any) -> tuple[Histogram, str]:
        """Categories as an option says, or else as the column has them, and a word about that."""
        said = self.options.names(option)
        if said is None:
            found = tuple(sorted(set(map(str, column))))
            return Histogram(found), f"the {len(found):,} {option} are taken from the data, as if they were public"
        asked = Histogram(said)
        if self.options.missing == "category":
            return Histogram(tuple(dict.fromkeys((*asked.names, CATEGORY)))), ""
        return asked, ""


def questions(path: Path, common: SurveyOptions) -> tuple[Question, ...]:
    """The questions of the TOML file at `path`, each with the options that all have in `common` and its own."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise InvalidParameter("kind", str(path), f"a TOML file of questions ({problem})") from None
    asked = tables.get("question")
    if set(tables) != {"question"} or not isinstance(asked, list) or not asked:
        raise InvalidParameter("kind", str(path), "a TOML file with a [[question]] for each, and nothing else")
    made = tuple(_question(table, common, place) for place, table in enumerate(asked, 1))
    names = [one.name for one in made]
    for name in names:
        if names.count(name) > 1 or not name or name != Path(name).name or name in (".", ".."):
            raise InvalidParameter("name", name, "a word for each question that names its folder, no two alike")
    return made


def _question(table: Mapping[str, Any], common: SurveyOptions, place: int) -> Question:
    given: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _KEYS and key not in _OWN:
            raise InvalidParameter(f"question {place}", key, f"one of {', '.join(sorted({*_KEYS, *_OWN}))}")
        kind = _OWN[key] if key in _OWN else _KEYS[key].scalar
        given[key] = read_as(f"{key} (question {place})", kind, _text(key, value))
    own = {name: given.pop(name) for name in _OWN if name in given}
    if "kind" not in own:
        raise InvalidParameter("kind", None, f"given in question {place}")
    positive("weight", own.get("weight", 1.0))
    options = replace(common, **given)
    if own["kind"] not in ("histogram", "vector-mean"):  # of these the data may say the rest
        options.query(own["kind"])
    return Question(**{"name": own.get("column", f"question-{place}"), **own, "options": options})


def _text(key: str, value: Any) -> str:
    """A value of a TOML file as it would be typed."""
    if not isinstance(value, list):
        return str(value)
    strange = next((one for one in value if "," in str(one)), None)
    if strange is not None:
        raise InvalidParameter(key, strange, "names without commas, or @FILE with a name a line")
    return ",".join(map(str, value))
