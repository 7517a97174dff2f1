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
from dpcheckin.accounting.pairs.pure_types import Symbols
from dpcheckin.accounting.proof.crowds import Crowd
from dpcheckin.accounting.proof.reports import Report, marked, report
from dpcheckin.accounting.proof.stated import value_of
from dpcheckin.accounting.proof.trapezoid import Numbers, above, short
from dpcheckin.accounting.proof.type_search import LaplaceTypes, QuotedTypes, Typed, TypeSearch
from dpcheckin.errors import NumericalFailure
from dpcheckin.special import UNIT, binomial

_MANY = 60  # atoms
_BLANKETS = ("any", "binary", "hemisphere", "dary", "hashing", "privunit")
_PURE_TYPES = ("any", "binary", "hemisphere")  # of k-ary response Z* has the variance of its largest type
# of random crowds, in deviations of their size towards the worse: the first are next to impossible
_FEWER, _MORE = (10.5, 6.0, 4.5, 3.0, 1.8, 0.8), (10.5, 8.0, 6.0, 4.5, 3.5, *np.arange(3.0, -2.6, -0.5).tolist())
_LOST = 4e-4  # of the size of a crowd: next to nothing
_SHARED = 100.0  # of a negligible delta, for everybody's report being marked


@dataclass(frozen=True)
class Seats:
    """Who may sit where: what a theorem sees of a round.

    A `cohort` of the honest `clients` reports, or, if it is 0, who tosses heads at this `rate`. `marking` is the
    probability of a draw from a law that all share, as it is written.
    """

    clients: int
    cohort: int
    rate: float
    report: Report
    types: TypeSearch | QuotedTypes | LaplaceTypes | None
    marking: str | None = None

    @property
    def presence(self) -> float:
        return self.cohort / self.clients if self.cohort else self.rate

    def worst(self, rise: float) -> tuple[Crowd, float]:
        """All seats with Z*, and the charges beside the sum."""
        crowd = Crowd(((self._seat(self.report.worst(rise)), self.cohort or self.clients),), -self.clients * rise)
        return crowd, self._nobody(rise) + self.presence * self.report.delta

    def typed(self, rise: float, typed: Typed) -> tuple[Crowd, float]:
        """One seat with Z* and the others as `typed` says at this `rise`, and the charges beside the sum."""
        r, kappa = self.report, typed.charge
        if r.kind == "any" and r.delta > 0.0:  # the charge has paid for the local delta
            kappa = 2 * r.delta * (1 + rise + ((1 + rise) * r.e0 - 1) / (r.e0**2 - 1))
            r = replace(r, masses=r.masses / (1 - r.delta), delta=0.0)
        laws = tuple(self._seat(law) for law in typed.laws)
        own, others = (self._seat(r.worst(rise)), 1), (self.cohort or self.clients) - 1
        mean = -self.clients * rise
        crowd = Crowd((own, (laws[0], others)), mean) if len(laws) == 1 else Crowd((own,), mean, laws, others)
        return crowd, self._nobody(rise) + self.presence * kappa

    def _nobody(self, rise: float) -> float:
        """The charge for a round that nobody stays away from."""
        return 0.0 if self.cohort else _everybody(self.clients, self.rate) * self.report.profile(rise)

    def _seat(self, law: AtomLaw) -> AtomLaw:
        """Taken with the client's own coin; an empty seat is zero, like a mean."""
        return law if self.cohort else AtomLaw(law.values, law.masses * self.rate)

    def best_types(self, rise: float) -> Typed | None:
        """The types with the smallest variance, noise included."""
        if self.types is None or (self.cohort or self.clients) < 3:
            return None
        crowd = self.clients * self.presence

        def spread(typed: Typed) -> float:
            return max(law.variance for law in typed.laws) * crowd + 2 * float(typed.laplace) ** 2

        best = min(self.types.at(rise), key=spread, default=None)
        if best is not None:  # what is best at one alpha is good at the next
            self.types.stretch = best.way["types"][0].get("wider", "0")
        elif self.types.stretch is not None:
            self.types.stretch = None
            return self.best_types(rise)
        return best


