"""Several plans of a fleet never pass their common budget, crash or not."""

import json
from pathlib import Path

import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.analyzer.ledger import BudgetSpent, ChargeReason, FleetBudget, Ledger, TotalLedger
from dpcheckin.service.pricing import Price
from dpcheckin.service.storage.files import InUse
from dpcheckin.service.storage.journal import Journal, JournalDamaged
from service.plans import plan


@pytest.fixture(scope="module")
def prices() -> tuple[Price, Price]:
    one = plan(rounds=6, epsilon_budget=20.0)
    return Price(one), Price(plan(rounds=6, epsilon_budget=20.0, nonce="11" * 16))


def test_a_second_plan_is_paid_from_what_the_first_has_left(tmp_path: Path, prices: tuple[Price, Price]) -> None:
    one, two = prices
    limit = one.spent(3).epsilon + two.spent(2).epsilon + 1e-6
    budget = FleetBudget(tmp_path / "all", limit, 2.5e-5)
    with Ledger(tmp_path / "one", one, TotalLedger(budget)) as ledger:
        for number in range(3):
            ledger.charge(number, ChargeReason.RELEASE)
        with pytest.raises(InUse):
            TotalLedger(budget)
    with Ledger(tmp_path / "two", two, TotalLedger(budget)) as ledger:
        for number in range(2):
            ledger.check_next()
            ledger.charge(number, ChargeReason.RELEASE)
        with pytest.raises(BudgetSpent, match="over all plans, more than the total budget"):
            ledger.check_next()
        with pytest.raises(BudgetSpent):
            ledger.charge(9, ChargeReason.VOID)
        total = ledger.total
        assert total is not None and total.plans == 2
        assert total.spent.epsilon == one.spent(3).epsilon + two.spent(2).epsilon <= limit
        assert total.spent.delta == 2e-5
        assert total.spent.local_epsilon == one.spent(3).local_epsilon + two.spent(2).local_epsilon
    assert TotalLedger(budget).spent == total.spent  # read again from the disk


def test_deltas_add_up_too(tmp_path: Path, prices: tuple[Price, Price]) -> None:
    one, two = prices
    budget = FleetBudget(tmp_path / "all", 100.0, 1.5e-5)
    with Ledger(tmp_path / "one", one, TotalLedger(budget)) as ledger:
        ledger.charge(0, ChargeReason.RELEASE)
    with (
        Ledger(tmp_path / "two", two, TotalLedger(budget)) as ledger,
        pytest.raises(BudgetSpent, match="delta = 2e-05"),
    ):
        ledger.check_next()


def test_a_crash_between_the_two_ledgers_charges_once(tmp_path: Path, prices: tuple[Price, Price]) -> None:
    price, budget = prices[0], FleetBudget(tmp_path / "all", 100.0, 1e-4)
    total = TotalLedger(budget)
    total.charge(price.document.id.hex(), 0, price.spent(1))  # and then kill -9
    total.close()
    with Ledger(tmp_path / "one", price, TotalLedger(budget)) as ledger:
        ledger.charge(0, ChargeReason.RELEASE)
        ledger.charge(1, ChargeReason.RELEASE)
        assert ledger.total is not None
        assert ledger.total.spent.epsilon == price.spent(2).epsilon
    with Journal(tmp_path / "all") as journal:
        assert [entry.body.get("round") for entry in journal] == [None, 0, 1]


def test_another_budget_in_the_same_file_is_refused_and_the_file_given_back(
    tmp_path: Path, prices: tuple[Price, Price]
) -> None:
    TotalLedger(FleetBudget(tmp_path / "all", 3.0, 1e-4)).close()
    with pytest.raises(InvalidParameter, match=r"a ledger of epsilon 3.0 and delta 0.0001"):
        TotalLedger(FleetBudget(tmp_path / "all", 4.0, 1e-4))
    TotalLedger(FleetBudget(tmp_path / "all", 3.0, 1e-4)).close()
    # a plan's ledger that does not open gives the common one back as well
    (tmp_path / "broken").write_text(json.dumps({"no": "entry"}) + "\n")
    with pytest.raises(JournalDamaged):
        Ledger(tmp_path / "broken", prices[0], TotalLedger(FleetBudget(tmp_path / "all", 3.0, 1e-4)))
    with pytest.raises(InvalidParameter):
        Ledger(tmp_path / "all", prices[0], TotalLedger(FleetBudget(tmp_path / "other", 3.0, 1e-4)))
    TotalLedger(FleetBudget(tmp_path / "all", 3.0, 1e-4)).close()
    TotalLedger(FleetBudget(tmp_path / "other", 3.0, 1e-4)).close()


def test_an_entry_that_is_no_charge_is_damage(tmp_path: Path) -> None:
    budget = FleetBudget(tmp_path / "all", 3.0, 1e-4)
    TotalLedger(budget).close()
    with Journal(tmp_path / "all") as journal:
        journal.append({"kind": "charge", "plan": "00"})
    with pytest.raises(JournalDamaged, match="no charge"):
        TotalLedger(budget)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (float("nan"), 0.1), (1.0, 1.0)])
def test_a_budget_is_a_pair_of_sensible_numbers(tmp_path: Path, epsilon: float, delta: float) -> None:
    with pytest.raises(InvalidParameter, match="budget"):
        FleetBudget(tmp_path / "all", epsilon, delta)
