"""Trade-off curves (f-DP): what any attacker errs at least, and what a known one errs at most.

An attacker who must tell two neighbouring datasets apart accuses falsely with probability a and misses with probability
b. A run with the profile delta(epsilon), the larger of both orders of the datasets, allows nobody to fall below

    b >= 1 - delta(epsilon) - e^epsilon a   and   b >= e^-epsilon (1 - delta(epsilon) - a)

for every epsilon >= 0 (Wasserman and Zhou 2010; Dong, Roth and Su, arXiv 1905.02383v3). The guarantee's curve is the
largest of these lines with certified deltas put in: fewer epsilons only lower it. The other side is one pair of
datasets whose two laws are known: its best test errs with the supremum of the same lines, its own deltas put in. Their
lower bounds are linear in e^epsilon between grid points, so the supremum is taken at one of these. Both are rounded
outward.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpcheckin.accounting.composition.account import Composition, compose
from dpcheckin.accounting.composition.gate import loud_arithmetic
from dpcheckin.accounting.composition.lower_bounds import bad_case_profiles
from dpcheckin.accounting.engine.arrays import FloatArray
from dpcheckin.accounting.engine.curves import FURTHEST
from dpcheckin.accounting.figures import Brackets, Profile
from dpcheckin.accounting.rounds.base import Rounds
from dpcheckin.accounting.statements import Adjacency, Bracket
from dpcheckin.display import Tabular, axes_for, legend_beside
from dpcheckin.errors import InvalidParameter, NumericalFailure
from dpcheckin.numerals import Kind, open_probability, probability
from dpcheckin.options import DEFAULT_DELTA
from dpcheckin.special.normal import gaussian_profile_at, ndtr, ndtri
from dpcheckin.special.roots import least, switch

ROUNDING = 1e-13  # far more than what lines between 0 and 1 can be wrong by
FALSE_POSITIVES = 0.001  # of the row in plain words
LARGEST_MU = 200.0
ROWS = (0.0001, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5)  # false positives of the table


@dataclass(frozen=True, eq=False)
class TradeOff(Tabular):
    """Errors that attackers make, and the run as one Gaussian experiment.

    Args:
        profile: Certified upper bounds of delta(epsilon).
        attacks: For each known pair of datasets lower bounds of its two profiles; may be none.
        delta: By how much the Gaussian statement may be exceeded.
        gdp: mu of the Gaussian statement: every test misses at least as often as one between
            N(0, 1) and N(mu, 1), but for delta. `upper` is certified to hold, and below `lower`
            no such statement about these rounds can be true.
        adjacency: Which datasets are neighbours.
    """

    profile: Profile = field(repr=False)
    attacks: tuple[tuple[Profile, Profile], ...] = field(repr=False)
    delta: float
    gdp: Bracket
    adjacency: Adjacency

    @loud_arithmetic()
    def false_negatives(self, false_positives: float | Sequence[float] | FloatArray) -> Brackets:
        """Between which bounds the least possible rate of misses lies.

        `lower` is the guarantee: no attacker misses less often. `upper` is reached by the best known attack, and 1 - a,
        a guess, if none is known.

        `false_positives`: rates a of false accusations, in [0, 1].
        """
        asked = [probability("false_positives", a) for a in np.atleast_1d(false_positives).tolist()]
        lower = np.array([_least_missed(self.profile, a) for a in asked])
        upper = np.array([min((_missed(*pair, a) for pair in self.attacks), default=1.0 - a) for a in asked])
        shape = np.shape(false_positives) or (1,)
        return Brackets(lower.reshape(shape), np.maximum(lower, upper).reshape(shape))

    def true_positives(self, false_positives: float = FALSE_POSITIVES) -> Bracket:
        """What an attacker who accuses so many innocents catches: known attack, certified most.

        `false_positives`: rate of false accusations, in [0, 1].
        """
        missed = self.false_negatives(false_positives)[0]
        return Bracket(max(1.0 - missed.upper, 0.0), min(1.0 - missed.lower, 1.0))

    @property
    def in_words(self) -> str:
        """The row for people who do not read curves."""
        caught = self.true_positives()
        most = Kind.GUARANTEE.figure(100 * caught.upper, 3)
        least = Kind.LOWER_BOUND.figure(100 * caught.lower, 3)
        return (
            f"true positives at 0.1% false positives: at most {most}% (the best known attack: {least}%; a guess: 0.1%)"
        )

    def records(self) -> list[dict[str, float]]:
        """Rows of the table: false positives, and what is caught and missed at them."""
        missed = self.false_negatives(ROWS)
        return [
            {
                "false_positives": a,
                "true_positives_at_most": min(1.0 - low, 1.0),
                "known_attack_catches": max(1.0 - high, 0.0),
                "gaussian_catches": 1.0 - gaussian_false_negatives(self.gdp.upper, a)
                if math.isfinite(self.gdp.upper)
                else math.nan,
            }
            for a, low, high in zip(ROWS, missed.lower.tolist(), missed.upper.tolist(), strict=True)
        ]

    def shown(self) -> list[dict[str, str]]:
        return [
            {
                "false positives": f"{row['false_positives']:.3g}",
                "caught at most (certified)": Kind.GUARANTEE.figure(row["true_positives_at_most"]),
                "caught by the best known attack": Kind.LOWER_BOUND.figure(row["known_attack_catches"]),
            }
            for row in self.records()
        ]

    @property
    def gaussian_sentence(self) -> str:
        """The statement about Gaussian privacy."""
        if math.isinf(self.gdp.upper):
            return f"no statement of Gaussian privacy holds with delta = {self.delta:g}"
        return (
            f"{Kind.GUARANTEE.figure(self.gdp.upper)}-GDP but for delta = {self.delta:g} "
            f"(none below {Kind.LOWER_BOUND.figure(self.gdp.lower)} can hold)"
        )

    @property
    def caption(self) -> str:
        return f"{self.gaussian_sentence}; {self.in_words}"

    def __str__(self) -> str:
        return self.caption + "."

    def plot(self, axes: Any = None) -> Any:
        """The certified curve, that of the best known attack, and the Gaussian one between.

        `axes`: of matplotlib, to draw on; left out, a new figure.
        """
        axes = axes_for(axes, xlabel="false positives", ylabel="false negatives")
        rates = np.unique(np.concatenate([np.linspace(0.0, 1.0, 201), np.geomspace(1e-4, 1, 40)]))
        found = self.false_negatives(rates)
        axes.fill_between(rates, found.lower, found.upper, color="#1b9e4b", alpha=0.15)
        axes.plot(rates, found.lower, color="#1b9e4b", label="no attacker errs less (certified)")
        if self.attacks:
            axes.plot(rates, found.upper, color="#1f5fbf", ls=":", label="best known attack")
        if math.isfinite(self.gdp.upper):
            mu = self.gdp.upper
            normal = [gaussian_false_negatives(mu, a) for a in rates.tolist()]
            label = f"Gaussian privacy, μ = {Kind.GUARANTEE.figure(mu)}"
            axes.plot(rates, normal, color="#e08214", ls="--", lw=1.0, label=label)
        axes.plot([0.0, 1.0], [1.0, 0.0], color="#888888", lw=0.8, label="a guess")
        axes.set_aspect("equal")
        legend_beside(axes)
        return axes


@loud_arithmetic()
def tradeoff(rounds: Rounds | Composition, delta: float = DEFAULT_DELTA) -> TradeOff:
    """The trade-off curve of these rounds, between certified bounds.

    Args:
        rounds: Rounds and how often each takes place, or their composition.
        delta: By how much the statement about Gaussian privacy may be exceeded.

    >>> from dpcheckin.accounting import CheckInRound, any_pure
    >>> curve = tradeoff([(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)])
    >>> curve.in_words.partition(" (")[0]
    'true positives at 0.1% false positives: at most 0.111%'
    """
    delta = open_probability("delta", delta)
    run = rounds if isinstance(rounds, Composition) else compose(rounds)
    profile = run.profile(min(delta / 100, 1e-9))
    if not profile.epsilons[-1] <= FURTHEST:
        raise NumericalFailure(f"epsilon reaches {profile.epsilons[-1]:.4g}: an attacker's errors are beyond numbers")
    attacks: tuple[tuple[Profile, Profile], ...] = ()
    if run.adjacency is Adjacency.REPLACE_ONE and run.rounds:
        attacks = bad_case_profiles(run.rounds, min(delta / 100, 1e-9))
    upper = smallest_mu(profile, delta)
    lower = max((necessary_mu(p, delta) for pair in attacks for p in pair), default=0.0)
    return TradeOff(profile, attacks, delta, Bracket(min(lower, upper), upper), run.adjacency)


def _least_missed(profile: Profile, a: float) -> float:
    """The largest of the guarantee's lines at a, rounded down."""
    x, kept = np.exp(profile.epsilons), 1.0 - profile.deltas
    best = max(float(np.max(kept - x * a)), float(np.max((kept - a) / x)))
    return max(best - ROUNDING, 0.0)


