"""The analyzer's privacy ledger: what every round cost, written down before the round is released.

One ledger belongs to one plan. `charge` makes the entry durable and returns it; only its digest
lets the analyzer claim a batch. A round is charged at most once, and a round that would pass the
budget cannot be charged at all. The file survives kill -9 (`dpcheckin.service.journal`): a crash
may leave a round charged that was never released, never the other way round. Figures come from
the certified accounting of the plan (`dpcheckin.service.pricing`), and only guarantees are
charged.
"""

from __future__ import annotations

import math
from enum import Enum
from pathlib import Path
from typing import Any

from dpcheckin.accounting.figures import rounded_up
from dpcheckin.errors import InvalidParameter
from dpcheckin.service.analyzer.total import BudgetSpent, TotalLedger
from dpcheckin.service.journal import Entry, Journal, JournalDamaged
from dpcheckin.service.pricing import Price, Spent


class ChargeReason(Enum):
    """What a charge pays for."""

    RELEASE = "release"  # the batch is about to be claimed
    VOID = "void"  # too few reports: nothing is released, but their number was seen


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def check_round(price: Price, charged: int, total: TotalLedger | None = None) -> None:
    """Raise `BudgetSpent` when a plan cannot pay for one more round.

    Args:
        price: of the plan.
        charged: rounds that it has paid for.
        total: of all plans of the fleet; None: the plan has its own budget only.
    """
    document = price.document
    if charged >= document.rounds:
        raise BudgetSpent(f"all {document.rounds} rounds of the plan have been charged")
    after = price.spent(charged + 1)
    if charged >= price.allowed_rounds or after.epsilon > document.epsilon_budget:
        raise BudgetSpent(
            f"{'one more' if charged else 'the first'} round would make epsilon = "
            f"{rounded_up(after.epsilon)}, more than the budget of {document.epsilon_budget:g} "
            f"(epsilon_budget) at delta = {document.delta:g}"
        )
    if total is not None:
        total.check(document.id.hex(), after)


class Ledger:
    """The open ledger of a plan; one process at a time.

    Args:
        path: its journal, made when it is not there.
        price: of the plan that the ledger belongs to.
        total: of all plans of the fleet; None: this plan has its own budget only. It is closed
            with this ledger.
    """

    def __init__(self, path: Path, price: Price, total: TotalLedger | None = None) -> None:
        self.price, self.total = price, total
        try:
            self._journal = Journal(path)
        except BaseException:
            self._close_total()
            raise
        try:
            self._charges = self._read()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let another process open it."""
        self._journal.close()
        self._close_total()

    def _close_total(self) -> None:
        if self.total is not None:
            self.total.close()

    @property
    def charged(self) -> int:
        """Rounds charged so far."""
        return len(self._charges)

    @property
    def spent(self) -> Spent:
        """Both figures for the rounds charged so far."""
        return self.price.spent(self.charged)

    @property
    def rounds_left(self) -> int:
        """Rounds that can still be charged."""
        return max(0, self.price.allowed_rounds - self.charged)

    def charge_of(self, round_number: int) -> Entry | None:
        """The entry of a round, None if it was not charged."""
        return self._charges.get(round_number)

    def check_next(self) -> None:
        """Raise `BudgetSpent` when one more round would pass the budget: then none is opened."""
        check_round(self.price, self.charged, self.total)

    def charge(self, round_number: int, reason: ChargeReason) -> Entry:
        """Charge a round durably, before anything of it is released; again: the same entry.

        Args:
            round_number: counted from 0.
            reason: what is paid for; written into the entry.
        """
        found = self._charges.get(round_number)
        if found is not None:
            return found
        self.check_next()
        after = self._next()
        if self.total is not None:  # first: a crash in between wastes budget, never overspends it
            self.total.charge(self.price.document.id.hex(), round_number, after)
        entry = self._journal.append(
            {
                "kind": "charge",
                "round": round_number,
                "why": reason.value,
                "charged": self.charged + 1,
                "epsilon": after.epsilon,
                "local_epsilon": _finite(after.local_epsilon),
                "delta": after.delta,
            }
        )
        self._charges[round_number] = entry
        return entry

    def history(self) -> list[dict[str, Any]]:
        """The charges in the order they were made."""
        return [entry.body for entry in self._charges.values()]

    def _next(self) -> Spent:
        return self.price.spent(self.charged + 1)

    def _read(self) -> dict[int, Entry]:
        opened = {
            "kind": "opened",
            "plan": self.price.document.id.hex(),
            "epsilon_budget": self.price.document.epsilon_budget,
            "delta": self.price.delta,
        }
        if not len(self._journal):
            self._journal.append(opened)
        first, *rest = self._journal
        if first.body != opened:
            raise InvalidParameter("ledger", str(self._journal.path), "the ledger of this plan")
        charges: dict[int, Entry] = {}
        for entry in rest:
            number = entry.body.get("round")
            if entry.body.get("kind") != "charge" or not isinstance(number, int):
                raise JournalDamaged(f"{self._journal.path}: entry {entry.index} is no charge")
            if number in charges:
                raise JournalDamaged(f"{self._journal.path}: round {number} is charged twice")
            charges[number] = entry
        return charges
