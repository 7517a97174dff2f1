"""Local pairs given by their privacy profile: Laplace noise, finitely many ratios, a user's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.pairs import LocalPair
from dpcheckin.accounting.parameters import local_epsilon_in_range, number
from dpcheckin.errors import InvalidParameter


@dataclass(frozen=True)
class ProfilePair(LocalPair):
    """A pair given by its profile alone: any function h, with h(infinity) = local_delta.

    The profile is closed under swapping by taking the larger of both directions.
    """

    name: str
    function: Callable[[Array], Array] = field(repr=False)
    local_epsilon: float = math.inf
    local_delta: float = 0.0
    full_shuffle_proved: bool = False

    def profile(self, alpha: Array | Sequence[float] | float) -> Array:
        a = np.asarray(alpha, dtype=np.float64)
        positive_part = np.maximum(a, 1e-300)
        forward = self.function(positive_part)
        mirrored = 1 - positive_part + positive_part * self.function(1 / positive_part)
        # no profile lies below (1 - alpha)+ or above 1
        return np.where(a <= 0, 1.0 - np.minimum(a, 0.0), np.maximum(forward, mirrored))

    @property
    def second_moment(self) -> float:
        top = math.exp(min(self.local_epsilon, 60.0))
        from scipy import integrate  # slow to load, and few pairs need it

        value = integrate.quad(
            lambda x: math.exp(x) * float(self.profile(math.exp(x)) - self.local_delta),
            0.0,
            math.log(top),
            limit=400,
            full_output=1,
        )[0]
        return max(2 * float(value), 1e-300)


def laplace(local_epsilon: float) -> ProfilePair:
    """Laplace noise on one number, with epsilon = range / scale."""
    epsilon = local_epsilon_in_range(local_epsilon)

    def function(alpha: Array) -> Array:
        logs = np.log(alpha)
        inner = -np.expm1(np.minimum((logs - epsilon) / 2, 0.0))
        return np.where(logs <= -epsilon, 1 - alpha, np.where(logs < epsilon, inner, 0.0))

    return ProfilePair(f"Laplace with local epsilon {epsilon:g}", function, epsilon)


def from_atoms(
    ratios: Sequence[float] | Array, masses: Sequence[float] | Array, name: str = "given atoms"
) -> ProfilePair:
    """A pair with finitely many ratios W, each with its mass under Q.

    What E_Q[W] lacks of one is mass of P where Q has none, and becomes the local delta.
    """
    w, m = np.asarray(ratios, dtype=np.float64), np.asarray(masses, dtype=np.float64)
    if w.ndim != 1 or w.shape != m.shape or w.size == 0:
        raise InvalidParameter("ratios", w.shape, "a list as long as masses, not empty")
    if not (np.all(np.isfinite(w)) and np.all(w >= 0)):
        raise InvalidParameter("ratios", w.tolist(), "finite numbers, 0 or more")
    if not (np.all(m >= 0) and abs(float(m.sum()) - 1) < 1e-9):
        raise InvalidParameter("masses", m.tolist(), "probabilities that add up to 1")
    lacking = 1.0 - float(w @ m)
    if lacking < -1e-9:
        raise InvalidParameter("ratios", w.tolist(), "ratios whose mean under the masses is <= 1")
    delta = lacking if lacking > 1e-12 else 0.0
    nowhere = float(m[w == 0].sum())  # Q-mass where P has none: the swapped pair's delta
    kept = w[(m > 0) & (w > 0)]
    if kept.size == 0:
        raise InvalidParameter("ratios", w.tolist(), "at least one positive ratio with mass")
    epsilon = max(float(np.max(np.abs(np.log(kept)))), 1e-12)

    def function(alpha: Array) -> Array:
        flat = np.asarray(alpha, dtype=np.float64).ravel()
        value = np.maximum(w[None, :] - flat[:, None], 0.0) @ m + delta
        return np.asarray(value.reshape(np.shape(alpha)))

    return ProfilePair(name, function, epsilon, max(delta, nowhere))


def from_profile(
    function: Callable[[Array], Array],
    *,
    local_epsilon: float = math.inf,
    local_delta: float = 0.0,
    name: str = "given profile",
) -> ProfilePair:
    """A pair given by its privacy profile h(alpha) = sup of H_alpha over inputs, alpha > 0.

    `local_epsilon` is where the profile has fallen to `local_delta` (infinite if it never does).
    The function is checked for the properties every profile has.
    """
    epsilon = number("local_epsilon", local_epsilon)
    if not epsilon > 0.0:
        raise InvalidParameter("local_epsilon", local_epsilon, "a number above 0 (inf allowed)")
    delta = number("local_delta", local_delta)
    if not 0.0 <= delta < 1.0:
        raise InvalidParameter("local_delta", local_delta, "a number in [0, 1)")
    pair = ProfilePair(name, function, epsilon, delta)
    alphas = np.exp(np.linspace(-min(epsilon, 30.0), min(epsilon, 30.0), 401))
    values = pair.profile(alphas)
    if not np.all(np.isfinite(values)) or values.min() < -1e-12 or values.max() > 1 + 1e-9:
        raise InvalidParameter("function", "h(alpha)", "finite values in [0, 1]")
    slopes = np.diff(values) / np.diff(alphas)
    if np.any(np.diff(slopes) < -1e-7) or np.any(slopes > 1e-9):
        raise InvalidParameter("function", "h(alpha)", "a decreasing convex function of alpha")
    return pair
