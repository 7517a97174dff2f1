"""Gaussian reports: a ball of inputs and noise, in any dimension; and the types of the other clients' reports.

Type A is 1 - alpha W and type B is W - alpha, W log-normal at a slightly larger distance. Which distance and how much
noise make a mixture of them lie above every report of the ball is read from the shipped table; the program
`verify/gaussian_types` proves it (docs/gaussian-certificate.md).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import ClassVar, NamedTuple

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.curves import UPPER_SLACK
from dpcheckin.accounting.engine.seats import Mixture, RealPair, Seats
from dpcheckin.accounting.engine.typed.laws import Types
from dpcheckin.accounting.engine.typed.nested_laws import STEP, NestedLaw, Points, on_points
from dpcheckin.accounting.pairs.local import LocalPair
from dpcheckin.accounting.pairs.pure_types import Family
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import positive
from dpcheckin.special.normal import gaussian_profile, gaussian_profile_at, ndtr
from dpcheckin.special.roots import least

MOST_MERGED, MOST_OUTPUTS = 60_000, 50  # combinations and outputs of reports cut into intervals
# of the answer, about, that may lie above the last point: of many reports, of one large one
_CUT, _CUT_FAR = 1e-5, 1e-4
_MOVED = 2e-5  # of the deviation of the sum, by which moving up what is lowest may raise it
_LOGS = np.linspace(-2.0, 60.0, 1 << 10)  # of W - 1, where the end of the points is looked for
_ALONE = 2.5  # deviations of the sum that one report has to reach
# One large report makes the answer where that is likelier than many small ones. The types then only
# have the larger distance, and the worst law of the true distance has no more than the upper tail.
_ONE_MAY_COUNT, _ONLY_ONE_COUNTS = 0.03, 1e3
TABLE = "gaussian.jsonl"  # one line of JSON for each claim, with its proof
_WIDER = 1.02  # how much wider than the first further types may be
_REACH_DOWN = 1.05  # below the smallest diameter rounding up would cost more than types gain


class CertifiedTypes(NamedTuple):
    """Types A' = 1 - αW and B' = W - α that stand in for every report of a ball.

    A check-in round at rate γ pays γκ(1 + α)/2 in δ, a fixed cohort of k out of n clients (k/n)κ(1 + α)/2.
    """

    scale: float  # s', the spread of the log-normal W, to be used for A', B' and Z* alike
    smoothing: float  # τ₀; the Laplace noise in the sum has the scale τ₀(1 + α)/2
    violation: float  # κ
    largest_alpha: float  # the claim holds for α in [1, largest_alpha]
    diameter: float  # that was certified, at least the one asked for


def certified_scale(diameter: float) -> CertifiedTypes | None:
    """The first of `certified_scales`, nearest to Gaussian reports, or None where nothing is certified."""
    return next(iter(certified_scales(diameter)), None)


@cache
def certified_scales(diameter: float) -> tuple[CertifiedTypes, ...]:
    """All certified types worth using: each is wider than the one before and reaches a larger α.

    The `diameter` is the largest distance of two inputs in noise standard deviations. Inputs nearer together are harder
    to tell apart, so a certified diameter that is not below the one asked for serves it.
    """
    if not (np.isfinite(diameter) and diameter > 0):
        raise InvalidParameter("diameter", diameter, "a positive, finite number")
    entries = _table()
    if diameter < min(types.diameter for types in entries) / _REACH_DOWN:
        return ()
    chosen: list[CertifiedTypes] = []
    for types in entries:
        if types.diameter < diameter or (chosen and types.scale > _WIDER * chosen[0].scale):
            continue
        if not chosen or types.largest_alpha > chosen[-1].largest_alpha:
            chosen.append(types)
    return tuple(chosen)


@cache
def _table() -> list[CertifiedTypes]:
    """The shipped table without its proofs, by scale."""
    types = []
    for entry in map(json.loads, files(__package__).joinpath(TABLE).read_text(encoding="utf-8").splitlines()):
        tilt = entry["tilts"][-1]  # (α - 1)/(α + 1) of the largest α, which is rounded down
        alpha = float(np.nextafter((1 + tilt) / (1 - tilt), 0.0))
        types.append(CertifiedTypes(entry["scale"], entry["smoothing"], entry["violation"], alpha, entry["diameter"]))
    return sorted(types, key=lambda entry: entry.scale)


@dataclass(frozen=True, slots=True)
class Crowd:
    """How many reports there are at most, and how fast the threshold rises with alpha."""

    reports: float
    seats: float

    @staticmethod
    def of(parts: Mixture) -> Crowd:
        """The largest of the seats of a round."""
        return Crowd(max(s.count * s.participation for _, s in parts), max(s.count + s.empty for _, s in parts))


class LogNormalReports:
    """Laws of reports at one `distance`, the deviation of log W, on points that reach as far as a `crowd` asks for."""

    def __init__(self, distance: float, crowd: Crowd) -> None:
        self._s, self._crowd = distance, crowd
        self._profiles = self._profile(1.0 + np.exp(_LOGS))
        deviation = math.sqrt(math.expm1(distance * distance))
        self._step = STEP * deviation
        self.deviation = deviation * math.sqrt(crowd.reports)
        self._bottom = self._from(_MOVED * self.deviation)

    def answers(self, rise: float) -> tuple[float, float]:
        """What many small reports, and what one large one, add to the answer, about."""
        threshold = rise * self._crowd.seats
        away = threshold / self.deviation
        many = 0.4 * self.deviation * math.exp(-0.5 * away * away) / (1.0 + away * away)
        if away < _ALONE:  # reports that reach it alone are not told from those that need not
            return many, 0.0
        single = self._crowd.reports * float(self._profile(np.array([1.0 + threshold]))[0])
        return many, single

    def points(self, rise: float) -> Points:
        """Points for this alpha - 1: what is cut off is a small part of the answer."""
        many, single = self.answers(rise)
        top = self._from(max(_CUT * many, _CUT_FAR * single))
        return Points(self._step, max((1.0 + rise) * self._bottom, 1.0 + rise), top)

    def _from(self, negligible: float) -> float:
        """Beyond this a report of all together adds at most so much (a guide)."""
        small = self._crowd.reports * self._profiles <= negligible
        return float(np.exp(_LOGS[int(np.argmax(small)) if small.any() else -1]))

    def first(self, rise: float, points: Points) -> NestedLaw:
        """Type A, 1 - alpha W, alpha = 1 + `rise`, on these `points`."""
        alpha = 1.0 + rise
        return on_points(
            lambda x: alpha * self._below(-x / alpha), lambda x: alpha * self._above(-x / alpha), 0.0, points
        )

    def second(self, points: Points) -> NestedLaw:
        """Type B, W - alpha."""
        return on_points(self._above, self._below, 0.0, points)

    def worst(self, rise: float, points: Points) -> NestedLaw:
        """Z* at alpha = 1 + `rise` on these `points`: the upper tail of the one type, the lower of the other."""
        alpha = 1.0 + rise
        return on_points(self._above, lambda x: alpha * self._profile(1.0 - x / alpha), rise, points)

    def cut(self, points: Points) -> float:
        """What one report adds above the last point."""
        return float(self._above(points.runs[-1].points[-1:])[0])

    def _profile(self, alpha: Array) -> Array:
        return gaussian_profile(self._s, np.asarray(alpha, np.float64))

    def _above(self, x: Array) -> Array:
        """E(W - 1 - x)+ for x >= 0."""
        return self._profile(1.0 + x)

    def _below(self, x: Array) -> Array:
        """E(1 + x - W)+ for x <= 0."""
        ratio = np.maximum(1.0 + x, 1e-300)
        return np.where(x > -1.0, ratio * self._profile(1.0 / ratio), 0.0)


class GaussianTypes:
    """Types at every alpha that a certificate covers, and the worst law where one report counts.

    Of the `certified` types of this `distance` that cover an alpha those are used that make the sum of a `crowd`
    scatter least. Where nothing else stands beside them (`alone`) the worst law does wherever there are no others.
    """

    def __init__(
        self, distance: float, certified: tuple[CertifiedTypes, ...], crowd: Crowd, *, alone: bool = False
    ) -> None:
        self._true, self._alone = LogNormalReports(distance, crowd), alone
        # few reports weigh less than the noise that close types ask for
        best = sorted(certified, key=lambda t: crowd.reports * math.expm1(t.scale**2) + 2 * t.smoothing**2)
        self._larger = [(known, LogNormalReports(known.scale, crowd)) for known in best]

    def __call__(self, rise: float) -> tuple[Types, ...]:
        found = []
        many, single = self._true.answers(rise)
        covers = (pair for pair in self._larger if 1.0 + rise <= pair[0].largest_alpha)
        chosen = next(covers, None)
        if chosen is not None and single < _ONLY_ONE_COUNTS * many:
            found.append(_types(*chosen, rise))
        if single > _ONE_MAY_COUNT * many or (self._alone and not found):
            points = self._true.points(rise)
            worst = self._true.worst(rise, points)
            found.append(Types((worst,), worst, 0.0, self._true.cut(points)))
        return tuple(found)


def _types(known: CertifiedTypes, laws: LogNormalReports, rise: float) -> Types:
    points, middle = laws.points(rise), 1.0 + rise / 2
    first, second = laws.first(rise, points), laws.second(points)
    # beyond the last point the reports are cut off, and paid for like a violation
    return Types(
        (first, second),
        laws.worst(rise, points).sharing(first, second),
        known.smoothing * middle,
        known.violation * middle + laws.cut(points),
    )


@dataclass(frozen=True)
class GaussianPair(LocalPair):
    """Gaussian noise of standard deviation sigma * C on vectors of norm at most C.

    Two points of the ball are at most 2C apart, so W is log-normal with s = 2 / sigma in any dimension.
    """

    noise_multiplier: float
    name: str = "Gaussian"
    local_epsilon: float = math.inf
    local_delta: float = 0.0
    full_shuffle_proved: bool = False
    family: Family = Family.GAUSSIAN
    dear: ClassVar[bool] = True

    @property
    def s(self) -> float:
        """Distance of the two inputs in standard deviations of the noise."""
        return 2.0 / self.noise_multiplier

    @property
    def typed(self) -> bool:
        return self.family is Family.GAUSSIAN and certified_scale(self.s) is not None

    def profile(self, alpha: Array | Sequence[float] | float) -> Array:
        a = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
        return gaussian_profile(self.s, a).reshape(np.shape(alpha))

    @property
    def second_moment(self) -> float:
        s = self.s
        if s > 25.0:
            return math.inf  # it would overflow
        tail = ndtr
        return float(math.exp(s * s) * tail(1.5 * s) - 2 * tail(s / 2) + tail(-s / 2))

    @property
    def directions(self) -> tuple[RealPair, ...]:
        s = self.s
        half, root = s / 2, math.sqrt(2)

        def tails(ratio: float) -> tuple[float, float]:  # is called 100,000 times for a curve
            if ratio <= 0.0:
                return 1.0, 1.0
            place = math.log(ratio) / s
            return 0.5 * math.erfc((place + half) / root), 0.5 * math.erfc((place - half) / root)

        (real,) = super().directions
        return (replace(real, tails=tails),)

    @property
    def label(self) -> str:
        return f"Gaussian reports with noise multiplier {self.noise_multiplier:g}"

    def others_types(self, parts: Mixture) -> GaussianTypes | None:
        certified = certified_scales(self.s) if self.family is Family.GAUSSIAN else ()
        return GaussianTypes(self.s, certified, Crowd.of(parts)) if certified else None

    def full_types(self, parts: Mixture) -> GaussianTypes:
        certified = certified_scales(self.s) if self.family is Family.GAUSSIAN else ()
        return GaussianTypes(self.s, certified, Crowd.of(parts), alone=True)

    def spare(self, clients: int) -> float:
        """As in the base: G is the noise about the centre, where no report of these `clients` is much less likely.

        Their values are points of the ball, `clients` + 1 with both of the first one's. In all directions but a share
        q of the noise R(0)/R(x) is at most e^(s²/8 + ts/2) for each of them, in any dimension.
        """
        t = np.linspace(0.0, 12.0, 1201)
        missed = (clients + 1) * ndtr(-t) * UPPER_SLACK
        return float(np.max(np.maximum(1.0 - missed, 0.0) * np.exp(-self.s * (self.s / 8 + t / 2)))) / UPPER_SLACK

    def epsilon_within(self, delta: float) -> float:
        """In closed form and without an end: little noise costs thousands."""
        return least(lambda epsilon: self.profile_above(epsilon) <= delta, 1.0)

    def profile_above(self, epsilon: float) -> float:  # a little to the left: it is larger there
        left = np.array([max(epsilon * (1.0 - 1e-15) - 1e-15, 0.0)])
        return float(gaussian_profile_at(self.s, left)[0]) * UPPER_SLACK

    def merged(self, outputs: int) -> tuple[Array, Array]:
        """Ratios and masses under Q of reports told apart no finer than so many intervals (`outputs`)."""
        from dpcheckin.accounting.pairs.merged import merged_gaussian

        return merged_gaussian(self.s, outputs)

    def few_outputs(self, seats: Seats, direction: int) -> tuple[Array, Array] | None:
        """Merged reports in either `direction`, unless these `seats` are so many that a lattice is better.

        Tails so heavy that the lattice is long, slow and still too short ask for fewer outputs.
        """
        outputs = MOST_OUTPUTS
        while math.comb(seats.count + outputs, outputs) > MOST_MERGED:
            outputs -= 1
        fewest = 50 if self.s < 1.4 else 7 if self.s < 2.0 else 5
        return self.merged(outputs) if outputs >= fewest else None

    def repeated(self, reports: int) -> GaussianPair:
        return GaussianPair(self.noise_multiplier / math.sqrt(reports))


def gaussian(noise_multiplier: float) -> GaussianPair:
    """Gaussian noise of standard deviation noise_multiplier * C on vectors clipped to norm C."""
    if not 0.08 <= positive("noise_multiplier", noise_multiplier) <= 1e6:
        raise InvalidParameter("noise_multiplier", noise_multiplier, "a number in [0.08, 1e6]")
    return GaussianPair(float(noise_multiplier))
