"""Rounds of check-ins as events of dp-accounting, for accountants that mix them with others.

`CheckInEvent` carries a round; `event_distribution` turns it into dp-accounting's own privacy loss
distribution, and `CheckInPLDAccountant` is its PLD accountant taught about the event.
"""

from __future__ import annotations

import math
from typing import Any

from dpcheckin.accounting.engine.loss import dominating
from dpcheckin.accounting.rounds.base import Round
from dpcheckin.display import needed

needed("dp_accounting", "bridge")  # one line that says what to install

import attr  # noqa: E402
import dp_accounting  # noqa: E402
from dp_accounting.pld import pld_pmf, privacy_loss_distribution  # noqa: E402
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant  # noqa: E402


@attr.define(frozen=True, slots=True, auto_attribs=True)
class CheckInEvent(dp_accounting.DpEvent):  # type: ignore[misc]
    """One round of shuffled check-in, subsampled or full shuffle."""

    round: Round


def event_distribution(
    one: Round, interval: float = 1e-4, smallest_delta: float = 1e-15
) -> privacy_loss_distribution.PrivacyLossDistribution:
    """A dominating loss distribution on dp-accounting's grid (pessimistic, replace-one)."""
    ((curve, _),) = one.curves(smallest_delta)
    points = math.ceil(curve.reach(smallest_delta) / interval) + 3
    distribution = dominating(interval, curve.upper(interval, points))
    infinity = min(distribution.infinite, 1.0)
    pmf = pld_pmf.DensePLDPmf(interval, -distribution.reach, distribution.masses(), infinity, True)
    return privacy_loss_distribution.PrivacyLossDistribution(pmf)


class CheckInPLDAccountant(PLDAccountant):  # type: ignore[misc]
    """dp-accounting's PLD accountant, which also composes `CheckInEvent`s.

    Its relation is replace-one, as all statements of this package. Below delta = 1e-10 use our own
    composition: dp-accounting does not charge the round-off of its FFT (see the tests).
    """

    def __init__(self, value_discretization_interval: float = 1e-4) -> None:
        super().__init__(
            dp_accounting.NeighboringRelation.REPLACE_ONE, value_discretization_interval
        )

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        if isinstance(event, CheckInEvent):
            if do_compose:
                pld = event_distribution(event.round, self._value_discretization_interval)
                self._pld: Any = self._pld.compose(pld.self_compose(count))
            return None
        return super()._maybe_compose(event, count, do_compose)
