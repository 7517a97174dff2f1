"""What dp-accounting makes of our rounds: events for accountants that mix them with others, and their Rényi curve.

`CheckInEvent` carries a round; `event_distribution` turns it into dp-accounting's own privacy loss distribution, and
`CheckInPLDAccountant` is its PLD accountant taught about the event. `renyi_curve` follows from a round's certified
curve, for pure and Gaussian reports: any mass without counterpart would make every order infinite. It is looser than
the composition of loss distributions, and independent of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.curves import UPPER_SLACK
from dpcheckin.accounting.engine.loss import dominating
from dpcheckin.accounting.pairs.gaussian import GaussianPair
from dpcheckin.accounting.rounds.base import Round
from dpcheckin.accounting.rounds.shuffled import ShuffledRound
from dpcheckin.accounting.statements import Adjacency
from dpcheckin.display import needed
from dpcheckin.errors import OutsideTheorem
from dpcheckin.numerals import open_probability, positive
from dpcheckin.special.gamma import log_sum

needed("dp_accounting", "bridge")  # one line that says what to install

import attr  # noqa: E402
import dp_accounting  # noqa: E402
from dp_accounting.pld import pld_pmf, privacy_loss_distribution  # noqa: E402
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant  # noqa: E402
from dp_accounting.rdp import rdp_privacy_accountant  # noqa: E402


@attr.define(frozen=True, slots=True, auto_attribs=True)
class CheckInEvent(dp_accounting.DpEvent):  # type: ignore[misc]
    """One round of shuffled check-in, subsampled or full shuffle."""

    round: Round


def event_distribution(
    one: Round, interval: float = 1e-4, smallest_delta: float = 1e-15
) -> privacy_loss_distribution.PrivacyLossDistribution:
    """A dominating loss distribution of `one` round down to `smallest_delta`, on dp-accounting's grid (`interval`).

    For the replacement of one client; rounds of which records are added or removed are refused. What a round reserves
    of delta is mass at infinity.
    """
    if one.adjacency is not Adjacency.REPLACE_ONE:
        raise OutsideTheorem(f"an event is about replacing one client; this round is about {one.adjacency.value}")
    if one.renyi is not None:
        raise OutsideTheorem("these rounds are composed by their Rényi curves: there is no loss distribution of them")
    parts = [_distribution(interval, 0, np.ones(1), one.reserved)] if one.reserved else []
    for curve, n in one.curves(smallest_delta):
        points = math.ceil(curve.reach(smallest_delta) / interval) + 3
        step = dominating(interval, curve.upper(interval, points))
        part = _distribution(interval, -step.reach, step.masses(), min(step.infinite, 1.0))
        parts.append(part.self_compose(n) if n > 1 else part)
    return reduce(lambda whole, part: whole.compose(part), parts or [_distribution(interval, 0, np.ones(1), 0.0)])


def _distribution(
    interval: float, lowest: int, masses: Array, infinity: float
) -> privacy_loss_distribution.PrivacyLossDistribution:
    pmf = pld_pmf.DensePLDPmf(interval, lowest, masses, infinity, True)
    return privacy_loss_distribution.PrivacyLossDistribution(pmf)


class CheckInPLDAccountant(PLDAccountant):  # type: ignore[misc]
    """dp-accounting's PLD accountant, which also composes `CheckInEvent`s.

    Its relation is replace-one, as all statements of this package. Below delta = 1e-10 use our own composition:
    dp-accounting does not charge the round-off of its FFT (see the tests).
    """

    def __init__(self, value_discretization_interval: float = 1e-4) -> None:
        super().__init__(dp_accounting.NeighboringRelation.REPLACE_ONE, value_discretization_interval)

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        if isinstance(event, CheckInEvent):
            if do_compose:
                pld = event_distribution(event.round, self._value_discretization_interval)
                self._pld: Any = self._pld.compose(pld.self_compose(count))
            return None
        return super()._maybe_compose(event, count, do_compose)


DEFAULT_ORDERS = tuple(
    float(x)
    for x in np.unique(np.round(np.concatenate([1 + np.geomspace(0.1, 30, 60), np.geomspace(32, 20000, 80)]), 3))
)

_PLACES, _NEGLIGIBLE = 4_000, 1e-28  # of a curve that is integrated


def renyi_curve(one: Round, orders: Sequence[float] = DEFAULT_ORDERS) -> Array:
    """Upper bounds of the Renyi divergence of one shuffled round at the given orders (> 1), by its certified curve B.

    E_Q[W^a] is 1 + a (a-1) times the integral of (x^(a-2) + x^(-a-1)) B(x) over x >= 1. B is above the true profile at
    the grid's places, and that is convex: below the chords. The mean of a growing x^(a-2) times that of a falling chord
    is above the mean of their product; where both factors fall, their product is convex and below its trapezoid. Beyond
    the grid B is at most what it was, and at most the local profile: at large orders that is much for Gaussian reports.
    """
    if one.participation == 0.0:
        return np.zeros(len(orders))
    if not isinstance(one, ShuffledRound):
        raise OutsideTheorem("a sum or a window is not a round of the theorem: use its own Rényi curve")
    pair = one.pair
    if pair.local_delta > 0.0 or not (isinstance(pair, GaussianPair) or pair.pure):
        raise OutsideTheorem(f"a round of {pair.label} has no finite Renyi curve: use the loss distribution")
    curve, end = one.curve(_NEGLIGIBLE), pair.local_epsilon
    if isinstance(pair, GaussianPair):  # 60 deviations beyond what any order weighs most: e^-1800 of it is left out
        end = pair.s * (pair.s * (max(orders) + 1.5) + 60.0)
    near = min(curve.reach(_NEGLIGIBLE), end)
    heights = np.maximum(curve.upper(near / _PLACES, _PLACES + 1), 1e-300)
    far = near + (end - near) * np.linspace(0.0, 1.0, _PLACES + 1)[1:] ** 2 if end > near else np.empty(0)
    local = np.full(far.size, math.log(heights[-1]))
    if isinstance(pair, GaussianPair):  # h(e^x) <= exp(-y^2 / 2) / 2, y = x/s - s/2, without underflow
        deviations = np.maximum(far / pair.s - pair.s / 2.0, 0.0)
        local = np.minimum(local, math.log(one.participation) - deviations**2 / 2.0)
    losses = np.append(np.linspace(0.0, near, _PLACES + 1), far)
    logs = np.append(np.log(heights * UPPER_SLACK), local)
    cells = np.diff(losses)
    widths = np.log(np.expm1(cells) * UPPER_SLACK) + losses[:-1]
    out = []
    for order in orders:
        positive("order", order - 1.0)
        behind, ahead = (logs + power * losses for power in (-order - 1.0, order - 2.0))
        parts = [behind[:-1] + widths, behind[1:] + widths, ahead[:-1] + widths, ahead[1:] + widths]
        if order >= 2.0:
            whole = (order - 1.0) * losses[1:] + np.log(-np.expm1((1.0 - order) * cells) / (order - 1.0) * UPPER_SLACK)
            parts[2:] = [logs[:-1] + whole, logs[1:] + whole]
        area = log_sum(np.concatenate(parts)) - math.log(2.0)
        moment = np.logaddexp(0.0, area + math.log(order * (order - 1.0) * UPPER_SLACK))
        out.append(min(float(moment) / (order - 1.0), pair.local_epsilon))
    return np.array(out)


def epsilon_by_renyi(
    rounds: Sequence[tuple[Round, int]], delta: float, orders: Sequence[float] = DEFAULT_ORDERS
) -> float:
    """The epsilon of the `rounds` at `delta`, by dp-accounting's conversion of their Renyi curves at these `orders`."""
    open_probability("delta", delta)
    total = sum((count * renyi_curve(one, orders) for one, count in rounds), np.zeros(len(orders)))
    epsilon, _ = rdp_privacy_accountant.compute_epsilon(list(orders), list(total), delta)
    return float(epsilon)
