"""One budget for several plans of one fleet: surveys and training never pass it together.

Each plan keeps its own ledger; before it charges a round there, the round is charged here, durably.
The file is a journal shared by the folders of all plans, open in one of them at a time: plans
follow each other at a shuffler anyway. What was spent is the sum over plans, of epsilon and of
delta, which holds however later plans were chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpcheckin.accounting.figures import rounded_up
from dpcheckin.errors import InvalidParameter, ServiceError
from dpcheckin.service.journal import Journal, JournalDamaged
from dpcheckin.service.pricing import Spent


class BudgetSpent(ServiceError):
    """The next round would pass a budget, or the plan has no rounds left."""


@dataclass(frozen=True)
class Budget:
    """The most that all plans together may cost.

    Args:
        file: the journal, made when it is not there.
        epsilon: with an honest shuffler.
        delta: of all plans together.
    """

    file: Path
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < math.inf:
            raise InvalidParameter("budget.epsilon", self.epsilon, "a positive, finite number")
        if not 0 < self.delta < 1:
            raise InvalidParameter("budget.delta", self.delta, "strictly between 0 and 1")


class TotalLedger:
    """The open ledger of a budget; one process at a time.

    Args:
        budget: the file, and what may be spent.
    """

    def __init__(self, budget: Budget) -> None:
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
        return self._sum(self._plans)

    @property
    def plans(self) -> int:
        """Plans that have charged anything."""
        return len(self._plans)

    def check(self, plan: str, after: Spent) -> None:
        """Raise `BudgetSpent` when a plan must not come to this.

        Args:
            plan: its id, in hex.
            after: what the plan would have cost in all.
        """
        found = self._sum({**self._plans, plan: after})
        for what, value, limit in (
            ("epsilon", found.epsilon, self.budget.epsilon),
            ("delta", found.delta, self.budget.delta),
        ):
            if not value <= limit * (1 + 1e-12):
                raise BudgetSpent(
                    f"one more round would make {what} = {rounded_up(value)} over all plans, more "
                    f"than the total budget of {limit:g}"
                )

    def charge(self, plan: str, round_number: int, after: Spent) -> None:
        """Charge a round durably; again: nothing changes.

        Args:
            plan: its id, in hex.
            round_number: of that plan.
            after: what the plan has then cost in all.
        """
        if (plan, round_number) in self._rounds:
            return
        self.check(plan, after)
        local = after.local_epsilon
        self._journal.append(
            {
                "kind": "charge",
                "plan": plan,
                "round": round_number,
                "epsilon": after.epsilon,
                "local_epsilon": local if math.isfinite(local) else None,
                "delta": after.delta,
            }
        )
        self._plans[plan] = after
        self._rounds.add((plan, round_number))

    @staticmethod
    def _sum(plans: dict[str, Spent]) -> Spent:
        return Spent(
            math.fsum(one.epsilon for one in plans.values()),
            math.fsum(one.local_epsilon for one in plans.values()),
            math.fsum(one.delta for one in plans.values()),
        )

    def _read(self) -> tuple[dict[str, Spent], set[tuple[str, int]]]:
        opened = {"kind": "budget", "epsilon": self.budget.epsilon, "delta": self.budget.delta}
        if not len(self._journal):
            self._journal.append(opened)
        first, *rest = self._journal
        if first.body != opened:
            said = f"epsilon {first.body.get('epsilon')} and delta {first.body.get('delta')}"
            raise InvalidParameter("budget.file", str(self._journal.path), f"a ledger of {said}")
        plans: dict[str, Spent] = {}
        rounds: set[tuple[str, int]] = set()
        for entry in rest:
            plan, number, spent = self._charge_in(entry.body)
            plans[plan] = spent
            rounds.add((plan, number))
        return plans, rounds

    def _charge_in(self, body: dict[str, Any]) -> tuple[str, int, Spent]:
        try:
            local = body["local_epsilon"]
            spent = Spent(body["epsilon"], math.inf if local is None else local, body["delta"])
            return str(body["plan"]), int(body["round"]), spent
        except (KeyError, TypeError, ValueError):
            raise JournalDamaged(f"{self._journal.path} holds an entry that is no charge") from None
