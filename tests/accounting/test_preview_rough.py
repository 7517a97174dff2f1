"""The figure that comes first is a guarantee: held to enumeration, never to itself.

The truth for few clients is the exact epsilon of the worst pair of data sets among all that the
oracles can enumerate; no bound of the package enters it. What `rough` says about its own steps (a
report of at most three ratios is worse than the one it stands for, all of a cohort honest, all
slots as crowded as the emptiest) is held to the theorem evaluated directly from its statement.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from worst_law import worst_law

from dpcheckin.accounting import (
    CheckInRound,
    GaussianPair,
    LocalPair,
    Round,
    ShuffleRound,
    SubsampleRound,
    WindowRound,
    any_pure,
    compose,
    dary_response,
    from_atoms,
    gaussian,
    laplace,
    lower_bound,
    privunit,
)
from dpcheckin.accounting.composition.preview import coarse_epsilon, rough_epsilon
from dpcheckin.accounting.pairs.cap import privunit_parameters
from dpcheckin.errors import InvalidParameter
from oracles import brute_force as bf
from oracles import gaussian_mechanism, local_laws, theorem_oracle
from oracles.gaussian_cells import lonely_delta, rounded_gaussian
from oracles.window_runs import window_law

Floats = NDArray[np.float64]
Pairs = Iterable[tuple[Floats, Floats]]


def _worst_epsilon(pairs: Pairs, rounds: int, delta: float) -> float:
    """The largest exact epsilon of the given pairs of laws, both directions."""
    return max(bf.composed_epsilon(p, q, rounds, delta) for p, q in pairs)


def _holds(one: Round, rounds: int, delta: float, pairs: Pairs, *, quick_too: bool = False) -> None:
    """The rough figure is a number, and no pair of data sets loses more."""
    rough, truth = rough_epsilon(one, rounds, delta), _worst_epsilon(pairs, rounds, delta)
    assert math.isfinite(rough) and rough >= 0.0
    # the last term is what sums in doubles can be off by
    assert truth <= rough * (1 + 1e-9) + 1e-12
    if quick_too:
        assert truth <= coarse_epsilon(one, rounds, delta) * (1 + 1e-9) + 1e-12


def _others(values: int, clients: int) -> list[tuple[int, ...]]:
    """What the others may hold; in a shuffled batch only how many hold what matters."""
    return list(combinations_with_replacement(range(values), clients))


def _epsilons(low: float = 0.01, high: float = 20.0) -> st.SearchStrategy[float]:
    return st.floats(math.log(low), math.log(high)).map(math.exp)


LOCAL = _epsilons()
RATES = st.one_of(st.sampled_from([1e-9, 1e-3, 0.5, 0.999, 1.0]), st.floats(0.01, 0.99))
DELTAS = st.floats(-15.0, -2.0).map(lambda x: 10.0**x)
ROUNDS = st.integers(1, 2)
# (how many values an answer has, how many clients): small enough to enumerate
CROWDS = st.sampled_from([(2, 1), (2, 2), (2, 3), (2, 5), (2, 8), (3, 2), (3, 3), (3, 4), (4, 3)])


# --- pure reports ------------------------------------------------------------------------------


@given(crowd=CROWDS, local=LOCAL, rate=RATES, delta=DELTAS, rounds=ROUNDS)
@example(crowd=(2, 1), local=20.0, rate=1.0, delta=1e-15, rounds=2)
@example(crowd=(2, 2), local=20.0, rate=0.999, delta=1e-15, rounds=2)
@example(crowd=(2, 8), local=4.0, rate=1.0, delta=1e-6, rounds=2)
@example(crowd=(3, 4), local=0.01, rate=1e-9, delta=1e-15, rounds=2)
@settings(max_examples=60, deadline=None)
def test_no_check_in_among_few_clients_loses_more(crowd, local, rate, delta, rounds) -> None:
    symbols, clients = crowd
    matrix = local_laws.dary_matrix(local, symbols)
    pairs = [
        bf.as_pair(*(bf.check_in_law(matrix, (x, *others), rate) for x in (0, 1)))
        for others in _others(symbols, clients - 1)
    ]
    _holds(CheckInRound(clients, rate, dary_response(local, symbols)), rounds, delta, pairs)
    _holds(CheckInRound(clients, rate, any_pure(local)), rounds, delta, pairs)
    if rate == 1.0:
        _holds(ShuffleRound(clients, dary_response(local, symbols)), rounds, delta, pairs)


@given(
    local=LOCAL,
    high=st.floats(0.05, 0.95),
    part=st.floats(0.05, 1.0),
    clients=st.integers(2, 5),
    delta=DELTAS,
    rounds=ROUNDS,
)
@settings(max_examples=25, deadline=None)
def test_rates_that_differ_are_covered(local, high, part, clients, delta, rounds) -> None:
    """The target at the largest rate, the others as rarely as the interval allows."""
    matrix, low = local_laws.dary_matrix(local, 2), high * part
    pairs = [
        bf.as_pair(*(bf.check_in_law(matrix, (x, *others), [high] + [low] * (clients - 1)) for x in (0, 1)))
        for others in _others(2, clients - 1)
    ]
    pair = dary_response(local, 2)
    _holds(CheckInRound(clients, high, pair, lowest_rate=low), rounds, delta, pairs)
    _holds(CheckInRound(clients, high, pair, dropout=1 - part), rounds, delta, pairs)


@given(crowd=CROWDS, colluders=st.integers(0, 3), cohort=st.integers(0, 8), local=LOCAL, delta=DELTAS, rounds=ROUNDS)
@example(crowd=(2, 1), colluders=3, cohort=2, local=5.0, delta=1e-9, rounds=2)
@example(crowd=(2, 5), colluders=2, cohort=6, local=5.0, delta=1e-9, rounds=2)
@example(crowd=(2, 8), colluders=3, cohort=8, local=2.0, delta=1e-3, rounds=1)
@settings(max_examples=60, deadline=None)
def test_no_cohort_loses_more_with_or_without_colluders(crowd, colluders, cohort, local, delta, rounds) -> None:
    symbols, honest = crowd
    population = honest + colluders
    cohort = min(cohort, population)
    matrix = local_laws.dary_matrix(local, symbols)
    pairs = [
        bf.as_pair(*(bf.subsample_law(matrix, (x, *others), cohort, colluders) for x in (0, 1)))
        for others in _others(symbols, honest - 1)
    ]
    pair = dary_response(local, symbols)
    one = SubsampleRound(population, cohort, pair, colluding=colluders / population)
    assert one.honest == honest
    _holds(one, rounds, delta, pairs)


def _windows(
    matrix: Floats, slots: int, probability: float, seen: int | None, clients: int, values: int
) -> Iterator[tuple[Floats, Floats]]:
    """Pairs of laws of a window: the others and the dummies hold anything."""
    for others in _others(values, clients):
        for dummy in range(values):
            p, q = (window_law(matrix, x, others, [dummy] * slots, probability, seen) for x in (0, 1))
            yield p, q


@given(
    shape=st.sampled_from([(1, 1), (2, 2), (2, 1), (3, 3), (3, 2), (4, 3)]),
    others=st.integers(0, 3),
    probability=st.one_of(st.sampled_from([1e-9, 0.5, 1.0]), st.floats(0.05, 0.99)),
    symbols=st.sampled_from([2, 2, 3]),
    local=LOCAL,
    delta=DELTAS,
    rounds=ROUNDS,
)
@example(shape=(1, 1), others=3, probability=1.0, symbols=2, local=3.0, delta=0.01, rounds=1)
@settings(max_examples=40, deadline=None)
def test_no_window_of_few_slots_loses_more(shape, others, probability, symbols, local, delta, rounds) -> None:
    """Relying on the others or on nobody; windows that are over or not."""
    slots, seen = shape
    if slots >= 3:
        others, symbols = min(others, 2), 2
    matrix = local_laws.dary_matrix(local, symbols)
    for known in (others, None):
        one = WindowRound(slots, dary_response(local, symbols), probability, seen, known)
        pairs = _windows(matrix, slots, probability, seen, others, symbols)
        _holds(one, rounds, delta, pairs)


@pytest.mark.parametrize("likely", [0.02, 0.2, 0.5])
@pytest.mark.parametrize(("slots", "others"), [(1, 6), (2, 4)])
def test_a_crowd_that_is_believed_in_is_there(slots: int, others: int, likely: float) -> None:
    """Few clients never make a crowd at a tiny delta: with a large chance of bad luck they do."""
    for local in (0.5, 2.0, 5.0):
        one = WindowRound(slots, any_pure(local), 0.9, others=others).simpler(0.1)
        ((curve, _),) = one.curves(likely)
        matrix = local_laws.dary_matrix(local, 2)
        for p, q in _windows(matrix, slots, 0.9, None, others, 2):
            for epsilon in np.linspace(0.0, local, 12):
                truth = max(bf.both_directions(p, q, epsilon))
                assert truth <= curve.upper_at(float(epsilon)) + 1e-12


def test_it_is_close_where_nothing_is_thrown_away() -> None:
    """So that a bound of no use would not pass here either."""
    matrix = local_laws.dary_matrix(4.0, 2)
    laws = [bf.shuffle_law(matrix, (x, *[1] * 9)) for x in (0, 1)]
    truth = _worst_epsilon([bf.as_pair(*laws)], 2, 1e-3)
    assert truth <= rough_epsilon(ShuffleRound(10, any_pure(4.0)), 2, 1e-3) <= 1.05 * truth


# --- Gaussian reports --------------------------------------------------------------------------
#
# How delta is shared out. A Gaussian report h is replaced by the worst report of (eps0, d0), with
# h(e^eps0) <= d0: its profile is the chord of h between e^-eps0 and e^eps0, and d0 beyond. The part
# d0 is mass of the *target's* report without counterpart. The theorem (docs/theory.md, "Mass
# without counterpart") charges it once for each round in which the target reports: rate * d0 a
# round, and nothing for the reports of the others, because in the lemma's density only one seat at
# a time holds the target's report. With d0 = SHARE * delta / count, `count` rounds lose at most
# SHARE * delta, all of it inside the delta that the composed curve is inverted at. (Clones would
# have to charge the reports of all clients, n * d0: here it would be wrong to leave that out only
# if the argument needed the others' reports to be of bounded ratio, and it does not.)


@given(
    noise=st.floats(0.5, 8.0),
    rate=st.one_of(st.sampled_from([1e-9, 0.5]), st.floats(0.01, 0.99)),
    rounds=st.sampled_from([1, 2, 5, 40]),
    delta=DELTAS,
)
@settings(max_examples=60, deadline=None)
def test_a_client_alone_loses_no_more(noise, rate, rounds, delta) -> None:
    """n = 1, in closed form, for any number of rounds."""
    rough = rough_epsilon(CheckInRound(1, rate, gaussian(noise)), rounds, delta)
    assert math.isfinite(rough)
    assert lonely_delta(noise, rate, rounds, rough) <= delta * (1 + 1e-9)


@given(
    noise=st.floats(0.4, 5.0),
    rate=st.floats(0.02, 0.98),
    clients=st.integers(2, 3),
    rounds=ROUNDS,
    delta=st.floats(-9.0, -2.0).map(lambda x: 10.0**x),
)
@settings(max_examples=15, deadline=None)
def test_few_clients_with_gaussian_reports_lose_no_more(noise, rate, clients, rounds, delta) -> None:
    """n = 2 in 40 cells, n = 3 in 14: nearly all there is to see of a report."""
    cells = (40 if rounds == 1 else 12) if clients == 2 else (14 if rounds == 1 else 7)
    matrix = rounded_gaussian(noise, (-1.0, 1.0, 0.0), cells, 3.0)
    laws = [[bf.check_in_law(matrix, (x, *others), rate) for x in (0, 1)] for others in _others(3, clients - 1)]
    one = CheckInRound(clients, rate, gaussian(noise))
    _holds(one, rounds, delta, [bf.as_pair(*pair) for pair in laws], quick_too=True)


@given(
    noise=st.floats(0.4, 5.0),
    cohort=st.integers(1, 3),
    colluders=st.integers(0, 2),
    delta=st.floats(-9.0, -2.0).map(lambda x: 10.0**x),
)
@settings(max_examples=20, deadline=None)
def test_cohorts_with_gaussian_reports_lose_no_more(noise, cohort, colluders, delta) -> None:
    matrix = rounded_gaussian(noise, (-1.0, 1.0, 0.0), 14, 3.0)
    honest = 3
    pairs = [
        bf.as_pair(*(bf.subsample_law(matrix, (x, *others), cohort, colluders) for x in (0, 1)))
        for others in _others(3, honest - 1)
    ]
    one = SubsampleRound(honest + colluders, cohort, gaussian(noise), colluding=colluders / (honest + colluders))
    _holds(one, 1, delta, pairs)


@given(
    noise=st.floats(0.4, 5.0),
    shape=st.sampled_from([(1, 1), (2, 2), (2, 1)]),
    others=st.integers(0, 2),
    probability=st.floats(0.1, 1.0),
    delta=st.floats(-9.0, -2.0).map(lambda x: 10.0**x),
)
@settings(max_examples=20, deadline=None)
def test_windows_with_gaussian_reports_lose_no_more(noise, shape, others, probability, delta) -> None:
    slots, seen = shape
    matrix = rounded_gaussian(noise, (-1.0, 1.0, 0.0), 24, 3.0)
    one = WindowRound(slots, gaussian(noise), probability, seen, others)
    pairs = _windows(matrix, slots, probability, seen, others, 3)
    _holds(one, 1, delta, pairs, quick_too=True)


# --- what is said about the simpler round --------------------------------------------------------


def _laplace_cells(local: float) -> tuple[Floats, Floats]:
    """Laplace reports on the ends of [0, 1], rounded to cells: post-processing."""
    borders = np.linspace(-0.5, 1.5, 9)
    x = [np.concatenate([[-math.inf], local * (borders - value), [math.inf]]) for value in (0, 1)]
    cdf = [np.where(t < 0, np.exp(np.minimum(t, 0)) / 2, 1 - np.exp(-np.maximum(t, 0)) / 2) for t in x]
    return np.diff(cdf[0]), np.diff(cdf[1])


def _gaussian_cells(noise: float) -> tuple[Floats, Floats]:
    first, second = rounded_gaussian(noise, (-1.0, 1.0), 10, 2.0)
    return first, second


def _dary(local: float, symbols: int) -> tuple[Floats, Floats]:
    first, second = local_laws.dary_matrix(local, symbols)[:2]
    return first, second


def _caps(local: float, dimension: int) -> tuple[Floats, Floats]:
    """PrivUnit on opposite vectors: reports in the cap of one, of the other, of neither."""
    p, q, _ = privunit_parameters(local, dimension)
    other = (1 - p) * q / (1 - q)
    return np.array([p, other, 1 - p - other]), np.array([other, p, 1 - p - other])


# a pair, and the laws of two reports that it stands for (or of what is left of them in cells)
PAIRS = [
    (any_pure(2.0), _dary(2.0, 2)),
    (any_pure(2.0), _dary(2.0, 4)),
    (dary_response(1.5, 5), _dary(1.5, 5)),
    (privunit(3.0, 40), _caps(3.0, 40)),
    (laplace(0.3), _laplace_cells(0.3)),
    (laplace(4.0), _laplace_cells(4.0)),
    (gaussian(0.7), _gaussian_cells(0.7)),
    (gaussian(3.0), _gaussian_cells(3.0)),
    (from_atoms([0.25, 1.0, 2.5], [0.4, 0.4, 0.2]), (np.array([0.1, 0.4, 0.5]), np.array([0.4, 0.4, 0.2]))),
    (
        from_atoms([0.0, 0.5, 1.6], [0.1, 0.4, 0.5], name="atoms with a local delta"),
        (np.array([0.0, 0.2, 0.8]), np.array([0.1, 0.4, 0.5])),
    ),
]
NAMES = [f"{i} {pair.label}" for i, (pair, _) in enumerate(PAIRS)]


@pytest.mark.parametrize("local_delta", [1e-3, 1e-8, 1e-20])
@pytest.mark.parametrize("pair", [pair for pair, _ in PAIRS], ids=NAMES)
def test_the_simpler_report_is_nowhere_more_private(pair: LocalPair, local_delta: float) -> None:
    """Its profile lies above the original's at every alpha, far out and below one as well."""
    worse = CheckInRound(10, 0.5, pair).simpler(local_delta).pair
    far = 60.0 if isinstance(pair, GaussianPair) else pair.local_epsilon + 1.0
    alphas = np.exp(np.linspace(-far, far, 4001))
    # profiles of the user's own are known up to the rounding of 1 - alpha + alpha h(1 / alpha)
    rounding = 0.0 if isinstance(pair, GaussianPair) else 1e-15 * (1 + alphas)
    assert np.all(pair.profile(alphas) <= worse.profile(alphas) * (1 + 1e-12) + rounding)
    if isinstance(pair, GaussianPair):
        assert worse.local_delta == local_delta
        # and no smaller epsilon would do: nothing is thrown away
        inside = math.exp(worse.local_epsilon * (1 - 1e-6))
        assert float(pair.profile(np.array([inside]))[0]) > local_delta
    else:
        assert worse.local_delta <= pair.local_delta + local_delta
        assert worse.local_epsilon <= pair.local_epsilon


