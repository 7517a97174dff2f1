"""The catalogue of published bounds, each labelled as what it is.

One entry per bound: paper (with arXiv version), theorem, statement, kind (guarantee, lower bound,
conjecture, refuted claim), erratum, and code that evaluates it or says why it does not apply.
Refuted entries compute what the paper printed; :meth:`BoundValue.guaranteed_epsilon` refuses them.
"""

from __future__ import annotations

from dpcheckin.accounting.figures import Kind
from dpcheckin.accounting.published.catalogue.check_in import ENTRIES as _CHECK_IN
from dpcheckin.accounting.published.catalogue.entry import (
    PAPERS,
    BoundValue,
    PublishedBound,
    Setting,
)
from dpcheckin.accounting.published.catalogue.random import ENTRIES as _RANDOM
from dpcheckin.accounting.published.catalogue.shuffled import ENTRIES as _SHUFFLED
from dpcheckin.accounting.published.catalogue.sums import ENTRIES as _SUMS
from dpcheckin.errors import NotAGuarantee

__all__ = [
    "PAPERS",
    "BoundValue",
    "NotAGuarantee",
    "PublishedBound",
    "Setting",
    "catalogue",
    "evaluate",
    "published_bounds",
]


def catalogue() -> tuple[PublishedBound, ...]:
    """Every entry, in the order of the papers' protocols."""
    return _SHUFFLED + _CHECK_IN + _SUMS + _RANDOM


def evaluate(setting: Setting, kinds: frozenset[Kind] = frozenset(Kind)) -> list[BoundValue]:
    """Every bound about the setting's protocol: those that apply first, least epsilon first.

    ``kinds`` leaves out what is not asked for (refuted claims are the slow ones).
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
