"""A survey played on given values: who reports, what is reported, and what follows from it.

Every draw is a function of the seed and the round, so a run that was killed goes on as if nothing
had happened: finished rounds are read from the run's folder, the others are played.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpcheckin.display import Tabular
from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import SeededSource
from dpcheckin.randomizers.formats import Reports
from dpcheckin.survey.estimates import Estimate, Figures
from dpcheckin.survey.questions.query import Values
from dpcheckin.survey.surveys import Survey

CHUNK = 100_000
_RANDOMIZING = 11

OnProgress = Callable[[int, int, int], None]
"""Told of every chunk: the round, reports of it made so far, and reports it will have."""


@dataclass(frozen=True, eq=False)
class Outcome(Tabular):
    """What came of a simulated survey.

    Args:
        survey: that was played.
        estimate: from the reports of all rounds.
        truth: the figures without noise, of values that were clipped as clients clip them.
        seed: of every draw.
        clipped: how many values were, if any.
        beyond: what they are beyond, in words.
    """

    survey: Survey
    estimate: Estimate
    truth: Figures
    seed: int
    clipped: int = 0
    beyond: str = ""

    def records(self) -> list[dict[str, Any]]:
        """One row for every figure: its estimate, interval and truth."""
        e = self.estimate
        columns = zip(e.names, e.values, e.lower, e.upper, self.truth, strict=True)
        names = ("name", "estimate", "lower", "upper", "truth")
        return [
            dict(zip(names, (str(name), *map(float, figures)), strict=True))
            for name, *figures in columns
        ]

    @property
    def caption(self) -> str:
        sort = "simultaneous " if self.estimate.simultaneous else ""
        moved = f"; {self.notice}" if self.clipped else ""
        return f"{self.survey.query.kind}, {sort}intervals at {self.estimate.confidence:g}{moved}"

    @property
    def notice(self) -> str:
        """That the truth is not that of the values as they were given; empty where it is."""
        if not self.clipped:
            return ""
        of = f"{self.clipped:,} of {self.survey.population:,} values"
        return f"{of} are {self.beyond}: estimate and truth are of clipped values"


def one_round(survey: Survey, values: Values, seed: int, index: int) -> Reports:
    """The reports of one round, in the order of the shuffler.

    Args:
        survey: to play.
        values: encoded, one a client.
        seed: of every draw.
        index: of the round.
    """
    return _played(survey, values, seed, index, lambda *_: None)


def simulate(
    survey: Survey,
    values: Any,
    seed: int = 0,
    *,
    confidence: float = 0.95,
    simultaneous: bool = False,
    folder: Path | None = None,
    on_progress: OnProgress = lambda *_: None,
) -> Outcome:
    """Play a survey on one value a client.

    Args:
        survey: to play.
        values: raw, as many as the survey's population.
        seed: of every draw.
        confidence: of the intervals.
        simultaneous: whether all intervals are to hold at once.
        folder: where finished rounds are kept; a run of the same survey goes on there.
        on_progress: told how far the run is.

    >>> from dpcheckin.survey import Histogram
    >>> asked = Survey(Histogram(("no", "yes")), population=1000, local_epsilon=4.0)
    >>> found = simulate(asked, ["yes"] * 600 + ["no"] * 400, seed=1)
    >>> bool(abs(found.estimate.values[1] - 600) < 40)
    True
    """
    encoded = survey.query.encode(values)
    if len(encoded) != survey.population:
        raise InvalidParameter(
            "population", survey.population, f"the {len(encoded):,} values given"
        )
    store = _Rounds(folder, survey, encoded, seed)
    rounds = []
    for index in range(survey.rounds):
        reports = store.read(index)
        if reports is None:
            reports = _played(survey, encoded, seed, index, on_progress)
            store.write(index, reports)
        on_progress(index, len(reports), len(reports))
        rounds.append(reports)
    estimate = survey.estimate(rounds, confidence, simultaneous)
    truth = survey.query.truth(values, estimate)
    return Outcome(survey, estimate, truth, seed, *survey.query.clipped(values))


def _played(
    survey: Survey, values: Values, seed: int, index: int, on_progress: OnProgress
) -> Reports:
    clients = survey.plan.cohort(seed, index).clients
    source = SeededSource((seed, _RANDOMIZING, index))
    parts = []
    on_progress(index, 0, len(clients))
    for start in range(0, len(clients), CHUNK):
        some = survey.query.asked(values[clients[start : start + CHUNK]], index)
        parts.append(survey.randomizer.randomize(some, source))
        on_progress(index, min(start + CHUNK, len(clients)), len(clients))
    if not parts:
        return np.asarray(survey.randomizer.randomize(values[:0], source))
    reports = np.concatenate(parts)
    order = SeededSource((seed, _RANDOMIZING + 1, index)).generator.permutation(len(reports))
    return np.asarray(reports[order])


class _Rounds:
    """Finished rounds on disk, one file each, written whole or not at all."""

    def __init__(self, folder: Path | None, survey: Survey, values: Values, seed: int) -> None:
        self._folder = None if folder is None else folder / "rounds"
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        run = json.dumps({"survey": survey.as_document(), "seed": seed}, sort_keys=True)
        data = np.ascontiguousarray(values).tobytes()
        mark = hashlib.sha256(run.encode() + data).hexdigest()
        path = self._folder / "run.json"
        if path.exists() and json.loads(path.read_text()).get("fingerprint") != mark:
            raise InvalidParameter(
                "out", str(folder), "an empty folder or one with a run of exactly these settings"
            )
        path.write_text(json.dumps({"fingerprint": mark}) + "\n")

    def read(self, index: int) -> Reports | None:
        """The reports of a finished round."""
        if self._folder is None or not self._file(index).exists():
            return None
        kept = np.load(self._file(index), allow_pickle=False)
        return np.asarray(kept.astype(np.int64) if kept.dtype.kind in "iu" else kept)

    def write(self, index: int, reports: Reports) -> None:
        """Keep a round."""
        if self._folder is None:
            return
        if reports.dtype.kind in "iu" and reports.size:
            reports = reports.astype(np.min_scalar_type(int(reports.max())))
        fresh = self._file(index).with_suffix(".new")
        with fresh.open("wb") as file:
            np.save(file, reports)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self._file(index))

    def _file(self, index: int) -> Path:
        assert self._folder is not None
        return self._folder / f"round-{index:04}.npy"
