"""Sums over typed seats against full enumeration, and scales of noise against 60 digits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpcheckin.accounting import any_pure, gaussian
from dpcheckin.accounting.engine.seats import Seats
from dpcheckin.accounting.engine.typed.laws import AtomLaw, Types, least_smoothing, smoothing_suffices
from dpcheckin.accounting.engine.typed.nested_laws import LatticeMasses, NestedLaw, Points, on_points
from dpcheckin.accounting.engine.typed.sums import FREE_NOISE, typed_upper
from dpcheckin.accounting.pairs.pure_types import any_pure as any_types
from dpcheckin.accounting.pairs.pure_types import symbols
from dpcheckin.errors import NumericalFailure
from oracles.seat_types import laws as oracle
from oracles.seat_types import smoothing as exact
from oracles.seat_types.seats import smoothed_part
from oracles.seat_types.theorem import Seating


def seats_of(n: int, rate: float) -> Seats:
    return Seats(n, any_pure(1.0), 0.0, float(n), rate, 1.0 - rate)


def moved(law: AtomLaw, alpha: float) -> oracle.Law:
    """The law of Z for a law of X = Z - (1 - alpha)."""
    return oracle.Law(law.values + (1.0 - alpha), law.masses)


@pytest.mark.parametrize("local", [0.2, 1.0, 3.0])
@pytest.mark.parametrize(("n", "rate"), [(2, 0.5), (4, 0.3), (5, 0.9), (6, 0.6)])
def test_two_types_against_every_count(n: int, rate: float, local: float) -> None:
    """Above the largest of all counts, and by no more than the noise that is always there."""
    known = symbols(local, 2)
    for share in (0.0, 0.1, 0.5):
        rise = math.expm1(share * local)
        alpha = 1.0 + rise
        two = [known.at_first(rise), known.at_second(rise)]
        worst = known.worst(rise)
        seating = Seating(n, [moved(x, alpha) for x in two], moved(worst, alpha), alpha)
        truth = seating.largest(rate=rate).value
        # the program counts the round without an empty seat as well
        everybody = (n - 1, 0), (0, n - 1)
        full = max(seating.taken(counts, 1) for counts in everybody) * rate**n / n
        got = typed_upper(seats_of(n, rate), Types(tuple(two), worst), rise)
        assert got >= truth * (1 - 1e-12)
        deviation = math.sqrt(n * rate * worst.variance)
        blurred = smoothed_part(FREE_NOISE * deviation)
        noisy = Seating(n, seating.types, seating.extra, alpha, blurred).largest(rate=rate).value
        assert got <= noisy * (1 + 2e-3) + 2 * full + 1e-14


def test_one_law_is_the_sum_of_its_atoms() -> None:
    n, rate, rise, scale = 5, 0.4, 0.2, 1.5
    third, worst = symbols(1.5, 3).at_third(rise), symbols(1.5, 2).worst(rise)
    alpha = 1.0 + rise
    seating = Seating(n, [moved(third, alpha)], moved(worst, alpha), alpha, smoothed_part(scale))
    truth = seating.check_in((n - 1,), rate) + rate**n / n * seating.taken((n - 1,), 1)
    got = typed_upper(seats_of(n, rate), Types((third,), worst, scale), rise)
    assert truth <= got <= truth * (1 + 3e-4)


def test_a_violation_is_paid_by_every_report() -> None:
    third, worst = symbols(2.0, 3).at_third(0.0), symbols(2.0, 2).worst(0.0)
    free = typed_upper(seats_of(1000, 0.1), Types((third,), worst, 2.5), 0.0)
    paid = typed_upper(seats_of(1000, 0.1), Types((third,), worst, 2.5, 1e-6), 0.0)
    assert paid - free == pytest.approx(0.1 * 1e-6, rel=1e-6)


def test_what_cannot_be_summed_is_refused() -> None:
    third, worst = symbols(2.0, 3).at_third(0.0), symbols(2.0, 2).worst(0.0)
    with pytest.raises(NumericalFailure, match="rare"):
        typed_upper(seats_of(10**6, 1e-14), Types((third,), worst), 0.0)


@pytest.mark.parametrize("local", [1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.01])
def test_scales_suffice_and_a_fifth_less_is_refused(local: float, epsilon: float) -> None:
    """Type C above A and B: the scales of the theory, found again with 60 digits."""
    rise = math.expm1(epsilon)
    third = symbols(local, 3).at_third(rise)
    least = exact.scale_for_c(local, epsilon)
    for law in (symbols(local, 2).at_first(rise), symbols(local, 2).at_second(rise)):
        assert smoothing_suffices(law, [(1.0, third)], 1.001 * least)
    found = any_types(local)(rise)
    assert found is not None
    assert least * (1 - 1e-5) <= found.smoothing <= 1.04 * least
    assert not all(
        smoothing_suffices(law, [(1.0, third)], 0.8 * found.smoothing)
        for law in (symbols(local, 2).at_first(rise), symbols(local, 2).at_second(rise))
    )


@pytest.mark.parametrize("local", [0.3, 0.5, 0.6])
def test_below_log_two_the_third_value_is_put_below_the_two(local: float) -> None:
    least = exact.scale_for_a_and_b(local)
    found = any_types(local)(0.0)
    assert found is not None
    assert len(found.laws) == 2
    assert least * (1 - 2e-3) <= found.smoothing <= 1.05 * least


def test_no_scale_is_none() -> None:
    """Far out in alpha no noise helps (theory: none at epsilon 1.4 for a local epsilon of 2)."""
    assert any_types(2.0)(math.expm1(1.4)) is None
    wide = AtomLaw.of((1.0, 0.5), (-1.0, 0.5))
    narrow = AtomLaw.of((0.5, 0.5), (-0.5, 0.5))
    assert least_smoothing(wide, [(1.0, narrow)], 0.1) is None
    assert least_smoothing(narrow, [(1.0, wide)], 0.1) is not None


def log_normal(noise: float, points: Points) -> NestedLaw:
    """W - 1 of Gaussian reports."""
    pair = gaussian(noise)

    def below(x: np.ndarray) -> np.ndarray:
        ratio = np.maximum(1.0 + x, 1e-300)
        return np.where(x > -1.0, ratio * pair.profile(1.0 / ratio), 0.0)

    return on_points(lambda x: pair.profile(1.0 + x), below, 0.0, points)


def plain(law: NestedLaw) -> tuple[np.ndarray, np.ndarray]:
    """Its points and masses."""
    return (
        np.concatenate([piece.values for piece in law.pieces]),
        np.concatenate([piece.masses for piece in law.pieces]),
    )


def test_a_law_on_points_has_the_potentials_it_was_given() -> None:
    """Larger in convex order than the log-normal, and hardly, through three changes of the step."""
    pair, points = gaussian(2.0), Points(0.05, 1.25, 200.0)
    law = log_normal(2.0, points)
    values, masses = plain(law)
    assert len(law.pieces) == 4 and np.all(np.diff(values) > 0.0)
    assert float(masses.sum()) == pytest.approx(1.0, abs=1e-9)
    places = np.array([0.31, 1.07, 5.5, 25.63, 31.0, 77.7])
    ours = np.maximum(values[None, :] - places[:, None], 0.0) @ masses
    true = pair.profile(1.0 + places)
    cut = float(pair.profile(1.0 + values[-1:])[0])  # what is paid for
    assert 0.0 < cut < 1e-6
    assert np.all(ours >= true - cut - 1e-12)
    assert np.all(ours <= true + 0.05**2 / 8)
    period, theta = 600.0, 0.01
    found, error = law.transform(theta, period, 40)
    z = theta + 2j * math.pi / period * np.arange(41)
    direct = np.exp(np.outer(z, values)) @ masses - 1.0
    assert np.all(np.abs(found - direct) <= error + 1e-12)


@pytest.mark.parametrize(("noise", "rate", "theta"), [(1.0, 0.02, 0.01), (2.0, 1.0, 0.05)])
def test_transforms_fall_at_least_as_stated(noise: float, rate: float, theta: float) -> None:
    """At 20,000 frequencies up to the mirror."""
    law = log_normal(noise, Points(0.1, 1.3, 60.0))
    values, masses = plain(law)
    start, turn = 0.05, 2 * math.pi / law.finest
    frequencies = np.linspace(start, turn - start, 20_000)
    parts = [np.exp(np.outer(theta + 1j * few, values)) @ masses for few in np.array_split(frequencies, 20)]
    seat = 1.0 + rate * (np.concatenate(parts) - 1.0)
    whole = 1.0 + rate * (np.exp(theta * values) @ masses - 1.0)
    falls = np.log(whole / np.abs(seat))
    stated = law.decay(theta, rate, start)
    assert 0.0 < stated <= float(falls.min())


def test_sums_with_long_tails_against_all_convolutions() -> None:
    """Little noise, thresholds that one report reaches and that take many; a plain FFT is above."""
    step, n, rate = 0.4, 40, 0.5
    law = log_normal(1.0, Points(step, 1.6, 2000.0))
    values, masses = plain(law)
    places = np.rint(values / step).astype(np.int64)
    size, lowest = 1 << 19, int(-places.min())
    seat = np.zeros(size)
    seat[places + lowest] = rate * masses
    seat[lowest] += 1.0 - rate
    sums = np.fft.irfft(np.fft.rfft(seat) ** n, size)
    reached = (np.arange(size) - n * lowest) * step
    for rise in (0.5, 2.0, 7.5, 20.0):
        exact = float(np.maximum(reached - n * rise, 0.0) @ sums) / n
        got = typed_upper(seats_of(n, rate), Types((law,), law), rise)
        assert exact * (1 - 1e-9) <= got <= 1.03 * exact


@pytest.mark.parametrize(("first", "points", "last"), [(-7, 40, 25), (0, 1, 3), (5, 64, 90)])
def test_few_frequencies_of_a_long_period_are_those_of_the_plain_sum(first: int, points: int, last: int) -> None:
    """The chirp transform against the sum itself, within the error that it states."""
    chance = np.random.default_rng(points)
    law = LatticeMasses(0.25, first, chance.dirichlet(np.ones(points)))
    size, theta = 100_003, 0.3
    found, error = law.transform(theta, size * law.step, last)
    weights = law.masses * np.exp(theta * law.values)
    places = first + np.arange(points)
    angles = 2j * math.pi / size * np.outer(np.arange(last + 1), places)
    wanted = np.exp(angles) @ weights
    assert size > 4 * (points + last)  # or the other way is taken
    assert np.all(np.abs(found - wanted) <= error) and error < 1e-10
