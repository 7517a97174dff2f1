"""Figures that were wrong once, and answers that were errors: each fails without its correction."""

from __future__ import annotations

import json
import math
import tracemalloc
import warnings
from dataclasses import replace

import mpmath
import numpy as np
import pytest

from cli_in_process import run_cli
from dpcheckin.accounting import (
    CheckInRound,
    Composition,
    DistributedRound,
    LocalRound,
    SampledGaussianRound,
    SubsampleRound,
    WindowRound,
    any_pure,
    approximate,
    binary_response,
    compose,
    from_atoms,
    gaussian,
    guarantee,
    lower_bound,
)
from dpcheckin.accounting.bridge import epsilon_by_renyi, event_distribution
from dpcheckin.accounting.engine.curves import FINE
from dpcheckin.accounting.engine.lattice import UpperLattice
from dpcheckin.accounting.engine.loss import dominated
from dpcheckin.accounting.engine.lower.lattice import LowerLattice
from dpcheckin.accounting.engine.sampling import visible_counts
from dpcheckin.accounting.engine.seats import Seats
from dpcheckin.accounting.engine.typed.nested_laws import LatticeMasses
from dpcheckin.accounting.rounds.windows import PosteriorRound, poisson_load
from dpcheckin.errors import NumericalFailure, Unreachable


def pair_of(p: tuple[float, ...], q: tuple[float, ...]):  # type: ignore[no-untyped-def]
    return from_atoms([x / y for x, y in zip(p, q, strict=True)], q)


def test_rounds_without_an_honest_report_count_in_the_renyi_curve() -> None:
    one = SubsampleRound(10, 2, binary_response(1.0), colluding=0.5)
    found = epsilon_by_renyi([(one, 100)], 1e-5)
    assert found >= lower_bound([(one, 100)], 1e-5).epsilon.lower > 6.4
    assert found >= compose([(one, 100)]).epsilon(1e-5).lower


def test_mass_without_bound_leaves_the_finite_losses_in_the_bridge() -> None:
    truth = 0.2 + 0.8 * math.tanh(0.5)  # delta at epsilon = 0: the total variation
    found = event_distribution(LocalRound(approximate(1.0, 0.2)), 1e-3).get_delta_for_epsilon(0)
    assert truth <= found * (1 + 1e-12) and found < truth * 1.001


def test_a_direction_with_the_larger_delta_is_not_lost() -> None:
    """Q has a tenth of its mass where P has none: no epsilon covers it."""
    pair = pair_of((0.0, 0.5, 0.5), (0.1, 0.4, 0.5))
    assert pair.local_delta == 0.1
    with pytest.raises(Unreachable):
        guarantee([(CheckInRound(5, 0.5, pair), 1)], 1e-5)
    for epsilon in (1.0, 20.0, 38.0, 300.0):
        assert compose([(LocalRound(pair), 1)]).delta(epsilon).upper >= 0.1


@pytest.mark.parametrize("alpha", [1.0, 1e3, 1e8, 1e15, 1e100])
def test_mirrored_profiles_do_not_cancel(alpha: float) -> None:
    """Beyond the largest ratio both profiles are zero, to the last digit."""
    pair = pair_of((0.22, 0.41, 0.37), (0.46, 0.30, 0.24))
    exact = max(
        float(sum(max(mpmath.mpf(a) - alpha * b, 0) for a, b in zip(p, q, strict=True)))
        for p, q in (((0.22, 0.41, 0.37), (0.46, 0.30, 0.24)), ((0.46, 0.30, 0.24), (0.22, 0.41, 0.37)))
    )
    assert float(pair.profile(np.array([alpha]))[0]) == pytest.approx(exact, rel=1e-12, abs=1e-300)


def test_lower_bounds_of_asymmetric_atoms_stay_below_the_truth() -> None:
    pair = pair_of((0.94, 0.06), (0.84, 0.16))
    found = lower_bound([(CheckInRound(4, 0.9, pair), 1)], 0.01).epsilon.lower
    assert 0.28 < found <= 0.28705  # enumerated: 0.2870
    pair = pair_of((0.22, 0.41, 0.37), (0.46, 0.30, 0.24))
    run = [(LocalRound(pair, 0.6), 2)]
    assert compose(run).epsilon(0.11).lower <= 0.42095  # enumerated: 0.4209
    assert 0.41 < lower_bound(run, 0.11).epsilon.lower <= 0.42095


