"""What accounting must know of a local randomizer: one pair (P, Q), as the law of W = dP/dQ.

A pair stands for every two inputs: its profile h(alpha) = E_Q[(W - alpha)+] bounds the hockey-stick
divergence of the reports on any two inputs, in both directions (pairs are closed under swapping).
Nothing here draws samples; that is the randomizers' business.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import special

from dpcheckin.accounting.checks import count, number, open_probability, positive
from dpcheckin.accounting.loss import Array
from dpcheckin.accounting.normal import gaussian_profile
from dpcheckin.errors import InvalidParameter

LARGEST_LOCAL_EPSILON = 50.0


class LocalPair(ABC):
    """Base of all local pairs."""

    name: str
    local_epsilon: float
    local_delta: float
    full_shuffle_proved: bool

    @abstractmethod
    def profile(self, alpha: Array | Sequence[float] | float) -> Array:
        """h(alpha) for alpha >= 0, including the mass at infinite ratio."""

    @property
    @abstractmethod
    def second_moment(self) -> float:
        """E_Q[(W - 1)+^2]: what the large-population limit depends on."""

    @property
    def pure(self) -> bool:
        """Is the randomizer epsilon-LDP with delta = 0?"""
        return math.isfinite(self.local_epsilon) and self.local_delta == 0.0

    @property
    def label(self) -> str:
        """How the pair is named in sentences and tables."""
        return self.name


@dataclass(frozen=True)
class ThreeAtoms(LocalPair):
    """W = e^epsilon w.p. hit, 1 w.p. neutral, e^-epsilon w.p. e^epsilon * hit (delta at infinity).

    >>> pair = dary_response(1.0, 10)
    >>> round(pair.hit * (math.e + 1) + pair.neutral, 12)
    1.0
    """

    name: str
    local_epsilon: float
    hit: float
    neutral: float
    full_shuffle_proved: bool = False
    local_delta: float = 0.0

    def __post_init__(self) -> None:
        total = (math.exp(self.local_epsilon) + 1) * self.hit + self.neutral + self.local_delta
        if not (self.hit >= 0 and self.neutral >= 0 and abs(total - 1) < 1e-9):
            raise InvalidParameter("hit", self.hit, "masses that add up to one")

    def profile(self, alpha: Array | Sequence[float] | float) -> Array:
        a = np.asarray(alpha, dtype=np.float64)
        e0 = math.exp(self.local_epsilon)
        finite = (
            self.hit * np.maximum(e0 - a, 0.0)
            + self.neutral * np.maximum(1 - a, 0.0)
            + self.hit * np.maximum(1 - a * e0, 0.0)
        )
        return np.asarray(finite + self.local_delta)

    @property
    def second_moment(self) -> float:
        return self.hit * math.expm1(self.local_epsilon) ** 2

    @property
    def label(self) -> str:
        return f"{self.name} with local epsilon {self.local_epsilon:g}"


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


@dataclass(frozen=True)
class GaussianPair(LocalPair):
    """Gaussian noise of standard deviation sigma * C on vectors of norm at most C.

    Two points of the ball are at most 2C apart, so W is log-normal with s = 2 / sigma in any
    dimension.
    """

    noise_multiplier: float
    name: str = "Gaussian"
    local_epsilon: float = math.inf
    local_delta: float = 0.0
    full_shuffle_proved: bool = False

    @property
    def s(self) -> float:
        """Distance of the two inputs in standard deviations of the noise."""
        return 2.0 / self.noise_multiplier

    def profile(self, alpha: Array | Sequence[float] | float) -> Array:
        a = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
        return gaussian_profile(self.s, a).reshape(np.shape(alpha))

    @property
    def second_moment(self) -> float:
        s = self.s
        if s > 25.0:
            return math.inf
        value = math.exp(s * s) * special.ndtr(1.5 * s) - 2 * special.ndtr(s / 2)
        return float(value + special.ndtr(-s / 2))

    @property
    def label(self) -> str:
        return f"Gaussian reports with noise multiplier {self.noise_multiplier:g}"


def _local_epsilon(value: object) -> float:
    allowed = f"a number above 0 and at most {LARGEST_LOCAL_EPSILON:g}"
    epsilon = number("local_epsilon", value, allowed)
    if not 0.0 < epsilon <= LARGEST_LOCAL_EPSILON:
        raise InvalidParameter("local_epsilon", value, allowed)
    return epsilon


def _two_atoms(name: str, local_epsilon: object) -> ThreeAtoms:
    epsilon = _local_epsilon(local_epsilon)
    return ThreeAtoms(name, epsilon, 1 / (math.exp(epsilon) + 1), 0.0, full_shuffle_proved=True)


def any_pure(local_epsilon: float) -> ThreeAtoms:
    """The worst case over all epsilon-LDP randomizers."""
    return _two_atoms("any pure randomizer", local_epsilon)


def binary_response(local_epsilon: float) -> ThreeAtoms:
    """Warner's binary randomized response."""
    return _two_atoms("binary response", local_epsilon)


