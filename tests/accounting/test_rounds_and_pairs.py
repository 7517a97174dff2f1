"""Local pairs, rounds, their conditions and errors; extensions; statements; inverse questions."""

from __future__ import annotations

import json
import math
from typing import Any

import mpmath
import numpy as np
import pytest

from dpcheckin.accounting import (
    Bracket,
    CheckInRound,
    Guarantee,
    Kind,
    LocalRound,
    Round,
    ShuffleRound,
    SubsampleRound,
    ThreeAtoms,
    any_pure,
    approximate,
    binary_response,
    compose,
    dary_response,
    from_atoms,
    from_profile,
    gaussian,
    guarantee,
    hemisphere,
    laplace,
    lower_bound,
    privunit,
)
from dpcheckin.accounting.caps import privunit_parameters
from dpcheckin.accounting.engine.curves import UPPER_SLACK
from dpcheckin.accounting.solve import solve
from dpcheckin.errors import InvalidParameter, NumericalFailure, OutsideTheorem, Unreachable


def one_round(one: Round, epsilon: float) -> Bracket:
    return compose([(one, 1)]).delta(epsilon)


ALL_PAIRS = [
    any_pure(1.0),
    binary_response(0.5),
    hemisphere(2.0),
    dary_response(1.0, 7),
    privunit(4.0, 300),
    gaussian(2.0),
    laplace(1.5),
    approximate(1.0, 1e-4),
    from_atoms([2.0, 0.5, 1.0], [0.2, 0.4, 0.4]),
]


@pytest.mark.parametrize("pair", ALL_PAIRS, ids=lambda pair: pair.name)
def test_profiles_are_profiles(pair: Any) -> None:
    """Convex, decreasing, closed under swapping, one at zero and the local delta at infinity."""
    alphas = np.exp(np.linspace(-6, 6, 241))
    h = pair.profile(alphas)
    slopes = np.diff(h) / np.diff(alphas)
    assert np.all(slopes <= 1e-12)
    assert np.all(np.diff(slopes) >= -1e-9)
    assert h == pytest.approx(1 - alphas + alphas * pair.profile(1 / alphas), abs=1e-9)
    assert float(pair.profile(np.zeros(1))[0]) == pytest.approx(1.0)
    assert float(pair.profile(np.array([1e9]))[0]) == pytest.approx(pair.local_delta, abs=1e-9)
    if pair.pure:
        top = math.exp(pair.local_epsilon)
        assert float(pair.profile(np.array([top]))[0]) == pytest.approx(0.0, abs=1e-12)
    assert pair.label and pair.second_moment > 0


def test_second_moment_is_the_integral_of_the_profile() -> None:
    for pair in (any_pure(1.0), gaussian(3.0), laplace(1.0)):
        x = np.linspace(1, 400, 400_001)
        area = float(np.sum(pair.profile(x)) * (x[1] - x[0]))
        assert pair.second_moment == pytest.approx(2 * area, rel=5e-3)


