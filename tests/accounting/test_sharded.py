"""Sharded shufflers against complete enumeration: what each design keeps, and what it gives away.

A view is what the analyzer sees of one round: how often each report occurs at each honest shard,
and, from corrupted shards, who sent what.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpcheckin.accounting import CheckInRound, LocalRound, any_pure, compose, gaussian, guarantee
from dpcheckin.accounting.rounds.sharded import sharded
from dpcheckin.errors import InvalidParameter
from oracles.brute_force import as_pair, both_directions, check_in_law, hockey_stick


def response(e0, inputs=2):
    """Randomized response with as many answers as inputs."""
    keep = math.exp(e0) / (math.exp(e0) + inputs - 1)
    off = (1 - keep) / (inputs - 1)
    return np.full((inputs, inputs), off) + np.eye(inputs) * (keep - off)


def secret_law(matrix, inputs, rate, shards, corrupted=0):
    """Every client draws a shard; honest shards show histograms, corrupted ones names and all."""
    law = {((), ((0,) * matrix.shape[1],) * (shards - corrupted)): 1.0}
    for client, x in enumerate(inputs):
        longer = {}
        for (names, boxes), mass in law.items():
            moves = [((names, boxes), 1 - rate)]
            for report, chance in enumerate(matrix[x]):
                share = rate * chance / shards
                for shard in range(shards):
                    if shard < corrupted:
                        seen = ((*names, (client, shard, report)), boxes)
                    else:
                        at = shard - corrupted
                        box = boxes[at]
                        fuller = (*box[:report], box[report] + 1, *box[report + 1 :])
                        seen = (names, (*boxes[:at], fuller, *boxes[at + 1 :]))
                    moves.append((seen, share))
            for seen, share in moves:
                longer[seen] = longer.get(seen, 0.0) + mass * share
        law = longer
    return law


def fixed_law(matrix, inputs, rate, shard_of):
    """Client i always goes to shard_of[i]; each shard shows its own histogram."""
    parts = []
    for shard in sorted(set(shard_of)):
        own = [x for x, s in zip(inputs, shard_of, strict=True) if s == shard]
        parts.append(check_in_law(matrix, own, rate))
    law = {}
    for views in itertools.product(*(part.items() for part in parts)):
        law[tuple(view for view, _ in views)] = math.prod(mass for _, mass in views)
    return law


def worst(law_of, inputs, others, epsilon):
    """Largest delta over what the others hold, first client 0 against 1, both directions."""
    deltas = []
    for rest in itertools.product(range(inputs), repeat=others):
        p, q = as_pair(law_of((0, *rest)), law_of((1, *rest)))
        deltas.append(max(both_directions(p, q, epsilon)))
    return max(deltas)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.6])
@pytest.mark.parametrize("clients,shards", [(2, 2), (3, 2), (3, 3), (4, 2)])
def test_secret_shards_cost_nothing(clients, shards, epsilon):
    """The exact loss of the sharded view stays below the bound of one shuffler for all clients."""
    matrix = response(1.0)
    exact = worst(lambda x: secret_law(matrix, x, 0.5, shards), 2, clients - 1, epsilon)
    whole = compose([(CheckInRound(clients, 0.5, any_pure(1.0)), 1)]).delta(epsilon).upper
    assert exact <= whole * (1 + 1e-9)


def test_secret_shards_reach_the_single_shufflers_loss():
    """Seen at shards or as one batch: with equal data of the others the exact loss is the same."""
    matrix = response(1.0)
    for epsilon in (0.0, 0.3):
        laws = [
            [law(x) for x in ((0, 1, 1), (1, 1, 1))]
            for law in (lambda x: secret_law(matrix, x, 0.4, 3), lambda x: check_in_law(matrix, x, 0.4))
        ]
        split, single = [hockey_stick(*as_pair(*pair), epsilon) for pair in laws]
        assert split == pytest.approx(single, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_fixed_shards_hide_a_client_among_its_own_shard_only(epsilon):
    """Four clients in two shards of two: the bound for four is broken, the bound for two holds."""
    matrix = response(1.0, 3)
    exact = worst(lambda x: fixed_law(matrix, x, 0.5, (0, 0, 1, 1)), 3, 3, epsilon)
    pair = any_pure(1.0)
    assert exact <= compose([(CheckInRound(2, 0.5, pair), 1)]).delta(epsilon).upper * (1 + 1e-9)
    from dpcheckin.accounting import dary_response

    four = compose([(CheckInRound(4, 0.5, dary_response(1.0, 3)), 1)]).delta(epsilon).upper
    assert exact > four


def test_a_random_merge_of_shuffled_shards_is_one_shuffle():
    """Permute within shards, interleave at random: every order of all reports is equally likely."""
    shards, orders = (("a", "b"), ("c", "d", "e")), {}
    inner = [list(itertools.permutations(shard)) for shard in shards]
    places = list(itertools.combinations(range(5), 2))
    for first, second in itertools.product(*inner):
        for taken in places:
            left, right = iter(first), iter(second)
            order = tuple(next(left) if i in taken else next(right) for i in range(5))
            orders[order] = orders.get(order, 0) + 1
    assert len(orders) == math.factorial(5) and set(orders.values()) == {1}


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("clients,shards,corrupted", [(2, 2, 1), (3, 2, 1), (3, 3, 1), (3, 3, 2)])
def test_corrupted_shards_cost_no_more_than_stated(clients, shards, corrupted, epsilon):
    """Exact loss with names from corrupted shards, against the composed bound."""
    matrix, pair = response(1.0), any_pure(1.0)
    exact = worst(lambda x: secret_law(matrix, x, 0.5, shards, corrupted), 2, clients - 1, epsilon)
    run = sharded(clients, 0.5, pair, 1, shards=shards, corrupted=corrupted)
    assert exact <= compose(run).delta(epsilon).upper * (1 + 1e-9)


def test_a_corrupted_shard_is_not_free():
    """A bound that ignored the corrupted shard would be crossed."""
    exact = worst(lambda x: secret_law(response(1.0), x, 0.5, 2, 1), 2, 2, 0.5)
    assert exact > compose([(CheckInRound(3, 0.5, any_pure(1.0)), 1)]).delta(0.5).upper


def test_all_shards_corrupted_leaves_the_local_guarantee():
    run = sharded(1000, 0.1, any_pure(1.0), 5, shards=4, corrupted=4)
    assert run == [(LocalRound(any_pure(1.0), 0.1), 5)]


@pytest.mark.parametrize("pair", [any_pure(2.0), gaussian(2.0)], ids=["pure", "gaussian"])
def test_more_corrupted_shards_cost_more(pair):
    said = [
        guarantee(sharded(200_000, 0.01, pair, 20, shards=50, corrupted=c), 1e-6).epsilon.upper for c in (0, 1, 5, 50)
    ]
    assert said == sorted(said) and said[0] < 0.2 < said[1]


@pytest.mark.parametrize("change", [{"shards": 0}, {"shards": 4, "corrupted": 5}])
def test_bad_shards_are_refused(change):
    with pytest.raises(InvalidParameter):
        sharded(100, 0.1, any_pure(1.0), 1, **change)
