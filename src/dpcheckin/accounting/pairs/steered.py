"""Rounds in which a report may be chosen after others were seen: one type stands in for all of them, or the worst law.

Of two types an adversary could choose by what the sum is so far. A single law that lies above all reports, if need be
with noise, replaces them one by one from the last (docs/random-check-ins.md).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpcheckin.accounting.engine.curves import Curve, Unshuffled
from dpcheckin.accounting.engine.seats import WHOLE, Mixture, Seats, Shares
from dpcheckin.accounting.engine.typed.curve import BadCase, TypedCurve, TypesAt
from dpcheckin.accounting.engine.typed.laws import AtomLaw, Types
from dpcheckin.accounting.pairs.local import LocalPair, ThreeAtoms
from dpcheckin.accounting.pairs.pure_types import Family, alone

_WIDER = (0.0, 0.01, 0.025)  # of the one type's distance from its mean, which saves noise


def one_type(pair: LocalPair, shares: Shares = WHOLE, places: int = 1_000) -> TypesAt | None:
    """Single laws that lie above every report of a `pair`; None if none are known.

    `shares`: chances that a report stands in its place, at most one, by which what it says is contracted. `places`: how
    many there are, by which noise and wider laws are weighed.
    """
    if not isinstance(pair, ThreeAtoms) or pair.family is Family.OTHER or pair.hit == 0.0:
        return None
    family = Family.ANY_PURE if pair.family is Family.TWO_VALUES else pair.family
    known = alone(family, pair.laws, pair.local_delta, _WIDER)

    def types(rise: float) -> tuple[Types, ...]:
        found = (way(rise) for way in known)
        ready = [_contracted(one, shares, places) for one in found if one is not None]
        return tuple(sorted(ready, key=lambda one: places * one.worst.variance + 2.0 * one.smoothing**2)[:1])

    return types


def _contracted(types: Types, shares: Shares, places: int) -> Types:
    """The one type where a report stands with a small chance; the worst law, which needs no noise, where with a larger.

    Noise for whole reports, contracted by the largest chance that the type is used for, is enough for all of those.
    """
    (law,), worst = types.laws, types.worst
    if not (isinstance(law, AtomLaw) and isinstance(worst, AtomLaw)):
        raise TypeError(f"laws of atoms are needed, not {type(law).__name__}")
    w, p = np.array(sorted(shares)).T
    spent = p * w * w
    by_type, by_worst = law.variance * np.cumsum(spent), worst.variance * np.cumsum(spent[::-1])[::-1]
    total = places * (by_type + np.append(by_worst[1:], 0.0)) + 2.0 * (types.smoothing * w) ** 2
    last = int(np.argmin(total)) + 1
    near, far = slice(0, last), slice(last, None)
    mixed = AtomLaw(
        np.concatenate([np.outer(w[near], law.values).ravel(), np.outer(w[far], worst.values).ravel()]),
        np.concatenate([np.outer(p[near], law.masses).ravel(), np.outer(p[far], worst.masses).ravel()]),
    )
    # no seat is added, so nothing needs the worst law beside it
    return Types((mixed,), mixed, types.smoothing * float(w[last - 1]), types.violation)


class SteeredCurve(TypedCurve):
    """The bound of one type; that a seat is empty is asked for nowhere."""

    def coarser(self) -> Curve:
        return self.worst.coarser()

    def seated(self, types: Types, seats: Seats) -> Types:
        """All `types`, whatever the `seats`."""
        return types


def steered_curve(pair: LocalPair, parts: Mixture, worst: Curve, rate: float, below: BadCase) -> Curve:
    """The curve of a `pair` in the seats of `parts`, the smaller of that with one type and that with the `worst` law.

    `rate`: a bound on the probability that the target's report is there at all. `below`: what some data lose.
    """
    ((_, seats),) = parts
    types = one_type(pair, seats.shares, seats.count)
    if types is None:
        return worst
    plain = [(weight, replace(s, shares=WHOLE)) for weight, s in parts]  # shares are in the types
    return SteeredCurve(worst, plain, Unshuffled(pair.profile, 0.0, rate, 0.0), types, below)