def test_privunit_law() -> None:
    p, q, t = privunit_parameters(4.0, 300)
    assert 0 < q <= 0.5 < p < 1 and t >= 0
    assert p * (1 - q) / (q * (1 - p)) == pytest.approx(math.exp(4.0))
    pair = privunit(4.0, 300)
    assert pair.hit == pytest.approx(q * (1 - p) / (1 - q))
    assert pair.hit * (math.exp(4.0) + 1) + pair.neutral == pytest.approx(1.0)
    assert pair.second_moment < any_pure(4.0).second_moment


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: any_pure(0.0), "local_epsilon = 0.0"),
        (lambda: any_pure(math.nan), "local_epsilon = nan"),
        (lambda: any_pure(51.0), "local_epsilon = 51.0"),
        (lambda: any_pure("2"), "local_epsilon = '2'"),
        (lambda: dary_response(1.0, 1), "symbols = 1"),
        (lambda: privunit(1.0, 1), "dimension = 1"),
        (lambda: gaussian(0.01), "noise_multiplier = 0.01"),
        (lambda: gaussian(math.inf), "noise_multiplier = inf"),
        (lambda: approximate(1.0, 0.0), "local_delta = 0.0"),
        (lambda: from_atoms([], []), "ratios"),
        (lambda: from_atoms([1.0], [0.5]), "masses"),
        (lambda: from_atoms([math.nan], [1.0]), "ratios"),
        (lambda: from_atoms([3.0], [1.0]), "ratios"),
        (lambda: from_atoms([0.0], [1.0]), "ratios"),
        (lambda: from_profile(lambda a: a), "function"),
        (lambda: from_profile(lambda a: a * np.nan), "function"),
        (lambda: from_profile(lambda a: 1 - a, local_epsilon=0.0), "local_epsilon"),
        (lambda: from_profile(lambda a: 1 - a, local_delta=1.0), "local_delta"),
        (lambda: ThreeAtoms("odd", 1.0, 0.9, 0.0), "hit"),
        (lambda: CheckInRound(0, 0.1, any_pure(1.0)), "population = 0"),
        (lambda: CheckInRound(2.5, 0.1, any_pure(1.0)), "population = 2.5"),  # type: ignore[arg-type]
        (lambda: CheckInRound(True, 0.1, any_pure(1.0)), "population = True"),
        (lambda: CheckInRound(10, 1.1, any_pure(1.0)), "rate = 1.1"),
        (lambda: CheckInRound(10, 0.1, any_pure(1.0), colluding=1.0), "colluding = 1.0"),
        (lambda: CheckInRound(10, 0.1, any_pure(1.0), colluding=0.99), "colluding = 0.99"),
        (lambda: CheckInRound(10, 0.1, any_pure(1.0), dropout=-0.1), "dropout = -0.1"),
        (lambda: CheckInRound(10, 0.1, any_pure(1.0), lowest_rate=0.2), "lowest_rate = 0.2"),
        (lambda: SubsampleRound(10, 11, any_pure(1.0)), "cohort = 11"),
        (lambda: SubsampleRound(10, 5, any_pure(1.0), colluding=0.999), "colluding"),
        (lambda: ShuffleRound(10, any_pure(1.0), colluding=0.999), "colluding"),
        (lambda: LocalRound(any_pure(1.0), 1.5), "rate = 1.5"),
    ],
)
def test_bad_parameters(make: Any, text: str) -> None:
    with pytest.raises(InvalidParameter, match=text):
        make()


@pytest.mark.parametrize("pair", [gaussian(2.0), laplace(1.0), approximate(1.0, 1e-6)])
def test_full_shuffle_needs_a_proof(pair: Any) -> None:
    for one in (ShuffleRound(100, pair), CheckInRound(100, 1.0, pair), SubsampleRound(9, 9, pair)):
        with pytest.raises(OutsideTheorem, match="stay away with probability"):
            one_round(one, 0.1)
    with pytest.raises(OutsideTheorem, match="largest rate below 1"):
        one_round(CheckInRound(100, 1.0, pair, dropout=0.1), 0.1)
    assert one_round(SubsampleRound(100, 99, pair), 0.1).upper < 1


def test_a_given_profile_is_as_good_as_the_named_one() -> None:
    named = laplace(1.0)
    given = from_profile(named.function, local_epsilon=1.0)
    first, second = (one_round(CheckInRound(500, 0.1, pair), 0.05) for pair in (named, given))
    assert first.upper == pytest.approx(second.upper, rel=1e-9)


def test_uneven_rates() -> None:
    """Sound where a plain rate is not: the example of clients dropping out at different rates."""
    pair = dary_response(2.0, 3)
    assert one_round(CheckInRound(5, 0.2, pair), 1.0).upper < 0.087
    uneven = CheckInRound(5, 0.2, pair, lowest_rate=0.02)
    assert one_round(uneven, 1.0).upper >= 0.087
    dropping = CheckInRound(5, 0.2, pair, dropout=0.9)
    assert one_round(dropping, 1.0).upper == pytest.approx(one_round(uneven, 1.0).upper)
    assert any("between" in said for said in uneven.assumptions())


