"""PrivUnit's lower bound: three directions on a great circle, against samples and enumeration."""

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from dpcheckin.accounting import (
    CheckInRound,
    LocalRound,
    Round,
    ShuffleRound,
    SubsampleRound,
    guarantee,
    lower_bound,
    privunit,
)
from dpcheckin.accounting.composition import lower_bounds
from dpcheckin.accounting.pairs import cap
from dpcheckin.accounting.pairs.cap import CapPair, ThirdDirection, cap_pair
from dpcheckin.accounting.pairs.pure_types import OthersData
from dpcheckin.randomizers import PrivUnit
from dpcheckin.special.cap_overlaps import overlap_of_caps


def third(pair: CapPair) -> ThirdDirection:
    assert pair.third_direction is not None
    return pair.third_direction


@pytest.mark.parametrize(
    ("local_epsilon", "degrees", "share"),
    [(1, 152, 0.8290), (2, 132, 0.9184), (3, 125.5, 0.9778), (4, 123.5, 0.9957), (5, 122, 0.9993)],
)
def test_variances_in_2410_dimensions(local_epsilon: int, degrees: float, share: float) -> None:
    """Computed independently on the exact sphere: the best angle, and the share of Z*."""
    pair, e0 = privunit(float(local_epsilon), 2410), math.exp(local_epsilon)
    found = third(pair)
    assert math.degrees(found.angle) == pytest.approx(degrees, abs=0.3)
    kept = (found.preference.strong + found.preference.weak / e0**2) / pair.hit
    assert kept == pytest.approx(share, abs=6e-5)


@pytest.mark.parametrize(("local_epsilon", "dimension"), [(1.0, 3), (2.0, 6), (0.4, 12)])
def test_regions_by_sampling(local_epsilon: float, dimension: int) -> None:
    """Reports of x fall into the regions as often as stated, and never into three caps."""
    pair, rng, size = privunit(local_epsilon, dimension), np.random.default_rng(2), 300_000
    found, q = third(pair), pair.cap_measure
    e0 = math.exp(local_epsilon)
    points = rng.normal(size=(size, dimension))
    points /= np.linalg.norm(points, axis=1)[:, None]
    turns = [0.0, found.angle, math.pi + found.angle / 2]
    along = [math.cos(s) * points[:, 0] + math.sin(s) * points[:, 1] for s in turns]
    height = math.sqrt(stats.beta(0.5, (dimension - 1) / 2).isf(2 * q))
    a, b, x = (cosine >= height for cosine in along)
    assert not np.any(a & b & x)
    density = 1 / (1 - q + e0 * q)
    for seen, chance in (
        (a & ~b & ~x, found.preference.strong / density),
        (b & ~a & ~x, found.preference.strong / density),
        (a & x, found.preference.weak / (e0 * density)),
        (b & x, found.preference.weak / (e0 * density)),
        (~a & ~b & ~x, found.neutral / density),
    ):
        assert stats.binomtest(int(seen.sum()), size, chance).pvalue > 1e-6
    # of all other reports the weight counts, R(a) = R(b) on average
    weight = density * float(np.mean(np.where(a, e0, 1.0) * (x | (a & b))))
    assert found.rest == pytest.approx(weight, rel=0.02)


def regions(pair: CapPair, angle: float) -> list[tuple[float, float, float]]:
    """(R(x), R(a)/R(x), R(b)/R(x)) of every region, for a..b at this angle and x beside both."""
    q, e0 = pair.cap_measure, math.exp(pair.local_epsilon)
    density = 1 / (1 - q + e0 * q)
    between, beside = (overlap_of_caps(pair.dimension, q, s) for s in (angle, math.pi - angle / 2))
    assert between is not None and beside is not None
    o, s = (between.lower + between.upper) / 2, (beside.lower + beside.upper) / 2
    alone = q - o - s
    return [
        (density * alone, e0, 1.0),
        (density * alone, 1.0, e0),
        (e0 * density * s, 1.0, 1 / e0),
        (e0 * density * s, 1 / e0, 1.0),
        (density * o, e0, e0),
        (e0 * density * (q - 2 * s), 1 / e0, 1 / e0),
        (density * (1 - 3 * q + o + 2 * s), 1.0, 1.0),
    ]