def test_what_is_dominated_are_two_laws() -> None:
    """Both curves begin at one value, so that either law has mass one."""
    epsilons = np.arange(9) * 0.25
    ahead = np.maximum(0.30 - 0.10 * np.expm1(epsilons), 0.0)
    behind = np.maximum(0.40 - 0.20 * np.expm1(epsilons), 0.0)
    for one, other in ((ahead, behind), (behind, ahead)):
        made = dominated(0.5, one, other)
        p = made.masses()
        losses = np.arange(-made.reach, made.reach + 1) * made.step
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        assert float(p @ np.exp(-losses)) == pytest.approx(1.0, abs=1e-12)


def test_what_is_dominated_keeps_a_far_tail() -> None:
    """A hundredth more total variation in one order says nothing about losses of two and more."""
    epsilons = np.arange(41) * 0.125
    ahead = 0.3 * np.exp(-3.0 * epsilons) + 1e-6 * np.exp(-0.2 * epsilons)
    behind = 0.297 * np.exp(-3.0 * epsilons)
    made = dominated(0.25, ahead, behind)
    losses = np.arange(-made.reach, made.reach + 1) * made.step
    for epsilon, value in zip(epsilons, ahead, strict=True):
        there = losses > epsilon
        found = float(made.masses()[there] @ -np.expm1(epsilon - losses[there]))
        assert found <= value * (1 + 1e-12)
        if 1.0 <= epsilon <= 3.0:
            assert found > 0.5 * value  # the whole curve lowered by 0.003 would be zero here