def test_colluders_shrink_the_crowd() -> None:
    pair = any_pure(2.0)
    with_colluders = one_round(CheckInRound(1000, 0.1, pair, colluding=0.25), 0.1)
    assert with_colluders.upper == pytest.approx(one_round(CheckInRound(750, 0.1, pair), 0.1).upper)
    fixed = one_round(SubsampleRound(1000, 100, pair, colluding=0.25), 0.1).upper
    assert one_round(SubsampleRound(750, 60, pair), 0.1).upper < fixed
    assert fixed < one_round(SubsampleRound(750, 95, pair), 0.1).upper
    assert ShuffleRound(1000, pair, colluding=0.5).honest == 500
    tiny = SubsampleRound(6, 5, approximate(1.0, 1e-3), colluding=0.5)
    assert one_round(tiny, 0.5).upper >= one_round(SubsampleRound(6, 5, any_pure(1.0)), 0.5).lower


def test_one_client_has_only_its_local_guarantee() -> None:
    for pair in (any_pure(1.0), gaussian(2.0)):
        one = one_round(CheckInRound(1, 0.3, pair), 0.2).upper
        assert one == pytest.approx(0.3 * float(pair.profile(np.array([math.exp(0.2)]))[0]))


def test_heavy_tails_fall_back_to_what_holds_without_shuffling() -> None:
    local = compose([(LocalRound(gaussian(0.2), 0.01), 3)]).epsilon(1e-6)
    got = compose([(CheckInRound(10**6, 0.01, gaussian(0.2)), 3)]).epsilon(1e-6)
    assert got.upper <= local.upper * 1.02


def test_statement() -> None:
    said = guarantee([(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)], 1e-4)
    assert said.kind is Kind.GUARANTEE
    assert "(0.07354, 0.0001)-differentially private" in str(said)
    assert "If the shuffler colludes" in str(said) and "2 for a single report" in str(said)
    assert said.local is not None and 2 < said.local.epsilon < 100
    assert said.charge() == said.epsilon.upper
    assert Guarantee.from_json(json.dumps(said.to_json())) == said
    with pytest.raises(InvalidParameter, match="to_json"):
        Guarantee.from_json("{}")
    full = guarantee([(ShuffleRound(100, any_pure(1.0)), 1)], 1e-6)
    assert any("blanket" in reason for reason in full.basis)


def test_a_cohort_drawn_by_a_traitor_is_no_protection() -> None:
    """One's own coin stays random when the shuffler colludes; its draw of the cohort does not."""
    delta, pair = 1e-5, any_pure(1.0)
    always = compose([(LocalRound(pair, 1.0), 20)]).epsilon(delta).upper
    sometimes = compose([(LocalRound(pair, 0.05), 20)]).epsilon(delta).upper
    drawn = guarantee([(SubsampleRound(1000, 50, pair), 20)], delta)
    own = guarantee([(CheckInRound(1000, 0.05, pair), 20)], delta)
    assert drawn.local is not None and drawn.local.epsilon == always
    assert own.local is not None and own.local.epsilon == sometimes < always
    # towards an analyzer alone the draw is as good as the coins
    assert drawn.epsilon.upper < sometimes


def test_only_a_guarantee_is_charged() -> None:
    least = lower_bound([(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)], 1e-4)
    assert least.kind is Kind.LOWER_BOUND
    with pytest.raises(InvalidParameter, match="nothing else is charged"):
        least.charge()
    assert "can promise less" in str(least)
    claim = Guarantee(Kind.REFUTED, Bracket(0.1, 0.1), 1e-4, "", (), ())
    assert "not a guarantee" in str(claim)
    assert Guarantee.from_json(least.to_json()).epsilon.upper == math.inf


def test_a_delta_below_the_lost_mass_is_unreachable() -> None:
    with pytest.raises(Unreachable, match="cannot be reached"):
        guarantee([(CheckInRound(1000, 0.1, approximate(1.0, 1e-3)), 10)], 1e-6)


def test_a_statement_without_any_report() -> None:
    said = guarantee([(CheckInRound(1000, 0.0, any_pure(1.0)), 10)], 1e-6)
    assert said.epsilon.upper == 0.0 and said.local is not None and said.local.epsilon == 0.0
    heavy = guarantee([(CheckInRound(1000, 0.1, approximate(1.0, 1e-9)), 10)], 1e-6)
    assert heavy.local is not None and math.isfinite(heavy.local.epsilon)
    gone = guarantee([(CheckInRound(1000, 1e-6, approximate(1.0, 1e-3)), 10)], 1e-6)
    assert "nothing is left" not in str(gone) or math.isinf(gone.local.epsilon)  # type: ignore[union-attr]


