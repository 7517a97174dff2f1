"""Whether Laplace noise of a given scale puts one law of atoms below a mixture: an exact decision.

With G(v) = v+ + (tau/2) exp(-|v|/tau), f(u) = E G(large - u) - E G(small - u) must nowhere be
negative. Beyond the atoms f is one exponential; between two neighbours it is
p + q u + A exp(u/tau) + B exp(-u/tau), whose second derivative changes sign at most once, at a
known place: f' is monotone on either side of it, so its zeros are bracketed and found to any
precision, and f is evaluated there. Everything in mpmath with many digits; no sampling of u.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from mpmath import mp, mpf

Atoms = Sequence[tuple[mpf, mpf]]
"""(value, mass) pairs."""

DIGITS = 60
_ZERO = mpf(10) ** -45  # what counts as touching: rounding is far below, a crossing far above


def exact_seat(name: str, e: mpf, alpha: mpf) -> Atoms:
    """The types A, B, C, D, N of pure randomizers with so many digits as `mp` has."""
    high = {
        "A": ("101", "010"),
        "B": ("100", "011"),
        "C": ("100", "010", "001"),
        "D": ("110", "101", "011"),
        "N": ("110", "001"),
    }[name]
    columns = [[e if bit == "1" else mpf(1) for bit in column] for column in high]
    total = sum(column[2] for column in columns)
    return [((a - alpha * b) / x, x / total) for a, b, x in columns]


def mixed(parts: Sequence[tuple[mpf, Atoms]]) -> Atoms:
    """The mixture with these weights."""
    return [(value, weight * mass) for weight, law in parts for value, mass in law]


class _Difference:
    """f on the line, given by atoms with signed masses (large +, small -)."""

    def __init__(self, small: Atoms, large: Atoms, tau: mpf) -> None:
        signed: dict[mpf, mpf] = {}
        for sign, law in ((1, large), (-1, small)):
            for value, mass in law:
                signed[value] = signed.get(value, mpf(0)) + sign * mass
        self.tau = tau
        self.values = sorted(signed)
        self.masses = [signed[v] for v in self.values]

    def ends(self) -> tuple[mpf, mpf]:
        """The factors of exp(u/tau) below all atoms and of exp(-u/tau) above them, scaled.

        There the linear parts cancel, the two means being equal.
        """
        lowest, highest = self.values[0], self.values[-1]
        pairs = list(zip(self.values, self.masses, strict=True))
        below = sum(c * mp.exp((lowest - z) / self.tau) for z, c in pairs)
        above = sum(c * mp.exp((z - highest) / self.tau) for z, c in pairs)
        return below, above

    def least_inside(self, i: int) -> mpf:
        """The least value of f between atoms i and i + 1."""
        tau, left, right = self.tau, self.values[i], self.values[i + 1]
        width = right - left
        atoms = list(zip(self.values, self.masses, strict=True))
        slope = -sum(c for _, c in atoms[i + 1 :])
        level = sum(c * (z - left) for z, c in atoms[i + 1 :])
        # v = u - left: level + slope v + grow exp((v - width)/tau) + fall exp(-v/tau)
        grow = tau / 2 * sum(c * mp.exp((right - z) / tau) for z, c in atoms[i + 1 :])
        fall = tau / 2 * sum(c * mp.exp((z - left) / tau) for z, c in atoms[: i + 1])

        def f(v: mpf) -> mpf:
            return level + slope * v + grow * mp.exp((v - width) / tau) + fall * mp.exp(-v / tau)

        def rise(v: mpf) -> mpf:
            return slope + (grow * mp.exp((v - width) / tau) - fall * mp.exp(-v / tau)) / tau

        pieces = [mpf(0), width]
        if grow * fall < 0:  # the second derivative vanishes where its two terms agree
            turn = (tau * mp.log(-fall / grow) + width) / 2
            if 0 < turn < width:
                pieces.insert(1, turn)
        candidates = list(pieces)
        for low, high in pairwise(pieces):
            if rise(low) < 0 < rise(high):
                candidates.append(_zero(rise, low, high))
        return min(f(v) for v in candidates)


def _zero(function: Callable[[mpf], mpf], low: mpf, high: mpf) -> mpf:
    """Where an increasing function crosses zero, by bisection."""
    for _ in range(int(DIGITS * 3.4)):
        middle = (low + high) / 2
        if function(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def least_gap(law_small: Atoms, mixture_large: Atoms, tau: mpf | float) -> mpf:
    """The least of f over the whole line, its two tails scaled to their largest value."""
    with mp.workdps(DIGITS):
        one = _Difference(law_small, mixture_large, mpf(tau))
        assert abs(sum(one.masses)) < _ZERO
        mean = sum(z * c for z, c in zip(one.values, one.masses, strict=True))
        assert abs(mean) < _ZERO * 10**10, "the two means differ"
        inside = [one.least_inside(i) for i in range(len(one.values) - 1)]
        return min([*one.ends(), *inside])


def smoothing_is_enough(law_small: Atoms, mixture_large: Atoms, tau: mpf | float) -> bool:
    """Whether E G(small - u) <= E G(large - u) for every real u, G smoothed with scale tau > 0.

    Laws are (value, mass) pairs of mpmath numbers with `DIGITS` digits; floats would give the two
    laws different means.
    """
    return bool(least_gap(law_small, mixture_large, tau) >= -_ZERO)


def is_below(law_small: Atoms, mixture_large: Atoms) -> bool:
    """Convex order without smoothing: potentials compared where the *larger* law has atoms.

    Between these its potential is linear and the smaller law's convex, so nothing is missed.
    """
    with mp.workdps(DIGITS):

        def potential(law: Atoms, t: mpf) -> mpf:
            return sum(m * max(z - t, mpf(0)) for z, m in law)

        return all(potential(law_small, t) <= potential(mixture_large, t) + _ZERO for t, _ in mixture_large)


def scale_for_c(local_epsilon: float, epsilon: float = 0.0, accuracy: float = 1e-6) -> float:
    """The smallest tau for which smoothed C lies above A and B (rounded up), infinite if none."""
    with mp.workdps(DIGITS):
        e, alpha = mp.exp(mpf(local_epsilon)), mp.exp(mpf(epsilon))
        a, b, c = (exact_seat(name, e, alpha) for name in "ABC")
        return _smallest(lambda tau: smoothing_is_enough(a, c, tau) and smoothing_is_enough(b, c, tau), accuracy)


def best_weight(local_epsilon: float, tau: float, epsilon: float = 0.0, steps: int = 40) -> tuple[float, float]:
    """(w, least gap): the weight of B beside A for which smoothed C lies deepest below them.

    f is linear in the weight, so its least value is concave: golden section finds the top.
    """
    with mp.workdps(DIGITS):
        e, alpha = mp.exp(mpf(local_epsilon)), mp.exp(mpf(epsilon))
        a, b, c = (exact_seat(name, e, alpha) for name in "ABC")

        def gap(w: mpf) -> mpf:
            return least_gap(c, mixed([(1 - w, a), (w, b)]), tau)

        ratio = (mp.sqrt(5) - 1) / 2
        low, high = mpf(0), mpf(1)
        left, right = high - ratio, low + ratio
        at_left, at_right = gap(left), gap(right)
        for _ in range(steps):
            if max(at_left, at_right) > 0:
                break  # any weight that is enough will do
            if at_left < at_right:
                low, left, at_left = left, right, at_right
                right = low + ratio * (high - low)
                at_right = gap(right)
            else:
                high, right, at_right = right, left, at_left
                left = high - ratio * (high - low)
                at_left = gap(left)
        best = max((at_left, left), (at_right, right))
        return float(best[1]), float(best[0])


def scale_for_a_and_b(local_epsilon: float, epsilon: float = 0.0, accuracy: float = 1e-3) -> float:
    """The smallest tau for which smoothed C lies below a mixture of A and B, infinite if none."""
    return _smallest(lambda tau: best_weight(local_epsilon, tau, epsilon)[1] >= -float(_ZERO), accuracy)


def _smallest(enough: Callable[[float], bool], accuracy: float, limit: float = 1e4) -> float:
    """The smallest scale that is enough, from above; more is always enough when less is."""
    high = 0.05
    while not enough(high):
        high *= 2.0
        if high > limit:
            return float("inf")
    low = high / 2.0 if high > 0.05 else 0.0
    while high - low > accuracy * high:
        middle = (low + high) / 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high
