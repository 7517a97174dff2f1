"""What every round cost, written down before the round is released: a plan's ledger, and the total of a fleet's plans.

Only the digest of a durable charge lets the analyzer claim a batch. A round is charged at most once, and one that would
pass a budget not at all. A crash may leave a round charged that was never released, never the other way round. Only
guarantees of the certified accounting (`service.pricing`) are charged. The total is a journal shared by the folders of
all plans of a fleet, open in one of them at a time: the sum over plans, however later ones were chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from dpcheckin.errors import InvalidParameter, ServiceError
from dpcheckin.numerals import rounded_up
from dpcheckin.service.pricing import Price, Spent
from dpcheckin.service.storage.journal import Journal, JournalDamaged, JournalEntry, entries_of

LEDGER = "privacy.ledger"


class BudgetSpent(ServiceError):
    """The next round would pass a budget, or the plan has no rounds left."""


@dataclass(frozen=True)
class FleetBudget:
    """The most that all plans together may cost, with an honest shuffler; `file` is the journal, made when it is not
    there."""

    file: Path
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < math.inf:
            raise InvalidParameter("budget.epsilon", self.epsilon, "a positive, finite number")
        if not 0 < self.delta < 1:
            raise InvalidParameter("budget.delta", self.delta, "strictly between 0 and 1")


def _entries(journal: Journal, opened: dict[str, Any]) -> list[JournalEntry]:
    """All entries of a journal, of which the first says whose it is; a new one begins with `opened`."""
    if not len(journal):
        journal.append(opened)
    return list(journal)


class TotalLedger:
    """The open ledger of a budget; one process at a time. `budget`: the file, and what may be spent."""

    def __init__(self, budget: FleetBudget) -> None:
        self.budget = budget
        self._journal = Journal(budget.file)
        try:
            self._plans, self._rounds = self._read()
        except BaseException:
            self._journal.close()
            raise

    def close(self) -> None:
        """Let the folder of another plan open it."""
        self._journal.close()

    @property
    def spent(self) -> Spent:
        """Sums over all plans."""
        return Spent.sum(self._plans.values())

    @property
    def plans(self) -> int:
        """Plans that have charged anything."""
        return len(self._plans)

    def check(self, plan: str, after: Spent) -> None:
        """Raise `BudgetSpent` when a `plan` (its id, in hex) must not come to cost what it would `after` a round."""
        together = Spent.sum({**self._plans, plan: after}.values())
        for what, value, limit in (
            ("epsilon", together.epsilon, self.budget.epsilon),
            ("delta", together.delta, self.budget.delta),
        ):
            if not value <= limit * (1 + 1e-12):
                raise BudgetSpent(
                    f"one more round would make {what} = {rounded_up(value)} over all plans, more "
                    f"than the total budget of {limit:g}"
                )

    def charge(self, plan: str, round_number: int, after: Spent) -> None:
        """Charge a `plan` (its id, in hex) with its round `round_number`, `after` which it has cost so much in all,
        durably; again: nothing changes."""
        if (plan, round_number) in self._rounds:
            return
        self.check(plan, after)
        self._journal.append({"kind": "charge", "plan": plan, "round": round_number, **after.to_json()})
        self._plans[plan] = after
        self._rounds.add((plan, round_number))

    def _read(self) -> tuple[dict[str, Spent], set[tuple[str, int]]]:
        opened = {"kind": "budget", "epsilon": self.budget.epsilon, "delta": self.budget.delta}
        first, *charges = _entries(self._journal, opened)
        if first.body != opened:
            limits = f"epsilon {first.body.get('epsilon')} and delta {first.body.get('delta')}"
            raise InvalidParameter("budget.file", str(self._journal.path), f"a ledger of {limits}")
        plans: dict[str, Spent] = {}
        rounds: set[tuple[str, int]] = set()
        for entry in charges:
            try:
                plan, number = str(entry.body["plan"]), int(entry.body["round"])
                plans[plan] = Spent.from_json(entry.body)
            except (KeyError, TypeError, ValueError):
                raise JournalDamaged(f"{self._journal.path} holds an entry that is no charge") from None
            rounds.add((plan, number))
        return plans, rounds


class ChargeReason(Enum):
    """What a charge pays for."""

    RELEASE = "release"  # the batch is about to be claimed
    VOID = "void"  # too few reports: nothing is released, but their number was seen


def check_round(price: Price, charged: int, total: TotalLedger | None = None) -> None:
    """Raise `BudgetSpent` when a plan of this `price`, with so many rounds `charged`, cannot pay for one more, or the
    `total` of its fleet cannot."""
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


def view(folder: Path, budget: FleetBudget | None = None) -> dict[str, Any]:
    """What the plan in an analyzer's `folder` has spent and has left, and all plans of a common `budget`, as journals
    that may be in use have it."""
    entries = [entry.body for entry in entries_of(folder / LEDGER)]
    if not entries:
        raise InvalidParameter("folder", str(folder), "the folder of an analyzer that has run")
    opened, charges = entries[0], entries[1:]
    found: dict[str, Any] = {"plan": opened["plan"], "rounds_charged": len(charges)}
    nothing = Spent(0.0, 0.0, opened["delta"])
    plans = {opened["plan"]: Spent.from_json(charges[-1]) if charges else nothing}
    limits = [("epsilon of this plan", plans[opened["plan"]].epsilon, opened["epsilon_budget"])]
    if budget is not None:
        others = [entry.body for entry in entries_of(budget.file)[1:]]
        plans |= {one["plan"]: Spent.from_json(one) for one in others}
        together = Spent.sum(plans.values())
        limits.append(("epsilon of all plans", together.epsilon, budget.epsilon))
        limits.append(("delta of all plans", together.delta, budget.delta))
    found["plans"] = [{"plan": name, **spent.to_json()} for name, spent in plans.items()]
    found["totals"] = [
        {"of": name, "spent": spent, "limit": float(limit), "left": max(0.0, limit - spent)}
        for name, spent, limit in limits
    ]
    return found


class Ledger:
    """The open ledger of a plan of this `price`; one process at a time. The journal at `path` is made when it is not
    there. The `total` of all plans of the fleet, if they have a common budget, is closed with this ledger."""

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

    def charge_of(self, round_number: int) -> JournalEntry | None:
        """The entry of a round, None if it was not charged."""
        return self._charges.get(round_number)

    def check_next(self) -> None:
        """Raise `BudgetSpent` when one more round would pass the budget: then none is opened."""
        check_round(self.price, self.charged, self.total)

    def charge(self, round_number: int, reason: ChargeReason) -> JournalEntry:
        """Charge round `round_number`, for this `reason`, durably before anything of it is released; again: the same
        entry."""
        if round_number in self._charges:
            return self._charges[round_number]
        self.check_next()
        after = self.price.spent(self.charged + 1)
        if self.total is not None:  # first: a crash in between wastes budget, never overspends it
            self.total.charge(self.price.document.id.hex(), round_number, after)
        fields = {"kind": "charge", "round": round_number, "why": reason.value, "charged": self.charged + 1}
        entry = self._journal.append({**fields, **after.to_json()})
        self._charges[round_number] = entry
        return entry

    def history(self) -> list[dict[str, Any]]:
        """The charges in the order they were made."""
        return [entry.body for entry in self._charges.values()]

    def _read(self) -> dict[int, JournalEntry]:
        opened = {
            "kind": "opened",
            "plan": self.price.document.id.hex(),
            "epsilon_budget": self.price.document.epsilon_budget,
            "delta": self.price.delta,
        }
        first, *rest = _entries(self._journal, opened)
        if first.body != opened:
            raise InvalidParameter("ledger", str(self._journal.path), "the ledger of this plan")
        charges: dict[int, JournalEntry] = {}
        for entry in rest:
            number = entry.body.get("round")
            if entry.body.get("kind") != "charge" or not isinstance(number, int):
                raise JournalDamaged(f"{self._journal.path}: entry {entry.index} is no charge")
            if number in charges:
                raise JournalDamaged(f"{self._journal.path}: round {number} is charged twice")
            charges[number] = entry
        return charges
