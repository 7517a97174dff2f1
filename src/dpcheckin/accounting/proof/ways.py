"""The theorems that bound one round at one alpha, each with its numbers: the smallest is taken.

Laws of seats are those of X = Z - (1 - alpha), as in `engine/typed`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpcheckin.accounting.engine.typed.laws import AtomLaw
from dpcheckin.accounting.engine.typed.smoothing import least_smoothing, smoothing_suffices
from dpcheckin.accounting.proof.crowds import Crowd
from dpcheckin.accounting.proof.stated import value_of
from dpcheckin.accounting.proof.trapezoid import above
from dpcheckin.accounting.types.pure import Symbols, symbols
from dpcheckin.errors import NumericalFailure

_BLANKETS = ("any", "binary", "hemisphere", "dary", "hashing", "privunit")
_NEAR_TWO = 1.8, 2.4  # of e0: types that are a little wider need less noise
_STRETCHES = "0.005", "0.01", "0.025", "0.05"
_SHARES = "0.5", "0.45", "0.55", "0.4", "0.6", "0.3", "0.7"  # of B beside A
_CLOSE, _ROOM = 1.003, 1.002  # how close a scale of noise is to the least; room for balls


@dataclass(frozen=True, slots=True)
class Report:
    """W = dP/dQ of one report, under Q, in doubles."""

    kind: str
    ratios: np.ndarray[Any, Any]
    masses: np.ndarray[Any, Any]
    delta: float
    values: int = 0

    @property
    def e0(self) -> float:
        return float(self.ratios.max())

    def profile(self, rise: float) -> float:
        """h(alpha)."""
        excess = np.maximum(self.ratios - 1.0 - rise, 0.0)
        return float(excess @ self.masses) + self.delta

    def worst(self, rise: float) -> AtomLaw:
        """Z* from its mean."""
        up = (self.ratios > 1 + rise) & (self.masses > 0)
        down = (self.ratios * (1 + rise) > 1) & (self.masses > 0)
        values = np.concatenate([self.ratios[up] - 1, (1 + rise) * (1 - self.ratios[down])])
        masses = np.concatenate([self.masses[up], self.masses[down]])
        rest = max(1.0 - math.fsum(masses.tolist()), 0.0)
        return AtomLaw(np.append(values, rise), np.append(masses, rest))


def report(entry: dict[str, Any]) -> Report:
    """The report that a certificate's randomizer describes (docs/theory.md, the laws of W)."""
    kind = entry["kind"]
    if kind == "matrix":
        return _matrix([[Fraction(p) for p in row] for row in entry["rows"]])
    delta, d, w = value_of(entry.get("local_delta", "0")), entry.get("values", 2), entry.get("size")
    if kind in ("unary", "privunit"):
        p, q = value_of(entry["p"]), value_of(entry["q"])
        e0 = p * (1 - q) / (q * (1 - p))
        hit = q * (1 - p) if kind == "unary" else q * (1 - p) / (1 - q)
    else:
        e0 = math.exp(value_of(entry["local_epsilon"]))
        hit = 1 / (e0 + 1)
        if kind in ("dary", "hashing"):
            hit = 1 / (e0 + d - 1)
        elif kind == "hadamard":
            hit /= 2
        elif kind == "subset":
            hit = w * (d - w) / ((d - 1) * (w * e0 + d - w))
    masses = np.array([hit, max(1 - (e0 + 1) * hit, 0.0), e0 * hit]) * (1 - delta)
    return Report(kind, np.array([e0, 1.0, 1 / e0]), masses, delta, d if kind == "dary" else 2)


def _matrix(rows: list[list[Fraction]]) -> Report:
    """The largest profile of all pairs of rows, with chords between all ratios."""
    pairs = [(x, y) for x in rows for y in rows if x is not y]
    kinks = sorted(
        {s / t for x, y in pairs for s, t in zip(x, y, strict=True) if s and t} | {Fraction(1)}
    )

    def largest(alpha: Fraction) -> Fraction:
        zero = Fraction(0)
        return max(
            sum((max(s - alpha * t, zero) for s, t in zip(x, y, strict=True)), zero)
            for x, y in pairs
        )

    places = [Fraction(0), *kinks]
    deltas = [Fraction(1), *(largest(kink) for kink in kinks)]
    slopes = [
        (deltas[i + 1] - deltas[i]) / (places[i + 1] - places[i]) for i in range(len(kinks))
    ] + [Fraction(0)]
    masses = [float(right - left) for left, right in zip(slopes, slopes[1:], strict=False)]
    return Report(
        "matrix", np.array([float(k) for k in kinks]), np.array(masses), float(deltas[-1])
    )