@pytest.mark.parametrize(("pair", "reports"), PAIRS, ids=NAMES)
def test_the_simpler_round_is_nowhere_more_private(pair: LocalPair, reports: tuple[Floats, Floats]) -> None:
    """Above the theorem, written out from its statement, for reports that the pair stands for."""
    law = local_laws.symmetric_law([reports])
    rounds = [
        (SubsampleRound(7, 3, pair), lambda e: theorem_oracle.subsample_delta(law, 7, 3, e)),
        (SubsampleRound(5, 4, pair), lambda e: theorem_oracle.subsample_delta(law, 5, 4, e)),
        (CheckInRound(4, 0.3, pair), lambda e: theorem_oracle.check_in_delta(law, 4, 0.3, e) - 0.3**4),
        (CheckInRound(8, 0.3, pair, colluding=0.5), lambda e: theorem_oracle.check_in_delta(law, 4, 0.3, e) - 0.3**4),
        (WindowRound(4, pair, 0.5), lambda e: theorem_oracle.subsample_delta(law, 8, 4, e)),
        (WindowRound(4, pair, 0.5, elapsed=2), lambda e: theorem_oracle.subsample_delta(law, 8, 2, e)),
    ]
    for one, theorem in rounds:
        ((curve, _),) = one.simpler(1e-6).curves(1e-12)
        for epsilon in (0.0, 0.01, 0.1, 0.3, 0.7, 1.5, 3.0):
            assert theorem(epsilon) <= curve.upper_at(epsilon) + 1e-13