@dataclass(frozen=True)
class Kind:
    """One kind of round, in doubles, and what bounds it: the `entry` of the certificate, and a `negligible` delta."""

    entry: dict[str, Any]
    negligible: float

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
        return self.cohort / self.entry["population"] if self.cohort else self.rate

    @cached_property
    def share(self) -> float:
        """Lowest rate by largest rate."""
        lowest = Fraction(self.entry.get("lowest_rate", self.entry.get("rate", "1")))
        kept = 1 - Fraction(self.entry.get("dropout", "0"))
        return float(lowest * kept / Fraction(self.entry.get("rate", "1")))

    @cached_property
    def report(self) -> Report:
        return report(self.entry["randomizer"])

    def _types(self, r: Report) -> TypeSearch | QuotedTypes | LaplaceTypes | None:
        entry = self.entry["randomizer"]
        if r.kind == "gaussian":
            return QuotedTypes(2 / value_of(entry["noise_multiplier"]), entry["grid"])
        if r.kind == "laplace":
            return LaplaceTypes(value_of(entry["local_epsilon"]), r)
        if r.kind in ("unary", "subset"):
            d, w, hit = entry.get("values", 0), entry.get("size", 0), float(r.masses[0])
            third = hit * ((d - w - 1) / (d - 2) if w else 1.0 - value_of(entry["q"]))
            return TypeSearch(True, math.log(r.e0), sets=Symbols(math.log(r.e0), hit, third))
        return TypeSearch(r.kind == "any", math.log(r.e0)) if r.kind in _PURE_TYPES else None

    @cached_property
    def _seats(self) -> Seats | None:
        """The round with empty seats; a full shuffle has those of the clients whose reports are marked."""
        r = self.report
        if self.presence < 1.0:
            return Seats(self.clients, self.cohort, self.rate, r, self._types(r))
        beta = short(-math.log(_SHARED * self.negligible) / self.clients)
        if r.kind not in _PURE_TYPES or r.delta or float(beta) * r.e0 > 0.5:
            return None
        left = marked(r, float(beta))
        return Seats(self.clients, 0, 1 - float(beta), left, self._types(left), beta)

    @cached_property
    def _crowds(self) -> list[tuple[int, float]]:
        """Crowds from the worst to the best, and the probabilities of a worse one; empty if there is only one."""
        n, k, people = self.clients, self.cohort, int(self.entry["population"])
        if k and n < people:
            mean = k * n / people
            deviation = max(math.sqrt(mean * (people - n) / people * (people - k) / max(people - 1, 1)), 1e-9)
            sizes = {min(max(math.ceil(mean + x * deviation), 1), k, n - 1) for x in _tried(_MORE, mean, deviation)}
            return [(m, _more(people, n, k, m)) for m in sorted(sizes, reverse=True)]
        if self.share == 1.0 or self._seats is None:
            return []
        mean, q = (n - 1) * self.share, self.share
        deviation = math.sqrt(mean * (1 - q))
        sizes = {int(mean - x * deviation) for x in _tried(_FEWER, mean, deviation)}
        return [(m, _fewer(n, q, m)) for m in sorted(sizes) if m > 2]

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
        local = self.presence * self.report.profile(rise) * (1 + 1e-12)
        best: dict[str, Any] = {"delta": above(local), "way": "local"}
        way: dict[str, Any] = {"theorem": "local"}
        for name, made, found in self._bounds(rise):
            if Fraction(found["delta"]) < Fraction(best["delta"]):
                best, way = {"way": name, **found}, made
        self.ways[best["way"]] = way
        return {"alpha": alpha, **best}

    def _bounds(self, rise: float) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        """Name, way, delta and numbers of every theorem that applies."""
        n, r, seats = self.clients, self.report, self._seats
        if self.presence == 1.0 and r.kind in _BLANKETS and r.delta == 0.0 and 1 + rise < r.e0 * (1 - 1e-12):
            crowd = Crowd(((r.worst(rise), n),), -n * rise)
            yield from _summed("blanket", {"theorem": "blanket"}, crowd, n)
        if seats is None or not 1 + rise < seats.report.e0 * (1 - 1e-12):
            return
        marking = {} if seats.marking is None else {"marking": seats.marking}
        if self.share < 1.0:
            yield from _summed("uneven", {"theorem": "worst"}, *self._uneven(seats.report.worst(rise), rise))
        elif not self._crowds:
            yield from _summed("worst", {"theorem": "worst"} | marking, *_by(n, seats.worst(rise)))
        else:
            yield from self._in_crowds("worst", {"theorem": "worst"}, rise, None)
        typed = seats.best_types(rise)
        if typed is not None and self._crowds:
            yield from self._in_crowds(typed.name, typed.way, rise, typed)
        elif typed is not None and self.share == 1.0:
            yield from _summed(typed.name, typed.way | marking, *_by(n, seats.typed(rise, typed)), typed.laplace)

    def _in_crowds(
        self, name: str, way: dict[str, Any], rise: float, typed: Typed | None
    ) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        """Crowds of random size: the bounds of all, with the numbers that are good for the largest crowd."""
        seats, colluders = self._seats, bool(self.cohort)
        assert seats is not None
        bound = self.report.profile(rise) * (1.0 if colluders else self.presence) * (1 + 1e-12)
        total, laplace = 0.0, "0" if typed is None else typed.laplace
        made = {}
        for m, _ in self._crowds:
            crowd = replace(seats, cohort=m) if colluders else replace(seats, clients=m)
            made[m] = crowd.worst(rise) if typed is None else crowd.typed(rise, typed)
        try:
            _, numbers, cells = made[max(made)][0].bound(laplace)
        except NumericalFailure:
            return
        for m, worse in self._crowds:
            value, _, _ = made[m][0].at(numbers, given=cells)
            clients = self.clients if colluders else m
            better = min((value / clients + made[m][1]) * (1 + 1e-12), bound)
            total, bound = total + (bound - better) * worse, better
        found = {"delta": above((total + bound) * (1 + 1e-12)), **_written(numbers)}
        yield (
            name,
            way | {"thresholds": [m for m, _ in self._crowds]},
            found | ({} if cells is None else {"cells": cells}),
        )

    def _uneven(self, worst: AtomLaw, rise: float) -> tuple[Crowd, float, float]:
        """Rates in an interval (docs/theory.md, section 5)."""
        n, q, high, r = self.clients, self.share, self.rate, self.report
        back = -(1 - q) * rise  # from the mean of a report to that of a seat
        values = np.concatenate([worst.values + back, [back, q * rise]])
        masses = np.concatenate([worst.masses * q * high, [q * (1 - high), 1 - q]])
        nobody = high * _everybody(n - 1, 1 - q * (1 - high)) * r.profile(rise)
        crowd = Crowd(((AtomLaw(values, masses), n),), -n * q * rise)
        return crowd, n * q, nobody + high * r.delta


