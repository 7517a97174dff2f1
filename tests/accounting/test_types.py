"""Guarantees with types: the figures they are held to, and where they are not used."""

from __future__ import annotations

import math

import pytest

from dpcheckin.accounting import (
    CheckInRound,
    Round,
    ShuffleRound,
    SubsampleRound,
    WindowRound,
    any_pure,
    binary_response,
    compose,
    dary_response,
    gaussian,
    guarantee,
    hemisphere,
    lower_bound,
)
from dpcheckin.accounting.engine.typed.laws import smoothing_suffices
from dpcheckin.accounting.pairs import pure_types as pure
from dpcheckin.accounting.pairs.local import LocalPair

P3 = (60_000, 1 / 30, 6_000)


@pytest.mark.parametrize(
    ("pair", "setting", "most", "least"),
    [
        (any_pure(2.0), P3, 0.6096, 0.6084),
        (hemisphere(2.0), P3, 0.483, 0.473),
        (binary_response(2.0), P3, 0.483, 0.473),
        (dary_response(2.0, 3), P3, 0.6096, 0.6084),
        (gaussian(2.0), (10_000, 0.05, 200), 0.144, 0.131),
        (gaussian(2.0), (60_000, 0.1, 6_800), 0.52, 0.488),
    ],
    ids=["any", "hemisphere", "binary", "3-ary", "gaussian", "gaussian, long"],
)
def test_guarantee_meets_lower_bound(
    pair: LocalPair, setting: tuple[int, float, int], most: float, least: float
) -> None:
    population, rate, rounds = setting
    run = [(CheckInRound(population, rate, pair), rounds)]
    upper, lower = compose(run).epsilon(1e-5).upper, lower_bound(run, 1e-5).epsilon.lower
    assert least <= lower <= upper <= most


@pytest.mark.parametrize("pair", [any_pure(0.3), any_pure(3.0), binary_response(1.0), dary_response(2.0, 40)])
@pytest.mark.parametrize("colluding", [0.0, 0.25])
def test_never_above_the_worst_law(pair: LocalPair, colluding: float) -> None:
    for typed, plain in (
        (
            CheckInRound(2_000, 0.2, pair, colluding=colluding),
            CheckInRound(2_000, 0.2, pair.without_types(), colluding=colluding),
        ),
        (
            SubsampleRound(2_000, 400, pair, colluding=colluding),
            SubsampleRound(2_000, 400, pair.without_types(), colluding=colluding),
        ),
    ):
        least = lower_bound([(typed, 10)], 1e-6).epsilon.lower
        upper, before = (compose([(one, 10)]).epsilon(1e-6).upper for one in (typed, plain))
        assert upper < before * (1 + 1e-5)  # another grid; where C is the worst law they are one
        if pair.neutral == 0.0:  # type: ignore[attr-defined]
            assert upper < before
        if not colluding:
            assert least <= upper <= 1.03 * least


@pytest.mark.parametrize(
    ("one", "plain"),
    [
        (
            CheckInRound(500, 0.2, binary_response(1.0), dropout=0.3),
            CheckInRound(500, 0.2, binary_response(1.0).without_types(), dropout=0.3),
        ),
        (WindowRound(50, binary_response(1.0)), WindowRound(50, binary_response(1.0).without_types())),
        (ShuffleRound(500, binary_response(1.0)), ShuffleRound(500, binary_response(1.0).without_types())),
    ],
    ids=["dropouts", "window", "full shuffle"],
)
def test_types_help_where_rates_differ_nobody_is_absent_or_others_choose(one: Round, plain: Round) -> None:
    least = lower_bound([(one, 3)], 1e-5).epsilon.lower
    upper, before = (compose([(it, 3)]).epsilon(1e-5).upper for it in (one, plain))
    assert least <= upper < before


