"""The catalogue of published bounds, each labelled as what it is; a paper's entries stand in its `bounds`.

Refuted entries compute what the paper printed; `BoundValue.guaranteed_epsilon` refuses them.
"""

from __future__ import annotations

from dpcheckin.numerals import Kind
from dpcheckin.papers.entry import CHECK_IN, BoundValue, PublishedBound, Setting
from dpcheckin.papers.others import bounds as others
from dpcheckin.papers.p0 import bounds as p0
from dpcheckin.papers.p1 import bounds as p1
from dpcheckin.papers.p2 import bounds as p2
from dpcheckin.papers.p3 import bounds as p3
from dpcheckin.papers.p4 import bounds as p4


def catalogue() -> tuple[PublishedBound, ...]:
    """Every entry, paper by paper: what they build on first, then those about one protocol."""
    return others.ENTRIES + p1.ENTRIES + p3.ENTRIES + p4.ENTRIES + p0.ENTRIES + p2.ENTRIES


def evaluate(setting: Setting, kinds: frozenset[Kind] = frozenset(Kind)) -> list[BoundValue]:
    """Every bound of these kinds about the setting's protocol: those that apply first, least epsilon first.

    Refuted claims are the slow ones.
    """
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
