"""Clients that lie together in a survey: do they move a figure further than is proved, or as far?

The attack plays what ships. The colluding clients report in every round and try every report there is (or some of the
shipped randomizer); they keep to the one that drives a figure up most, and in another run of the same coins to the one
that drives it down most. The two answers differ by no more than the stated bound, or the bound is false. Bytes that are
no report are thrown in and must be dropped.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.audit.finding import Verdict
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import rounded_down, rounded_up
from dpcheckin.randomizers import SeededSource
from dpcheckin.randomizers.formats import FloatRows, IntegerRows
from dpcheckin.survey import Estimate, HeavyHitters, Quantiles, Query, Survey
from dpcheckin.survey.estimates import check_clients

MOST_KINDS = 4096
"""Reports that are all tried; of larger sets some are drawn by the randomizer."""
_DRAWN = 4
_ROUND_OFF = 1 + 1e-9


def wanted_share(survey: Survey) -> float:
    """The part of the bound that the attack on a survey reaches at least; a property of the bound's proof.

    One mean is moved as far as is proved. In a tree the bound lets reports leave the level where they help most and
    enter the next, both at the worst honest reports; and a quantile is bounded as if every edge of the distribution
    function were moved furthest at once.
    """
    if survey.query.reach(survey.plan).shape[1] == 1:
        return 0.9
    return 0.1 if isinstance(survey.query, Quantiles) else 0.5


@dataclass(frozen=True, slots=True)
class InfluenceFinding:
    """How far colluding clients came with one figure, beside what is proved of it (`bound`).

    `moved` is between the attack upwards and the one downwards, `moved_from_honest` the larger of the two against
    honest reports of the same clients. `malformed` strings of bytes are no report, of which the decoder `dropped` so
    many. With less than `wanted_share` of the bound, which this attack is known to reach, it says nothing.
    """

    name: str
    figure: str
    clients: int
    bound: float
    moved: float
    moved_from_honest: float
    malformed: int
    dropped: int
    wanted_share: float
    seed: int

    @property
    def share(self) -> float:
        """Of the bound that the attack reached."""
        return self.moved / self.bound

    @property
    def verdict(self) -> Verdict:
        """Violated, not violated, or so far from the bound that it says nothing."""
        most = max(self.moved, self.moved_from_honest)
        if most > self.bound * _ROUND_OFF or self.dropped != self.malformed:
            return Verdict.VIOLATED
        return Verdict.NOT_VIOLATED if self.share >= self.wanted_share else Verdict.INCONCLUSIVE

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.clients:,} colluding clients move {self.figure} by at most "
            f"{rounded_up(self.bound)}, proved; the attack moved it by {rounded_down(self.moved)} "
            f"({rounded_down(100 * self.share, 3)}%), {rounded_down(self.moved_from_honest)} from "
            f"honest reports. {self.dropped} of {self.malformed} malformed reports were dropped. "
            f"{self.verdict.sentence}"
        )

    def to_json(self) -> dict[str, Any]:
        """A plain object for JSON."""
        return {**asdict(self), "share": self.share, "verdict": self.verdict.value}


@dataclass(frozen=True)
class InfluenceAttack:
    """Clients that lie in a survey: the first so many, not everybody, of those with values; a seed draws all."""

    survey: Survey
    values: Any
    clients: int
    seed: int = 0

    def __post_init__(self) -> None:
        check_clients(self.clients, self.survey.population, "colluding_clients")
        if not 0 < self.clients < self.survey.population:
            allowed = f"a whole number from 1 to {self.survey.population - 1:,}"
            raise InvalidParameter("colluding_clients", self.clients, allowed)

    def play(self) -> InfluenceFinding:
        """Try every report, keep the two that go furthest, and compare with the bound."""
        honest = self._answer(self._own)
        tried = [self._answer([kind] * self.clients) for kind in self._kinds()]
        figures = [_by_name(estimate) for estimate in tried]
        shared = set(_by_name(honest)).intersection(*figures)
        best: tuple[float, str, Estimate, Estimate] | None = None
        for name in sorted(shared):
            line = [estimate[name] for estimate in figures]
            up, down = tried[int(np.argmax(line))], tried[int(np.argmin(line))]
            bound = min(self._bound(up, name), self._bound(down, name))
            share = (max(line) - min(line)) / bound if bound > 0 else 0.0
            if best is None or share > best[0]:
                best = (share, name, up, down)
        if best is None:
            raise InvalidParameter("population", self.survey.population, "enough to list a value")
        return self._found(best[1], best[2], best[3], honest)

    def _found(self, name: str, up: Estimate, down: Estimate, honest: Estimate) -> InfluenceFinding:
        high, low, plain = (_by_name(one)[name] for one in (up, down, honest))
        garbage = sum(map(len, self._garbage))
        return InfluenceFinding(
            name=f"{self.survey.query.kind}, {self.survey.randomizer.describe()}, "
            f"{self.survey.population:,} clients, {self.survey.rounds:,} × {self.survey.rate:g}",
            figure=name,
            clients=self.clients,
            bound=min(self._bound(up, name), self._bound(down, name)),
            moved=high - low,
            moved_from_honest=max(high - plain, plain - low),
            malformed=garbage,
            dropped=min(one.dropped for one in (up, down, honest)),
            wanted_share=wanted_share(self.survey),
            seed=self.seed,
        )

    def _bound(self, estimate: Estimate, name: str) -> float:
        each = self.survey.moves(self.clients, estimate)
        return float(each[estimate.names.index(name)])

    @cached_property
    def _rounds(self) -> list[tuple[list[bytes], list[bytes]]]:
        """The bytes of all other clients and, were they honest, of the colluding ones."""
        query, made = self.survey.query, self.survey.randomizer
        encoded, form = query.encode(self.values), made.report_format
        source, rounds = SeededSource((self.seed, 83)), []
        for index in range(self.survey.rounds):
            there = self.survey.plan.cohort(self.seed, index).clients
            liars = there < self.clients
            asked = [query.asked(encoded[there[who]], index) for who in (~liars, liars)]
            others, own = (form.encode(made.randomize(some, source)) for some in asked)
            rounds.append((others, own))
        return rounds

    @cached_property
    def _own(self) -> list[list[bytes]]:
        return [own for _, own in self._rounds]

    @cached_property
    def _garbage(self) -> list[list[bytes]]:
        """What no client could have sent: too short, too long, out of range."""
        size = self.survey.report_bytes
        return [[b"", b"\x00" * (size + 1), b"\xff" * size] for _ in range(self.survey.rounds)]

    def _answer(self, hostile: Sequence[bytes] | Sequence[list[bytes]]) -> Estimate:
        """What shipped decoder and estimator make of honest reports and hostile ones, alike in each round or not."""
        survey, kept, dropped = self.survey, [], 0
        for index, (others, own) in enumerate(self._rounds):
            sent: Sequence[Any] = hostile
            if hostile and isinstance(hostile[0], list):
                sent = hostile[index]
            elif index % survey.query.stages < survey.query.stages - 1:
                sent = own  # what is listed is decided before; the last stage counts
            payloads = [*others, *sent, *self._garbage[index]]
            rows, bad = survey.query.decode(payloads, survey.plan)
            kept.append(rows)
            dropped += bad
        estimate = survey.estimate(kept)
        return replace(estimate, dropped=estimate.dropped + dropped)

    def _kinds(self) -> list[bytes]:
        """The bytes of every report there is, or of some that the randomizer makes."""
        query, made = self.survey.query, self.survey.randomizer
        form = made.report_format
        if isinstance(form, FloatRows):
            axes = np.eye(form.width)
            return form.encode(np.concatenate([axes, -axes]))
        if isinstance(form, IntegerRows) and math.prod(form.limits) <= MOST_KINDS:
            table = np.indices(form.limits).reshape(form.width, -1).T
            every = form.encode(table[:, 0] if form.width == 1 else table)
            rows, _ = query.decode(every, self.survey.plan)
            return form.encode(rows)
        return form.encode(made.randomize(self._targets(), SeededSource((self.seed, 89))))

    def _targets(self) -> NDArray[Any]:
        """Values whose reports are tried, each a few times."""
        query = self.survey.query
        encoded = query.asked(query.encode(self.values), self.survey.rounds - 1)
        words, counts = np.unique(encoded, return_counts=True)
        if isinstance(query, HeavyHitters):  # an estimate takes long, and a report hits or misses
            return np.repeat(words[np.argsort(-counts, kind="stable")[:2]], 4)
        return np.repeat(words, _DRAWN)


def _by_name(estimate: Estimate) -> dict[str, float]:
    return dict(zip(estimate.names, estimate.values.tolist(), strict=True))


POPULATION, LOCAL_EPSILON = 1000, 4.0


def _cases() -> Iterator[tuple[Query, str]]:
    """Every question that is attacked, with each of its randomizers."""
    for question in tomllib.loads(Path(__file__).with_name("surveys.toml").read_text("utf-8"))["question"]:
        for randomizer in question.pop("randomizers"):
            yield Query.from_document(question), randomizer


def attacked_surveys(
    kind: str | None = None,
    randomizer: str | None = None,
    population: int = POPULATION,
    local_epsilon: float = LOCAL_EPSILON,
    rate: float = 1.0,
    rounds: int | None = None,
) -> list[tuple[Survey, Any]]:
    """Surveys to attack, each with a value for every client of the population.

    Of one `kind` of question and by one `randomizer` of it, all of a small selection if left out; `local_epsilon` is
    that of one report, `rate` the probability of reporting in a round; without `rounds` there are as few as the
    question needs.
    """
    every = list(_cases())
    known = tuple(dict.fromkeys(query.kind for query, _ in every))
    if kind is not None and kind not in known:
        raise InvalidParameter("question", kind, "one of " + ", ".join(known))
    if kind is None and randomizer is not None:
        raise InvalidParameter("randomizer", randomizer, "given with --question")
    cases = [(query, way) for query, way in every if kind in (None, query.kind)]
    if randomizer is not None:
        cases = [(cases[0][0], randomizer)]
    return [
        (Survey(query, population, local_epsilon, way, rate, rounds or query.stages), _values(query.kind, population))
        for query, way in cases
    ]


def _values(kind: str, people: int) -> Any:
    """The same every time: what is attacked is the estimator, not the data."""
    draw = np.random.default_rng(5)
    if kind == "count":
        return (draw.random(people) < 0.3).astype(np.int64)
    if kind == "histogram":
        return np.minimum(draw.geometric(0.15, people) - 1, 19)
    if kind == "vector-mean":
        return draw.standard_normal((people, 5)) / 4
    if kind == "heavy-hitters":
        return np.where(draw.random(people) < 0.4, draw.integers(1, 4, people), 99)
    return 100 * draw.beta(2, 2, people)
