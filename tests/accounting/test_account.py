"""Composition against the exact Gaussian mechanism, down to delta = 1e-15 and a million rounds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy.stats import norm

from dpcheckin.accounting import (
    Adjacency,
    CheckInRound,
    DistributedRound,
    IntegerSumRound,
    LocalRound,
    Round,
    SampledGaussianRound,
    ShuffleRound,
    SkellamRound,
    SubsampleRound,
    WindowRound,
    any_pure,
    compose,
    gaussian,
    guarantee,
)
from dpcheckin.errors import InvalidParameter
from oracles import gaussian_mechanism


def exact_delta(mu: float, epsilon: float) -> float:
    value = norm.logcdf(mu / 2 - epsilon / mu)
    other = epsilon + norm.logcdf(-mu / 2 - epsilon / mu)
    return float(math.exp(value) * -math.expm1(other - value))


@pytest.mark.parametrize("rounds", [1, 2, 30, 10**4, 10**6])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-10, 1e-13, 1e-15])
def test_gaussian_mechanism(rounds: int, delta: float) -> None:
    """The bracket holds the exact epsilon and is narrow; the upper end is never too small."""
    mu = 1.0 / math.sqrt(rounds)
    run = compose([(LocalRound(gaussian(2.0 / mu)), rounds)])
    got = run.epsilon(delta)
    assert exact_delta(1.0, got.upper) <= delta * (1 + 1e-9)
    assert exact_delta(1.0, max(got.lower, 0.0)) >= delta * (1 - 1e-9) or got.lower == 0.0
    assert got.relative_width < 2e-3


@pytest.mark.parametrize(("noise", "rounds", "delta"), [(0.2, 1_000, 0.3), (0.5, 10_000, 0.1)])
def test_losses_by_the_thousand_are_not_cut_off(noise: float, rounds: int, delta: float) -> None:
    """Far from the mean numbers overflow; the mass there counts all the same."""
    got = compose([(LocalRound(gaussian(noise)), rounds)]).epsilon(delta)
    truth = float(gaussian_mechanism.epsilon(2.0 / noise, rounds, delta))
    assert truth > 5e4 and got.lower <= truth <= got.upper <= 1.0001 * truth


@pytest.mark.parametrize("noise", [200.0, 1e4, 1e6])
@pytest.mark.parametrize("rounds", [1, 100])
def test_losses_of_a_millionth_are_certified_to_the_last_digit(noise: float, rounds: int) -> None:
    """Where exp(epsilon) is nearly one, rounding it must not make epsilon too small."""
    for share in (1e-2, 1e-7):
        delta = share * 2.0 / noise * math.sqrt(rounds)
        got = compose([(LocalRound(gaussian(noise)), rounds)]).epsilon(delta)
        truth = gaussian_mechanism.epsilon(2.0 / noise, rounds, delta)
        assert got.lower <= truth <= got.upper <= 1.003 * float(truth)


def test_dp_accounting_under_reports_where_we_do_not() -> None:
    """Its composed Gaussian claims too small a delta at sigma = 100, 10^4 rounds; ours never."""
    rounds, sigma, epsilon = 10_000, 100.0, 8.5
    truth = exact_delta(math.sqrt(rounds) / sigma, epsilon)
    assert truth < 1e-14
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = privacy_loss_distribution.from_gaussian_mechanism(
            sigma, value_discretization_interval=1e-4, use_connect_dots=True
        ).self_compose(rounds)
    assert theirs.get_delta_for_epsilon(epsilon) < truth
    ours = compose([(LocalRound(gaussian(2 * sigma)), rounds)]).delta(epsilon)
    assert ours.lower <= truth <= ours.upper


def test_mixed_rounds_equal_their_parts() -> None:
    """Two kinds of Gaussian rounds compose to one Gaussian mechanism."""
    parts = [(LocalRound(gaussian(40.0)), 300), (LocalRound(gaussian(25.0)), 100)]
    mu = math.sqrt(300 * (2 / 40.0) ** 2 + 100 * (2 / 25.0) ** 2)
    for delta in (1e-5, 1e-12):
        got = compose(parts).epsilon(delta)
        assert exact_delta(mu, got.upper) <= delta * (1 + 1e-9)
        assert got.relative_width < 5e-3


SHUFFLED = (CheckInRound(1000, 0.1, any_pure(1.0)), 10)
SUMMED = (DistributedRound(1000, 0.1, 1.0), 10)
INTEGERS = (IntegerSumRound(1000, 0.1, 10, 200.0), 10)
VECTORS = (SkellamRound(1000, 0.1, 200.0, l1=20.0, l2=20.0), 10)
SLOTTED = (WindowRound(100, any_pure(1.0), others=999), 2)


@pytest.mark.parametrize(
    "parts",
    [
        [SHUFFLED, SUMMED],
        [SHUFFLED, INTEGERS],
        [SUMMED, VECTORS],
        [SHUFFLED, SUMMED, VECTORS],
        [SHUFFLED, SUMMED, INTEGERS, VECTORS, SLOTTED],
    ],
    ids=lambda parts: "+".join(type(one).__name__ for one, _ in parts),
)
def test_mixed_runs_cost_more_than_each_part(parts: list[tuple[Round, int]]) -> None:
    """Shuffled rounds, sums and windows compose; no more than all parts one after the other."""
    delta = 1e-5
    whole = compose(parts).epsilon(delta)
    alone = [compose([part]).epsilon(delta) for part in parts]
    assert all(part.lower <= whole.upper for part in alone)
    assert whole.lower <= whole.upper < math.inf
    if not any(one.renyi for one, _ in parts):
        # the lower ends are those of one composition, and deltas add up
        assert max(part.lower for part in alone) <= whole.lower * (1 + 1e-3)
        each = [compose([part]).epsilon(delta / len(parts)).upper for part in parts]
        assert whole.upper <= math.fsum(each)
    stated = guarantee(parts, delta)
    assert stated.epsilon.upper <= whole.upper
    for one, _ in parts:
        for text in one.assumptions():
            needed = text.removesuffix(" in every round")
            assert any(said.startswith(needed) for said in stated.assumptions)
        assert set(one.basis()) <= set(stated.basis)
        assert stated.local is not None and one.exposed_when in stated.local.when


@pytest.mark.parametrize("clients", [1, 16])
def test_sums_and_single_reports_make_one_gaussian_mechanism(clients: int) -> None:
    """When everybody reports, a sum of n is that mechanism at distance 2/(sigma sqrt(n))."""
    parts = [(LocalRound(gaussian(40.0)), 300), (DistributedRound(clients, 1.0, 12.0), 50)]
    mu = math.sqrt(300 * (2 / 40.0) ** 2 + 50 * (2 / 12.0) ** 2 / clients)
    for delta in (1e-5, 1e-10):
        got = compose(parts).epsilon(delta)
        assert exact_delta(mu, got.upper) <= delta * (1 + 1e-9)
        assert exact_delta(mu, got.lower) >= delta * (1 - 1e-9)
        assert got.relative_width < 5e-3


def test_rounds_with_different_neighbours_do_not_compose() -> None:
    """Replacing a client is not adding a record: no statement covers both."""
    central = (SampledGaussianRound(0.1, 1.0), 5)
    for other in (SHUFFLED, SUMMED, (LocalRound(any_pure(1.0)), 1)):
        with pytest.raises(InvalidParameter, match="one and the same adjacency"):
            compose([central, other])
        with pytest.raises(InvalidParameter, match="one and the same adjacency"):
            guarantee([other, central], 1e-5)
    stated = guarantee([central, (SampledGaussianRound(0.2, 2.0), 5)], 1e-5)
    assert stated.adjacency is Adjacency.ADD_OR_REMOVE_RECORD and stated.local is None


def test_order_of_rounds_does_not_matter() -> None:
    a, b = CheckInRound(500, 0.1, any_pure(1.0)), ShuffleRound(900, any_pure(0.5))
    one = compose([(a, 3), (b, 2), (a, 1)]).epsilon(1e-6)
    other = compose([(b, 2), (a, 4)]).epsilon(1e-6)
    assert one.upper == pytest.approx(other.upper, rel=1e-9)


def test_nothing_composed_is_nothing_lost() -> None:
    assert compose([(CheckInRound(10, 0.0, any_pure(1.0)), 5)]).epsilon(1e-9).upper == 0.0
    assert compose([(ShuffleRound(10, any_pure(1.0)), 0)]).epsilon(1e-9).upper == 0.0
    assert compose([(ShuffleRound(10, any_pure(1.0)), 2)]).delta(2.0).upper == 0.0


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan, "x"])
def test_bad_delta(delta: float) -> None:
    with pytest.raises(InvalidParameter, match=r"^delta = "):
        compose([(ShuffleRound(10, any_pure(1.0)), 1)]).epsilon(delta)


def test_bad_rounds() -> None:
    with pytest.raises(InvalidParameter, match="at least one round"):
        compose([])
    with pytest.raises(InvalidParameter, match=r"rounds = 2\.5"):
        compose([(ShuffleRound(10, any_pure(1.0)), 2.5)])  # type: ignore[list-item]
    with pytest.raises(InvalidParameter, match="a round and a count"):
        compose([("round", 1)])  # type: ignore[list-item]


def test_what_only_some_rounds_need_is_said_of_those() -> None:
    """Two crowds in one run: each assumption names its rounds, shared ones stand once."""
    large = CheckInRound(2000, 0.1, any_pure(1.0))
    small = CheckInRound(1000, 0.1, any_pure(1.0))
    stated = guarantee([(large, 9), (small, 6)], 1e-5).assumptions
    assert "at least 2,000 honest clients are eligible in 9 rounds" in stated
    assert "at least 1,000 honest clients are eligible in 6 rounds" in stated
    assert sum("collude" in text for text in stated) == 1
    alone = guarantee([(large, 9)], 1e-5).assumptions
    assert alone[0] == "at least 2,000 honest clients are eligible in every round"


@pytest.mark.parametrize(
    "make",
    [
        lambda n: CheckInRound(n, 0.1, any_pure(1.0)),
        lambda n: SubsampleRound(n, n / 10, any_pure(1.0)),
        lambda n: DistributedRound(n, 0.1, 1.0),
        lambda n: WindowRound(n, any_pure(1.0)),
    ],
)
def test_a_count_may_be_written_as_a_float(make: Callable[[float], Round]) -> None:
    """1e3 clients are 1,000 clients: the same description, the same figure; 1000.5 are none."""
    assert make(1e3) == make(1000)
    assert compose([(make(1e3), 2)]).epsilon(1e-5) == compose([(make(1000), 2)]).epsilon(1e-5)
    with pytest.raises(InvalidParameter, match="whole number"):
        make(1000.5)


@pytest.mark.parametrize("local_epsilon", [47.0, 48.0, 50.0])
def test_the_largest_local_epsilons_are_answered(local_epsilon: float) -> None:
    """e^48 swamps a crowd's floating-point losses: the figure is the local one, not a hang."""
    one = CheckInRound(10_000, 0.01, any_pure(local_epsilon))
    found = guarantee([(one, 100)], 1e-5)
    local = compose([(LocalRound(any_pure(local_epsilon), 0.01), 100)]).epsilon(1e-5)
    assert found.epsilon.lower <= found.epsilon.upper <= local.upper
    assert found.epsilon.upper > 4 * local_epsilon  # more than five of 100 rounds are joined
