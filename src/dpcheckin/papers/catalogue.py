"""The catalogue of published bounds, each labelled as what it is.

One entry per bound: paper (with arXiv version), theorem, statement, kind (guarantee, lower bound,
conjecture, refuted claim), erratum, and code that evaluates it or says why it does not apply.
Refuted entries compute what the paper printed; :meth:`BoundValue.guaranteed_epsilon` refuses them.
"""

from __future__ import annotations

from dpcheckin.accounting.figures import Kind
from dpcheckin.papers.entry import BoundValue, PublishedBound, Setting
from dpcheckin.papers.others import entries as others
from dpcheckin.papers.p0 import entries as p0
from dpcheckin.papers.p1 import entries as p1
from dpcheckin.papers.p2 import entries as p2
from dpcheckin.papers.p3 import entries as p3
from dpcheckin.papers.p4 import entries as p4


def catalogue() -> tuple[PublishedBound, ...]:
    """Every entry, paper by paper: what they build on first, then those about one protocol."""
    return others.ENTRIES + p1.ENTRIES + p3.ENTRIES + p4.ENTRIES + p0.ENTRIES + p2.ENTRIES


def evaluate(setting: Setting, kinds: frozenset[Kind] = frozenset(Kind)) -> list[BoundValue]:
    """Every bound about the setting's protocol: those that apply first, least epsilon first.

    Args:
        setting: The run.
        kinds: What is asked for (refuted claims are the slow ones).
    """
    values = [
        bound.evaluate(setting)
        for bound in catalogue()
        if setting.protocol in bound.protocols and bound.kind in kinds
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
    """What the literature says about shuffled check-in with these parameters.

    Args:
        population: Number of clients.
        rate: Probability that a client checks in.
        local_epsilon: Of one report, None for Gaussian reports.
        rounds: How many.
        delta: Of the whole run.
        local_delta: Of one report.
        noise_multiplier: Noise of one Gaussian report, in clipping norms.

    >>> values = published_bounds(10_000, 0.01, 2.0, 100, 1e-4)
    >>> [str(v.kind) for v in values if v.name == "P1 approach 2"]
    ['refuted claim']
    """
    return evaluate(
        Setting(
            protocol="shuffled-check-in",
            population=population,
            rounds=rounds,
            delta=delta,
            rate=rate,
            local_epsilon=local_epsilon,
            local_delta=local_delta,
            noise_multiplier=noise_multiplier,
        )
    )
