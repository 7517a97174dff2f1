"""Local pairs given by their privacy profile: one's own, an (eps, delta). Those of tables are in `matrix`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.curves import right_of
from dpcheckin.accounting.engine.seats import Mixture, RealPair
from dpcheckin.accounting.engine.typed.curve import TypesAt
from dpcheckin.accounting.pairs.local import Described, LocalPair, ThreeAtoms
from dpcheckin.accounting.pairs.pure_types import Family, OthersData, pure_types, symbols, variance_of_types
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import LARGEST_LOCAL_EPSILON, in_range, local_epsilon_in_range, open_probability
from dpcheckin.special import UNIT

_END_ROUNDING = 1e-12  # what may be left of a profile where it ends; it is charged
_WORTH = 0.97  # of the variance of a report that other types must not exceed to be worth a sum


@dataclass(frozen=True)
class ProfilePair(LocalPair):
    """A pair given by its profile: a function h closed under swapping, h(infinity) = local_delta.

    Args:
        name: For sentences and tables.
        function: h(alpha), the larger of both directions, for alpha > 0.
        local_epsilon: Where h has fallen to `local_delta`; infinite if it never does.
        local_delta: Mass without counterpart, in the worse direction.
        real: The pair itself in either direction, where it is known; its two profiles then need
            not be equal, and lower bounds take one of them at a time.
    """

    name: str
    function: Callable[[Array], Array] = field(repr=False)
    local_epsilon: float = math.inf
    local_delta: float = 0.0
    full_shuffle_proved: bool = False
    real: tuple[RealPair, ...] = field(default=(), repr=False)
    family: Family = Family.ANY_PURE
    described: Described = field(default=(), repr=False)
    condition: str = ""

    @property
    def typed(self) -> bool:
        """Do the types of every randomizer of this epsilon and delta beat this law's own worst?

        A law whose ratios are mostly the largest ones is hardly better than any other of its epsilon, and for those
        more is known.
        """
        if self.family is not Family.ANY_PURE or self.local_epsilon > LARGEST_LOCAL_EPSILON:
            return False
        return variance_of_types(self.local_epsilon) < _WORTH * 2.0 * self.second_moment

    def others_types(self, parts: Mixture) -> TypesAt | None:
        if not self.typed:
            return None
        # what the profile itself says of this epsilon, whatever was given as its delta
        delta = max(self.local_delta, self.profile_above(self.local_epsilon))
        return pure_types(self.family, symbols(self.local_epsilon, 2), delta)

    def profile(self, alpha: Array | Sequence[float] | float) -> Array:
        a = np.asarray(alpha, dtype=np.float64)
        return np.where(a <= 0, 1.0 - np.minimum(a, 0.0), self.function(np.maximum(a, 1e-300)))

    @property
    def directions(self) -> tuple[RealPair, ...]:
        return self.real or super().directions

    @property
    def second_moment(self) -> float:
        logs = np.linspace(0.0, min(self.local_epsilon, 60.0), 1 << 16)
        ratios = np.exp(logs)
        above = ratios * (self.profile(ratios) - self.local_delta)
        return max(2 * float(np.trapezoid(above, logs)), 1e-300)


def from_profile(
    function: Callable[[Array], Array],
    *,
    local_epsilon: float = math.inf,
    local_delta: float = 0.0,
    name: str = "given profile",
) -> ProfilePair:
    """A pair given by its privacy profile h(alpha) = sup of H_alpha over inputs, alpha > 0.

    The function is checked for the properties every profile has; one that is not closed under swapping is closed, as
    far as differences of large numbers can tell.

    Args:
        function: h, from arrays to arrays.
        local_epsilon: Where the profile has fallen to `local_delta`; infinite if it never does.
        local_delta: h at infinity, the larger of both directions.
        name: For sentences and tables.
    """
    epsilon = in_range("local_epsilon", local_epsilon)
    if not epsilon > 0.0:
        raise InvalidParameter("local_epsilon", local_epsilon, "a number above 0 (inf allowed)")
    delta = in_range("local_delta", local_delta)
    if not 0.0 <= delta < 1.0:
        raise InvalidParameter("local_delta", local_delta, "a number in [0, 1)")

    def closed(alpha: Array) -> Array:
        forward = function(alpha)
        mirrored = 1.0 - alpha + alpha * function(1.0 / alpha)
        # the two terms are as large as alpha: what is less than their rounding is none
        return np.maximum(forward, mirrored - 16 * UNIT * (1.0 + alpha))

    pair = ProfilePair(name, closed, epsilon, delta)
    alphas = np.exp(np.linspace(-min(epsilon, 30.0), min(epsilon, 30.0), 401))
    values = pair.profile(alphas)
    if not np.all(np.isfinite(values)) or values.min() < -1e-12 or values.max() > 1 + 1e-9:
        raise InvalidParameter("function", "h(alpha)", "finite values in [0, 1]")
    slopes = np.diff(values) / np.diff(alphas)
    if np.any(np.diff(slopes) < -1e-7) or np.any(slopes > 1e-9):
        raise InvalidParameter("function", "h(alpha)", "a decreasing convex function of alpha")
    # on the far side of what rounding makes of exp(epsilon)
    left = float(pair.profile(right_of(np.array([math.exp(epsilon)])))[0]) if epsilon < 700.0 else 0.0
    if not left <= delta + _END_ROUNDING:
        raise InvalidParameter("local_epsilon", epsilon, f"where h(exp(epsilon)) has fallen to local_delta, {delta:g}")
    return replace(pair, local_delta=max(delta, left))


def approximate(local_epsilon: float, local_delta: float) -> ThreeAtoms:
    """The worst case over all (`local_epsilon`, `local_delta`)-LDP randomizers."""
    epsilon = local_epsilon_in_range(local_epsilon)
    delta = open_probability("local_delta", local_delta)
    hit = (1 - delta) / (math.exp(epsilon) + 1)
    return ThreeAtoms(
        "any approximate randomizer",
        epsilon,
        hit,
        0.0,
        local_delta=delta,
        others_data=OthersData.ANY_PURE,  # a pure randomizer is one of them
        family=Family.ANY_PURE,
        described=(("kind", "any"), ("local_epsilon", epsilon), ("local_delta", delta)),
    )
