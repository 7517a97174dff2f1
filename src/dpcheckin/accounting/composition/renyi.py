"""The Renyi curve of the theorem's own pair, and its conversion to (epsilon, delta).

Exists for pure randomizers with full shuffling proved: any mass without counterpart would make
every order infinite. Looser than the composition of loss distributions, and independent of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpcheckin.accounting.engine.arrays import Array
from dpcheckin.accounting.engine.three_atoms import ThreeAtomCurve
from dpcheckin.accounting.engine.typed.curve import TypedCurve
from dpcheckin.accounting.parameters import open_probability, positive
from dpcheckin.accounting.rounds.base import Round
from dpcheckin.display import needed
from dpcheckin.errors import OutsideTheorem
from dpcheckin.special.gamma import log_sum

DEFAULT_ORDERS = tuple(
    float(x)
    for x in np.unique(
        np.round(np.concatenate([1 + np.geomspace(0.1, 30, 60), np.geomspace(32, 20000, 80)]), 3)
    )
)

# what the weights of a mixture may be too large by, in all: each is rounded up
_WEIGHTS_ROUNDING = 1e-13


def renyi_curve(one: Round, orders: Sequence[float] = DEFAULT_ORDERS) -> Array:
    """Upper bounds of the Renyi divergence of one round at the given orders (> 1)."""
    if one.participation == 0.0:
        return np.zeros(len(orders))
    pair, ((curve, _), *_) = one.pair, one.curves()
    if pair is None:
        raise OutsideTheorem("a sum is not a round of the theorem: use its own Rényi curve")
    if isinstance(curve, TypedCurve):  # a bound alpha by alpha; the worst law's is a pair
        curve = curve.worst
    if not (pair.pure and pair.full_shuffle_proved) or not isinstance(curve, ThreeAtomCurve):
        raise OutsideTheorem(
            f"a round of {pair.label} has no finite Renyi curve: use the loss distribution"
        )
    out = []
    for order in orders:
        positive("order", order - 1.0)
        terms: list[float] = []
        for weight, atoms in curve.upper_atoms:
            p, losses, scale = atoms.p, atoms.losses, math.log(weight)
            middle = 1.0 - float(np.sum(p * (1 + np.exp(-losses))))
            terms.append(scale + log_sum((order - 1) * losses, p))
            terms.append(scale + log_sum(-order * losses, p))
            terms.append(scale + math.log(max(middle, 1e-300)))
            # what was left out loses at most the local epsilon
            lost = math.log(2 * max(atoms.corner, 1e-300))
            terms.append(scale + lost + (order - 1) * pair.local_epsilon)
        # rounds in which no honest client reports say nothing: moment one
        silent = max(1.0 - math.fsum(w for w, _ in curve.upper_atoms), 0.0) + _WEIGHTS_ROUNDING
        terms.append(math.log(silent))
        if curve.unprotected > 0.0:
            terms.append(math.log(curve.unprotected) + (order - 1) * pair.local_epsilon)
        out.append(max(log_sum(terms), 0.0) / (order - 1))
    return np.array(out)


def epsilon_by_renyi(
    rounds: Sequence[tuple[Round, int]], delta: float, orders: Sequence[float] = DEFAULT_ORDERS
) -> float:
    """The epsilon of the composed rounds by Renyi accounting (dp-accounting's conversion)."""
    open_probability("delta", delta)
    total = sum((count * renyi_curve(one, orders) for one, count in rounds), np.zeros(len(orders)))
    accountant = needed("dp_accounting.rdp.rdp_privacy_accountant", "bridge")
    epsilon, _ = accountant.compute_epsilon(list(orders), list(total), delta)
    return float(epsilon)
