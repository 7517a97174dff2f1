"""The package with one thing wrong is caught, the package as it is is not flagged."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dpcheckin.audit import Budget, examine
from dpcheckin.audit.examination import Check
from dpcheckin.audit.mutants import NO_PERMUTATION, SAME_CLIENTS, Fault, Mutant, all_mutants
from dpcheckin.audit.requests import Request
from dpcheckin.audit.tables import Row, measure, mutants_markdown
from dpcheckin.protocols import ShuffledCheckIn

NAMES = [
    "noise 10% too small",
    "rate 2γ",
    "clipping skipped",
    "same clients every round",
    "shuffler that does not permute",
    "deployed shuffler that does not permute",
    "data-dependent failure",
    "non-independent noise seeds (rounds)",
    "non-independent noise seeds (clients)",
    "report sent twice",
    "ledger that counts half the rounds",
    "replace-one sensitivity taken as 1",
    "reports not snapped to a grid",
]


@pytest.fixture(scope="module")
def everyone() -> dict[str, Mutant]:
    return {mutant.name: mutant for mutant in all_mutants()}


def test_every_known_mutant_is_here(everyone: dict[str, Mutant]) -> None:
    assert list(everyone) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_mutant_is_caught_within_its_budget(everyone: dict[str, Mutant], name: str) -> None:
    mutant = everyone[name]
    found = mutant.audit(7)
    assert found.refuted
    assert found.lower > mutant.broken.epsilon
    assert found.pairs + found.pilot_pairs <= mutant.pairs + mutant.broken.system.block


@pytest.mark.parametrize("name", NAMES)
def test_its_honest_twin_is_not_flagged(everyone: dict[str, Mutant], name: str) -> None:
    """Same check, same statistics; a third of the budget, the rest is in the slow test."""
    mutant = everyone[name]
    found = mutant.audit_honest(8, mutant.pairs // 3)
    assert not found.refuted
    assert 0.0 <= found.lower <= mutant.honest.epsilon


def test_mutant_and_twin_differ_in_one_thing(everyone: dict[str, Mutant]) -> None:
    for mutant in everyone.values():
        differing = [
            field
            for field in Check.__dataclass_fields__
            if repr(getattr(mutant.broken, field)) != repr(getattr(mutant.honest, field))
        ]
        assert differing in ([], ["epsilon"]), mutant.name


def test_faults_are_put_into_the_shipped_code_and_taken_out_again(everyone: dict[str, Mutant]) -> None:
    for mutant in everyone.values():
        fault = mutant.fault
        home = getattr(fault.owner, "__module__", fault.owner.__name__)
        assert home.startswith("dpcheckin.")
        assert not home.startswith("dpcheckin.audit")
        shipped = vars(fault.owner)[fault.attribute]
        with pytest.raises(RuntimeError, match="stopped"), fault.applied():
            assert vars(fault.owner)[fault.attribute] is not shipped
            raise RuntimeError("stopped")
        assert vars(fault.owner)[fault.attribute] is shipped


def _always(shipped, plan, seed, round_index):
    return shipped(plan, 7, 0)


@pytest.mark.parametrize(
    ("fault", "seen_in"),
    [(SAME_CLIENTS, ""), (Fault(ShuffledCheckIn, "cohort", _always), ""), (NO_PERMUTATION, "first report")],
    ids=["same clients every round", "same clients in every run", "order of arrival"],
)
def test_the_command_without_arguments_catches_what_is_wrong_with_cohorts_and_order(fault: Fault, seen_in: str) -> None:
    """On a smaller fleet, for time; not with fast coins, which are none of the shipped code."""
    small = Request(population=100, local_epsilon=3.0)
    check, fast = small.check(), replace(small, fast_coins=True).check()
    with fault.applied():
        found = examine(check, Budget(pairs=8_000), seed=1, stop_when_refuted=True)
        blind = examine(fast, Budget(pairs=1_000), seed=1, stop_when_refuted=True)
    assert found.refuted
    assert seen_in in found.event.statistic
    assert found.played == "the plan's own cohorts, in the shuffler's own order"
    assert not blind.refuted
    assert "fast coins" in blind.played


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_detection_is_99_per_cent_and_false_alarms_at_most_one(everyone: dict[str, Mutant], name: str) -> None:
    """300 of 300: at least 99% with 95% confidence. None of the honest audits beside is flagged."""
    (row,) = measure(300, chosen=[everyone[name]])
    assert row.caught == row.repetitions == 300
    assert row.detection >= 0.99
    assert row.flagged == 0


def test_results_are_kept_and_taken_up(everyone: dict[str, Mutant], tmp_path) -> None:
    quick = [everyone["clipping skipped"]]
    path = tmp_path / "mutants.json"
    measure(2, path, chosen=quick)
    (row,) = measure(3, path, chosen=quick)
    assert (row.repetitions, row.caught, row.honest_repetitions) == (3, 3, 1)
    assert "| clipping skipped |" in mutants_markdown([row])


def test_the_shown_detection_probability_is_clopper_pearsons() -> None:
    row = Row("x", "y", 0.1, 1.0, 1.0, 100, repetitions=299, caught=299)
    assert row.detection == pytest.approx(0.05 ** (1 / 299))
    assert row.detection >= 0.99
    quiet = replace(row, honest_repetitions=300, flagged=0)
    assert quiet.false_alarms == pytest.approx(1 - 0.05 ** (1 / 300))
    assert replace(row, honest_repetitions=5, flagged=5).false_alarms == 1.0
    assert "| 299 of 299 | ≥ 99.0% |" in mutants_markdown([quiet])
    assert "0 of 300 audits flagged, false alarms ≤ 1.00%" in mutants_markdown([quiet])


def test_false_alarms_of_the_whole_procedure_on_a_claim_that_is_exactly_true() -> None:
    """The pilot chooses, the bet goes on: a Gaussian report's exact epsilon, 60 audits at 95%."""
    from dpcheckin.audit import check_report
    from dpcheckin.randomizers import Gaussian

    check = check_report(Gaussian(2.0), 0.1, confidence=0.95)
    flagged = [examine(check, Budget(pairs=2000), seed=s, stop_when_refuted=True).refuted for s in range(60)]
    # 5% of 60 is 3; 9 would be exceeded by chance once in a thousand
    assert np.sum(flagged) <= 9
    assert math.isfinite(check.epsilon)