def test_two_reports_beyond_the_lattice_count() -> None:
    """Made whole one by one: the second is added to a sum in which the first is whole."""
    largest, chance = 1000.0, 1e-6
    rest = (1.0 - chance * (largest + 1.0)) / (1.0 - chance)
    pair = from_atoms([largest + 1.0, rest], [chance, 1.0 - chance])
    n = 200
    lattice = UpperLattice(Seats(n, pair, 0.0, float(n)))
    whole = lattice._lattice
    short = max(whole.top // 100, 2)
    lattice._lattice = replace(whole, top=short, above=whole.above[: short + 2])
    lattice._bottom = 0
    lattice._reach_down(0.0)
    threshold = 1.1 * largest
    # exactly two of the largest reports; the others add at least their lowest
    two = math.comb(n, 2) * chance**2 * (1 - chance) ** (n - 2)
    exact = two * (2 * largest - (n - 2) * (1.0 - rest) - threshold) / n
    assert lattice.upper(math.log1p(threshold / n)) >= exact


def test_mass_that_is_lacking_is_not_rounded_away() -> None:
    pair = from_atoms([1.2, 0.8 - 1.8e-12], [0.5, 0.5])
    assert 8.9e-13 < pair.local_delta < 9.1e-13
    assert compose([(LocalRound(pair), 1)]).delta(5.0).upper >= 8.9e-13
    assert from_atoms([math.e, 1 / math.e], [1 / (math.e + 1), math.e / (math.e + 1)]).pure


def test_a_planned_population_is_printed_in_full() -> None:
    """Rounded to six digits it would not meet the target."""
    asked = ["plan", "--epsilon", "0.01", "--delta", "1e-8", "--rounds", "40", "--rate", "0.1", "--local-epsilon", "2"]
    needed = json.loads(run_cli(*asked, "--json"))["solved"]["value"]
    assert needed > 10**6
    assert f"population = {needed:,}." in run_cli(*asked)


def test_printed_figures_are_on_the_safe_side() -> None:
    told = run_cli(*["delta", "--epsilon", "1.0000004", "--population", "9", "--rate", "0.5", "--local-epsilon", "1"])
    assert "│ 1.0000004 " in told and "The run is (1.001, 0)-differentially private" in told
    said = str(guarantee([(CheckInRound(9, 0.5, any_pure(1.0000004)), 2)], 1e-3))
    assert "(1.001 for a single report)" in said
    assert "over 1 round " in str(guarantee([(CheckInRound(9, 0.5, any_pure(1.0)), 1)], 1e-3))


def test_upper_tails_of_the_visible_number_keep_their_digits() -> None:
    counts = visible_counts(1000, 0.1)
    far = [i for i, low in enumerate(counts.low) if low >= 180 and counts.high[i] < 220]
    assert far
    for i in far:
        exact = mpmath.mpf(0)
        for k in range(int(counts.low[i]), int(counts.high[i]) + 1):
            exact += mpmath.binomial(1000, k) * mpmath.mpf("0.1") ** k * mpmath.mpf("0.9") ** (1000 - k)
        assert counts.probability[i] == pytest.approx(float(exact), rel=1e-6)


def test_the_window_says_how_surely_others_choose_a_slot() -> None:
    said = WindowRound(10, any_pure(1.0), 0.5, others=99).assumptions()
    assert any("99 other" in text and "with probability 0.5 or more" in text for text in said)


@pytest.mark.parametrize("count", [1, 2, 7, 99, 10**4, 10**9])
def test_poisson_loads_pay_for_the_crowd_they_assume(count: int) -> None:
    """The factor is at least one over the probability that a Poisson crowd is not larger."""
    mean, factor = poisson_load(count, 1.0)  # all of them choose the one slot
    assert 0 < mean <= count
    with mpmath.workdps(30):
        below = mpmath.gammainc(count + 1, mean, regularized=True) if count < 10**5 else None
    if below is not None:
        assert factor * below >= 1


def test_an_answer_that_does_not_exist_is_one_line() -> None:
    asked = "epsilon --population 1000 --rate 0.1 --local-epsilon 1 --local-delta 1e-4 --delta 1e-6"
    assert "cannot be reached by any epsilon" in run_cli(*asked.split(), code=2)


@pytest.mark.parametrize("one", [WindowRound(1, any_pure(1.0), others=2), WindowRound(5, any_pure(8.0), 0.5, others=3)])
def test_small_windows_have_bounds_that_do_not_cross(one: WindowRound) -> None:
    for delta in (1e-3, 0.0596):
        found = guarantee([(one, 2)], delta).epsilon
        assert lower_bound([(one, 2)], delta).epsilon.lower <= found.upper <= 2 * one.pair.local_epsilon


def test_windows_are_tighter_than_by_a_crowd_that_is_surely_there() -> None:
    """Upper over lower bound was 3.75 and 1.66."""
    for slots, others, e0, windows, ratio in ((10, 99, 4.0, 5, 2.4), (100, 999, 2.0, 20, 1.4)):
        run = [(WindowRound(slots, any_pure(e0), others=others), windows)]
        assert guarantee(run, 1e-5).epsilon.upper < ratio * lower_bound(run, 1e-5).epsilon.lower


@pytest.mark.parametrize("sigma", [0.08, 0.1, 0.14])
def test_little_noise_has_an_answer_without_a_shuffler(sigma: float) -> None:
    """A hundred normal reports are one with a tenth of the noise: epsilon from mpmath."""
    found = compose([(LocalRound(gaussian(sigma)), 100)]).epsilon(1e-5)
    s = mpmath.mpf(2) / mpmath.mpf(sigma) * 10

    def delta(epsilon: mpmath.mpf) -> mpmath.mpf:
        with mpmath.workdps(40):
            tail = mpmath.exp(epsilon + mpmath.log(mpmath.ncdf(-s / 2 - epsilon / s)))
            return mpmath.ncdf(s / 2 - epsilon / s) - tail

    assert delta(mpmath.mpf(found.upper)) <= 1e-5 * (1 + 1e-9)
    assert found.upper <= found.lower * 1.0001


def test_sums_of_little_noise_have_an_answer() -> None:
    found = compose([(DistributedRound(1000, 0.1, 0.176), 10)]).epsilon(1e-5)
    assert 0 < found.lower <= found.upper < 4


def test_long_runs_agree_on_a_coarser_grid() -> None:
    one = CheckInRound(10**6, 0.001, any_pure(1.0))
    whole = compose([(one, 10**6)]).epsilon(1e-6)
    coarse = Composition([(one, 10**6)], replace(FINE, longest_window=2**18)).epsilon(1e-6)
    assert max(whole.lower, coarse.lower) <= min(whole.upper, coarse.upper)
    assert whole.upper < coarse.upper < whole.upper * 1.001


@pytest.mark.parametrize(("population", "rate", "sigma"), [(1000, 0.5, 1.0), (12, 0.5, 1.0)])
def test_little_noise_in_a_small_crowd_has_an_answer(population: int, rate: float, sigma: float) -> None:
    """Where a report alone gives away nothing more no sum is asked: alpha was 1e23 there."""
    run = [(CheckInRound(population, rate, gaussian(sigma)), 10)]
    found = compose(run).epsilon(1e-6)
    assert lower_bound(run, 1e-6).epsilon.lower <= found.upper < math.inf


def test_a_lattice_longer_than_integers_count_is_refused() -> None:
    lattice = LatticeMasses(0.5, 0, np.array([0.5, 0.5]))
    lattice.transform(0.1, 2.0**30, 3)
    with pytest.raises(NumericalFailure, match="lattice"):
        lattice.transform(0.1, 2.0**70, 3)


def test_small_colluding_cohorts_warn_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for cohort in (1, 3, 10):
            guarantee([(SubsampleRound(10, cohort, any_pure(1.0), colluding=0.5), 3)], 1e-5)
        guarantee([(WindowRound(100, any_pure(20.0), others=99), 1)], 1e-5)


def test_steps_of_one_window_compose_for_delta_too() -> None:
    run = compose([(PosteriorRound((0.001,) * 1000, any_pure(1.0)), 1)])
    epsilon = run.epsilon(1e-6).upper
    assert run.delta(0.5 * epsilon).upper > 1e-6
    assert run.delta(epsilon).lower <= 1e-6


def test_central_rounds_answer_for_delta_in_both_orders() -> None:
    assert compose([(SampledGaussianRound(0.0, 1.0), 2)]).delta(0.1).upper == 0.0
    run = compose([(SampledGaussianRound(0.1, 1.0), 20)])
    epsilon = run.epsilon(1e-5)
    assert run.delta(epsilon.upper).lower <= 1e-5 <= run.delta(epsilon.lower).upper * 1.02


def test_reports_that_lose_nothing_but_their_delta_need_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding left a loss of 1e-151 on a lattice, and four minutes of steps up from there."""
    asked: list[float] = []
    inner = UpperLattice.upper

    def counted(lattice: UpperLattice, epsilon: float) -> float:
        asked.append(epsilon)
        return inner(lattice, epsilon)

    monkeypatch.setattr(UpperLattice, "upper", counted)
    one = CheckInRound(5, 0.03, from_atoms([0.0, 1.3571428571428572], [0.3, 0.7]))
    assert event_distribution(one, 5e-3).get_delta_for_epsilon(0.0) == pytest.approx(0.009)
    # a small loss beside its delta
    leaking = from_atoms([0.0, 0.9999999, 1.5000001], [0.2, 0.4, 0.4])
    event_distribution(CheckInRound(5, 0.03, leaking), 5e-3)
    assert len(asked) < 1000


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 40.0])
def test_what_has_no_bound_is_part_of_one(epsilon: float) -> None:
    """Composed on top of one, two reports that leak with 0.2 each leaked with 0.44."""
    found = compose([(LocalRound(approximate(1.0, 0.2)), 2)]).delta(epsilon).upper
    losses = {-1: 0.8 / (math.e + 1), 1: 0.8 * math.e / (math.e + 1)}
    finite = sum(p * q * max(-math.expm1(epsilon - i - j), 0.0) for i, p in losses.items() for j, q in losses.items())
    assert found == pytest.approx(1 - 0.8**2 + finite, rel=1e-8)
    assert found >= 1 - 0.8**2 + finite


def test_windows_that_leak_have_a_delta_below_one() -> None:
    run = compose([(WindowRound(4, from_atoms([0, 1.26], [0.58, 0.42]), 1.0, others=0), 2)])
    assert run.delta(1.0).upper == pytest.approx(1 - 0.42**2)
    assert run.epsilon(0.9).upper == 0.0
    assert math.isinf(run.epsilon(0.8).upper)  # and so is the truth


def test_little_noise_among_few_has_a_lower_bound_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heavy tails need long lattices, which are slow and still end too early."""

    def refused(*_: object) -> None:
        raise AssertionError("no lattice is needed")

    run = [(CheckInRound(3, 0.5, gaussian(1.0)), 2)]
    most = compose(run).epsilon(1e-3).upper
    monkeypatch.setattr(LowerLattice, "__init__", refused)
    assert 8.6 < lower_bound(run, 1e-3).epsilon.lower < most
    assert lower_bound([(CheckInRound(20, 0.3, gaussian(0.5)), 2)], 1e-3).epsilon.lower > 18


def test_merged_gaussian_reports_are_two_laws() -> None:
    ratios, masses = gaussian(1.0).merged(9)
    assert math.fsum(masses) == pytest.approx(1.0, rel=1e-14)
    assert math.fsum(ratios * masses) == pytest.approx(1.0, rel=1e-14)
    assert np.all(np.diff(ratios) > 0)
    alphas = np.exp(np.linspace(0.0, 6.0, 50))
    merged = np.maximum(ratios - alphas[:, None], 0.0) @ masses
    assert np.all(merged <= gaussian(1.0).profile(alphas) * (1 + 1e-12))


def test_heavy_tails_among_few_have_an_answer() -> None:
    """A tilt that overflows says nothing, and is left out."""
    run = [(CheckInRound(4, 0.44, gaussian(1.35)), 2)]
    assert lower_bound(run, 0.24).epsilon.lower <= compose(run).epsilon(0.24).upper < 3


@pytest.mark.parametrize("noise", [11.0, 12.53, 18.0])
def test_a_transform_that_vanishes_at_a_frequency_is_no_logarithm_of_zero(noise):
    """Two clients and wide noise: one seat's transform is zero to rounding; warnings are errors."""
    run = compose(CheckInRound(2, 0.16, gaussian(noise)))
    delta = run.delta(0.0)
    alone = 0.16 * math.erf(1 / noise / math.sqrt(2))  # client 1 told apart without any crowd
    assert 0.0 < delta.lower <= delta.upper <= alone * (1 + 1e-9)


def test_rounds_that_spread_further_than_guessed_take_wider_steps() -> None:
    """A tenth of the rounds hides nothing, which the guess of their spread leaves out: 19 GB at a billion rounds."""
    run = [(SubsampleRound(10**6, 999_999, gaussian(1000.0), colluding=0.1), 10**6)]
    tracemalloc.start()
    try:
        found = Composition(run, replace(FINE, longest_window=2**14)).epsilon(1e-6)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.0 < found.upper < 10.0 and most < 100e6


@pytest.mark.parametrize(
    ("one", "most"),
    [
        (SubsampleRound(10_000, 1000, any_pure(2.0), colluding=0.2), 1.01),  # was 1.139
        (SubsampleRound(1000, 100, binary_response(1.0), colluding=0.2), 1.04),  # 1.157
    ],
)
def test_colluders_tell_which_reports_are_honest(one: SubsampleRound, most: float) -> None:
    lower = lower_bound([(one, 100)], 1e-6).epsilon.lower
    assert lower <= guarantee([(one, 100)], 1e-6).epsilon.upper < most * lower


@pytest.mark.parametrize(
    ("population", "rate", "noise", "rounds"), [(218, 0.023, 1.0, 3), (623, 0.1, 1.05, 10), (3826, 0.1, 1.005, 100)]
)
def test_few_points_are_computed_where_a_curve_is_nearly_straight(
    population: int, rate: float, noise: float, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were 286, of 60 milliseconds each, and as many sums over types that were the larger bound."""
    asked: list[float] = []
    inner = UpperLattice.upper

    def counted(lattice: UpperLattice, epsilon: float) -> float:
        asked.append(epsilon)
        return inner(lattice, epsilon)

    monkeypatch.setattr(UpperLattice, "upper", counted)
    run = [(CheckInRound(population, rate, gaussian(noise)), rounds)]
    found = compose(run).epsilon(1e-6).upper
    assert lower_bound(run, 1e-6).epsilon.lower <= found < 1.12 * lower_bound(run, 1e-6).epsilon.lower
    assert len(asked) < 230


def test_few_that_seldom_all_report_need_no_shared_law() -> None:
    """Reports that one value never sends share none: nothing was divided by nothing."""
    pair = from_atoms([2.116279069767442, 0.0, 1.5, 0.1], [0.43, 0.23, 0.04, 0.3])
    found = compose([(CheckInRound(7, 0.06, pair), 1)]).delta(0.0)
    assert 0.06 * pair.local_delta <= found.upper <= 0.06 and found.lower <= found.upper
