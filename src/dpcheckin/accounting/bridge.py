"""What dp-accounting makes of our rounds: events for accountants that mix them with others, and their Rényi curve.

`CheckInEvent` carries a round; `event_distribution` turns it into dp-accounting's own privacy loss distribution, and
`CheckInPLDAccountant` is its PLD accountant taught about the event. `renyi_curve` is that of the theorem's own pair. It
exists for pure randomizers with full shuffling proved: any mass without counterpart would make every order infinite. It
is looser than the composition of loss distributions, and independent of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.loss import dominating
from dpcheckin.accounting.engine.three_atoms import ThreeAtomCurve
from dpcheckin.accounting.engine.typed.curve import TypedCurve
from dpcheckin.accounting.rounds.base import Round
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

# what the weights of a mixture may be too large by, in all: each is rounded up
_WEIGHTS_ROUNDING = 1e-13


def renyi_curve(one: Round, orders: Sequence[float] = DEFAULT_ORDERS) -> Array:
    """Upper bounds of the Renyi divergence of one round at the given orders (> 1)."""
    if one.participation == 0.0:
        return np.zeros(len(orders))
    pair, ((curve, _), *_) = one.pair, one.curves()
    if pair is None:
        raise OutsideTheorem("a sum is not a round of the theorem: use its own Rényi curve")
    if isinstance(curve, TypedCurve):  # a bound alpha by alpha; the worst law's is a pair
        curve = curve.worst
    if not (pair.pure and pair.full_shuffle_proved) or not isinstance(curve, ThreeAtomCurve):
        raise OutsideTheorem(f"a round of {pair.label} has no finite Renyi curve: use the loss distribution")
    out = []
    for order in orders:
        positive("order", order - 1.0)
        terms: list[float] = []
        for weight, atoms in curve.upper_atoms:
            p, losses, scale = atoms.p, atoms.losses, math.log(weight)
            middle = 1.0 - float(np.sum(p * (1 + np.exp(-losses))))
            terms.append(scale + log_sum((order - 1) * losses, p))
            terms.append(scale + log_sum(-order * losses, p))
            terms.append(scale + math.log(max(middle, 1e-300)))
            # what was left out loses at most the local epsilon
            lost = math.log(2 * max(atoms.corner, 1e-300))
            terms.append(scale + lost + (order - 1) * pair.local_epsilon)
        # rounds in which no honest client reports say nothing: moment one
        silent = max(1.0 - math.fsum(w for w, _ in curve.upper_atoms), 0.0) + _WEIGHTS_ROUNDING
        terms.append(math.log(silent))
        if curve.unprotected > 0.0:
            terms.append(math.log(curve.unprotected) + (order - 1) * pair.local_epsilon)
        out.append(max(log_sum(terms), 0.0) / (order - 1))
    return np.array(out)


def epsilon_by_renyi(
    rounds: Sequence[tuple[Round, int]], delta: float, orders: Sequence[float] = DEFAULT_ORDERS
) -> float:
    """The epsilon of the `rounds` at `delta`, by dp-accounting's conversion of their Renyi curves at these `orders`."""
    open_probability("delta", delta)
    total = sum((count * renyi_curve(one, orders) for one, count in rounds), np.zeros(len(orders)))
    epsilon, _ = rdp_privacy_accountant.compute_epsilon(list(orders), list(total), delta)
    return float(epsilon)
