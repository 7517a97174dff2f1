"""A client's ledger remembers coins, slots and totals over all plans."""

from pathlib import Path

import pytest

from dpcheckin.service.client.ledger import ClientLedger
from dpcheckin.service.pricing import Price


def test_a_client_remembers_coins_slots_and_totals(tmp_path: Path, price: Price) -> None:
    ledger = ClientLedger(tmp_path / "c")
    assert ledger.reported("p", 0) is None
    expected = ledger.totals_after("p", price)
    ledger.take_part("p", 0, price, report=True)
    assert ledger.totals() == expected
    ledger.take_part("p", 1, price, report=False)
    ledger.choose_slot("w", 3)
    ledger.choose_slot("v", None)
    before = ledger.totals()
    ledger.close()
    again = ClientLedger(tmp_path / "c")
    assert again.reported("p", 0) is True
    assert again.reported("p", 1) is False
    assert again.totals() == before
    assert again.reports_of("p") == 1
    assert (again.slot_of("w"), again.has_slot("w")) == (3, True)
    assert (again.slot_of("v"), again.has_slot("v")) == (None, True)
    assert not again.has_slot("p")
    assert before.local_epsilon == price.rounds_epsilon(2)  # however the coins fell
    assert before.epsilon == price.spent(2).epsilon
    again.close()


def test_another_plan_starts_no_new_budget(tmp_path: Path, price: Price) -> None:
    ledger = ClientLedger(tmp_path / "c")
    ledger.take_part("p", 0, price, report=True)
    one = ledger.totals()
    ledger.take_part("q", 0, price, report=True)
    two = ledger.totals()
    assert two.epsilon == pytest.approx(2 * one.epsilon)
    assert two.local_epsilon == pytest.approx(2 * one.local_epsilon)
    assert two.delta == pytest.approx(2 * one.delta)
    ledger.close()
