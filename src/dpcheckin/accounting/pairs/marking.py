"""Rounds in which perhaps nobody stays away: draws from a law that all reports share stand for absences.

If beta G <= R(x) for all values x in play, a report is with probability beta a draw from G, which says nothing. What is
left of it when such draws are marked leans at most 1/(1 - kappa) times as far as a report of R, and in a share 1 -
kappa of all seats, where beta G <= kappa R(x): full shuffling is a round with empty seats, of R itself (docs/theory.md,
section 4b). Nothing is asked of R but G, so types, smoothing and certificates are those of R.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.curves import Curve, Unshuffled
from dpcheckin.accounting.engine.lattice_curve import LatticeCurve
from dpcheckin.accounting.engine.seats import Mixture, Seats
from dpcheckin.accounting.engine.seen import LocalCurve
from dpcheckin.accounting.engine.typed.curve import FEWER_PLACES, TypedCurve, TypesAt, TypesFirstCurve
from dpcheckin.accounting.pairs.local import LocalPair, ThreeAtoms
from dpcheckin.accounting.pairs.pure_types import worst_alone
from dpcheckin.accounting.pairs.steered import one_type
from dpcheckin.special import binomial

_LEAST, _MOST = 2e-3, 0.2  # of delta, that may be spent on rounds without a marked report
# where any delta may be the answer: of what is prepared the curves that are good for one of these
_ANY_DELTA, _TRIED = 1e-22, (0.1, 1e-3, 1e-6, 1e-10, 1e-15, 1e-22)
# of random crowds, in deviations below the mean of their size; by what part they may be smaller than the mean
_FEWER, _CLOSE = (4.5, 3.0, 1.8, 0.8), 4e-4
_LARGEST = 0.9  # kappa, beyond which a report leans too far to be worth it


def spare(pair: LocalPair, clients: int) -> float:
    """The largest share of a `pair`'s report that may be a draw from a law G that all these `clients` have.

    For every epsilon the least of R(a) and e^epsilon R(x), over the values x of all, has a mass of at least 1 - clients
    h(e^epsilon): normed, it is a G.
    """
    tried = (min(pair.local_epsilon, 700.0), pair.epsilon_within(0.1 / clients))
    known = (max(1.0 - clients * pair.profile_above(epsilon), 0.0) * math.exp(-epsilon) for epsilon in tried)
    return max(pair.spare(clients), *known)


def marked_seats(pair: LocalPair, clients: int, rate: float, spent: float) -> Seats | None:
    """The seats of so many `clients` of one `rate`, if with probability `spent` at most all take part unmarked.

    `pair`: what a report gives away. None where so many draws from a shared law are too many.
    """
    beta = max(-math.expm1(math.log(spent) / clients - math.log(rate)), 0.0) * (1.0 + 1e-12)
    most = spare(pair, clients)
    if not beta <= _LARGEST * most:
        return None
    kappa = beta / most * (1.0 + 1e-12) if beta > 0.0 else 0.0
    # reports that lean 1/(1 - kappa) as far are as many among 1 - kappa times the clients
    people, taken = clients * (1.0 - kappa), rate * (1.0 - kappa)
    return Seats(clients, pair, -clients * kappa, people, taken, 1.0 - taken)


def spent_on_marking(pair: LocalPair, clients: int, delta: float) -> float:
    """What of a `delta` is best lost in rounds without a marked report, a guide: more leaves fewer draws.

    `pair`: what a report gives away. `clients`: how many.
    """
    share = -math.log(delta) / (clients * max(spare(pair, clients), 1e-300))
    return delta * min(max(share, _LEAST), _MOST)


@dataclass(frozen=True)
class Crowds:
    """Clients of one rate, how many is random and known to all.

    `sizes`: probabilities and numbers of clients, at most six, the bound of each serving all larger ones too; with what
    is left there is `lost`, times the profile of one report. `seen`: seats of what some data lose. `steered`: may a
    report be chosen by what was seen of others?
    """

    pair: LocalPair
    sizes: Sequence[tuple[float, int]]
    rate: float
    seen: Mixture
    lost: float = 0.0
    steered: bool = False

    def curve(self, delta: float, smallest: float, beside: Curve | None, *, enough: bool) -> Curve:
        """The curve, good where about this `delta` is asked for.

        `smallest`: a delta that is negligible. `beside`: another curve that holds, if there is one; with the worst law
        in every seat that is `enough`.
        """
        if delta < _ANY_DELTA:
            tried = [(one, min(smallest, one)) for one in (*_TRIED, delta)]
            return _Least([self._curve(one, tiny, beside, enough=enough) for one, tiny in tried])
        return self._curve(delta, smallest, beside, enough=enough)

    def _curve(self, delta: float, smallest: float, beside: Curve | None, *, enough: bool) -> Curve:
        pair, rate = self.pair, self.rate
        parts, lost, spent = self._parts(delta)
        alone = LocalCurve(Unshuffled(pair.profile, 0.0, rate, pair.local_delta), pair.local_epsilon, None)
        if not parts:
            return beside or alone
        types, worst = None, beside or alone
        if not enough:
            types = _steered_types(pair, parts) if self.steered else _all_types(pair, parts)
            if types is None:
                local = Unshuffled(pair.profile, lost, rate, pair.local_delta + spent / rate)
                worst = LatticeCurve(parts, local, smallest)
                worst = _Least([beside, worst]) if beside else worst
        types = types or (None if self.steered else pair.others_types(parts))
        if types is None:
            return worst
        # in the types' violation there is the local delta
        local = Unshuffled(pair.profile, lost, rate, spent / rate)
        below = pair.bad_case(self.seen, smallest)
        if not pair.dear:
            return TypedCurve(worst, parts, local, types, below)
        return (_DearCurve if worst is alone else TypesFirstCurve)(worst, parts, local, types, below, FEWER_PLACES)

    def _parts(self, delta: float) -> tuple[Mixture, float, float]:
        """Seats of every size, and what is charged: of one report's profile, and of delta."""
        parts: list[tuple[float, Seats]] = []
        lost, spent = self.lost, 0.0
        for weight, clients in self.sizes:
            nobody = self.rate**clients
            share = spent_on_marking(self.pair, clients, delta)
            marked = marked_seats(self.pair, clients, self.rate, share)
            if nobody > share and marked is not None:
                parts.append((weight, marked))
                spent += weight * share
            elif self.rate < 1.0:
                parts.append((weight, Seats(clients, self.pair, 0.0, float(clients), self.rate, 1.0 - self.rate)))
                lost += weight * nobody
            else:
                lost += weight
        return parts, lost * (1.0 + 1e-9), spent


