"""The gate: no figure leaves accounting that its own arithmetic or a simple attack refutes.

Whatever answers a question computes within `loud_arithmetic`, where an overflow, a division by zero or an invalid
operation ends the question, and has its answer `passed` here: a number, not below what an attacker gains who only
counts. All others hold one value; of every report one bit is kept, set with probability q by that value and with p > q
by another; S counts set bits over all rounds.

Of T rounds with c seats each, taken with probability g, S is binomial of mean E = T c g q, and its upper tail that of
Poisson's law at most (Bennett). When the client in question, whose report is there with probability r, holds the other
value, the mean is E + D, D = T r (p - q), and S falls short of it by a deviation v with probability at most a half
(Cantelli). So

    epsilon >= E f((D - v) / E) + log(1/2 - delta),    f(x) = (1 + x) log(1 + x) - x.

No limit is taken: this holds for all c, g, T. With mu = D / sqrt(E), that of the Gaussian limit for one bit, it is (1 -
1/mu)^2 mu^2 / 2 where D is below E. Of one round the two laws of S are known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache

import numpy as np
from threadpoolctl import ThreadpoolController

from dpcheckin.accounting.engine.seats import RealPair, Seats
from dpcheckin.accounting.pairs.local import LocalPair
from dpcheckin.accounting.rounds.base import Run
from dpcheckin.errors import NumericalFailure
from dpcheckin.special import binomial

ROUNDING = 1e-6  # far more than the attack's own arithmetic errs
_EDGES = 1.0 + np.append(0.0, np.geomspace(1e-4, 1e5, 64))  # of W: where a bit begins to be set
_LEAST_FALL, _LEAST_GAIN = 1e-8, 1e-5  # of h, and of p over q: differences that keep their digits
_FAR = np.linspace(-1.0, 12.0, 27)  # deviations at which one round's count is looked at


@cache
def _libraries() -> ThreadpoolController:
    """Those loaded when first asked; looking for them again costs more than a small run does."""
    return ThreadpoolController()


@contextmanager
def loud_arithmetic() -> Iterator[None]:
    """Within this context arithmetic without a result raises, and never becomes a figure.

    Products are small: more than one thread would only wait for each other.
    """
    try:
        # numbers may vanish: what is cut off and charged in every round is far larger
        with _libraries().limit(limits=1), np.errstate(all="raise", under="ignore"):
            yield
    except ArithmeticError as broken:
        raise NumericalFailure(f"no figure can be stated: {broken} on the way to it") from broken


def passed(epsilon: float, run: Run, delta: float) -> float:
    """The epsilon, if no attack that counts shows that it cannot hold; NaN never passes.

    `epsilon`: of a statement; infinite where nothing is stated. `run`: rounds and how often each takes place. `delta`:
    of the statement.
    """
    least = counted(run, delta)
    if not epsilon >= least * (1.0 - ROUNDING):
        raise NumericalFailure(
            f"epsilon came out as {epsilon:.6g} at delta = {delta:.3g}, but whoever counts reports "
            f"gains {least:.6g}: no figure can be stated"
        )
    return epsilon


def passed_lower(epsilon: float, run: Run) -> float:
    """The `epsilon` of a lower bound, if it is not above all that the rounds of the `run` can lose."""
    most = math.fsum(n * one.largest_loss for one, n in run if n > 0)
    if not 0.0 <= epsilon <= most * (1.0 + ROUNDING) or math.isinf(epsilon):
        raise NumericalFailure(f"a lower bound came out as {epsilon:.6g}, and {most:.6g} is most")
    return epsilon


def counted(run: Run, delta: float) -> float:
    """An epsilon below which no statement about this `run` at `delta` can be true; 0 where none is known."""
    best = 0.0
    for one, repeats in run:
        seats = None if one.pair is None else one.lower_seats(one.pair)
        bit = None if one.pair is None or one.participation == 0.0 else _bit(one.pair)
        if seats is not None and bit is not None and repeats > 0:
            found = (_in_one_round(seats, *bit, delta), _in_all(seats, *bit, repeats, delta))
            best = max(best, *found)
    return best


def _in_all(seats: Seats, q: float, p: float, rounds: int, delta: float) -> float:
    if not delta < 0.5:
        return 0.0
    usual = seats.participation * q
    changed = usual + _share(seats) * (p - q)
    mean = rounds * seats.count * usual
    variance = (seats.count - 1) * usual * (1.0 - usual) + changed * (1.0 - changed)
    gap = rounds * (changed - usual) - math.sqrt(rounds * variance)
    if not gap > 0.0:
        return 0.0
    x = gap / mean
    # from below where the difference has no digits
    bennett = (1.0 + x) * math.log1p(x) - x if x > 0.01 else x * x / (2.0 + x / 1.5)
    return max(mean * bennett + math.log(0.5 - delta), 0.0)


def _in_one_round(seats: Seats, q: float, p: float, delta: float) -> float:
    usual = seats.participation * q
    changed = usual + _share(seats) * (p - q)
    if not changed - usual > max(delta, 1e-300):  # no test gains more; and smaller numbers overflow
        return 0.0
    mean = seats.count * usual
    at = np.append(mean + _FAR * math.sqrt(mean), [1.0, 2.0, 3.0, 5.0])
    at = np.unique(np.clip(np.ceil(at), 1.0, seats.count))
    others = seats.count - 1
    with_other = binomial.sf(at - 1.0, others, usual)
    with_other = with_other + changed * binomial.pmf(at - 1.0, others, usual)
    without = binomial.sf(at - 1.0, others + 1, usual)
    excess = with_other * (1.0 - ROUNDING) - delta
    told = (excess > 0.0) & (without > 0.0)
    return max(float(np.log(excess[told] / without[told]).max()), 0.0) if told.any() else 0.0


def _share(seats: Seats) -> float:
    """Probability that the report of the client in question is there."""
    return min(seats.count * seats.participation / seats.population, 1.0)


@lru_cache(256)
def _bit(pair: LocalPair) -> tuple[float, float] | None:
    """Of the bits "W is above a threshold between two edges" the one that tells most: q and p.

    With a threshold drawn evenly from [a, b] the bit is set with q = (h(a) - h(b)) / (b - a) under Q and under P with p
    = (2 (integral of h) - b h(b) + a h(a)) / (b - a), h(x) = E(W - x)+; h is convex, so its value in the middle bounds
    the integral.
    """
    return max((_best_bit(real) for real in pair.directions), key=_worth, default=None)


def _best_bit(real: RealPair) -> tuple[float, float] | None:
    a, b = _EDGES[:-1], _EDGES[1:]
    at, middle = real.above(_EDGES), real.above(0.5 * (a + b))
    fall = at[:-1] - at[1:]
    q = fall / (b - a)
    p = np.minimum(2.0 * middle - (b * at[1:] - a * at[:-1]) / (b - a), 1.0)
    good = (fall > _LEAST_FALL) & (p - q > _LEAST_GAIN)
    if not good.any():
        return None
    return max(zip(q[good].tolist(), p[good].tolist(), strict=True), key=_worth)


def _worth(bit: tuple[float, float] | None) -> float:
    return 0.0 if bit is None else (bit[1] - bit[0]) ** 2 / bit[0]
