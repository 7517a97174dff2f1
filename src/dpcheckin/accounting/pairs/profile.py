"""Local pairs given by their privacy profile: finitely many ratios, one's own, an (eps, delta)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.seats import Mixture, RealPair
from dpcheckin.accounting.engine.typed.curve import TypesAt
from dpcheckin.accounting.pairs.local import Described, LocalPair, ThreeAtoms
from dpcheckin.accounting.pairs.pure_types import Family, OthersData, pure_types, variance_of_types
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import LARGEST_LOCAL_EPSILON, in_range, local_epsilon_in_range, open_probability
from dpcheckin.special import UNIT
from dpcheckin.special.roots import integral

_END_ROUNDING = 1e-12  # what rounding may leave of a profile where it ends
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
        delta = max(self.local_delta, self._profile_above(self.local_epsilon))
        return pure_types(self.family, self.local_epsilon, 2, delta)

    def profile(self, alpha: Array | Sequence[float] | float) -> Array:
        a = np.asarray(alpha, dtype=np.float64)
        return np.where(a <= 0, 1.0 - np.minimum(a, 0.0), self.function(np.maximum(a, 1e-300)))

    @property
    def directions(self) -> tuple[RealPair, ...]:
        return self.real or super().directions

    @property
    def second_moment(self) -> float:
        top = math.exp(min(self.local_epsilon, 60.0))

        def above(logs: Array) -> Array:
            ratios = np.exp(logs)
            return np.asarray(ratios * (self.profile(ratios) - self.local_delta))

        return max(2 * integral(above, 0.0, math.log(top)), 1e-300)


def from_atoms(
    ratios: Sequence[float] | Array, masses: Sequence[float] | Array, name: str = "given atoms"
) -> ProfilePair:
    """A pair with finitely many ratios W, each with its mass under Q.

    What E_Q[W] lacks of one is mass of P where Q has none, and becomes the local delta; up to four units in the last
    place of the sum it is taken for the rounding of the numbers given.

    Args:
        ratios: dP/dQ at each output, finite, 0 or more.
        masses: Q at each output.
        name: For sentences and tables.
    """
    w, m = np.asarray(ratios, dtype=np.float64), np.asarray(masses, dtype=np.float64)
    if w.ndim != 1 or w.shape != m.shape or w.size == 0:
        raise InvalidParameter("ratios", w.shape, "a list as long as masses, not empty")
    if not (np.all(np.isfinite(w)) and np.all(w >= 0)):
        raise InvalidParameter("ratios", w.tolist(), "finite numbers, 0 or more")
    if not (np.all(m >= 0) and abs(float(m.sum()) - 1) < 1e-9):
        raise InvalidParameter("masses", m.tolist(), "probabilities that add up to 1")
    w = np.where(np.abs(w - 1.0) < 8 * UNIT, 1.0, w)  # the rounding of a quotient is no loss
    kept = w[(m > 0) & (w > 0)]
    if kept.size == 0:
        raise InvalidParameter("ratios", w.tolist(), "at least one positive ratio with mass")
    lacking = 1.0 - math.fsum((w * m).tolist())
    if lacking < -1e-9:
        raise InvalidParameter("ratios", w.tolist(), "ratios whose mean under the masses is <= 1")
    delta = lacking if lacking > 4 * UNIT * w.size else 0.0
    nowhere = float(m[w == 0].sum())  # Q-mass where P has none: the swapped pair's delta
    epsilon = max(float(np.max(np.abs(np.log(kept)))), 1e-12)

    def function(alpha: Array) -> Array:
        # the divergence of Q from P: nothing cancels however large alpha is
        backward = _mean_positive(m, lambda a: 1.0 - a * w, alpha)
        return np.asarray(np.maximum(_mean_positive(m, lambda a: w - a, alpha) + delta, backward))

    return ProfilePair(
        name,
        function,
        epsilon,
        max(delta, nowhere),
        real=(_real(w, m, delta), _real(*_swapped(w, m, delta), nowhere)),
        described=(("kind", "matrix"), ("rows", ((*(w * m), delta), (*m, 0.0)))),
    )


def _mean_positive(m: Array, of: Callable[[Array], Array], alpha: Array) -> Array:
    """E_Q of the positive part of a function of alpha and W, which is given for alphas in a column."""
    column = np.asarray(alpha, dtype=np.float64).ravel()[:, None]
    return np.asarray((np.maximum(of(column), 0.0) @ m).reshape(np.shape(alpha)))


def _swapped(w: Array, m: Array, delta: float) -> tuple[Array, Array]:
    """Ratios dQ/dP and their masses under P; where Q has nothing the ratio is zero."""
    there = w > 0
    ratios, masses = 1.0 / w[there], (w * m)[there]
    if delta > 0.0:
        ratios, masses = np.append(ratios, 0.0), np.append(masses, delta)
    return ratios, masses / masses.sum()


def _real(w: Array, m: Array, delta: float) -> RealPair:
    """A pair of laws with one ratio everywhere, at most as revealing as the atoms.

    Outputs that P alone has are merged with those that Q alone has, or else with the largest ratio: what cannot be told
    from the merged report is not more than what could.
    """
    w = w.copy()
    if delta > 0.0:
        bare = (w == 0) & (m > 0)
        place = int(np.argmax(bare)) if bare.any() else int(np.argmax(np.where(m > 0, w, -1.0)))
        w[place] += delta / m[place]
    return RealPair(
        above=lambda alpha: _mean_positive(m, lambda a: w - a, alpha),
        below=lambda alpha: _mean_positive(m, lambda a: a - w, alpha),
        largest_ratio=float(w[m > 0].max()),
        smallest_ratio=float(w[m > 0].min()),
        second_moment=float(np.maximum(w - 1.0, 0.0) ** 2 @ m),
        atoms=(w[m > 0], m[m > 0]),
    )


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
    if epsilon < 700.0 and pair.profile(math.exp(epsilon)) > delta + _END_ROUNDING:
        raise InvalidParameter("local_epsilon", epsilon, f"where h(exp(epsilon)) has fallen to local_delta, {delta:g}")
    return pair


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
