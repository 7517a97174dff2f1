"""The analyzer's ledger never lets a round pass the budget."""

from pathlib import Path
from typing import Any

import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.analyzer.ledger import BudgetSpent, ChargeReason, Ledger
from dpcheckin.service.pricing import Price
from dpcheckin.service.storage.journal import Journal, JournalDamaged
from dpcheckin.service.wire.canonical import canonical
from service.plans import plan


def test_the_last_round_within_the_budget_is_charged_and_the_next_is_not(tmp_path: Path, price: Price) -> None:
    with Ledger(tmp_path / "l", price) as ledger:
        for number in range(price.allowed_rounds):
            assert ledger.rounds_left == price.allowed_rounds - number
            ledger.check_next()
            ledger.charge(number, ChargeReason.RELEASE)
            assert ledger.spent.epsilon <= 4.0
        with pytest.raises(BudgetSpent, match=r"more than the budget of 4"):
            ledger.check_next()
        with pytest.raises(BudgetSpent):
            ledger.charge(99, ChargeReason.VOID)
        assert price.plan.epsilon(1e-5, ledger.charged + 1).upper > 4.0
    with Ledger(tmp_path / "l", price) as ledger, pytest.raises(BudgetSpent):
        ledger.charge(99, ChargeReason.RELEASE)


def test_a_round_is_charged_once_however_often_it_is_asked_for(tmp_path: Path, price: Price) -> None:
    with Ledger(tmp_path / "l", price) as ledger:
        first = ledger.charge(5, ChargeReason.RELEASE)
        assert ledger.charge(5, ChargeReason.VOID) == first
    with Ledger(tmp_path / "l", price) as ledger:
        assert ledger.charge(5, ChargeReason.RELEASE).digest == first.digest
        assert ledger.charged == 1
        assert ledger.charge_of(5) == ledger.charge(5, ChargeReason.RELEASE)
        assert ledger.charge_of(6) is None
        assert [body["why"] for body in ledger.history()] == ["release"]


def test_all_rounds_of_a_plan_within_budget_can_be_charged_and_no_more(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l", Price(plan(rounds=2, epsilon_budget=50.0))) as ledger:
        ledger.charge(0, ChargeReason.RELEASE)
        ledger.charge(7, ChargeReason.VOID)
        with pytest.raises(BudgetSpent, match="all 2 rounds"):
            ledger.check_next()


def test_a_ledger_of_another_plan_is_refused(tmp_path: Path, price: Price) -> None:
    Ledger(tmp_path / "l", price).close()
    with pytest.raises(InvalidParameter, match="the ledger of this plan"):
        Ledger(tmp_path / "l", Price(plan(epsilon_budget=5.0)))
    Ledger(tmp_path / "l", price).close()  # and the lock was given back


@pytest.mark.parametrize("body", [{"kind": "charge", "round": "1"}, {"kind": "gift", "round": 1}], ids=str)
def test_an_entry_that_is_no_charge_is_noticed(tmp_path: Path, price: Price, body: dict[str, Any]) -> None:
    Ledger(tmp_path / "l", price).close()
    with Journal(tmp_path / "l") as journal:
        journal.append(body)
    with pytest.raises(JournalDamaged, match="no charge"):
        Ledger(tmp_path / "l", price)


def test_a_round_charged_twice_is_noticed(tmp_path: Path, price: Price) -> None:
    with Ledger(tmp_path / "l", price) as ledger:
        body = ledger.charge(1, ChargeReason.RELEASE).body
    with Journal(tmp_path / "l") as journal:
        journal.append(body)
    with pytest.raises(JournalDamaged, match="charged twice"):
        Ledger(tmp_path / "l", price)


def test_entries_tell_what_the_accounting_says(tmp_path: Path, price: Price) -> None:
    with Ledger(tmp_path / "l", price) as ledger:
        for number in range(3):
            ledger.charge(number, ChargeReason.RELEASE)
        said = ledger.history()[-1]
    statement = price.plan.guarantee(1e-5, 3)
    assert statement.local is not None
    assert said["epsilon"] == statement.epsilon.upper
    assert said["local_epsilon"] == statement.local.epsilon
    canonical(said)
