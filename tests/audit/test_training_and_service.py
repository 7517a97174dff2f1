"""Attacks on training runs, on one run, and on the deployed parties."""

import math

import numpy as np
import pytest
from scipy import stats

from dpcheckin.audit import Budget, examine
from dpcheckin.audit.mutants import NO_PERMUTATION
from dpcheckin.protocols import DistributedCheckIn
from dpcheckin.randomizers import Gaussian, SummedReports

torch = pytest.importorskip("torch", reason="needs torch")

from dpcheckin.audit.training import audit_one_run, one_run_epsilon, p_value  # noqa: E402

PLAN = DistributedCheckIn(population=8, rate=0.5, rounds=2, randomizer=Gaussian(1.0))


class Unclipped(Gaussian):
    """Sums gradients as they come."""

    def summed(self, norms, dimension, source):
        return SummedReports(np.ones_like(norms), self.deviation * math.sqrt(norms.size))


def test_models_give_the_sum_of_reports_back() -> None:
    """Hardly any noise: the sums are the clipped gradients of those who checked in."""
    from dpcheckin.audit.training import Canaries

    plan = DistributedCheckIn(6, 0.5, 3, Gaussian(0.2))
    gradients = np.zeros((6, 2))
    gradients[:, 0], gradients[:, 1] = 3.0, 4.0  # norm 5, clipped to 1
    sums, counts = Canaries(plan, gradients).train(5)
    assert counts.tolist() == [len(plan.cohort(5, t).clients) for t in range(3)]
    expected = counts[:, None] * np.array([0.6, 0.8])
    assert np.abs(sums - expected).max() < 6 * 0.2 * math.sqrt(6)


def test_a_canary_in_the_gradient_shows_a_loss_below_the_certified_one() -> None:
    from dpcheckin.audit.training import check_training

    found = examine(check_training(PLAN, 0.05), Budget(pairs=160), seed=2)
    assert 0.0 < found.lower <= found.claimed


def test_skipped_clipping_is_seen_in_a_training_run() -> None:
    from dataclasses import replace

    from dpcheckin.audit.training import TrainingRuns, check_training

    careless = DistributedCheckIn(8, 0.5, 2, Unclipped(1.0))
    honest = check_training(PLAN, 0.05)
    broken = replace(honest, system=TrainingRuns(careless, length=20.0))
    assert examine(broken, Budget(pairs=160), seed=2, stop_when_refuted=True).refuted
    large = replace(honest, system=TrainingRuns(PLAN, length=20.0))
    assert not examine(large, Budget(pairs=80), seed=2).refuted


# --- one run ------------------------------------------------------------------------------------


def test_without_delta_the_one_run_bound_is_a_binomial_tail() -> None:
    assert p_value(100, 20, 17, 1.0, 0.0) == pytest.approx(stats.binom.sf(16, 20, math.e / (1 + math.e)))


def test_the_one_run_bound_holds_for_randomized_response() -> None:
    """Every bit under response of epsilon 1, all guessed: at most 5% of runs may say more."""
    generator = np.random.default_rng(3)
    truth, m = math.e / (1 + math.e), 200
    right = generator.binomial(m, truth, size=2000)
    bounds = {int(v): one_run_epsilon(m, m, int(v), 0.0, 0.95) for v in set(right)}
    wrong = np.mean([bounds[int(v)] > 1.0 for v in right])
    assert wrong <= 0.06
    assert np.median([bounds[int(v)] for v in right]) > 0.6


def test_delta_weakens_the_bound() -> None:
    bounds = [one_run_epsilon(500, 60, 58, delta, 0.99) for delta in (0.0, 1e-5, 1e-3)]
    assert bounds[0] > bounds[1] > bounds[2] >= 0.0


def test_one_training_run_shows_something_and_not_too_much() -> None:
    plan = DistributedCheckIn(200, 0.3, 10, Gaussian(0.1))
    found = audit_one_run(plan, 1e-5, guesses=40, seed=1)
    assert 0.5 < found.lower <= found.claimed
    assert not found.refuted
    broken = audit_one_run(plan, 1e-5, guesses=40, seed=1, claimed=0.4)
    assert broken.refuted


# --- the deployed parties -----------------------------------------------------------------------


def test_the_services_release_what_the_plan_says() -> None:
    pytest.importorskip("cryptography", reason="needs the service extra")
    from dpcheckin.audit.service import check_service, default_service

    system = default_service()
    check = check_service(system)
    found = examine(check, Budget(pairs=30), seed=1)
    assert not found.refuted
    assert found.played == "deployed agents and shuffler, the target's report arriving first"
    (batches,) = check.system.play(check.data, 0, (1,), 30)
    expected = system.population * system.rate
    spread = math.sqrt(expected * (1 - system.rate) / 30)
    assert abs(batches.sizes.mean() - expected) < 5 * spread
    assert set(np.unique(batches.reports)) <= {0, 1, 2}


@pytest.mark.parametrize(("arrival", "places"), [("first", {0}), ("last", {-1}), ("anywhere", None)])
def test_without_a_permutation_a_report_stands_where_it_arrived(arrival, places) -> None:
    """Hardly any noise, the target alone holds 0; the shuffler's own permutation moves it."""
    pytest.importorskip("cryptography", reason="needs the service extra")
    from dpcheckin.audit.service import Deployed
    from dpcheckin.audit.systems import Neighbours

    system = Deployed(6, 0.9, 1, 30.0, 3, 0.1, arrival)
    data = Neighbours(others=2, first=0, second=1)

    def seen() -> set[int]:
        (batches,) = system.play(data, 0, (1,), 25)
        runs = np.split(batches.reports, np.cumsum(batches.sizes)[:-1])
        found = [(int(np.flatnonzero(run == 0)[0]), len(run)) for run in runs if 0 in run]
        return {place - size if arrival == "last" else place for place, size in found}

    with NO_PERMUTATION.applied():
        still = seen()
    assert len(still) > 1 if places is None else still == places
    assert len(seen()) > 1


def test_moments_of_arrival_that_are_none_are_refused() -> None:
    pytest.importorskip("cryptography", reason="needs the service extra")
    from dpcheckin.audit.service import Deployed
    from dpcheckin.errors import InvalidParameter

    with pytest.raises(InvalidParameter, match="arrival"):
        Deployed(6, 0.9, 1, 3.0, 3, 0.1, "later")


@pytest.mark.slow
@pytest.mark.parametrize(("arrival", "seen_in"), [("first", "first"), ("last", "last")])
def test_a_deployed_shuffler_that_keeps_the_order_is_caught(arrival: str, seen_in: str) -> None:
    """By the default audit of the services, whenever the target's report arrives."""
    pytest.importorskip("cryptography", reason="needs the service extra")
    from dataclasses import replace

    from dpcheckin.audit.service import check_service, default_service

    check = check_service(replace(default_service(), arrival=arrival))
    with NO_PERMUTATION.applied():
        found = examine(check, Budget(pairs=1500), seed=1, stop_when_refuted=True)
    assert found.refuted
    assert found.event.statistic == f"{seen_in} report"
