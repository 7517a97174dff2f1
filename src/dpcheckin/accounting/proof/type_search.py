"""Which types a certificate may put in place of the others' reports at one alpha, and the noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dpcheckin.accounting.engine.typed.laws import AtomLaw, least_smoothing, smoothing_suffices
from dpcheckin.accounting.pairs.gaussian import CertifiedTypes, certified_scales
from dpcheckin.accounting.pairs.laplace import LARGEST, SMALLEST, STRETCH, TILT_STEP, VIOLATION, LaplaceClaim, deviation
from dpcheckin.accounting.pairs.pure_types import ALIKE, Symbols, symbols
from dpcheckin.accounting.proof.reports import Report, on_grid
from dpcheckin.accounting.proof.trapezoid import above, short

_NEAR_TWO = 1.8, 2.4  # of e0: types that are a little wider need less noise
_STRETCHES = "0.005", "0.01", "0.025", "0.05"
_SHARES = "0.5", "0.45", "0.55", "0.4", "0.6", "0.3", "0.7"  # of B beside A
_LOUDER, _SPARE = 20, (1.05, 1.1)  # Laplace reports: how often noise is raised by a tenth; points beyond the last
_CLOSE, _ROOM = 1.003, 1.002  # how close a scale of noise is to the least; room for balls


@dataclass(frozen=True, slots=True)
class Typed:
    """Types that suffice at one alpha: their way, their laws and the noise they need."""

    name: str
    way: dict[str, Any]
    laws: tuple[AtomLaw, ...]
    laplace: str
    charge: float = 0.0  # of a report that is there


@dataclass
class QuotedTypes:
    """Types of Gaussian reports at a `distance`, from the certified table; `grid` is as the certificate says it."""

    distance: float
    grid: list[Any]
    stretch: str | None = None

    @cached_property
    def _known(self) -> list[tuple[CertifiedTypes, Report]]:
        return [(one, on_grid(one.scale, self.grid)) for one in certified_scales(self.distance)]

    def at(self, rise: float) -> Iterator[Typed]:
        """Every entry of the table that covers alpha = 1 + rise."""
        middle = 1 + rise / 2
        for one, law in self._known:
            if 1 + rise >= one.largest_alpha:
                continue
            quoted = {
                "diameter": repr(one.diameter),
                "distance": repr(one.scale),
                "smoothing": repr(one.smoothing),
                "violation": repr(one.violation),
                "largest_alpha": repr(one.largest_alpha),
            }
            types = [{"law": "A"}, {"law": "B"}]
            way = {"theorem": "types", "types": types, "quoted": quoted}
            first = AtomLaw((1 + rise) * (1 - law.ratios), law.masses)
            second = AtomLaw(law.ratios - 1, law.masses)
            noise = above(one.smoothing * middle * (1 + 1e-12), 6)
            charge = one.violation * middle + 2 * law.delta
            yield Typed(f"quoted {one.scale:g}", way, (first, second), noise, charge)


@dataclass
class LaplaceTypes:
    """Types of Laplace reports of a local `epsilon`, proved at each alpha for the very atoms that W has, its `law`."""

    epsilon: float
    law: Report
    stretch: str | None = None
    _scale: float | None = None

    def at(self, rise: float) -> Iterator[Typed]:
        """The types at alpha = 1 + rise, with a little more noise than was enough at the alphas before."""
        beta, middle = rise / (2 + rise), 1 + rise / 2
        if not SMALLEST <= self.epsilon <= LARGEST or self.law.delta > 0.0:
            return
        first = AtomLaw((1 + rise) * (1 - self.law.ratios), self.law.masses).wider(STRETCH)
        second = AtomLaw(self.law.ratios - 1, self.law.masses).wider(STRETCH)
        atoms = np.concatenate([first.values, second.values]) / middle
        ends = np.outer(_SPARE, [atoms.min(), atoms.max()]).ravel()  # as bounds of reports reach to the next points
        points = np.unique(np.concatenate([atoms, ends]))
        claim = LaplaceClaim(self.epsilon, points[np.diff(points, prepend=-np.inf) > 1e-12])
        scale = self._scale or float(short(max(0.5 * deviation(self.epsilon), 0.1 * self.law.e0 - 4.0), 3))
        for _ in range(_LOUDER):
            if claim.holds(beta / TILT_STEP, scale, 0):
                break
            scale = float(above(1.1 * scale, 3))
        else:
            return
        self._scale = scale
        quoted = {
            "diameter": repr(self.epsilon),
            "distance": repr(self.epsilon),
            "smoothing": repr(scale),
            "violation": repr(VIOLATION),
            "largest_alpha": short(self.law.e0, 6),
        }
        types = [{"law": law, "wider": str(STRETCH)} for law in ("A", "B")]
        noise = above(scale * middle * (1 + 1e-12), 6)
        way = {"theorem": "types", "types": types, "quoted": quoted}
        yield Typed(f"quoted {scale:g}", way, (first, second), noise, VIOLATION * middle)


def _wide(law: str, stretch: str) -> dict[str, str]:
    return {"law": law} | ({} if stretch == "0" else {"wider": stretch})


@dataclass
class TypeSearch:
    """Which types suffice with which noise, for `every` pure randomizer or else binary response and hemispheres.

    Near e0 = 2, e0 = e^`epsilon`, types are wider by a `stretch`; all are tried if it is None. `sets`: the laws of
    reports that support several symbols.
    """

    every: bool
    epsilon: float
    stretch: str | None = None
    sets: Symbols | None = None
    _guesses: dict[str, float] = field(default_factory=dict)

    def at(self, rise: float) -> Iterator[Typed]:
        """Every set of types known to suffice at alpha = 1 + rise, if any."""
        two, three = self.sets or symbols(self.epsilon, 2), self.sets or symbols(self.epsilon, 3)
        first, second, third = two.at_first(rise), two.at_second(rise), three.at_third(rise)
        if not self.every:
            way = {"theorem": "types", "types": [{"law": "A"}, {"law": "B"}]}
            yield Typed("AB", way, (first, second), "0")
            return
        e0 = math.exp(self.epsilon)
        near, ends = _NEAR_TWO[0] < e0 < _NEAR_TWO[1], e0 <= 2.0
        if self.sets is not None:
            excess = three.at_third(0.0).variance / two.at_first(0.0).variance
            near, ends = 1.0 / ALIKE < excess < ALIKE, excess <= 1.0
        tried = ("0", *(_STRETCHES if near else ()))
        for stretch in tried if self.stretch is None else (self.stretch,):
            wide = [law.wider(float(stretch)) for law in (first, second, third)]
            if not ends or near:
                yield from self._third(first, second, wide[2], stretch)
            if ends or near:
                yield from self._ends(third, wide, stretch)

    def _third(self, first: AtomLaw, second: AtomLaw, wide: AtomLaw, stretch: str) -> Iterator[Typed]:
        name = "C" if stretch == "0" else f"C{stretch}"
        needed = [self._scale(name, law, [(1.0, wide)]) for law in (first, second)]
        if None in needed:
            return
        weights = {"A": ["1"], "B": ["1"]}
        way = {"theorem": "types", "types": [_wide("C", stretch)], "weights": weights}
        yield Typed(name, way, (wide,), self._enough(name, [s for s in needed if s is not None]))

    def _ends(self, third: AtomLaw, wide: list[AtomLaw], stretch: str) -> Iterator[Typed]:
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

    def _scale(self, name: str, below: AtomLaw, mixture: list[tuple[float, AtomLaw]]) -> float | None:
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