def poles(pair: CapPair) -> list[tuple[float, float, float]]:
    """The same when a and b are opposite and the others hold b."""
    e0 = math.exp(pair.local_epsilon)
    return [(pair.hit, e0, 1.0), (e0 * pair.hit, 1 / e0, 1.0), (pair.neutral, 1.0, 1.0)]


def enumerated(one: Round, laws: list[tuple[float, float, float]]) -> tuple[np.ndarray, np.ndarray]:
    """Both laws of one round's view, outcome by outcome, straight from the lemma."""
    if isinstance(one, CheckInRound):
        seats, empty, rate = one.population, 0, one.rate
    elif isinstance(one, SubsampleRound):
        seats, empty, rate = one.cohort, one.population - one.cohort, 1.0
    else:
        assert isinstance(one, ShuffleRound)
        seats, empty, rate = one.population, 0, 1.0
    outcomes = [(rate * m, a, b) for m, a, b in laws if m > 0] + [(1 - rate, 1.0, 1.0)]
    p, q = [], []
    for seen in combinations_with_replacement(range(len(outcomes)), seats):
        ways = math.factorial(seats)
        for i in set(seen):
            ways //= math.factorial(seen.count(i))
        base = ways * math.prod(outcomes[i][0] for i in seen)
        p.append(base * (empty + sum(outcomes[i][1] for i in seen)) / (seats + empty))
        q.append(base * (empty + sum(outcomes[i][2] for i in seen)) / (seats + empty))
    return np.array(p), np.array(q)


def exact_epsilon(p: np.ndarray, q: np.ndarray, delta: float) -> float:
    def excess(epsilon: float) -> float:
        return max(
            float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()),
            float(np.maximum(q - math.exp(epsilon) * p, 0.0).sum()),
        )

    if excess(0.0) <= delta:
        return 0.0
    return float(brentq(lambda epsilon: excess(epsilon) - delta, 0.0, 30.0, xtol=1e-13))


def _short(one: object) -> str:
    return str(one).partition("pair=")[0]


ROUNDS = [
    CheckInRound(5, 0.5, privunit(2.0, 5)),
    CheckInRound(4, 0.9, privunit(1.0, 100)),
    CheckInRound(3, 0.3, privunit(0.5, 3)),
    CheckInRound(5, 0.7, privunit(4.0, 2410)),
    SubsampleRound(5, 3, privunit(2.5, 20)),
    ShuffleRound(4, privunit(1.5, 8)),
    ShuffleRound(5, privunit(3.0, 2)),
]


