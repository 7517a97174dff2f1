"""The randomizers that count: laws by enumeration, pairs, estimates, what is refused."""

import itertools
import math

import numpy as np
import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.randomizers import (
    DaryResponse,
    HadamardResponse,
    SecureSource,
    SeededSource,
    SubsetSelection,
    UnaryEncoding,
)
from dpcheckin.randomizers.subsets import bit_rows
from randomizers.checks import assert_frequencies, assert_mean


def subset_law(one: SubsetSelection) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """Rows: inputs; columns: sets. Written from the definition, not from the code."""
    sets = list(itertools.combinations(range(one.symbols), one.chosen))
    weights = np.array([[math.exp(one.local_epsilon) if x in s else 1.0 for s in sets] for x in range(one.symbols)])
    return weights / weights.sum(axis=1, keepdims=True), sets


def unary_law(one: UnaryEncoding) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    rows = list(itertools.product((0, 1), repeat=one.symbols))
    p, q = one.truth, one.other_support
    law = [
        [math.prod((p if b else 1 - p) if i == x else (q if b else 1 - q) for i, b in enumerate(r)) for r in rows]
        for x in range(one.symbols)
    ]
    return np.array(law), rows


def hadamard_law(one: HadamardResponse) -> tuple[np.ndarray, list[int]]:
    matrix = np.array([[1.0]])
    while len(matrix) < one.order:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    weights = np.where(matrix[1 : one.symbols + 1] > 0, math.exp(one.local_epsilon), 1.0)
    return weights / weights.sum(axis=1, keepdims=True), list(range(one.order))


def law_of(one):
    return {SubsetSelection: subset_law, UnaryEncoding: unary_law, HadamardResponse: hadamard_law}[type(one)](one)


def places(one, reports: np.ndarray) -> np.ndarray:
    """Which column of the law each report is."""
    _, columns = law_of(one)
    if isinstance(one, HadamardResponse):
        return reports
    if isinstance(one, UnaryEncoding):
        rows = [tuple(r) for r in bit_rows(reports, one.symbols).tolist()]
    elif one.packed:
        rows = [tuple(np.flatnonzero(r).tolist()) for r in bit_rows(reports, one.symbols)]
    else:
        rows = [tuple(r) for r in reports.reshape(len(reports), -1).tolist()]
    index = {column: i for i, column in enumerate(columns)}
    return np.array([index[row] for row in rows])


ALL = [
    SubsetSelection(1.5, 6, 2),
    SubsetSelection(0.7, 9, 4),
    SubsetSelection(1.0, 5, 1),
    UnaryEncoding(1.2, 4),
    UnaryEncoding(2.0, 3, 0.8),
    HadamardResponse(1.1, 3),
    HadamardResponse(0.8, 6),
]


@pytest.mark.parametrize("source", [SeededSource(5), SecureSource()], ids=["seeded", "secure"])
@pytest.mark.parametrize("one", ALL, ids=lambda one: one.describe())
def test_reports_have_the_law_of_the_definition(one, source):
    law, columns = law_of(one)
    for x in (0, one.symbols - 1):
        reports = one.randomize(np.full(30_000, x), source)
        assert one.well_formed(reports).all()
        assert_frequencies(np.bincount(places(one, reports), minlength=len(columns)), law[x])


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.describe())
def test_the_law_is_as_private_as_it_says_and_no_more(one):
    """The largest ratio of the exact law is e^ε₀."""
    law, _ = law_of(one)
    ratios = law[:, None, :] / law[None, :, :]
    assert ratios.max() == pytest.approx(math.exp(one.local_epsilon), rel=1e-12)


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.describe())
def test_the_pair_is_the_worst_profile_of_the_exact_law(one):
    law, _ = law_of(one)
    for alpha in (0.3, 0.9, 1.0, 1.4, 2.5):
        worst = max(
            float(np.maximum(law[a] - alpha * law[b], 0).sum())
            for a, b in itertools.permutations(range(one.symbols), 2)
        )
        assert float(one.pair.profile(alpha)) == pytest.approx(worst, abs=1e-12)


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.describe())
def test_support_probabilities_are_exact_so_the_estimate_is_unbiased(one):
    """Expected support from the enumerated law, symbol by symbol."""
    law, columns = law_of(one)
    if isinstance(one, HadamardResponse):
        reports = np.arange(one.order)
    elif isinstance(one, UnaryEncoding) or one.packed:
        bits = np.zeros((len(columns), one.symbols), dtype=bool)
        for i, column in enumerate(columns):
            if isinstance(one, UnaryEncoding):
                bits[i] = column
            else:
                bits[i, list(column)] = True
        reports = np.packbits(bits, axis=1, bitorder="little").astype(np.int64)
    else:
        reports = np.array(columns) if one.chosen > 1 else np.array(columns)[:, 0]
    each = np.array([one.support(reports[i : i + 1]) for i in range(len(columns))])
    expected = law @ each
    right = np.where(np.eye(one.symbols) > 0, one.own_support, one.other_support)
    assert expected == pytest.approx(right, abs=1e-12)


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.describe())
def test_estimates_have_the_stated_variance(one):
    counts = np.zeros(one.symbols)
    counts[0], counts[1] = 40, 20
    values, source = np.repeat(np.arange(one.symbols), counts.astype(int)), SeededSource(3)
    draws = np.array([one.estimate(one.randomize(values, source)) for _ in range(3000)])
    assert_mean(draws, counts)
    assert_mean((draws - counts) ** 2, one.variance(counts))


def test_large_subsets_are_drawn_uniformly():
    """More symbols than are drawn one by one: every other symbol is equally likely."""
    one = SubsetSelection(1.0, 100, 40)
    assert one.packed
    reports = one.randomize(np.full(4000, 7), SeededSource(1))
    assert one.well_formed(reports).all()
    seen = one.support(reports)
    assert seen[7] / 4000 == pytest.approx(one.own_support, abs=0.04)
    others = np.delete(seen, 7) / 4000
    assert np.abs(others - one.other_support).max() < 0.045


@pytest.mark.parametrize(
    ("one", "bad"),
    [
        (SubsetSelection(1.0, 40, 2), [[3, 3], [5, 1], [0, 40], [-1, 2]]),
        (SubsetSelection(1.0, 9, 4), [[255, 0], [15, 2], [7, 0]]),
        (UnaryEncoding(1.0, 9), [[0, 2], [256, 0]]),
    ],
)
def test_reports_that_nobody_could_have_made_are_found(one, bad):
    assert not one.well_formed(np.array(bad)).any()
    with pytest.raises(InvalidParameter, match="reports"):
        one.estimate(np.array(bad))


@pytest.mark.parametrize(
    "make",
    [
        lambda: SubsetSelection(1.0, 5, 5),
        lambda: SubsetSelection(1.0, 5, 0),
        lambda: UnaryEncoding(1.0, 5, 1.0),
        lambda: HadamardResponse(0.0, 5),
        lambda: HadamardResponse(1.0, 1),
        lambda: SubsetSelection(math.nan, 5, 2),
    ],
)
def test_bad_parameters_are_refused(make):
    with pytest.raises(InvalidParameter):
        make()


def test_one_chosen_symbol_is_dary_response():
    one, other = SubsetSelection(1.3, 7, 1), DaryResponse(1.3, 7)
    assert one.own_support == pytest.approx(other.own_support)
    assert one.pair == other.pair
