"""The same numbers from other packages: dp-accounting, prv-accountant, opacus.

Every peer is a function without arguments that builds all it needs and returns (lower, upper); an
end the package does not give is None. What is not installed, or fails, becomes a reason. Nothing
here is used by the package itself.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from _timing import installed
from scipy import optimize, special, stats

Ends = tuple[float | None, float | None]


@dataclass(frozen=True)
class Peer:
    """One way to get a number elsewhere."""

    package: str
    label: str
    run: Callable[[], Ends]

    @property
    def missing(self) -> str | None:
        """Why it cannot run here."""
        return None if installed(self.package) else f"{self.package} is not installed"


def exact_gaussian_epsilon(mu: float, delta: float) -> float:
    """Epsilon of a mu-GDP mechanism (Balle and Wang, arXiv:1805.06530v2, Theorem 8)."""

    def excess(epsilon: float) -> float:
        first = special.ndtr(mu / 2 - epsilon / mu)
        return float(first - np.exp(epsilon + special.log_ndtr(-mu / 2 - epsilon / mu)) - delta)

    return float(optimize.brentq(excess, 0.0, 50 * mu + mu * mu, xtol=1e-14))


def gaussian_peers(mu: float, rounds: int, delta: float) -> list[Peer]:
    """A Gaussian mechanism composed `rounds` times to `mu` in all."""
    noise = math.sqrt(rounds) / mu

    def google(interval: float) -> Ends:
        from dp_accounting.pld import privacy_loss_distribution as pld

        one = pld.from_gaussian_mechanism(noise, value_discretization_interval=interval)
        return None, float(one.self_compose(rounds).get_epsilon_for_delta(delta))

    def microsoft() -> Ends:
        from prv_accountant import GaussianMechanism, PRVAccountant

        accountant = PRVAccountant(
            prvs=[GaussianMechanism(noise_multiplier=noise)],
            max_self_compositions=[rounds],
            eps_error=1e-3,
            delta_error=delta / 1000,
        )
        low, _, high = accountant.compute_epsilon(delta, [rounds])
        return float(low), float(high)

    def opacus_prv() -> Ends:
        from opacus.accountants import PRVAccountant

        accountant = PRVAccountant()
        accountant.history = [(noise, 1.0, rounds)]
        return None, float(accountant.get_epsilon(delta, eps_error=1e-3))

    def opacus_rdp() -> Ends:
        from opacus.accountants import RDPAccountant

        accountant = RDPAccountant()
        accountant.history = [(noise, 1.0, rounds)]
        return None, float(accountant.get_epsilon(delta))

    return [
        Peer("dp-accounting", "dp-accounting PLD, interval 1e-4", partial(google, 1e-4)),
        Peer("dp-accounting", "dp-accounting PLD, interval 1e-5", partial(google, 1e-5)),
        Peer("prv-accountant", "prv-accountant, eps_error 1e-3", microsoft),
        Peer("opacus", "opacus PRV, eps_error 1e-3", opacus_prv),
        Peer("opacus", "opacus RDP", opacus_rdp),
    ]


@dataclass(frozen=True)
class ExplicitPair:
    """The theorem's pair, outcome by outcome, in logarithms; `lost` bounds what was left out."""

    upper: dict[int, float]
    lower: dict[int, float]
    lost: float


def explicit_pair(population: int, rate: float, local_epsilon: float) -> ExplicitPair:
    """All outcomes (a, b, zeros) of the worst pure randomizer's seats with probability > 1e-14.

    Every seat independently is a hit for P (a) or for Q (b) with probability rate / (e0 + 1) each,
    weighs nothing (zeros) with probability rate (e0 - 1) / (e0 + 1), and is empty otherwise. With
    base their multinomial law, P = base (empty + e0 a + b) / n and Q = base (empty + a + e0 b) / n.
    """
    n, e0 = population, math.exp(local_epsilon)
    hit, zero = rate / (e0 + 1), rate * (e0 - 1) / (e0 + 1)
    tail = 1e-14
    most = int(stats.binom.isf(tail, n, hit))
    few, many = int(stats.binom.ppf(tail, n, zero)), int(stats.binom.isf(tail, n, zero))
    grids = np.meshgrid(np.arange(most + 1), np.arange(most + 1), np.arange(few, many + 1))
    a, b, zeros = (grid.ravel().astype(np.float64) for grid in grids)
    empty = n - a - b - zeros
    base = (
        special.gammaln(n + 1)
        - special.gammaln(a + 1)
        - special.gammaln(b + 1)
        - special.gammaln(zeros + 1)
        - special.gammaln(empty + 1)
        + (a + b) * math.log(hit)
        + zeros * math.log(zero)
        + empty * math.log1p(-rate)
    )
    p, q = base + np.log((empty + e0 * a + b) / n), base + np.log((empty + a + e0 * b) / n)
    if abs(math.fsum(np.exp(p)) - 1.0) > 1e-9:
        raise ArithmeticError("the outcomes of the explicit pair do not add up to one")
    lost = 4 * tail * e0  # four tails were cut, and P has density at most e0
    outcomes = range(p.size)
    return ExplicitPair(
        dict(zip(outcomes, p.tolist(), strict=True)), dict(zip(outcomes, q.tolist(), strict=True)), lost
    )


def dictionary_peers(pair: ExplicitPair, rounds: int, delta: float) -> list[Peer]:
    """dp-accounting on the explicit pair, at its default interval and at a finer one."""

    def at(interval: float) -> Callable[[], Ends]:
        def run() -> Ends:
            from dp_accounting.pld import privacy_loss_distribution as pld

            ends = []
            for pessimistic in (False, True):
                one = pld.from_two_probability_mass_functions(pair.lower, pair.upper, pessimistic, interval)
                ends.append(float(one.self_compose(rounds).get_epsilon_for_delta(delta)))
            return ends[0], ends[1]

        return run

    return [
        Peer("dp-accounting", f"dp-accounting dict, interval {name}", at(interval))
        for name, interval in (("1e-4", 1e-4), ("1e-6", 1e-6))
    ]


def quietly(run: Callable[[], Ends]) -> Ends:
    """A peer's own warnings do not belong into our table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run()
