"""From seats to a curve: which engine computes the empty-seat bound of a round.

A round says who sits where (`Seats`); a report of three likelihood ratios goes to the short sums of
`seats`, any other to a lattice, with the curve of a simpler report beside it as a second bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpcheckin.accounting.curves import ProfileCurve, RoundCurve, SeatCurve, Unshuffled
from dpcheckin.accounting.lattice import WHOLE, LatticeModel, Shares
from dpcheckin.accounting.local_pairs import LocalPair, ThreeAtoms
from dpcheckin.accounting.seats import SeatModel
from dpcheckin.accounting.stand_in import stand_in


@dataclass(frozen=True, slots=True)
class Seats:
    """What the theorem needs: `steps` seats that report w.p. take, are empty w.p. ones."""

    steps: int
    offset: float
    scale: float
    take: float
    ones: float
    told: float = 0.0  # probability that the adversary is told of an absence
    shares: Shares = WHOLE  # chances that a report stands in its place, with their probabilities


def seats_curve(
    pair: LocalPair,
    parts: list[tuple[float, Seats]],
    rate: float,
    smallest: float,
    unprotected: float = 0.0,
) -> RoundCurve:
    """Hand the seats to the engine that fits the pair."""
    if isinstance(pair, ThreeAtoms) and all(s.shares == WHOLE for _, s in parts):
        return _three_atoms(pair, parts, rate, unprotected)
    local = Unshuffled(pair.profile, unprotected, rate, pair.local_delta)
    if float(pair.profile(np.ones(1))[0]) <= pair.local_delta:
        return nothing(local)  # nothing is lost but the local delta
    lattice = [
        (
            weight,
            LatticeModel(
                steps=s.steps,
                offset=s.offset,
                scale=s.scale,
                take=s.take,
                ones=s.ones,
                finite_profile=lambda a: np.maximum(pair.profile(a) - pair.local_delta, 0.0),
                second_moment=pair.second_moment,
                largest_ratio=_ratio(pair.local_epsilon),
                shares=s.shares,
            ),
        )
        for weight, s in parts
    ]
    simple = simple_curve(pair, parts, rate, smallest, unprotected)
    return ProfileCurve(lattice, local, pair.local_epsilon, smallest, simple)


def simple_curve(
    pair: LocalPair,
    parts: list[tuple[float, Seats]],
    rate: float,
    smallest: float,
    unprotected: float = 0.0,
) -> SeatCurve:
    """A curve nowhere below the theorem's for these seats, for which no lattice is needed.

    Reports are counted as the worst ones of an epsilon that holds but for a part of `smallest`, all
    shares as one that none exceeds but for another part.
    """
    even = [(weight, *_even(s, smallest / 4)) for weight, s in parts]
    unlucky = math.fsum(weight * chance for weight, _, chance in even)
    worst = stand_in(pair, smallest / 4)
    return _three_atoms(worst, [(w, s) for w, s, _ in even], rate, unprotected + unlucky)


def _even(seats: Seats, chance: float) -> tuple[Seats, float]:
    """The seats with one share for all, and the probability that some share is larger.

    One share w contracts every report alike, which is the same as 1/w times the clients.
    """
    if seats.shares == WHOLE:
        return seats, 0.0
    largest, larger = 1.0, 0.0  # the share, and the probability that some seat has a larger one
    for share, probability in sorted(seats.shares, reverse=True):
        largest = share
        if larger + seats.steps * probability > chance:
            break
        larger += seats.steps * probability
    scale = seats.scale / largest
    return replace(seats, offset=scale - seats.steps, scale=scale, shares=WHOLE), larger


def _three_atoms(
    pair: ThreeAtoms, parts: list[tuple[float, Seats]], rate: float, unprotected: float
) -> SeatCurve:
    models = [
        (
            weight,
            SeatModel(
                steps=s.steps,
                offset=s.offset,
                scale=s.scale,
                log_ratio=pair.local_epsilon,
                hits=min(2 * s.take * pair.hit, 1.0),
                rest=s.take * _rest(pair) + s.told,
            ),
        )
        for weight, s in parts
    ]
    return SeatCurve(models, Unshuffled(pair.profile, unprotected, rate, pair.local_delta))


def _rest(pair: ThreeAtoms) -> float:
    """Mass of Z* at zero: 1 - 2 hit - neutral, without cancellation."""
    return math.expm1(pair.local_epsilon) * pair.hit + pair.local_delta


def _ratio(log_ratio: float) -> float:
    return math.exp(log_ratio) if log_ratio < 700 else math.inf


def nothing(local: Unshuffled | None = None) -> RoundCurve:
    """A round without finite losses."""
    local = local or Unshuffled(np.zeros_like, 0.0, 0.0, 0.0)
    return SeatCurve([(1.0, SeatModel(1, 0.0, 1.0, 0.0, 0.0, 0.0))], local)