def _everybody(clients: int, rate: float) -> float:
    """rate^clients, a little more: the logarithm of a rate near one keeps only the digits of 1 - rate."""
    return math.exp(clients * (math.log(rate) + 2 * UNIT))


def _by(clients: int, bound: tuple[Crowd, float]) -> tuple[Crowd, float, float]:
    crowd, charge = bound
    return crowd, clients, charge


def _summed(
    name: str, way: dict[str, Any], crowd: Crowd, scale: float, charge: float = 0.0, laplace: str = "0"
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The bound of one sum, if its numbers are found."""
    try:
        value, numbers, cells = crowd.bound(laplace)
        found = {"delta": above((value / scale + charge) * (1 + 1e-12)), **_written(numbers)}
    except NumericalFailure:  # or no number came out
        return
    yield name, way, found | ({} if cells is None else {"cells": cells})


def _written(numbers: Numbers) -> dict[str, Any]:
    return {name: getattr(numbers, name) for name in ("theta", "period", "terms", "normal", "laplace")}


def _tried(places: tuple[float, ...], mean: float, deviation: float) -> tuple[float, ...]:
    """Only the first, if that is hardly worse than the mean."""
    return places[:1] if places[0] * deviation < _LOST * mean else places


def _fewer(clients: int, share: float, size: int) -> float:
    """P(1 + Bin(clients - 1, share) < size), whose quotients fall; a little more."""
    n, k = clients - 1, size - 2
    if not 0 <= k < n * share:
        return 1.0
    quotient = k * (1 - share) / ((n - k + 1) * share)
    return float(binomial.pmf(k, n, share)) / (1 - quotient) * (1 + 1e-9)


def _more(people: int, honest: int, cohort: int, size: int) -> float:
    """P(H > size), H the honest clients of a cohort that is drawn from `people`; a little more."""
    h, others = size + 1, people - honest
    if h > min(honest, cohort):
        return 0.0
    if h < cohort - others:
        return 1.0
    parts = ((honest, h), (others, cohort - h), (people, cohort))
    first, second, whole = (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for n, k in parts)
    further = np.arange(h, min(honest, cohort, h + math.ceil(30 * math.sqrt(cohort) + 100)), dtype=float)
    quotients = (honest - further) * (cohort - further) / ((further + 1) * (others - cohort + further + 1))
    sums = 1.0 + float(np.cumprod(quotients).sum())
    return min(math.exp(first + second - whole) * sums * (1 + 1e-9 + 1e-13 * people), 1.0)
