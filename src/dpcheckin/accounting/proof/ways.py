"""The theorems that bound one round at one alpha, each with its numbers: the smallest is taken.

Laws of seats are those of X = Z - (1 - alpha), as in `engine/typed`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpcheckin.accounting.engine.typed.laws import AtomLaw
from dpcheckin.accounting.proof.crowds import Crowd
from dpcheckin.accounting.proof.reports import Report, report
from dpcheckin.accounting.proof.stated import value_of
from dpcheckin.accounting.proof.trapezoid import above
from dpcheckin.accounting.proof.type_search import QuotedTypes, Typed, TypeSearch
from dpcheckin.errors import NumericalFailure

_MANY = 60  # atoms
_BLANKETS = ("any", "binary", "hemisphere", "dary", "hashing", "privunit")


@dataclass(frozen=True)
class Kind:
    """One kind of round, in doubles, and what bounds it.

    Args:
        entry: The round as the certificate says it.
    """

    entry: dict[str, Any]

    @cached_property
    def clients(self) -> int:
        return int(self.entry["population"] - self.entry.get("colluding", 0))

    @cached_property
    def cohort(self) -> int:
        return int(self.entry.get("cohort", 0))

    @cached_property
    def rate(self) -> float:
        """Of a client's own coin."""
        return value_of(self.entry.get("rate", "1"))

    @cached_property
    def presence(self) -> float:
        return self.cohort / self.clients if self.cohort else self.rate

    @cached_property
    def share(self) -> float:
        """Lowest rate by largest rate."""
        lowest = Fraction(self.entry.get("lowest_rate", self.entry.get("rate", "1")))
        kept = 1 - Fraction(self.entry.get("dropout", "0"))
        return float(lowest * kept / Fraction(self.entry.get("rate", "1")))

    @cached_property
    def report(self) -> Report:
        return report(self.entry["randomizer"])

    @cached_property
    def _types(self) -> TypeSearch | QuotedTypes | None:
        entry, even = self.entry["randomizer"], self.share == 1.0 and self.presence < 1.0
        if entry["kind"] == "gaussian" and even:
            return QuotedTypes(2 / value_of(entry["noise_multiplier"]), entry["grid"])
        # types of k-ary response have the variance of its worst law: there is nothing to gain
        known = self.report.kind in ("any", "binary", "hemisphere")
        if not known or not even:
            return None
        epsilon = value_of(entry["local_epsilon"])
        return TypeSearch(self.report.kind == "any", epsilon)

    @property
    def chords(self) -> float:
        """Of epsilon, what chords between points may cost: points of many atoms are dear."""
        return 4e-5 if self.report.ratios.size < _MANY else 2.5e-4

    @cached_property
    def ways(self) -> dict[str, dict[str, Any]]:
        """Every way that was used, by name."""
        return {}

    def deviation(self) -> float:
        """Of one round's loss, about: where points are looked for."""
        law = self.report.worst(0.0)
        return math.sqrt(self.presence * self.share * law.variance / self.clients) / self.share

    def point(self, alpha: str) -> dict[str, Any]:
        """The smallest delta that is proved at this alpha, with its numbers."""
        rise = float(Fraction(alpha) - 1)
        r = self.report
        local = self.presence * r.profile(rise) * (1 + 1e-12)
        best: dict[str, Any] = {"delta": above(local), "way": "local"}
        way: dict[str, Any] = {"theorem": "local"}
        if rise + 1 < r.e0 * (1 - 1e-12):
            for name, made, crowd, scale, charge, laplace in self._crowds(rise):
                try:
                    value, numbers, cells = crowd.bound(laplace)
                except NumericalFailure:
                    continue
                delta = above((value / scale + charge) * (1 + 1e-12))
                if Fraction(delta) < Fraction(best["delta"]):
                    best = {"delta": delta, "way": name, "theta": numbers.theta}
                    best |= {"period": numbers.period, "terms": numbers.terms}
                    best |= {"normal": numbers.normal, "laplace": numbers.laplace}
                    best |= {} if cells is None else {"cells": cells}
                    way = made
        self.ways[best["way"]] = way
        return {"alpha": alpha, **best}

    def _crowds(
        self, rise: float
    ) -> Iterator[tuple[str, dict[str, Any], Crowd, float, float, str]]:
        """Name, way, sum, divisor, charges and noise of every theorem that applies."""
        n, r = self.clients, self.report
        worst = r.worst(rise)
        if self.presence == 1.0:
            if r.kind in _BLANKETS and r.delta == 0.0:
                crowd = Crowd(((worst, n),), -n * rise)
                yield "blanket", {"theorem": "blanket"}, crowd, n, 0.0, "0"
            return
        if self.share < 1.0:
            yield "worst", {"theorem": "worst"}, *self._uneven(worst, rise), "0"
            return
        nobody = 0.0 if self.cohort else math.exp(n * math.log(self.rate)) * r.profile(rise)
        seats = self.cohort or n
        crowd = Crowd(((self._seat(worst), seats),), -n * rise)
        yield "worst", {"theorem": "worst"}, crowd, n, nobody + self.presence * r.delta, "0"
        typed = self._best_types(rise)
        if typed is None or seats < 3:
            return
        kappa = typed.charge
        if r.kind == "any" and r.delta > 0.0:  # the charge has paid for the local delta
            kappa = 2 * r.delta * (1 + rise + ((1 + rise) * r.e0 - 1) / (r.e0**2 - 1))
            worst = replace(r, masses=r.masses / (1 - r.delta), delta=0.0).worst(rise)
        laws = [self._seat(law) for law in typed.laws]
        own = (self._seat(worst), 1)
        if len(laws) == 1:
            crowd = Crowd((own, (laws[0], seats - 1)), -n * rise)
        else:
            crowd = Crowd((own,), -n * rise, (laws[0], laws[1]), seats - 1)
        charge = nobody + self.presence * kappa
        yield typed.name, typed.way, crowd, n, charge, typed.laplace

    def _best_types(self, rise: float) -> Typed | None:
        """The types with the smallest variance, noise included."""
        if self._types is None:
            return None
        crowd = self.clients * self.presence

        def spread(typed: Typed) -> float:
            return max(law.variance for law in typed.laws) * crowd + 2 * float(typed.laplace) ** 2

        best = min(self._types.at(rise), key=spread, default=None)
        if best is not None:  # what is best at one alpha is good at the next
            self._types.stretch = best.way["types"][0].get("wider", "0")
        elif self._types.stretch is not None:
            self._types.stretch = None
            return self._best_types(rise)
        return best

    def _seat(self, law: AtomLaw) -> AtomLaw:
        """Taken with the client's own coin; an empty seat is zero, like a mean."""
        return law if self.cohort else AtomLaw(law.values, law.masses * self.rate)

    def _uneven(self, worst: AtomLaw, rise: float) -> tuple[Crowd, float, float]:
        """Rates in an interval (docs/theory.md, section 5)."""
        n, q, high, r = self.clients, self.share, self.rate, self.report
        back = -(1 - q) * rise  # from the mean of a report to that of a seat
        values = np.concatenate([worst.values + back, [back, q * rise]])
        masses = np.concatenate([worst.masses * q * high, [q * (1 - high), 1 - q]])
        nobody = high * math.exp((n - 1) * math.log1p(-q * (1 - high))) * r.profile(rise)
        crowd = Crowd(((AtomLaw(values, masses), n),), -n * q * rise)
        return crowd, n * q, nobody + high * r.delta