def crowded_curve(pair: LocalPair, clients: int, rate: float, delta: float, smallest: float) -> Curve:
    """The curve of `clients` that all report, or at a `rate` so high that perhaps all do.

    `pair`: what a report gives away. `delta`: that is asked for, about, in one round; `smallest`: what is negligible.
    """
    full: Mixture = [(1.0, Seats(clients, pair, 0.0, float(clients), rate, 1.0 - rate))]
    crowds, proved, beside = Crowds(pair, [(1.0, clients)], rate, full), pair.full_shuffle_proved, None
    if proved:  # by the blanket
        beside = pair.curve(full, rate, smallest)
    elif rate < 1.0:
        beside = pair.shuffled_curve(full, rate, smallest, rate**clients)
    return crowds.curve(delta, smallest, beside, enough=proved)


def uneven_curve(pair: LocalPair, clients: int, low: float, high: float, delta: float, smallest: float) -> Curve:
    """The curve of `clients` whose rates lie between `low` and `high`; `pair`, `delta`, `smallest` as there.

    A client is declared absent with probability 1 - rate / high, and the adversary is told; the others check in at the
    largest rate. What is lost falls with their number (docs/theory.md, section 5), of which a few are looked at.
    """
    q = low / high
    deviation = math.sqrt((clients - 1) * q * (1.0 - q))
    fewest = math.sqrt(2.0 * max(-math.log(delta), 0.0)) + 2.5
    places = (fewest,) if fewest * deviation < _CLOSE * clients * q else (fewest, *_FEWER)
    sizes = sorted({int(1 + (clients - 1) * q - x * deviation) for x in places})
    sizes = [m for m in sizes if m > 2]
    fewer = [*(float(binomial.cdf(m - 2, clients - 1, q)) * (1.0 + 1e-9) for m in sizes), 1.0]
    crowds = [(after - before, m) for m, before, after in zip(sizes, fewer, fewer[1:], strict=False)]
    seats = Seats(clients, pair, 0.0, clients * q, low, q * (1.0 - high), 1.0 - q)
    nobody = high * math.exp((clients - 1) * math.log1p(-q * (1.0 - high)))
    told: Mixture = [(1.0, seats)]
    # the worst law's bound needs no numbers, only an empty seat
    plain = high < 1.0 and nobody < 0.1 * delta and not (pair.dear and pair.typed)
    beside = pair.curve(told, high, smallest, nobody) if plain or not crowds else None
    return Crowds(pair, crowds, high, told, high * fewer[0]).curve(delta, smallest, beside, enough=plain)


def _all_types(pair: LocalPair, parts: Mixture) -> TypesAt | None:
    """What the others' reports can look like, and the worst law beside it; None where only a lattice has that."""
    if not isinstance(pair, ThreeAtoms):
        return pair.full_types(parts)
    known, hits, delta = pair.others_types(parts) or (lambda rise: ()), pair.hits, pair.local_delta
    return lambda rise: (*known(rise), *worst_alone(hits, delta, rise))


def _steered_types(pair: LocalPair, parts: Mixture) -> TypesAt | None:
    """The same where an adversary could choose between two types: single laws only."""
    if not isinstance(pair, ThreeAtoms):
        return pair.without_types().full_types(parts)
    known, hits, delta = one_type(pair, places=parts[0][1].count) or (lambda rise: ()), pair.hits, pair.local_delta
    return lambda rise: (*known(rise), *worst_alone(hits, delta, rise))


class _Least(Curve):
    """The least of several bounds at every epsilon: each is one for every two datasets, whose profile is convex."""

    def __init__(self, curves: Sequence[Curve]) -> None:
        self._curves, self.spread = curves, min(curve.spread for curve in curves)

    def coarser(self) -> Curve:
        return _Least([curve.coarser() for curve in self._curves])

    def reach(self, tolerance: float) -> float:
        return self._curves[-1].reach(tolerance)

    def upper_at(self, epsilon: float) -> float:
        return min(curve.upper_at(epsilon) for curve in self._curves)

    def lower_at(self, epsilon: float) -> float:
        return min(self._curves[0].lower_at(epsilon), self.upper_at(epsilon))

    def upper(self, step: float, points: int) -> Array:
        return np.asarray(np.min([curve.upper(step, points) for curve in self._curves], axis=0))

    def lower(self, step: float, points: int) -> tuple[Array, Array | None]:
        return self._curves[0].lower(step, points)


class _DearCurve(TypesFirstCurve):
    """Beside what a report gives away by itself, which counts for little."""

    def coarser(self) -> Curve:
        return TypedCurve.coarser(self)
