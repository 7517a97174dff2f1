"""The law of one report that a certificate's randomizer describes, in doubles."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.typed.laws import AtomLaw
from dpcheckin.accounting.proof.stated import value_of
from dpcheckin.special.normal import gaussian_profile_at


@dataclass(frozen=True, slots=True)
class Report:
    """W = dP/dQ of one report, under Q, in doubles."""

    kind: str
    ratios: Array
    masses: Array
    delta: float

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
    if kind == "gaussian":
        return on_grid(2 / value_of(entry["noise_multiplier"]), entry["grid"])
    if kind == "laplace":
        return on_grid(value_of(entry["local_epsilon"]), entry["grid"], kind)
    delta = value_of(entry.get("local_delta", "0"))
    d, w = entry.get("values", 2), entry.get("size", 1)
    if kind in ("unary", "privunit"):
        p, q = value_of(entry["p"]), value_of(entry["q"])
        e0 = p * (1 - q) / (q * (1 - p))
        return _three_atoms(kind, e0, q * (1 - p) if kind == "unary" else q * (1 - p) / (1 - q))
    e0 = math.exp(value_of(entry["local_epsilon"]))
    hit = 1 / (e0 + 1)
    if kind in ("dary", "hashing"):
        hit = 1 / (e0 + d - 1)
    elif kind == "hadamard":
        hit /= 2
    elif kind == "subset":
        hit = w * (d - w) / ((d - 1) * (w * e0 + d - w))
    return _three_atoms(kind, e0, hit, delta)


def _three_atoms(kind: str, e0: float, hit: float, delta: float = 0.0) -> Report:
    masses = np.array([hit, max(1 - (e0 + 1) * hit, 0.0), e0 * hit]) * (1 - delta)
    return Report(kind, np.array([e0, 1.0, 1 / e0]), masses, delta)


def marked(r: Report, beta: float) -> Report:
    """A pure report `r` when it is no draw (probability `beta`) from a law that all share: theory.md, section 2c."""
    if r.kind == "any":
        e0 = r.e0 * (1 - beta) / (1 - beta * r.e0)
    else:
        mean = (r.e0 + 1) / 2
        e0 = (r.e0 - beta * mean) / (1 - beta * mean)
    return _three_atoms(r.kind, e0, 1 / (e0 + 1))


def on_grid(distance: float, grid: list[Any], kind: str = "gaussian") -> Report:
    """Additive noise of this `kind`, with its profile kept at a grid of losses: chords lie above it.

    `distance` is that of two inputs, in deviations of Gaussian or scales of Laplace noise, `grid` has steps and how
    many there are of each.
    """
    steps = [Fraction(step) for step, count in grid for _ in range(count)]
    losses = np.array([float(x) for x in itertools.accumulate(steps, initial=Fraction(0))])
    laplacian = -np.expm1(np.minimum(losses - distance, 0.0) / 2)
    deltas = laplacian if kind == "laplace" else gaussian_profile_at(distance, losses)
    rises = np.expm1(losses)
    slopes = np.append(np.diff(deltas) / np.diff(rises), 0.0)
    masses, far = np.maximum(np.diff(slopes), 0.0), 1.0 + rises[1:]
    ratios = np.concatenate([[1.0], far, 1.0 / far])
    middle = 1.0 - deltas[0] + 2.0 * slopes[0]
    whole = np.concatenate([[middle], masses, far * masses])
    return Report(kind, ratios, whole, float(deltas[-1]))


def _matrix(rows: list[list[Fraction]]) -> Report:
    """The largest profile of all pairs of rows, with chords between all ratios."""
    pairs = [(x, y) for x in rows for y in rows if x is not y]
    kinks = sorted({s / t for x, y in pairs for s, t in zip(x, y, strict=True) if s and t} | {Fraction(1)})

    def largest(alpha: Fraction) -> Fraction:
        zero = Fraction(0)
        return max(sum((max(s - alpha * t, zero) for s, t in zip(x, y, strict=True)), zero) for x, y in pairs)

    places = [Fraction(0), *kinks]
    deltas = [Fraction(1), *(largest(kink) for kink in kinks)]
    slopes = [(deltas[i + 1] - deltas[i]) / (places[i + 1] - places[i]) for i in range(len(kinks))] + [Fraction(0)]
    masses = [float(right - left) for left, right in itertools.pairwise(slopes)]
    return Report("matrix", np.array([float(k) for k in kinks]), np.array(masses), float(deltas[-1]))
