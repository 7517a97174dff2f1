"""Many questions at once: arrays in, arrays out, the figures of single questions to rounding."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from dpcheckin.accounting import (
    CheckInRound,
    LocalRound,
    Round,
    ShuffleRound,
    SubsampleRound,
    any_pure,
    approximate,
    binary_response,
    clear_cache,
    compose,
    epsilon_by_rounds,
    gaussian,
    guarantee,
    lower_bound,
    privunit,
)
from dpcheckin.accounting.composition import guarantees
from dpcheckin.accounting.composition.account import _spans as spans
from dpcheckin.accounting.composition.lower_bounds import lower_by_rounds
from dpcheckin.accounting.engine.compose import compose as composed
from dpcheckin.accounting.engine.compose import repeated
from dpcheckin.accounting.engine.loss import LossDistribution
from dpcheckin.errors import InvalidParameter

CLOSE = 2e-4  # of an epsilon: grids differ a little, and either figure is certified


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> Iterator[None]:
    clear_cache()
    yield
    clear_cache()


RUNS: dict[str, tuple[Round, int]] = {
    "any": (CheckInRound(10_000, 0.01, any_pure(2.0)), 100),
    "binary": (CheckInRound(500, 0.2, binary_response(1.0)), 7),
    "privunit": (CheckInRound(20_000, 0.02, privunit(4.0, 784)), 50),
    "cohort": (SubsampleRound(5_000, 100, any_pure(1.0)), 40),
    "shuffle": (ShuffleRound(2_000, any_pure(1.0)), 3),
    "local": (LocalRound(gaussian(4.0)), 30),
    "approximate": (CheckInRound(1_000, 0.1, approximate(1.0, 1e-9)), 10),
}


NAMES = [name if name in ("any", "local") else pytest.param(name, marks=pytest.mark.slow) for name in RUNS]


@pytest.mark.parametrize("name", NAMES)
def test_many_deltas_give_the_figures_of_single_ones(name: str) -> None:
    deltas = [3e-4, 1e-8, 2e-6, 3e-4]
    many = compose([RUNS[name]]).epsilon(deltas)
    clear_cache()
    for delta, found in zip(deltas, many, strict=True):
        single = compose([RUNS[name]]).epsilon(delta)
        assert found.upper == pytest.approx(single.upper, rel=CLOSE, abs=1e-12)
        assert found.lower <= single.upper
        assert single.lower <= found.upper


def test_answers_keep_the_shape_of_the_question() -> None:
    run = compose([RUNS["any"]])
    found = run.epsilon(np.array([[1e-4, 1e-5], [1e-6, 1e-7]]))
    assert found.upper.shape == found.lower.shape == (2, 2)
    assert np.all(np.diff(found.upper.ravel()) > 0)
    assert np.array_equal(np.asarray(found), found.upper)
    back = run.delta([0.05, 0.07])
    assert back.upper.shape == (2,)
    assert back[1].upper < back[0].upper


def test_a_delta_below_what_is_reserved_has_no_epsilon() -> None:
    """Mass without counterpart: the array says infinity where a single question does."""
    one = CheckInRound(1_000, 0.1, approximate(1.0, 1e-5))
    found = compose([(one, 50)]).epsilon([1e-7, 1e-3])
    assert math.isinf(found[0].upper)
    assert math.isfinite(found[1].upper)


@pytest.mark.parametrize("bad", [[1e-5, 0.0], [1e-5, float("nan")], [1.0]])
def test_one_bad_delta_is_named(bad: list[float]) -> None:
    with pytest.raises(InvalidParameter, match="delta = "):
        compose([RUNS["any"]]).epsilon(bad)


@pytest.mark.parametrize("name", NAMES)
def test_many_round_counts_give_the_figures_of_single_ones(name: str) -> None:
    one, _ = RUNS[name]
    counts = [0, 1, 2, 3, 17, 30, 31]
    many = epsilon_by_rounds(one, counts, 1e-5)
    clear_cache()
    for count, found in zip(counts, many, strict=True):
        single = compose([(one, count)]).epsilon(1e-5)
        assert found.upper == pytest.approx(single.upper, rel=CLOSE, abs=1e-12)
        assert single.lower <= found.upper
        assert found.lower <= single.upper


def test_a_shared_transform_is_the_composition_itself() -> None:
    """Every count of an octave against its own composition, tilted for itself alone."""
    losses = LossDistribution(0.01, np.array([0.03, 0.02, 1e-6]), np.array([0.02, 0.01, 0.0]), 1e-9)
    counts = [5, 7, 10]
    for count, tail in zip(counts, repeated([(losses, 1)], counts, delta=1e-6), strict=True):
        alone = composed([(losses, count)], delta=1e-6)
        for delta in (1e-2, 1e-5, 1e-7):
            high, low = (tail.epsilon(delta, upper=end) for end in (True, False))
            assert high == pytest.approx(alone.epsilon(delta, upper=True), rel=1e-7)
            assert low <= alone.epsilon(delta, upper=True)
    assert spans([64, 3, 4, 6, 7], 2) == [[3, 4, 6], [7], [64]]


def test_a_distribution_without_loss_or_bound_composes_too() -> None:
    nothing = LossDistribution(0.01, np.zeros(1), np.zeros(1), 0.0)
    assert [tail.epsilon(1e-9, upper=True) for tail in repeated([(nothing, 1)], [2, 3], delta=1e-9)] == [0, 0]
    unbounded = LossDistribution(0.01, np.array([1e-9]), np.array([1e-9]), 0.999)
    (tail,) = repeated([(unbounded, 1)], [1_000], delta=1e-9)
    assert math.isinf(tail.epsilon(0.5, upper=True))


def test_tails_answer_many_epsilons_as_they_answer_one() -> None:
    losses = LossDistribution(0.02, np.array([0.05, 0.01]), np.array([0.04, 0.008]), 1e-8)
    tail = composed([(losses, 40)], delta=1e-6)
    asked = np.array([0.0, 0.0137, 0.1, 0.333, 5.0, 900.0])
    for end in (True, False):
        singly = [tail.delta(float(x), upper=end) for x in asked]
        assert tail.deltas(asked, upper=end).tolist() == pytest.approx(singly, rel=1e-12)


def test_the_same_question_is_answered_from_memory() -> None:
    run = [RUNS["any"]]
    first, least = guarantee(run, 1e-4), lower_bound(run, 1e-4)
    assert guarantee(list(run), 1e-4) is first
    assert lower_bound(list(run), 1e-4) is least
    clear_cache()
    assert guarantee(run, 1e-4) is not first
    assert guarantee(run, 1e-4) == first


def test_a_round_is_accepted_where_a_run_is() -> None:
    one, count = RUNS["any"]
    assert guarantee(one, 1e-4) == guarantee([(one, 1)], 1e-4) == guarantee([one], 1e-4)
    assert guarantee((one, count), 1e-4) == guarantee([(one, count)], 1e-4)
    assert guarantee([one, one], 1e-4) == guarantee([(one, 2)], 1e-4)
    assert lower_bound(one, 1e-4).epsilon.lower <= guarantee(one, 1e-4).epsilon.upper


@pytest.mark.parametrize("bad", [2.0, "runs", [], [(2.0, 1)], None, [[]]])
def test_what_is_no_run_is_refused_in_one_line(bad: object) -> None:
    with pytest.raises(InvalidParameter, match="rounds = "):
        guarantee(bad, 1e-4)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda: CheckInRound(60_000, 0.1, 2.0),  # type: ignore[arg-type]
        lambda: SubsampleRound(60_000, 100, 2.0),  # type: ignore[arg-type]
        lambda: ShuffleRound(60_000, 2.0),  # type: ignore[arg-type]
        lambda: LocalRound(2.0),  # type: ignore[arg-type]
    ],
)
def test_an_epsilon_in_the_place_of_a_pair_gets_a_hint(make: object) -> None:
    with pytest.raises(InvalidParameter, match=r"pair = 2\.0 .*any_pure\(2\.0\)"):
        make()  # type: ignore[operator]


COUNTS = (1, 3, 20, 150, 0)


@pytest.mark.parametrize("name", NAMES)
def test_lower_bounds_of_many_counts_are_those_of_each(name: str) -> None:
    """To a fraction of a per cent, and below what is guaranteed."""
    one, _ = RUNS[name]
    found = lower_by_rounds(one, COUNTS, 1e-6)
    alone = [lower_bound([(one, n)], 1e-6).epsilon.lower for n in COUNTS]
    assert found == pytest.approx(alone, rel=5e-3)
    assert all(x <= y for x, y in zip(found, epsilon_by_rounds(one, COUNTS, 1e-6).upper, strict=True))


def test_lower_bounds_of_many_counts_are_below_the_truth_of_few_clients() -> None:
    """Everybody reports a bit by the same coin: the exact epsilon of one shuffle, enumerated."""
    one = ShuffleRound(3, binary_response(1.0))
    keep = math.e / (1 + math.e)

    def ones(bits: int) -> list[float]:
        """Chances of each number of ones when so many of three clients hold a one."""
        law = [1.0]
        for client in range(3):
            p = keep if client < bits else 1 - keep
            law = [a * (1 - p) + b * p for a, b in zip([*law, 0.0], [0.0, *law], strict=True)]
        return law

    def delta(epsilon: float) -> float:
        pairs = [(a, b) for a in range(4) for b in range(4) if abs(a - b) == 1]
        return max(
            sum(max(p - math.exp(epsilon) * q, 0.0) for p, q in zip(ones(a), ones(b), strict=True)) for a, b in pairs
        )

    (found,) = lower_by_rounds(one, [1], 1e-2)
    assert delta(found) >= 1e-2 * (1 - 1e-9)
    assert delta(found + 1e-6) < 1e-2


def test_what_was_asked_before_changes_no_figure() -> None:
    """The curve of a statement serves a line, but no statement is made with a curve that served."""
    one = CheckInRound(5_000, 0.05, gaussian(3.0))
    alone = guarantee([(one, 40)], 1e-5)
    near = epsilon_by_rounds(one, [10, 40, 200], 1e-5, near=40)
    guarantees._remembered.cache_clear()
    assert guarantee([(one, 40)], 1e-5) == alone
    assert near.upper[1] == pytest.approx(alone.epsilon.upper, rel=CLOSE)
    clear_cache()
    assert near.upper == pytest.approx(epsilon_by_rounds(one, [10, 40, 200], 1e-5).upper, rel=1e-3)
