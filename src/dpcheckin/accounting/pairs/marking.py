"""Rounds in which perhaps nobody stays away: draws from a law that all reports share stand for absences.

If beta G <= R(x) for all values x in play, a report is with probability beta a draw from G, which says nothing. What is
left of it when such draws are marked leans at most 1/(1 - kappa) times as far as a report of R, and in a share 1 -
kappa of all seats, where beta G <= kappa R(x): full shuffling is a round with empty seats, of R itself (docs/theory.md,
section 4b). Nothing is asked of R but G, so types, smoothing and certificates are those of R.
"""

from __future__ import annotations

import math

from dpcheckin.accounting.engine.curves import Curve, LocalCurve, Unshuffled
from dpcheckin.accounting.engine.lattice_curve import LatticeCurve
from dpcheckin.accounting.engine.seats import Mixture, Seats
from dpcheckin.accounting.engine.typed.curve import FEWER_PLACES, TypedCurve, TypesFirstCurve
from dpcheckin.accounting.pairs.local import LocalPair

_LEAST, _MOST = 2e-3, 0.2  # of delta, that may be spent on rounds without a marked report
_LARGEST = 0.9  # kappa, beyond which a report leans too far to be worth it


def marked_seats(pair: LocalPair, clients: int, rate: float, spent: float) -> Seats | None:
    """The seats of so many `clients`, at this `rate`, if all take part unmarked with probability `spent` at most.

    None where so many draws from a shared law are too many.
    """
    beta = max(-math.expm1(math.log(spent) / clients - math.log(rate)), 0.0) * (1.0 + 1e-12)
    spare = pair.spare(clients)
    if not beta <= _LARGEST * spare:
        return None
    kappa = beta / spare * (1.0 + 1e-12)
    # reports that lean 1/(1 - kappa) as far are as many among 1 - kappa times the clients
    people, taken = clients * (1.0 - kappa), rate * (1.0 - kappa)
    return Seats(clients, pair, -clients * kappa, people, taken, 1.0 - taken)


def spent_on_marking(pair: LocalPair, clients: int, delta: float) -> float:
    """What of a `delta` is best lost in rounds without a marked report; more of it leaves fewer draws (a guide)."""
    share = -math.log(delta) / (clients * max(pair.spare(clients), 1e-300))
    return delta * min(max(share, _LEAST), _MOST)


def crowded_curve(pair: LocalPair, clients: int, rate: float, delta: float, smallest: float) -> Curve:
    """The curve of `clients` that all report, or at a `rate` so high that perhaps all do.

    `pair`: what a report gives away. `delta`: that is asked for, about, in one round; `smallest`: what is negligible.
    """
    full: Mixture = [(1.0, Seats(clients, pair, 0.0, float(clients), rate, 1.0 - rate))]
    spent = spent_on_marking(pair, clients, delta)
    marked = marked_seats(pair, clients, rate, spent)
    alone = LocalCurve(Unshuffled(pair.profile, 0.0, rate, pair.local_delta), pair.local_epsilon, None)
    if marked is None:
        return pair.curve(full, rate, smallest) if pair.full_shuffle_proved else alone
    parts: Mixture = [(1.0, marked)]
    types = None if pair.full_shuffle_proved else pair.full_types(parts)
    worst: Curve = alone
    if pair.full_shuffle_proved:
        worst = pair.curve(full, rate, smallest)
    elif types is None:
        local = Unshuffled(pair.profile, 0.0, rate, pair.local_delta + spent / rate)
        worst = LatticeCurve(parts, local, smallest)
    types = types or pair.others_types(parts)
    if types is None:
        return worst
    # in the types' violation there is the local delta
    local = Unshuffled(pair.profile, 0.0, rate, spent / rate)
    below = pair.bad_case(full, smallest)
    if not pair.dear:
        return TypedCurve(worst, parts, local, types, below)
    return (_DearCurve if worst is alone else TypesFirstCurve)(worst, parts, local, types, below, FEWER_PLACES)


class _DearCurve(TypesFirstCurve):
    """Beside what a report gives away by itself, which counts for little."""

    def coarser(self) -> Curve:
        return TypedCurve.coarser(self)
