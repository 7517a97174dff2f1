"""The catalogue of published bounds, each labelled as what it is; a paper's entries stand in its `catalogue.toml`.

Refuted entries compute what the paper printed; `BoundValue.guaranteed_epsilon` refuses them.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from dpcheckin.numerals import Kind
from dpcheckin.papers.entry import CHECK_IN, BoundValue, PublishedBound, Setting
from dpcheckin.papers.tables import function, tables


@cache
def catalogue() -> tuple[PublishedBound, ...]:
    """Every entry, paper by paper: what they build on first, then those about one protocol."""
    known = tables("catalogue.toml")
    return tuple(
        _entry(**bound) for paper in ("others", "p1", "p3", "p4", "p0", "p2") for bound in known[paper]["bound"]
    )


def _entry(kind: str, protocols: list[str], compute: str, **said: Any) -> PublishedBound:
    computed = function(compute, said.pop("with", None))
    return PublishedBound(kind=Kind(kind), protocols=tuple(protocols), compute=computed, **said)


class Step(NamedTuple):
    """A lemma, or another statement that bounds no run by itself; `code` are the places of what computes or uses it."""

    paper: str
    theorem: str
    statement: str
    kind: Kind
    code: tuple[str, ...]


def steps() -> tuple[Step, ...]:
    """The statements of that kind, paper by paper."""
    every = (step for table in tables("catalogue.toml").values() for step in table.get("steps", ()))
    return tuple(Step(paper, theorem, said, Kind(kind), tuple(code)) for paper, theorem, said, kind, *code in every)


def evaluate(setting: Setting, kinds: frozenset[Kind] = frozenset(Kind)) -> list[BoundValue]:
    """Every bound of these kinds about the setting's protocol: those that apply first, least epsilon first."""
    values = [
        bound.evaluate(setting) for bound in catalogue() if setting.protocol in bound.protocols and bound.kind in kinds
    ]
    return sorted(values, key=lambda v: (v.epsilon is None, v.epsilon or 0.0, v.name))


def published_bounds(
    population: int,
    rate: float,
    local_epsilon: float | None,
    rounds: int,
    delta: float,
    *,
    local_delta: float = 0.0,
    noise_multiplier: float | None = None,
) -> list[BoundValue]:
    """What the literature says about shuffled check-in of a population at this rate, for so many rounds.

    A report has a local_epsilon, perhaps with a local_delta; it is None for Gaussian reports, which have a
    noise_multiplier, in clipping norms. delta is of the whole run.

    >>> values = published_bounds(10_000, 0.01, 2.0, 100, 1e-4)
    >>> [str(v.kind) for v in values if v.name == "P1 approach 2"]
    ['refuted claim']
    """
    run = Setting(
        CHECK_IN, population, rounds, delta, rate,
        local_epsilon=local_epsilon, local_delta=local_delta, noise_multiplier=noise_multiplier,
    )  # fmt: skip
    return evaluate(run)
