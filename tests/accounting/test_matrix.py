"""A randomizer given by its table: the worst of all pairs of rows."""

import itertools

import numpy as np
import pytest

import dpcheckin as dp
from dpcheckin.accounting import CheckInRound, LocalRound, from_atoms, from_matrix, guarantee, lower_bound
from dpcheckin.errors import InvalidParameter, Unreachable


def _random(seed: int, rows: int, columns: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(columns, 0.7), rows)
    table[rng.random(table.shape) < 0.1] = 0.0
    table[:, 0] += 1e-3
    return table / table.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (4, 5), (7, 3), (30, 30)])
@pytest.mark.parametrize("seed", range(3))
def test_its_profile_is_the_largest_of_all_pairs_of_rows(seed: int, rows: int, columns: int) -> None:
    table = _random(seed, rows, columns)
    pair = from_matrix(table)
    for alpha in (1e-3, 0.2, 0.7, 1.0, 1.2, 2.5, 9.0, 300.0, 1e9):
        true = max(np.maximum(x - alpha * y, 0.0).sum() for x, y in itertools.permutations(table, 2))
        assert true <= float(pair.profile(alpha)) * (1 + 1e-15)
        assert float(pair.profile(alpha)) <= true * (1 + 1e-3) + 1e-9


def _worst_of_two_clients(table: np.ndarray, rate: float, alpha: float) -> float:
    """Two clients that check in: the exact divergence, by all outputs, the worst of all data."""
    inputs, outputs = table.shape
    lazy = np.hstack([np.full((inputs, 1), 1 - rate), rate * table])
    seen = sorted({tuple(sorted(both)) for both in itertools.product(range(outputs + 1), repeat=2)})

    def law(x: int, y: int) -> np.ndarray:
        masses = dict.fromkeys(seen, 0.0)
        for a, b in itertools.product(range(outputs + 1), repeat=2):
            masses[tuple(sorted((a, b)))] += lazy[x, a] * lazy[y, b]
        return np.array([*masses.values()])

    laws = [[law(x, y) for y in range(inputs)] for x in range(inputs)]
    triples = itertools.product(range(inputs), repeat=3)
    return max(np.maximum(laws[a][z] - alpha * laws[b][z], 0.0).sum() for a, b, z in triples)


@pytest.mark.parametrize("seed", range(4))
def test_a_round_costs_no_less_than_the_worst_data_of_two_clients(seed: int) -> None:
    """Also where the two inputs farthest apart are not the first two."""
    table, rate = _random(seed, 4, 4), 0.4
    run = dp.compose([(CheckInRound(2, rate, from_matrix(table)), 1)])
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        assert run.delta(epsilon).upper >= _worst_of_two_clients(table, rate, np.exp(epsilon)) * (1 - 1e-12)


def test_lower_bounds_are_reached_by_two_of_the_rows() -> None:
    table = 0.9 * _random(5, 5, 6) + 0.1 / 6  # with every output possible
    one = CheckInRound(1_000, 0.1, from_matrix(table))
    least = lower_bound((one, 20), 1e-6).epsilon.lower
    assert 0.0 < least <= guarantee((one, 20), 1e-6).epsilon.upper
    alone = lower_bound((LocalRound(from_matrix(table)), 1), 1e-9).epsilon.lower
    true = max(np.maximum(x - np.exp(alone) * y, 0.0).sum() for x, y in itertools.permutations(table, 2))
    assert true >= 1e-9


def test_a_table_costs_what_its_randomizer_does() -> None:
    table = [[0.75, 0.25], [0.25, 0.75]]
    named = CheckInRound(100_000, 0.01, dp.binary_response(float(np.log(3))))
    assert lower_bound((CheckInRound(100_000, 0.01, from_matrix(table)), 50), 1e-6).epsilon.lower == pytest.approx(
        lower_bound((named, 50), 1e-6).epsilon.lower, rel=1e-3
    )


def test_two_inputs_alone_say_that_they_are_two() -> None:
    table = [[0.75, 0.25], [0.25, 0.75]]
    pair = from_atoms([1.5, 0.5], [0.5, 0.5])
    said = str(guarantee(CheckInRound(1_000, 0.1, pair), 1e-3))
    assert "every client holds one of the two inputs that were given" in said
    assert "two inputs" not in str(guarantee(CheckInRound(1_000, 0.1, from_matrix(table)), 1e-2))


def test_a_certificate_of_a_table_has_all_its_rows() -> None:
    table = [[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]]
    stated = guarantee((CheckInRound(2_000, 0.1, from_matrix(table)), 2), 1e-5)
    assert len(stated.certificate()["rounds"][0]["randomizer"]["rows"]) == 3


@pytest.mark.parametrize(
    "rows",
    [[[1.0]], [[0.5, 0.5], [0.5, 0.4]], [[1.0, 0.0], [float("nan"), 1.0]], [0.5, 0.5], [[1.5, -0.5], [0.5, 0.5]]],
)
def test_what_is_no_table_is_refused(rows: object) -> None:
    with pytest.raises(InvalidParameter, match="rows"):
        from_matrix(rows)  # type: ignore[arg-type]


def test_inputs_that_give_themselves_away_have_no_guarantee() -> None:
    for table in ([[1.0, 0.0], [0.0, 1.0]], [[1e-310, 1.0], [1.0, 0.0]]):
        with pytest.raises(Unreachable):
            guarantee(LocalRound(from_matrix(table)), 1e-6)
