"""How frozen questions are asked, compared and written; the questions are in `frozen_questions.py`.

`python tests/accounting/frozen_figures.py --write` asks every question and writes the answers anew,
with the seconds each took when `--times` is given. Do so only when a figure changes for a reason
that can be named.

Equal means equal to all digits on the processor where the answers were written. Another one takes
other vector instructions and another BLAS kernel and adds in another order. Grids and transforms
then differ by up to 1e-10 of a figure, and a search for the epsilon of a single round, which ends
within 1e-9 of the crossing and then steps to its safe side, may take one step more or less; a run
whose reports are tuned first differed by 5.3e-9 under the Prescott kernel. So a relative difference
of `TOLERANCE` is let pass, far below the digits that are printed. Integers,
infinities, zeros, kinds and messages always match exactly. `DPCHECKIN_FROZEN=exact` lets nothing
pass: use it, on one machine, to show that moving code changed no figure.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import os
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from frozen_questions import questions

from dpcheckin import accounting
from dpcheckin.cli import main
from dpcheckin.errors import DpCheckinError

FILE = Path(__file__).with_name("frozen_figures.json")
TOLERANCE = 1e-8
EXACT = os.environ.get("DPCHECKIN_FROZEN") == "exact"

# Rows of a comparison whose figure (first) or whose standing (second) is under revision.
UNSETTLED_FIGURES = ("P0 Eq. 18",)
UNSETTLED_KINDS = ("P1 Thm 5", "P0 Thm 5")

Answer = Any  # what JSON can hold
_NAMES = {name: getattr(accounting, name) for name in accounting.__all__} | {"math": math, "np": np}


def ask(question: str) -> Answer:
    """The answer of today, as JSON can hold it; an error is answered by what it says."""
    if question.startswith("dpcheckin "):
        return _ask_command(shlex.split(question)[1:])
    try:
        said = eval(question, dict(_NAMES))
    except DpCheckinError as problem:
        return {"error": type(problem).__name__, "message": str(problem)}
    return _figures(question, said)


def _figures(question: str, said: Any) -> Answer:
    if question.startswith("guarantee("):
        return {"kind": said.kind.value, "epsilon": _ends(said.epsilon), "local": _local(said.local)}
    if question.startswith("lower_bound("):
        return said.epsilon.lower
    if question.startswith("local_guarantee("):
        return _local(said)
    return _ends(said) if hasattr(said, "upper") else float(said)


def _ends(bracket: Any) -> Answer:
    return {"lower": bracket.lower, "upper": bracket.upper}


def _local(said: Any) -> Answer:
    return {name: getattr(said, name) for name in ("report_epsilon", "report_delta", "epsilon")}


def _ask_command(arguments: list[str]) -> Answer:
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["dpcheckin", *arguments, "--json"]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code
    if code:
        *_, message = err.getvalue().strip().splitlines()  # before it there may be signs of life
        return {"exit code": code, "message": message}
    data = json.loads(out.getvalue())
    if isinstance(data, dict):
        local = data.get("local") or {}
        figures = {key: data[key] for key in _KEPT if key in data}
        figures["local"] = {key: local[key] for key in _KEPT_LOCAL if key in local}
        if "lower_bound" in data:
            figures["lower_bound"] = data["lower_bound"]["epsilon"]
        return figures
    return dict(_row(row) for row in data if "source" not in row or _settled(row))


_KEPT = ("kind", "epsilon", "delta", "adjacency", "solved")
_KEPT_LOCAL = ("report_epsilon", "report_delta", "epsilon")


def _settled(row: dict[str, Any]) -> bool:
    return not row["source"].startswith(UNSETTLED_FIGURES)


def _row(row: dict[str, Any]) -> tuple[str, Answer]:
    """A row of a comparison, of one along a parameter, or of the advice on randomizers."""
    if "bounds" in row:
        place = next(f"{key} = {value:g}" for key, value in row.items() if key != "bounds")
        kept = {f"{x['name']} [{x['source']}]": x for x in row["bounds"] if _settled(x)}
        return place, {k: {"kind": x["kind"], "epsilon": x["epsilon"]} for k, x in kept.items()}
    if "source" not in row:
        return row["randomizer"], row["epsilon"]
    value: dict[str, Any] = {"epsilon": row["epsilon"]}
    if not row["source"].startswith(UNSETTLED_KINDS):
        value["kind"] = row["kind"]
    return f"{row['name']} [{row['source']}]", value


def differences(old: Answer, new: Answer, exact: bool = EXACT) -> list[str]:
    """Where the new answer is not the old one; what is only in the new one does not matter."""
    return [
        f"{place or 'answer'}: was {was!r}, is {now!r}"
        for place, was, now in _beside(old, new, "")
        if not _equal(was, now, exact)
    ]


def _beside(old: Answer, new: Answer, place: str) -> Iterator[tuple[str, Answer, Answer]]:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        yield place, old, new
        return
    for key, value in old.items():
        yield from _beside(value, new.get(key, "nothing"), f"{place}, {key}" if place else key)


def _equal(was: Answer, now: Answer, exact: bool) -> bool:
    if isinstance(was, float) and isinstance(now, float) and not exact:
        return math.isclose(was, now, rel_tol=TOLERANCE, abs_tol=0.0)
    return type(was) is type(now) and repr(was) == repr(now)


def frozen() -> dict[str, Answer]:
    """The answers as they were written."""
    read: dict[str, Answer] = json.loads(FILE.read_text(encoding="utf-8"))
    return read


def figures(answer: Answer, key: str = "") -> int:
    """How many computed numbers an answer consists of; what only repeats the question is none."""
    if isinstance(answer, dict):
        repeated = "epsilon" if isinstance(answer.get("delta"), dict) else "delta"
        return sum(figures(value, key) for key, value in answer.items() if key != repeated)
    return int(isinstance(answer, int | float) and key not in ("report_delta", "exit code"))


def _write(report: Callable[[str], None]) -> None:
    answers = {}
    for question in questions():
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            answers[question] = ask(question)
        report(f"{time.process_time() - start:6.2f} s  {question}")
    # one line for each question: a changed figure is then a changed line
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in answers.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(answers)} questions, {sum(map(figures, answers.values()))} figures: {FILE.name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Ask every frozen question.")
    parser.add_argument("--write", action="store_true", required=True, help="write the answers")
    parser.add_argument("--times", action="store_true", help="print what each question took")
    _write(print if parser.parse_args().times else lambda line: None)
