"""A survey played on given values: who reports, what is reported, and what follows from it.

Every draw is a function of the seed and the round, so a run that was killed goes on as if nothing had happened:
finished rounds are read from the run's folder, the others are played.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpcheckin.display import Tabular
from dpcheckin.errors import InvalidParameter
from dpcheckin.files import replacing
from dpcheckin.randomizers import SeededSource
from dpcheckin.randomizers.formats import Reports
from dpcheckin.survey.data import CATEGORY, settled
from dpcheckin.survey.estimates import Estimate, Figures
from dpcheckin.survey.questions.query import Values
from dpcheckin.survey.surveys import Survey

CHUNK = 100_000
_RANDOMIZING = 11

OnProgress = Callable[[int, int, int], None]
"""Told of every chunk: the round, reports of it made so far, and reports it will have."""


@dataclass(frozen=True, eq=False)
class Outcome(Tabular):
    """What came of a survey that was simulated from a seed: the estimate, and the truth without noise.

    The truth is that of values clipped as clients clip them: so many (`clipped`) were, and are `beyond` this in words.
    What became of `missing` values is a sentence, empty if there were none.
    """

    survey: Survey
    estimate: Estimate
    truth: Figures
    seed: int
    clipped: int = 0
    beyond: str = ""
    missing: str = ""

    def records(self) -> list[dict[str, Any]]:
        """One row for every figure: its estimate, interval and truth."""
        e = self.estimate
        columns = zip(e.names, e.values, e.lower, e.upper, self.truth, strict=True)
        names = ("name", "estimate", "lower", "upper", "truth")
        return [dict(zip(names, (str(name), *map(float, figures)), strict=True)) for name, *figures in columns]

    @property
    def caption(self) -> str:
        sort = "simultaneous " if self.estimate.simultaneous else ""
        moved = f"; {self.notice}" if self.notice else ""
        return f"{self.survey.query.kind}, {sort}intervals at {self.estimate.confidence:g}{moved}"

    @property
    def notice(self) -> str:
        """That the truth is not that of the values as they were given; empty where it is."""
        of = f"{self.clipped:,} of {self.survey.population:,} values"
        cut = f"{of} are {self.beyond}: estimate and truth are of clipped values" if self.clipped else ""
        return "; ".join(filter(None, (self.missing, cut)))


def silent(*_: int) -> None:
    """Somebody who does not want to be told."""


def one_round(survey: Survey, values: Values, seed: int, index: int, on_progress: OnProgress = silent) -> Reports:
    """The reports of a survey's round of this index, in the order of the shuffler.

    The values are encoded, one a client; every draw follows from the seed; `on_progress` is told how far the round is.
    """
    clients = survey.plan.cohort(seed, index).clients
    source = SeededSource((seed, _RANDOMIZING, index))
    parts = []
    on_progress(index, 0, len(clients))
    for start in range(0, len(clients), CHUNK):
        asked = survey.query.asked(values[clients[start : start + CHUNK]], index)
        parts.append(survey.randomizer.randomize(asked, source))
        on_progress(index, min(start + CHUNK, len(clients)), len(clients))
    if not parts:
        return np.asarray(survey.randomizer.randomize(values[:0], source))
    reports = np.concatenate(parts)
    order = SeededSource((seed, _RANDOMIZING + 1, index)).generator.permutation(len(reports))
    return np.asarray(reports[order])


def simulate(
    survey: Survey,
    values: Any,
    seed: int = 0,
    *,
    confidence: float = 0.95,
    simultaneous: bool = False,
    folder: Path | None = None,
    on_progress: OnProgress = silent,
    missing: str = "refuse",
) -> Outcome:
    """Play a survey on raw values, one for each client of its population; every draw follows from the seed.

    Intervals have this confidence, all of them at once if `simultaneous`. Finished rounds are kept in the folder, where
    a run of the same survey goes on; `on_progress` is told how far the run is. Clients without a value are not allowed,
    or left out (`missing` is "drop": the population is the others), or of the category "missing" ("category").

    >>> from dpcheckin.survey import Histogram
    >>> asked = Survey(Histogram(("no", "yes")), population=1000, local_epsilon=4.0)
    >>> outcome = simulate(asked, ["yes"] * 600 + ["no"] * 400, seed=1)
    >>> bool(abs(outcome.estimate.values[1] - 600) < 40)
    True
    """
    names = getattr(survey.query, "names", ())
    if missing == "category" and not any(str(name).endswith(CATEGORY) for name in names):
        raise InvalidParameter("missing", missing, f"refuse or drop, or a histogram with a category {CATEGORY!r}")
    values, told = settled(values, survey.query.kind, missing)
    encoded = survey.query.encode(values)
    if len(encoded) != survey.population:
        of = "clients that have a value: plan for them" if told else "values given"
        raise InvalidParameter("population", survey.population, f"the {len(encoded):,} {of}")
    kept = None if folder is None else _rounds_folder(folder, survey, encoded, seed)
    rounds = []
    for index in range(survey.rounds):
        file = None if kept is None else kept / f"round-{index:04}.npy"
        if file is not None and file.exists():
            reports = _read(file)
        else:
            reports = one_round(survey, encoded, seed, index, on_progress)
            if file is not None:
                _write(file, reports)
        on_progress(index, len(reports), len(reports))
        rounds.append(reports)
    estimate = survey.estimate(rounds, confidence, simultaneous)
    truth = survey.query.truth(values, estimate)
    return Outcome(survey, estimate, truth, seed, *survey.query.clipped(values), missing=told)


def _rounds_folder(out: Path, survey: Survey, values: Values, seed: int) -> Path:
    """Where finished rounds of a run are kept; a folder with those of another run is refused."""
    folder = out / "rounds"
    folder.mkdir(parents=True, exist_ok=True)
    run = json.dumps({"survey": survey.as_document(), "seed": seed}, sort_keys=True)
    data = np.ascontiguousarray(values).tobytes()
    mark = hashlib.sha256(run.encode() + data).hexdigest()
    path = folder / "run.json"
    if path.exists() and json.loads(path.read_text()).get("fingerprint") != mark:
        raise InvalidParameter("out", str(out), "an empty folder or one with a run of exactly these settings")
    path.write_text(json.dumps({"fingerprint": mark}) + "\n")
    return folder


def _read(file: Path) -> Reports:
    kept = np.load(file, allow_pickle=False)
    return np.asarray(kept.astype(np.int64) if kept.dtype.kind in "iu" else kept)


def _write(file: Path, reports: Reports) -> None:
    """Keep a round, in the smallest integers that hold its reports."""
    if reports.dtype.kind in "iu" and reports.size:
        reports = reports.astype(np.min_scalar_type(int(reports.max())))
    with replacing(file, "wb") as stream:
        np.save(stream, reports)
