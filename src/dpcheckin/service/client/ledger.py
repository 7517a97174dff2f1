"""A client's own ledger: what this device has given away, over all plans it ever joined.

Before a client sends anything in a round, a report or a cover, it writes down that it took part,
how its coin fell, and what that makes in all. After a crash the entry is found and the round is
left alone: no coin is flipped twice, so no rate is exceeded. Totals are sums over plans, so a
server that changes its plan starts no new budget.

A round is paid for from the moment of its coin, since from then on it may be released. What is paid
for an honest shuffler (`epsilon`) is given back when the shuffler states that the round was void:
that figure is a promise only if the shuffler is honest, and then its statement is true. What is
paid in case it is not (`local_epsilon`) is never given back: the report had left the device.

Both figures are about rounds and not about reports: neither says how coins fell. When a client has
spent its budget it leaves, everybody sees that, and nobody learns anything by it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcheckin.service.journal import Journal
from dpcheckin.service.pricing import Price


@dataclass(frozen=True)
class Totals:
    """What has been given away in all, as sums over plans."""

    epsilon: float  # if no shuffler colluded
    local_epsilon: float  # if all did
    delta: float


@dataclass
class _PlanTotals:
    rounds: int = 0  # that were or may yet be released
    taken: int = 0  # in which a coin was flipped: the same, and void ones
    reports: int = 0
    epsilon: float = 0.0
    local_epsilon: float = 0.0
    delta: float = 0.0


class ClientLedger:
    """The open ledger of one client.

    Args:
        path: its journal, made when it is not there.
    """

    def __init__(self, path: Path) -> None:
        self._journal = Journal(path)
        self._plans: dict[str, _PlanTotals] = {}
        self._seen: dict[tuple[str, int], bool] = {}
        self._void: dict[str, set[int]] = {}
        self._slots: dict[str, int | None] = {}
        for entry in self._journal:
            self._take(entry.body)

    def close(self) -> None:
        """Let another process open it."""
        self._journal.close()

    def reported(self, plan: str, round_number: int) -> bool | None:
        """How the coin of a round fell; None if the round is new."""
        return self._seen.get((plan, round_number))

    def rounds_of(self, plan: str) -> int:
        """Rounds of a plan that are paid for: all it took part in but those stated to be void."""
        return self._plans.get(plan, _PlanTotals()).rounds

    def void_in_a_row(self, plan: str) -> int:
        """Void rounds of a plan since the last that was not; the newest may not be settled yet."""
        void = self._void.get(plan, set())
        taken = sorted((n for p, n in self._seen if p == plan), reverse=True)
        if taken and taken[0] not in void:
            taken = taken[1:]
        return next((place for place, n in enumerate(taken) if n not in void), len(taken))

    def reports_of(self, plan: str) -> int:
        """Reports sent under a plan."""
        return self._plans.get(plan, _PlanTotals()).reports

    def slot_of(self, plan: str) -> int | None:
        """The slot chosen for a plan of random check-ins; None: none, or not chosen yet."""
        return self._slots.get(plan)

    def has_slot(self, plan: str) -> bool:
        """Whether the choice has been made."""
        return plan in self._slots

    def choose_slot(self, plan: str, slot: int | None) -> None:
        """Write the choice down before it has any consequence."""
        body = {"kind": "slot", "plan": plan, "slot": slot}
        self._journal.append(body)
        self._take(body)

    def totals(self) -> Totals:
        """Everything given away so far."""
        plans = self._plans.values()
        return Totals(
            math.fsum(p.epsilon for p in plans),
            math.fsum(p.local_epsilon for p in plans),
            math.fsum(p.delta for p in plans),
        )

    def totals_after(self, plan: str, price: Price) -> Totals:
        """What `totals` would be after one more round of a plan, however its coin falls.

        Args:
            plan: its id, in hex.
            price: of that plan.
        """
        before, now = self.totals(), self._plans.get(plan, _PlanTotals())
        after = self._after(now, price)
        return Totals(
            before.epsilon - now.epsilon + after.epsilon,
            before.local_epsilon - now.local_epsilon + after.local_epsilon,
            before.delta - now.delta + after.delta,
        )

    def take_part(self, plan: str, round_number: int, price: Price, *, report: bool) -> None:
        """Write down one round, durably.

        Args:
            plan: its id, in hex.
            round_number: counted from 0.
            price: of that plan.
            report: whether the client reports.
        """
        after = self._after(self._plans.get(plan, _PlanTotals()), price)
        body = {
            "kind": "round",
            "plan": plan,
            "round": round_number,
            "report": report,
            "epsilon": after.epsilon,
            "local_epsilon": after.local_epsilon if math.isfinite(after.local_epsilon) else None,
            "delta": after.delta,
        }
        self._journal.append(body)
        self._take(body)

    def settle(self, plan: str, price: Price, void: Iterable[int]) -> int:
        """Give back what was paid for rounds that were void, durably; how many are new.

        Args:
            plan: its id, in hex.
            price: of that plan.
            void: rounds that were destroyed unseen; those it had no part in are passed over.
        """
        known = self._void.get(plan, set())
        new = sorted(n for n in set(void) - known if (plan, n) in self._seen)
        if not new:
            return 0
        left = min(self.rounds_of(plan) - len(new), price.document.rounds)
        body = {
            "kind": "void",
            "plan": plan,
            "rounds": new,
            "epsilon": price.spent(left).epsilon,
        }
        self._journal.append(body)
        self._take(body)
        return len(new)

    def _after(self, now: _PlanTotals, price: Price) -> Totals:
        rounds = min(now.rounds + 1, price.document.rounds)
        local = price.rounds_epsilon(now.taken + 1)
        return Totals(price.spent(rounds).epsilon, local, price.delta)

    def _take(self, body: dict[str, Any]) -> None:
        plan = body["plan"]
        if body["kind"] == "slot":
            self._slots[plan] = body["slot"]
            return
        if body["kind"] == "void":
            self._void.setdefault(plan, set()).update(body["rounds"])
            self._plans[plan].rounds -= len(body["rounds"])
            self._plans[plan].epsilon = body["epsilon"]
            return
        totals = self._plans.setdefault(plan, _PlanTotals())
        self._seen[(plan, body["round"])] = body["report"]
        totals.rounds += 1
        totals.taken += 1
        totals.reports += body["report"]
        totals.epsilon = body["epsilon"]
        local = body["local_epsilon"]
        totals.local_epsilon = math.inf if local is None else local
        totals.delta = body["delta"]