def _missed(forward: Profile, backward: Profile, a: float) -> float:
    """What the best test between two known laws misses at most, rounded up."""
    ahead = float(np.max(1.0 - forward.deltas - np.exp(forward.epsilons) * a))
    behind = float(np.max((1.0 - backward.deltas - a) / np.exp(backward.epsilons)))
    return min(max(ahead, behind, 0.0) + ROUNDING, 1.0 - a)


def smallest_mu(profile: Profile, delta: float) -> float:
    """A mu such that delta(epsilon) <= delta_mu(epsilon) + delta for every epsilon >= 0.

    Then no test falls below that between N(0, 1) and N(mu, 1) by more than delta. Infinite where the profile does not
    fall to delta.
    """
    if profile.deltas[0] <= delta:
        return 0.0
    if profile.deltas[-1] > delta:
        return math.inf
    return least(lambda mu: _below_gaussian(profile, mu, delta), 1.0, 128.0, halvings=50)


def _below_gaussian(profile: Profile, mu: float, slack: float) -> bool:
    """Is the profile nowhere above that of N(0, 1) and N(mu, 1) plus the slack?

    In x = e^epsilon a chord bounds the profile from above and tangents bound the other from below; a line less a
    maximum of lines is largest at an end or where the tangents meet.
    """
    epsilons, values = profile.epsilons, profile.deltas
    x = np.exp(epsilons)
    normal = gaussian_profile_at(mu, epsilons)
    slopes = -ndtr(-epsilons / mu - mu / 2)
    allowed = slack * (1.0 - 1e-9)
    if np.any(values > normal * (1.0 - 1e-11) + allowed):
        return False
    width = np.diff(x)
    with np.errstate(divide="ignore", invalid="ignore"):
        # of the right end's tangent less the left end's, in parts of the interval
        meet = (normal[1:] - slopes[1:] * width - normal[:-1]) / (slopes[:-1] - slopes[1:])
    meet = np.clip(np.nan_to_num(meet, nan=0.0), 0.0, width)
    least = normal[:-1] + slopes[:-1] * meet
    chord = values[:-1] + np.diff(values) * (meet / width)
    return not bool(np.any(chord > least - 1e-11 * normal[:-1] + allowed))


def necessary_mu(profile: Profile, delta: float) -> float:
    """The mu below which the statement with this delta is wrong, from lower bounds of a profile."""
    places = np.linspace(0, profile.epsilons.size - 1, 400).astype(int)
    excess = profile.deltas[places] - delta
    keep = excess > 0.0
    if not keep.any():
        return 0.0
    epsilons, wanted = profile.epsilons[places][keep], excess[keep]

    def wrong(mu: float) -> bool:
        return bool(np.any(gaussian_profile_at(mu, epsilons) * (1.0 + 1e-11) < wanted))

    return switch(wrong, 0.0, LARGEST_MU, absolute=LARGEST_MU * 2.0**-60)[0]


def gaussian_false_negatives(mu: float, false_positives: float) -> float:
    """G_mu(a): what the best test between N(0, 1) and N(mu, 1) misses.

    `mu`: distance of the two laws. `false_positives`: rate of false accusations, in [0, 1].
    """
    if not mu >= 0.0:
        raise InvalidParameter("mu", mu, "0 or more")
    a = probability("false_positives", false_positives)
    return float(ndtr(ndtri(1.0 - a) - mu))
