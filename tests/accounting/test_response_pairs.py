"""Pairs of the counting randomizers: the guarantee is never below the enumerated truth."""

import itertools
import math

import numpy as np
import pytest

from dpcheckin.accounting import (
    CheckInRound,
    ShuffleRound,
    any_pure,
    compose,
    dary_response,
    guarantee,
    hadamard_response,
    lower_bound,
    mixed,
    subset_selection,
    unary_encoding,
)
from dpcheckin.errors import InvalidParameter
from oracles import brute_force as bf


def subset_matrix(epsilon: float, symbols: int, chosen: int) -> np.ndarray:
    sets = list(itertools.combinations(range(symbols), chosen))
    weights = np.array([[math.exp(epsilon) if x in s else 1.0 for s in sets] for x in range(symbols)])
    return weights / weights.sum(axis=1, keepdims=True)


def unary_matrix(epsilon: float, symbols: int) -> np.ndarray:
    q = 1 / (1 + math.exp(epsilon))
    rows = list(itertools.product((0, 1), repeat=symbols))
    return np.array(
        [
            [math.prod(0.5 if i == x else (q if b else 1 - q) for i, b in enumerate(r)) for r in rows]
            for x in range(symbols)
        ]
    )


CASES = [
    (subset_matrix(1.0, 4, 2), subset_selection(1.0, 4, 2)),
    (subset_matrix(2.0, 5, 2), subset_selection(2.0, 5, 2)),
    (unary_matrix(1.5, 3), unary_encoding(1.5, 3)),
]


@pytest.mark.parametrize(("matrix", "pair"), CASES, ids=lambda c: getattr(c, "label", ""))
@pytest.mark.parametrize(("people", "rate"), [(3, 0.5), (4, 0.8)])
def test_the_guarantee_holds_for_every_data_of_a_few_clients(matrix, pair, people, rate):
    """Every pair of neighbours and every value of the others, by enumeration of batches."""
    run = compose([(CheckInRound(people, rate, pair), 1)])
    for epsilon in (0.1, 0.5, 0.9):
        stated = run.delta(epsilon).upper
        for other in range(len(matrix)):
            rest = [other] * (people - 1)
            one = bf.check_in_law(matrix, [0, *rest], rate)
            two = bf.check_in_law(matrix, [1, *rest], rate)
            truth = max(bf.both_directions(*bf.as_pair(one, two), epsilon))
            assert stated >= truth * (1 - 1e-12)


@pytest.mark.parametrize(("matrix", "pair"), CASES, ids=lambda c: getattr(c, "label", ""))
def test_the_lower_bound_is_below_the_enumerated_truth(matrix, pair):
    people, rate, delta = 4, 0.7, 0.05
    truth = 0.0
    for rest in itertools.combinations_with_replacement(range(len(matrix)), people - 1):
        one = bf.check_in_law(matrix, [0, *rest], rate)
        two = bf.check_in_law(matrix, [1, *rest], rate)
        truth = max(truth, bf.composed_epsilon(*bf.as_pair(one, two), 1, delta))
    bound = lower_bound([(CheckInRound(people, rate, pair), 1)], delta).epsilon.lower
    assert 0 < bound <= truth * (1 + 1e-9)


@pytest.mark.parametrize(
    "pair",
    [
        subset_selection(3.0, 50, 4),
        unary_encoding(3.0, 50),
        hadamard_response(2.0, 50),
        mixed([dary_response(2.0, 4), dary_response(2.0, 16)], "tree"),
    ],
    ids=lambda pair: pair.label,
)
def test_lower_bound_and_guarantee_are_near_each_other(pair):
    run = [(CheckInRound(10_000, 0.1, pair), 10)]
    upper = guarantee(run, 1e-6).epsilon.upper
    lower = lower_bound(run, 1e-6).epsilon.lower
    assert 0.45 * upper < lower <= upper


def hadamard_matrix(epsilon: float, symbols: int) -> np.ndarray:
    columns = range(1 << symbols.bit_length())
    weights = np.array(
        [[math.exp(epsilon * (((x + 1) & y).bit_count() % 2 == 0)) for y in columns] for x in range(symbols)]
    )
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("alpha", [1.0, 1.3, 2.5])
@pytest.mark.parametrize(
    ("matrix", "pair"),
    [
        *CASES,
        (subset_matrix(0.7, 6, 5), subset_selection(0.7, 6, 5)),
        (hadamard_matrix(1.3, 3), hadamard_response(1.3, 3)),
    ],
    ids=lambda c: getattr(c, "label", ""),
)
def test_types_are_the_laws_of_a_table(matrix, pair, alpha):
    """What a report of a third client, or of one of the two, does to the sum: from all probabilities."""
    made = (pair.laws.at_first, pair.laws.at_second, pair.laws.at_third)
    places = np.linspace(-8.0, 8.0, 81)
    for x in range(len(matrix)):
        moved = (matrix[0] - alpha * matrix[1]) / matrix[x] - (1.0 - alpha)
        law = made[min(x, 2)](alpha - 1.0)
        exact = np.maximum(moved - places[:, None], 0.0) @ matrix[x]
        assert np.maximum(law.values - places[:, None], 0.0) @ law.masses == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(
    ("pair", "most"),
    [
        (hadamard_response(2.5, 7), 1.002),  # was 1.385: the others held one of the two
        (hadamard_response(1.0, 2), 1.01),
        (unary_encoding(1.0, 10), 1.01),  # 1.185
        (unary_encoding(0.3, 10), 1.03),  # 1.358
        (subset_selection(2.0, 10, 5), 1.03),  # 1.452
        (subset_selection(2.0, 10, 9), 1.03),
        (subset_selection(0.5, 10, 5), 1.03),
    ],
    ids=lambda value: getattr(value, "label", value),
)
def test_sets_and_codes_are_met_by_what_some_data_lose(pair, most):
    run = [(CheckInRound(100_000, 0.02, pair), 300)]
    lower = lower_bound(run, 1e-6).epsilon.lower
    assert lower <= guarantee(run, 1e-6).epsilon.upper < most * lower


def test_many_symbols_and_few_chosen_leave_next_to_no_gap():
    run = [(CheckInRound(100_000, 0.5, subset_selection(6.0, 900, 3)), 1)]
    upper = guarantee(run, 1e-8).epsilon.upper
    assert lower_bound(run, 1e-8).epsilon.lower > 0.98 * upper


def test_full_shuffling_of_sets_costs_less_than_of_the_worst_randomizer():
    run = [(ShuffleRound(1000, subset_selection(1.0, 10, 3)), 1)]
    worst = compose([(ShuffleRound(1000, any_pure(1.0)), 1)]).epsilon(1e-6).upper
    assert lower_bound(run, 1e-6).epsilon.lower < compose(run).epsilon(1e-6).upper < worst


def test_one_of_many_is_dary_response():
    assert subset_selection(1.0, 10, 1) == dary_response(1.0, 10)


@pytest.mark.parametrize(
    "make",
    [
        lambda: subset_selection(1.0, 5, 5),
        lambda: unary_encoding(1.0, 5, 0.0),
        lambda: hadamard_response(0.0, 5),
        lambda: mixed([], "none"),
        lambda: mixed([dary_response(1.0, 3), dary_response(2.0, 3)], "two"),
    ],
)
def test_bad_parameters_are_refused(make):
    with pytest.raises(InvalidParameter):
        make()
