"""Clients with local epsilons of their own: attacked by enumeration, sharp at the ends."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpcheckin.accounting import (
    CheckInRound,
    PersonalRound,
    ShuffleRound,
    SubsampleRound,
    any_pure,
    approximate,
    binary_response,
    compose,
    dary_response,
    guarantee,
    own_share,
)
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from oracles.brute_force import as_pair, composed_delta
from oracles.personal import local_epsilon, response, tempered, view, worst_delta

HIGH = 2.0
EPSILONS = (0.0, 0.05, 0.2, 0.5, 0.9, 1.4)
PAIRS = {
    "2-ary": (2, binary_response(HIGH)),
    "3-ary": (3, dary_response(HIGH, 3)),
    "4-ary": (4, dary_response(HIGH, 4)),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_response_at_a_smaller_epsilon_is_tempered_response(kind: str) -> None:
    """The share of the package, put into the oracle's mechanism, gives response at the client's own epsilon."""
    symbols, pair = PAIRS[kind]
    for own in (0.1, 1.0, 1.9):
        made = tempered(response(symbols, HIGH), own_share(pair, own), np.full(symbols, 1 / symbols))
        np.testing.assert_allclose(made, response(symbols, own), rtol=1e-9)


def test_any_randomizer_tempered_keeps_the_clients_own_epsilon() -> None:
    """Random matrices, random laws of the values: never more than asked for, and reached by binary response."""
    draw = np.random.default_rng(7)
    share = own_share(any_pure(HIGH), 0.8)
    for _ in range(300):
        matrix = draw.dirichlet(np.full(4, 0.4), size=3) + 0.05
        matrix /= matrix.sum(axis=1, keepdims=True)
        if local_epsilon(matrix) <= HIGH:
            assert local_epsilon(tempered(matrix, share, draw.dirichlet(np.ones(3)))) <= 0.8 * (1 + 1e-9)
    one_sided = tempered(response(2, HIGH), share, np.array([0.0, 1.0]))
    assert local_epsilon(one_sided) == pytest.approx(0.8, rel=1e-6)


@pytest.mark.parametrize("rate", [0.3, 0.8])
@pytest.mark.parametrize("kind", PAIRS)
def test_every_crowd_of_smaller_epsilons_by_enumeration(kind: str, rate: float) -> None:
    """Two to four clients, any values, others at any epsilons up to the largest: never above; at times near."""
    symbols, pair = PAIRS[kind]
    draw, near = np.random.default_rng(11), 0.0
    for n, own in itertools.product((1, 2, 3, 4), (0.5, 1.3, 2.0)):
        curve = PersonalRound(CheckInRound(n, rate, pair), own).curves()[0][0]
        mine = response(symbols, own)
        crowds = [[HIGH] * (n - 1), [0.1] * (n - 1), *(draw.uniform(0.0, HIGH, n - 1).tolist() for _ in range(3))]
        for epsilons, values in itertools.product(crowds, itertools.product(range(symbols), repeat=n - 1)):
            others = [response(symbols, e)[v] for e, v in zip(epsilons, values, strict=True)]
            for epsilon in EPSILONS:
                exact = worst_delta((mine[0], mine[1]), others, rate, epsilon)
                bound = curve.upper_at(epsilon)
                assert exact <= bound * (1 + 1e-12) + 1e-15, (n, own, epsilons, values, epsilon)
                near = max(near, exact / bound if bound > 1e-3 else 0.0)
    assert near > 0.99


def test_the_others_own_epsilon_is_not_mine() -> None:
    """As if all had the client's own smaller one would be too little: others that lie seldom hide less."""
    rate, own = 0.8, 0.5
    naive = CheckInRound(4, rate, binary_response(own)).curve()
    mine, honest = response(2, own), [response(2, HIGH)[1]] * 3
    assert worst_delta((mine[0], mine[1]), honest, rate, 0.05) > 1.5 * naive.upper_at(0.05)


def test_any_randomizer_by_enumeration() -> None:
    """Random randomizers of the largest epsilon, every client tempering for itself with one law of values."""
    draw, share = np.random.default_rng(3), own_share(any_pure(HIGH), 0.8)
    curve = PersonalRound(CheckInRound(3, 0.5, any_pure(HIGH)), 0.8).curves()[0][0]
    tried = 0
    while tried < 60:
        matrix = draw.dirichlet(np.full(3, 0.5), size=3) + 0.05
        matrix /= matrix.sum(axis=1, keepdims=True)
        if not 1.0 < local_epsilon(matrix) <= HIGH:
            continue
        tried += 1
        law = draw.dirichlet(np.ones(3))
        mine = tempered(matrix, share, law)
        others = [tempered(matrix, draw.uniform(), law)[draw.integers(3)] for _ in range(2)]
        for (a, b), epsilon in itertools.product(itertools.combinations(range(3), 2), EPSILONS):
            assert worst_delta((mine[a], mine[b]), others, 0.5, epsilon) <= curve.upper_at(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("rounds", [2, 3])
def test_rounds_compose(rounds: int) -> None:
    """The exact composition of the worst crowd at the certified epsilon has at most delta."""
    own, rate, delta = 0.7, 0.6, 1e-3
    mine, others = response(2, own), [response(2, HIGH)[1]] * 2
    pair = as_pair(view([mine[0], *others], rate), view([mine[1], *others], rate))
    certified = compose([(PersonalRound(CheckInRound(3, rate, binary_response(HIGH)), own), rounds)]).epsilon(delta)
    assert composed_delta(*pair, rounds, certified.upper) <= delta
    assert composed_delta(*pair, rounds, 0.8 * certified.upper) > delta


@pytest.mark.parametrize("crowd", [CheckInRound(3_000, 0.1, any_pure(3.0)), SubsampleRound(3_000, 300, any_pure(3.0)),
                                   ShuffleRound(3_000, dary_response(3.0, 8))])  # fmt: skip
def test_less_of_ones_own_costs_less(crowd: CheckInRound | SubsampleRound | ShuffleRound) -> None:
    """Monotone in the client's epsilon; the crowd's own statement at the top; never above the local one."""
    whole = compose([(crowd, 5)]).epsilon(1e-5).upper
    found = [compose([(PersonalRound(crowd, own), 5)]).epsilon(1e-5).upper for own in (0.01, 0.5, 1.5, 2.9, 3.0, 9.0)]
    assert found == sorted(found) and found[-1] == found[-2] == whole
    assert found[0] <= 0.05 and found[3] < whole
    stated = guarantee([(PersonalRound(crowd, 0.5), 5)], delta=1e-5)
    assert "no client's local epsilon is above 3" in str(stated) and stated.local.report_epsilon == 0.5


def test_what_is_not_proved_is_refused() -> None:
    with pytest.raises(OutsideTheorem, match="pure"):
        PersonalRound(CheckInRound(100, 0.1, approximate(1.0, 1e-6)), 0.5)
    for own in (0.0, math.nan, -1.0):
        with pytest.raises(InvalidParameter, match="own_epsilon"):
            PersonalRound(CheckInRound(100, 0.1, any_pure(1.0)), own)