@pytest.mark.parametrize("local", [0.1, 1.0, 4.0])
def test_the_curve_grows_with_the_honest_part_of_a_cohort(local: float) -> None:
    """One empty seat fewer, one report of the same mean more; full cohorts included."""
    law = local_laws.three_atoms(local, *local_laws.worst_pure(local))
    honest, colluders, cohort = 6, 4, 5
    population = honest + colluders
    pair = worst_law(any_pure(local))
    one = SubsampleRound(population, cohort, pair, colluding=colluders / population)
    curve = one.simpler(0.1).curve()
    for epsilon in np.linspace(0.0, local, 9):
        curves = [theorem_oracle.subsample_delta(law, honest, k, epsilon) for k in range(honest)]
        curves.append(theorem_oracle.full_delta(law, honest, 1.0, epsilon))
        assert all(fewer <= more + 1e-15 for fewer, more in pairwise(curves))
        mixed = math.fsum(
            math.comb(honest, k) * math.comb(colluders, cohort - k) * curves[k]
            for k in range(cohort - colluders, cohort + 1)
        ) / math.comb(population, cohort)
        assert mixed <= curves[cohort] <= curve.upper_at(float(epsilon)) + 1e-12


@pytest.mark.parametrize("local", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("crowd", [1, 2, 5])
def test_one_share_for_all_is_more_clients(local: float, crowd: int) -> None:
    """E(mu + (w/m) sum of (Z* - mu))+ with w = 1/crowd, against m reports among m crowd clients."""
    law, slots = local_laws.three_atoms(local, *local_laws.worst_pure(local)), 3
    for epsilon in np.linspace(0.0, local, 9):
        mean = 1.0 - math.exp(epsilon)
        values, masses = law.z_star(epsilon)
        total, weight = np.zeros(1), np.ones(1)
        for _ in range(slots):
            total = np.add.outer(total, values - mean).ravel()
            weight = np.outer(weight, masses).ravel()
        shared = float(np.maximum(mean + total / (crowd * slots), 0.0) @ weight)
        if crowd > 1:
            seated = theorem_oracle.subsample_delta(law, crowd * slots, slots, epsilon)
        else:
            seated = theorem_oracle.full_delta(law, slots, 1.0, epsilon)
        assert shared == pytest.approx(seated, rel=1e-9, abs=1e-14)


# --- where the lattice gives up ------------------------------------------------------------------
#
# With little noise among many clients a lattice is too coarse for the tails. The rough figure is
# sound there (above), so the certified ones may not be larger by much. A client's report stands in
# a crowded window only with a small probability: no run loses more than that much of its report.


@pytest.mark.parametrize(
    ("one", "rounds", "delta"),
    [
        (WindowRound(2, gaussian(1.87), others=522_095_339), 773, 2e-10),
        (WindowRound(40, gaussian(0.3), others=10**8), 10, 1e-6),
        (WindowRound(48, gaussian(2.33), others=22_307), 604, 6e-10),
        (CheckInRound(339_417, 4.1e-5, gaussian(1.71)), 4_412, 1e-10),
        (SubsampleRound(381_751, 15, gaussian(0.455)), 1, 1e-9),
    ],
    ids=repr,
)
def test_a_quick_figure_is_not_far_above_the_rough_one(one: Round, rounds: int, delta: float):
    quick = coarse_epsilon(one, rounds, delta)
    assert lower_bound([(one, rounds)], delta).epsilon.lower <= quick
    assert quick <= 1.1 * rough_epsilon(one, rounds, delta)


def test_nor_is_the_certified_one() -> None:
    """2.55 from the lattice alone; half of it by the worst report of the same epsilon."""
    one, rounds, delta = CheckInRound(9_171_184, 3.4e-6, gaussian(0.721)), 27, 5e-5
    certified = compose([(one, rounds)]).epsilon(delta)
    assert certified.lower <= certified.upper <= rough_epsilon(one, rounds, delta) < 1.3


def test_a_report_that_hardly_ever_stands_loses_nothing() -> None:
    """One window whose slots are so crowded that delta covers the chance of being taken at all."""
    one = WindowRound(40, gaussian(0.3), others=10**8)
    assert one.standing < 5e-7
    assert compose([(one, 1)]).epsilon(1e-6).upper == 0.0
    assert coarse_epsilon(one, 1, 1e-6) == rough_epsilon(one, 1, 1e-6) == 0.0
    # of a window that is half over, half as much
    ((curve, _),) = WindowRound(40, gaussian(0.3), 1.0, 20, 10**8).curves()
    assert curve.upper_at(0.0) <= one.standing / 2


# --- numbers, or a clear refusal -----------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-15])
@pytest.mark.parametrize("rounds", [1, 100, 10**6])
@pytest.mark.parametrize(
    "one",
    [
        CheckInRound(2, 0.0, any_pure(1.0)),
        CheckInRound(2, 1e-9, any_pure(20.0)),
        CheckInRound(2, 1.0, any_pure(0.01)),
        CheckInRound(10**12, 1e-9, any_pure(50.0)),
        CheckInRound(10**9, 0.5, laplace(0.01)),
        CheckInRound(50, 0.5, gaussian(0.08)),
        CheckInRound(50, 1e-9, gaussian(0.2)),
        CheckInRound(10**9, 0.999, gaussian(1e6)),
        SubsampleRound(10, 0, gaussian(1.0)),
        SubsampleRound(10, 9, gaussian(0.3), colluding=0.5),
        WindowRound(1, gaussian(0.08)),
        WindowRound(10**6, gaussian(0.3), 1e-6, 1, 10**9),
        WindowRound(3, any_pure(50.0), 1e-9, 1, 0),
    ],
    ids=repr,
)
def test_what_comes_out_is_a_number(one: Round, rounds: int, delta: float) -> None:
    """Never NaN; infinite only for Gaussian reports whose epsilon no double could hold."""
    rough = rough_epsilon(one, rounds, delta)
    assert rough >= 0.0
    if one.pair.pure:
        assert rough <= rounds * one.pair.local_epsilon
    else:
        # all reports of one client, unshuffled, from the closed form
        distance = math.sqrt(rounds) * 2.0 / one.pair.noise_multiplier  # type: ignore[attr-defined]
        if distance <= 20.0:
            alone = float(gaussian_mechanism.epsilon(distance, 1, delta))
            assert rough <= alone * (1 + 1e-9)


def test_no_rounds_lose_nothing_and_nonsense_is_refused() -> None:
    one = CheckInRound(100, 0.1, gaussian(1.0))
    assert rough_epsilon(one, 0, 1e-6) == 0.0
    for count, delta in ((-1, 1e-6), (1, 0.0), (1, math.nan), (1, 1.5)):
        with pytest.raises(InvalidParameter):
            rough_epsilon(one, count, delta)
