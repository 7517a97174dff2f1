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
from dpcheckin.accounting.pairs.pure_types import Family, pure_types


def one_type(pair: LocalPair, shares: Shares = WHOLE) -> TypesAt | None:
    """Single laws that lie above every report of a `pair`; None if none are known.

    `shares`: chances that a report stands in its place, at most one, by which what it says is contracted.
    """
    if not isinstance(pair, ThreeAtoms) or pair.family is Family.OTHER or pair.hit == 0.0:
        return None
    family = Family.ANY_PURE if pair.family is Family.TWO_VALUES else pair.family
    known = pure_types(family, pair.laws, pair.local_delta)
    if known is None:
        return None

    def types(rise: float) -> tuple[Types, ...]:
        alone = (one for one in known(rise) if len(one.laws) == 1)
        return tuple(_contracted(one, shares) for one in alone)

    return types


def _contracted(types: Types, shares: Shares) -> Types:
    (law,) = types.laws
    if not isinstance(law, AtomLaw):
        raise TypeError(f"a law of atoms is needed, not {type(law).__name__}")
    w, p = np.array(shares).T
    mixed = AtomLaw(np.outer(w, law.values).ravel(), np.outer(p, law.masses).ravel())
    # noise for whole reports is enough for contracted ones; no seat is added, so nothing needs the worst law
    return Types((mixed,), mixed, types.smoothing * float(w.max()), types.violation)


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
    types = one_type(pair, seats.shares)
    if types is None:
        return worst
    plain = [(weight, replace(s, shares=WHOLE)) for weight, s in parts]  # shares are in the types
    return SteeredCurve(worst, plain, Unshuffled(pair.profile, 0.0, rate, 0.0), types, below)