def test_the_statement_names_what_it_rests_on() -> None:
    typed = guarantee([(CheckInRound(1_000, 0.1, binary_response(1.0)), 5)], 1e-5)
    assert any("types" in text for text in typed.basis)
    uneven = guarantee([(CheckInRound(1_000, 0.1, binary_response(1.0), dropout=0.1), 5)], 1e-5)
    assert any("types" in text for text in uneven.basis)
    window = guarantee([(WindowRound(50, binary_response(0.5)), 5)], 1e-5)  # no single type is known there
    assert not any("types" in text for text in window.basis)


def test_far_corners_are_answered() -> None:
    for population, rate in ((2, 1e-9), (2, 0.999), (10**9, 1e-9), (10**9, 1e-3), (10**9, 0.999)):
        for local in (0.01, 0.69, 0.7, 20.0):
            for make in (any_pure, binary_response):
                one = CheckInRound(population, rate, make(local))
                upper = compose([(one, 1)]).epsilon(1e-9).upper
                plain = CheckInRound(population, rate, make(local).without_types())
                assert 0.0 <= upper <= compose([(plain, 1)]).epsilon(1e-9).upper * (1 + 1e-9)


def test_a_gaussian_beyond_the_certificate_keeps_its_bound() -> None:
    for noise in (0.5, 1e4):
        one = CheckInRound(1_000, 0.1, gaussian(noise))
        plain = CheckInRound(1_000, 0.1, gaussian(noise).without_types())
        both = [compose([(r, 2)]).delta(0.3 / noise).upper for r in (one, plain)]
        assert both[0] == both[1]
        assert math.isfinite(both[0])


@pytest.mark.parametrize("local_epsilon", [0.3, 0.6, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("rise", [0.0, 0.01])
def test_noise_a_fifth_too_small_is_refused(local_epsilon: float, rise: float) -> None:
    """The certificate of a pure randomizer's smoothing holds, and does not hold 20% below it."""
    found = pure.any_pure(local_epsilon)(rise)
    assert found is not None
    two, three = pure.symbols(local_epsilon, 2), pure.symbols(local_epsilon, 3)
    first, second, third = two.at_first(rise), two.at_second(rise), three.at_third(rise)
    if len(found.laws) == 1:
        orders = [(law, [(1.0, third)]) for law in (first, second)]
    else:
        orders = [(third, [(0.5, first), (0.5, second)])]
    assert all(smoothing_suffices(low, high, found.smoothing) for low, high in orders)
    assert not all(smoothing_suffices(low, high, 0.8 * found.smoothing) for low, high in orders)


@pytest.mark.parametrize("local_epsilon", [0.6, 0.67, math.log(2.0), 0.72, 0.78, 0.86])
@pytest.mark.parametrize("rise", [0.0, 0.01, 0.08])
def test_wider_types_near_two_are_above_every_type(local_epsilon: float, rise: float) -> None:
    known = pure.any_pure_near_two(local_epsilon)
    assert known is not None
    types = known(rise)
    assert types is not None
    assert types.laws[0].variance > pure.variance_of_types(local_epsilon)
    two, three = pure.symbols(local_epsilon, 2), pure.symbols(local_epsilon, 3)
    weights = [(w / 20, 1 - w / 20) for w in range(21)] if len(types.laws) == 2 else [(1.0,)]
    for law in (two.at_first(rise), two.at_second(rise), three.at_third(rise)):
        mixtures = [list(zip(some, types.laws, strict=True)) for some in weights]
        # a hair more noise than the least: weights of the test are not those of the search
        assert any(smoothing_suffices(law, mix, 1.1 * types.smoothing) for mix in mixtures)  # type: ignore[arg-type]


@pytest.mark.parametrize("local_epsilon", [0.62, math.log(2.0), 0.75, 0.8])
@pytest.mark.parametrize(("crowd", "most"), [((60_000, 1 / 30, 200), 1.02), ((3_000, 0.1, 5), 1.04)])
def test_near_two_little_is_lost(local_epsilon: float, crowd: tuple[int, float, int], most: float) -> None:
    population, rate, rounds = crowd
    run = [(CheckInRound(population, rate, any_pure(local_epsilon)), rounds)]
    upper, lower = compose(run).epsilon(1e-6).upper, lower_bound(run, 1e-6).epsilon.lower
    assert lower <= upper <= most * lower
