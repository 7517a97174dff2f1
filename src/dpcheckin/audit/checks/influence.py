"""Clients that lie together in a survey: do they move a figure further than is proved, or as far?

The attack plays what ships. Honest clients randomize, every report becomes bytes, and the decoder
and the estimator of the query make the answer. The colluding clients report in every round,
whatever their coins say, and try every report there is (or, where there are too many, reports of
the shipped randomizer); they keep to the one that drives a figure up most, and in another run of
the same coins to the one that drives it down most. The two answers differ by no more than the
stated bound, or the bound is false. Bytes that are no report are thrown in and must be dropped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting.figures import rounded_down, rounded_up
from dpcheckin.audit.finding import Verdict
from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import SeededSource
from dpcheckin.randomizers.formats import FloatRows, IntegerRows
from dpcheckin.survey import Estimate, HeavyHitters, Quantiles, Survey
from dpcheckin.survey.influence import check_clients

MOST_KINDS = 4096
"""Reports that are all tried; of larger sets some are drawn by the randomizer."""
_DRAWN = 4
_ROUND_OFF = 1 + 1e-9


def wanted_share(survey: Survey) -> float:
    """The part of the bound that the attack reaches at least; a property of the bound's proof.

    One mean is moved as far as is proved. In a tree the bound lets reports leave the level where
    they help most and enter the next, both at the worst honest reports; and a quantile is bounded
    as if every edge of the distribution function were moved furthest at once.

    Args:
        survey: that is attacked.
    """
    if survey.query.reach(survey.plan).shape[1] == 1:
        return 0.9
    return 0.1 if isinstance(survey.query, Quantiles) else 0.5


@dataclass(frozen=True, slots=True)
class InfluenceFinding:
    """How far colluding clients came, beside what is proved.

    Args:
        name: of survey and attack.
        figure: that was attacked.
        clients: how many collude.
        bound: proved of that figure.
        moved: between the attack upwards and the one downwards.
        moved_from_honest: the larger of the two, against honest reports of the same clients.
        malformed: strings of bytes that are no report.
        dropped: how many the decoder dropped.
        wanted_share: of the bound that this attack is known to reach; with less it says nothing.
        seed: of every draw.
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
    """Colluding clients in a survey.

    Args:
        survey: to attack.
        values: of all clients, as the query takes them; the first ones collude.
        clients: how many collude, at least one and not everybody.
        seed: of every draw.
    """

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
        figures = [_by_name(one) for one in tried]
        shared = set(_by_name(honest)).intersection(*figures)
        best: tuple[float, str, Estimate, Estimate] | None = None
        for name in sorted(shared):
            line = [one[name] for one in figures]
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
        source, found = SeededSource((self.seed, 83)), []
        for index in range(self.survey.rounds):
            there = self.survey.plan.cohort(self.seed, index).clients
            liars = there < self.clients
            asked = [query.asked(encoded[there[who]], index) for who in (~liars, liars)]
            others, own = (form.encode(made.randomize(some, source)) for some in asked)
            found.append((others, own))
        return found

    @cached_property
    def _own(self) -> list[list[bytes]]:
        return [own for _, own in self._rounds]

    @cached_property
    def _garbage(self) -> list[list[bytes]]:
        """What no client could have sent: too short, too long, out of range."""
        size = self.survey.report_bytes
        return [[b"", b"\x00" * (size + 1), b"\xff" * size] for _ in range(self.survey.rounds)]

    def _answer(self, hostile: Sequence[bytes] | Sequence[list[bytes]]) -> Estimate:
        """What shipped decoder and estimator make of honest reports and these.

        Args:
            hostile: of every round alike, or one list a round.
        """
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
        found = survey.estimate(kept)
        return Estimate(**{**_fields(found), "dropped": found.dropped + dropped})

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


def _fields(estimate: Estimate) -> dict[str, Any]:
    return {name: getattr(estimate, name) for name in estimate.__dataclass_fields__}