@pytest.mark.parametrize("free", ["rounds", "rate", "population", "local_epsilon"])
def test_inverse_questions(free: str) -> None:
    """The answer meets the target; one step further does not."""
    given: dict[str, float] = {
        "population": 5000, "rate": 0.05, "local_epsilon": 1.5, "rounds": 40,
    }  # fmt: skip

    def build(value: float) -> tuple[CheckInRound, int]:
        with_value = {**given, free: value}
        pair = any_pure(with_value["local_epsilon"])
        one = CheckInRound(int(with_value["population"]), with_value["rate"], pair)
        return one, int(with_value["rounds"])

    target = 0.15
    value = solve(free, build, epsilon=target, delta=1e-6)
    unit = 1.0 if free in ("rounds", "population") else 10.0 ** (math.floor(math.log10(value)) - 3)
    further = value - 1 if free == "population" else value + unit
    assert compose([build(value)]).epsilon(1e-6).upper <= target
    assert compose([build(further)]).epsilon(1e-6).upper > target


def test_inverse_questions_without_answer() -> None:
    def build(value: float) -> tuple[CheckInRound, int]:
        return CheckInRound(10, 0.5, any_pure(8.0)), int(value)

    with pytest.raises(Unreachable, match="even rounds = 1"):
        solve("rounds", build, epsilon=0.01, delta=1e-6)
    with pytest.raises(InvalidParameter, match="free"):
        solve("colour", build, epsilon=0.01, delta=1e-6)
    with pytest.raises(Unreachable, match="cannot be met by any rate"):
        solve("rate", lambda v: (CheckInRound(10, 0.5, any_pure(8.0)), 5), epsilon=0.01, delta=1e-6)
    with pytest.raises(Unreachable, match="every rounds"):
        solve("rounds", lambda v: (CheckInRound(10, 0.0, any_pure(8.0)), 5), epsilon=1, delta=1e-6)
    with pytest.raises(Unreachable, match="cannot be met by any population"):
        solve(
            "population", lambda v: (CheckInRound(9, 0.5, any_pure(8.0)), 5), epsilon=1, delta=1e-6
        )
    assert (
        solve("rate", lambda v: (CheckInRound(10, 0.0, any_pure(1.0)), 5), epsilon=1, delta=1e-6)
        == 1.0
    )
    assert (
        solve(
            "population",
            lambda v: (CheckInRound(int(v), 0.0, any_pure(1.0)), 5),
            epsilon=1,
            delta=1e-6,
        )
        == 1
    )

    def gaussian_rate(value: float) -> tuple[CheckInRound, int]:
        return CheckInRound(1000, value, gaussian(20.0)), 2

    assert solve("rate", gaussian_rate, epsilon=5.0, delta=1e-6) < 1.0


def test_brackets_refuse_nonsense() -> None:
    with pytest.raises(NumericalFailure, match="crossed"):
        Bracket(1.0, 0.5)
    with pytest.raises(NumericalFailure, match="NaN"):
        Bracket(math.nan, 0.5)
    assert Bracket(0.0, math.inf).relative_width == 1.0
    assert Bracket(0.0, 0.0).relative_width == 0.0


@pytest.mark.parametrize("noise", [0.3, 2.0, 19.9, 20.1, 200.0, 1e4, 1e6])
def test_a_gaussian_profile_has_all_its_digits(noise: float) -> None:
    """Fewer than curves are widened by: much noise makes it a difference of equal numbers."""
    pair, far = gaussian(noise), np.array([-11.0, -7.5, -3.0, -1e-3, 0.0, 0.5, 4.0, 29.9, 31.0])
    alphas = np.exp(-far * pair.s)
    with mpmath.workdps(50):
        s = mpmath.mpf(pair.s)
        for alpha, found in zip(map(mpmath.mpf, alphas), pair.profile(alphas), strict=True):
            middle = -mpmath.log(alpha) / s
            truth = mpmath.ncdf(middle + s / 2) - alpha * mpmath.ncdf(middle - s / 2)
            assert abs(found / truth - 1) < 0.5 * (UPPER_SLACK - 1)