@dataclass(frozen=True, slots=True)
class Typed:
    """Types that suffice at one alpha: their way, their laws and the noise they need."""

    name: str
    way: dict[str, Any]
    laws: tuple[AtomLaw, ...]
    laplace: str


def _wide(law: str, stretch: str) -> dict[str, str]:
    return {"law": law} | ({} if stretch == "0" else {"wider": stretch})


@dataclass
class TypeSearch:
    """Which types of a randomizer suffice at an alpha, with which noise.

    Args:
        kind: Of the randomizer.
        epsilon: Of one report.
        values: Symbols of k-ary response.
    """

    kind: str
    epsilon: float
    values: int
    _guesses: dict[str, float] = field(default_factory=dict)

    @cached_property
    def _two(self) -> Symbols:
        return symbols(self.epsilon, self.values if self.kind == "dary" else 2)

    @cached_property
    def _three(self) -> Symbols:
        return symbols(self.epsilon, max(self.values, 3))

    def at(self, rise: float) -> Iterator[Typed]:
        """Every set of types known to suffice at alpha = 1 + rise, if any."""
        first, second = self._two.at_first(rise), self._two.at_second(rise)
        if self.kind in ("binary", "hemisphere"):
            way = {"theorem": "types", "types": [{"law": "A"}, {"law": "B"}]}
            yield Typed("AB", way, (first, second), "0")
            return
        third, e0 = self._three.at_third(rise), math.exp(self.epsilon)
        near = self.kind == "any" and _NEAR_TWO[0] < e0 < _NEAR_TWO[1]
        for stretch in ("0", *(_STRETCHES if near else ())):
            wide = [law.wider(float(stretch)) for law in (first, second, third)]
            if self.kind == "dary" or e0 > 2.0 or near:
                yield from self._third(first, second, third, wide[2], stretch)
            if self.kind == "any" and (e0 <= 2.0 or near):
                yield from self._ends(first, second, third, wide, stretch)

    def _third(
        self, first: AtomLaw, second: AtomLaw, third: AtomLaw, wide: AtomLaw, stretch: str
    ) -> Iterator[Typed]:
        name = "C" if stretch == "0" else f"C{stretch}"
        needed = [self._scale(name, law, [(1.0, wide)]) for law in (first, second)]
        if None in needed:
            return
        weights = {"A": ["1"], "B": ["1"]}
        way = {"theorem": "types", "types": [_wide("C", stretch)], "weights": weights}
        yield Typed(name, way, (wide,), self._enough(name, [s for s in needed if s is not None]))

    def _ends(
        self, first: AtomLaw, second: AtomLaw, third: AtomLaw, wide: list[AtomLaw], stretch: str
    ) -> Iterator[Typed]:
        for share in _SHARES:
            name = f"AB{share}" if stretch == "0" else f"AB{share}+{stretch}"
            part = float(share)
            needed = self._scale(name, third, [(1 - part, wide[0]), (part, wide[1])])
            if needed is None:
                continue
            weights = {"C": [str(1 - Fraction(share)), share]}
            types = [_wide("A", stretch), _wide("B", stretch)]
            way = {"theorem": "types", "types": types, "weights": weights}
            yield Typed(name, way, (wide[0], wide[1]), self._enough(name, [needed]))
            return

    def _scale(
        self, name: str, below: AtomLaw, mixture: list[tuple[float, AtomLaw]]
    ) -> float | None:
        guess = self._guesses.get(name, 0.3 * math.expm1(self.epsilon))
        high = least_smoothing(below, mixture, guess)
        if high is None:
            return None
        low = high / 1.04
        while high > _CLOSE * low:
            middle = math.sqrt(low * high)
            enough = smoothing_suffices(below, mixture, middle)
            low, high = (low, middle) if enough else (middle, high)
        return high

    def _enough(self, name: str, needed: list[float]) -> str:
        self._guesses[name] = max(needed)
        return above(max(needed) * _ROOM, 4)


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
    def _types(self) -> TypeSearch | None:
        r = self.report
        known = r.kind in ("any", "binary", "hemisphere", "dary")
        if not known or not self.share == 1.0 or self.presence == 1.0:
            return None
        return TypeSearch(r.kind, value_of(self.entry["randomizer"]["local_epsilon"]), r.values)

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

    def _crowds(self, rise: float) -> Iterator[tuple[str, dict[str, Any], Crowd, float, float, str]]:
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
        kappa = 2 * r.delta * (1 + rise + ((1 + rise) * r.e0 - 1) / (r.e0**2 - 1))
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

        return min(self._types.at(rise), key=spread, default=None)

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