@pytest.mark.parametrize("one", ROUNDS, ids=_short)
@pytest.mark.parametrize("delta", [0.1, 1e-2, 1e-4])
def test_lower_bound_truth_guarantee(
    one: CheckInRound | SubsampleRound | ShuffleRound, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against every outcome of a few clients: with third directions alone, and with poles."""
    pair = one.pair
    assert isinstance(pair, CapPair)
    beside = exact_epsilon(*enumerated(one, regions(pair, third(pair).angle)), delta)
    opposite = exact_epsilon(*enumerated(one, poles(pair)), delta)
    upper = guarantee([(one, 1)], delta).epsilon.upper
    either = lower_bound([(one, 1)], delta).epsilon.lower
    monkeypatch.setattr(cap, "FEW_SEATS", 0)
    lower_bounds.clear_cache()
    alone = lower_bound([(one, 1)], delta).epsilon.lower
    assert alone <= beside * (1 + 1e-9) and alone <= either * (1 + 1e-9)
    assert either <= max(beside, opposite) * (1 + 1e-9)
    assert max(beside, opposite) <= upper * (1 + 1e-9)
    assert alone >= 0.6 * beside - 0.02
    lower_bounds.clear_cache()  # nobody else asks about such a small crowd


@pytest.mark.parametrize("one", ROUNDS[:3], ids=_short)
def test_two_rounds(one: CheckInRound, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = one.pair
    assert isinstance(pair, CapPair)
    p, q = enumerated(one, regions(pair, third(pair).angle))
    both = np.outer(p, p).ravel(), np.outer(q, q).ravel()
    monkeypatch.setattr(cap, "FEW_SEATS", 0)
    lower_bounds.clear_cache()
    for delta in (0.05, 1e-3):
        found = lower_bound([(one, 2)], delta).epsilon.lower
        assert 0.6 * exact_epsilon(*both, delta) <= found <= exact_epsilon(*both, delta)
    lower_bounds.clear_cache()


@pytest.mark.parametrize(
    ("population", "rate", "local_epsilon", "dimension", "rounds", "most"),
    [
        (1000, 0.3, 2.0, 100, 1, 1.06),
        (400, 0.9, 2.0, 2410, 1, 1.06),
        (60_000, 1 / 30, 2.0, 2410, 6000, 1.05),
        (20_000, 0.02, 2.7, 50, 100, 1.03),
        (10_000, 0.05, 4.0, 784, 100, 1.005),
        (500, 0.8, 5.0, 30, 1, 1.01),
        (10**6, 0.5, 3.0, 1000, 10, 1.02),
        (10**7, 0.01, 6.0, 10_000, 1, 1.002),
    ],
)
def test_guarantee_and_lower_bound_agree(
    population: int, rate: float, local_epsilon: float, dimension: int, rounds: int, most: float
) -> None:
    run = [(CheckInRound(population, rate, privunit(local_epsilon, dimension)), rounds)]
    bound = lower_bound(run, 1e-6)
    upper = guarantee(run, 1e-6).epsilon.upper
    assert bound.epsilon.lower <= upper <= most * bound.epsilon.lower
    assert bound.basis == (OthersData.THIRD_DIRECTION.value,)


def test_hemispheres_have_no_third_direction() -> None:
    """Caps of half the sphere: the others hold one of the two, as for LDP-SGD."""
    half = cap_pair(1.0, 20, 0.5)
    assert half.third_direction is None
    bound = lower_bound([(CheckInRound(500, 0.5, half), 2)], 1e-5)
    assert bound.epsilon.lower > 0.05
    assert bound.basis == (OthersData.ONE_OF_TWO.value,)


def test_a_report_seen_alone_is_told_by_opposite_directions() -> None:
    """Where nobody else is there, a third direction helps nobody: both caps apart."""
    pair = privunit(2.0, 50)
    alone = lower_bound([(LocalRound(pair, 1.0), 1)], 0.3)
    exact = brentq(lambda e: float(pair.profile(math.exp(e))) - 0.3, 0.0, 2.0)
    assert alone.epsilon.lower == pytest.approx(exact, rel=0.01)
    assert alone.basis == (OthersData.ONE_OF_TWO.value,)


def test_what_is_sampled_is_what_is_accounted() -> None:
    randomizer = PrivUnit(local_epsilon=2.0, dimension=300)
    pair = randomizer.pair
    assert isinstance(pair, CapPair)
    assert (pair.dimension, pair.cap_measure) == (300, randomizer.cap_measure)
    p, q = randomizer.cap_probability, randomizer.cap_measure
    assert pair.hit == pytest.approx(q * (1 - p) / (1 - q), rel=1e-12)
    assert pair.neutral == pytest.approx((1 - p) * (1 - 2 * q) / (1 - q), rel=1e-12)
    assert pair.hit == pytest.approx(privunit(2.0, 300).hit, rel=1e-6)


@pytest.mark.parametrize("dimension", [2, 3, 10, 1000, 100_000])
@pytest.mark.parametrize("local_epsilon", [0.001, 0.05, 1.0, 4.0, 12.0, 50.0])
def test_masses_are_probabilities(local_epsilon: float, dimension: int) -> None:
    pair = privunit(local_epsilon, dimension)
    if pair.cap_measure == 0.5:
        assert pair.third_direction is None
        return
    found, e0 = third(pair), math.exp(local_epsilon)
    masses = (found.preference.strong, found.preference.weak, found.neutral, found.rest)
    assert min(masses) >= 0.0 and found.preference.strong <= pair.hit
    assert 2 * found.preference.strong + 2 * found.preference.weak + found.neutral <= 1 + 1e-12
    mean = found.preference.strong * (e0 + 1) + found.neutral + found.rest
    assert mean == pytest.approx(1.0, abs=1e-8)
    assert found.rest <= 1 - 2 * found.preference.strong - found.neutral + 1e-12