def hemisphere(local_epsilon: float) -> ThreeAtoms:
    """LDP-SGD: a random vector of the hemisphere of the (randomly signed) direction."""
    return _two_atoms("hemisphere (LDP-SGD)", local_epsilon)


def dary_response(local_epsilon: float, symbols: int) -> ThreeAtoms:
    """k-ary randomized response: the truth with probability e^epsilon / (e^epsilon + k - 1).

    >>> dary_response(1.0, 2).neutral
    0.0
    """
    epsilon, k = _local_epsilon(local_epsilon), count("symbols", symbols, 2)
    weight = math.exp(epsilon) + k - 1
    return ThreeAtoms(f"{k}-ary response", epsilon, 1 / weight, (k - 2) / weight, True)


def privunit_parameters(local_epsilon: float, dimension: int) -> tuple[float, float, float]:
    """(p, q, t) of least variance: cap <u, v> >= t of measure q, hit with probability p.

    The estimator's scale is the mean of <report, u>; the larger it is, the smaller the variance.
    """
    epsilon = _local_epsilon(local_epsilon)
    d = count("dimension", dimension, 2)
    e0 = math.exp(epsilon)

    def cap(t: float) -> float:
        return 0.5 * float(special.betainc((d - 1) / 2, 0.5, 1 - t * t))

    def hit_probability(q: float) -> float:
        return e0 * q / (1 - q + e0 * q)

    def minus_log_scale(t: float) -> float:
        q = cap(t)
        if q <= 0.0:
            return math.inf
        p = hit_probability(q)
        # (1 - t^2)^((d-1)/2) (p/q - (1-p)/(1-q)); constants in d left out
        lift = (p - q) / (q * (1 - q))
        return -((d - 1) / 2 * math.log1p(-t * t) + math.log(lift)) if lift > 0 else math.inf

    widest = min(0.999999, math.sqrt(2 * (epsilon + 5) / (d - 1)) + 1e-9)
    from scipy import optimize  # slow to load, and only PrivUnit needs it

    found = optimize.minimize_scalar(
        minus_log_scale, bounds=(0.0, widest), method="bounded", options={"xatol": 1e-12}
    )
    t = float(found.x) if found.fun < minus_log_scale(0.0) else 0.0
    q = cap(t)
    return hit_probability(q), q, t


def privunit(local_epsilon: float, dimension: int) -> ThreeAtoms:
    """PrivUnit on unit vectors (or random signs of them) with the cap of least variance."""
    p, q, _ = privunit_parameters(local_epsilon, dimension)
    hit = q * (1 - p) / (1 - q)
    neutral = (1 - p) * (1 - 2 * q) / (1 - q)
    name = f"PrivUnit in {dimension} dimensions"
    neutral = max(1 - (math.exp(local_epsilon) + 1) * hit, 0.0) if neutral > 0 else 0.0
    return ThreeAtoms(name, float(local_epsilon), hit, neutral, True)


def approximate(local_epsilon: float, local_delta: float) -> ThreeAtoms:
    """The worst case over all (epsilon, delta)-LDP randomizers."""
    epsilon, delta = _local_epsilon(local_epsilon), open_probability("local_delta", local_delta)
    hit = (1 - delta) / (math.exp(epsilon) + 1)
    return ThreeAtoms("any approximate randomizer", epsilon, hit, 0.0, False, delta)


def gaussian(noise_multiplier: float) -> GaussianPair:
    """Gaussian noise of standard deviation noise_multiplier * C on vectors clipped to norm C."""
    sigma = positive("noise_multiplier", noise_multiplier)
    if not 0.08 <= sigma <= 1e6:
        raise InvalidParameter("noise_multiplier", noise_multiplier, "a number in [0.08, 1e6]")
    return GaussianPair(sigma)


def laplace(local_epsilon: float) -> ProfilePair:
    """Laplace noise on one number, with epsilon = range / scale."""
    epsilon = _local_epsilon(local_epsilon)

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
