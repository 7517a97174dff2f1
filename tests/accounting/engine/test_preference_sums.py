"""Sums of reports that lean either way: never above the view itself, and hardly below."""

import math
from itertools import product

import pytest

from dpcheckin.accounting import any_pure
from dpcheckin.accounting.engine.lower import preference_sums
from dpcheckin.accounting.engine.lower.preference_sums import PreferenceLaw, preference_atoms
from dpcheckin.accounting.engine.seats import Seats


def check_in(n: int, rate: float) -> Seats:
    return Seats(n, any_pure(1.0), 0.0, float(n), rate, 1 - rate)


def cohort(k: int, n: int) -> Seats:
    return Seats(k, any_pure(1.0), float(n - k), float(n))


def view(seats: Seats, law: PreferenceLaw, epsilon: float) -> float:
    """E[(sum of W^a - alpha W^b)+] / population over every outcome of every seat.

    Reports that do not lean weigh alike: a part of them e0, the rest what the mean asks for.
    """
    e0, alpha, rate = math.exp(law.local_epsilon), math.exp(epsilon), seats.participation
    blank = 1 - 2 * law.strong - 2 * law.weak
    outcomes = [
        (rate * law.strong, e0, 1.0),
        (rate * law.strong, 1.0, e0),
        (rate * law.weak, 1.0, 1 / e0),
        (rate * law.weak, 1 / e0, 1.0),
        (rate * blank, law.blank / blank, law.blank / blank),
        (seats.absent, 1.0, 1.0),
    ]
    total = 0.0
    for seen in product(outcomes, repeat=seats.count):
        chance = math.prod(o[0] for o in seen)
        first, second = (seats.empty + sum(o[i] for o in seen) for i in (1, 2))
        total += chance * max(first - alpha * second, 0.0)
    return total / seats.population


LAWS = [PreferenceLaw(1.0, 0.17, 0.12), PreferenceLaw(2.0, 0.08, 0.02), PreferenceLaw(0.3, 0.2, 0.2)]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("seats", [check_in(5, 0.6), check_in(4, 1.0), cohort(3, 5), cohort(1, 4)])
def test_a_statistic_never_tells_more_than_the_view(law: PreferenceLaw, seats: Seats) -> None:
    atoms = preference_atoms(seats, law)
    for share in (0.0, 0.1, 0.3, 0.6, 0.9):
        epsilon = share * law.local_epsilon
        exact, found = view(seats, law, epsilon), atoms.excess(epsilon)
        assert found <= exact * (1 + 1e-12)
        if share <= 0.1:
            assert found >= 0.8 * exact


def test_a_single_report_loses_nothing() -> None:
    """No crowd: the statistic says which of the outcomes it was."""
    law, seats = LAWS[0], check_in(1, 1.0)
    atoms = preference_atoms(seats, law)
    for epsilon in (0.0, 0.4, 0.9):
        assert atoms.excess(epsilon) == pytest.approx(view(seats, law, epsilon), rel=1e-9)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("n", "rate"), [(2000, 0.5), (10**5, 0.3), (10**7, 0.01), (10**9, 0.5)])
def test_the_variance_is_kept(law: PreferenceLaw, n: int, rate: float) -> None:
    """Among many reports the loss has variance 2 rate (e0-1)^2 (strong + weak/e0^2) / n."""
    e0 = math.exp(law.local_epsilon)
    variance = 2 * rate * (e0 - 1) ** 2 * (law.strong + law.weak / e0**2) / n
    assert preference_atoms(check_in(n, rate), law).spread == pytest.approx(math.sqrt(variance), rel=2e-3)


def test_counting_strong_reports_only_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merging all counts into one row is a coarser statistic; cells of counts are as well."""
    law, seats = LAWS[1], check_in(4000, 0.9)
    counted = preference_atoms(seats, law)
    monkeypatch.setattr(preference_sums, "MOST_COUNTED", 10)
    merged = preference_atoms(seats, law)
    for epsilon in (0.0, 0.02, 0.1, 0.15):
        assert merged.excess(epsilon) <= counted.excess(epsilon) * (1 + 1e-7)
    assert merged.excess(0.02) >= 0.99 * counted.excess(0.02)
    assert merged.excess(0.15) < 0.99 * counted.excess(0.15)


def test_integers_that_fit_and_those_that_need_not() -> None:
    assert PreferenceLaw(5.0, 0.005, 1e-6).integers() == (1, 0)
    high, low = PreferenceLaw(1.0, 0.17, 0.12).integers()
    assert high / low == pytest.approx(math.e, rel=0.05)


def test_nothing_leans_nothing_is_told() -> None:
    assert preference_atoms(check_in(100, 0.5), PreferenceLaw(1.0, 0.0, 0.1)).p.size == 0
