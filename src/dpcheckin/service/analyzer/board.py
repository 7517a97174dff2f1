"""What the analyzer shows to the world: snapshots for the page, and metrics for Prometheus.

Nothing here is secret: rounds, counts, budget and accuracy, all of which are functions of what the
analyzer may know and publish. Snapshots are whole values; readers never see one half written.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

from dpcheckin.service.analyzer.batches import COPY
from dpcheckin.service.analyzer.ledger import Ledger
from dpcheckin.service.analyzer.state import AnalyzerState
from dpcheckin.service.analyzer.tokens import FORGED, SPENT
from dpcheckin.service.influence import influence
from dpcheckin.service.pricing import Price
from dpcheckin.service.wire.documents import OCTETS
from dpcheckin.special import binomial

_PREFIX = "dpcheckin_analyzer_"
_BAND = 0.005  # a round lies below or above the band with this probability each


@lru_cache(maxsize=4096)
def expected(present: int, chance: float) -> dict[str, float]:
    """Mean of Bin(present, chance), and an interval that holds 99% of it.

    Args:
        present: clients who flipped a coin.
        chance: of heads.
    """
    return {
        "mean": present * chance,
        "low": binomial.quantile(_BAND, present, chance),
        "high": binomial.quantile(1 - _BAND, present, chance),
    }


def _total(ledger: Ledger) -> dict[str, Any] | None:
    """What all plans of the fleet have spent of their common budget, None without one."""
    total = ledger.total
    if total is None:
        return None
    spent = total.spent
    return {
        "epsilon": spent.epsilon,
        "delta": spent.delta,
        "plans": total.plans,
        "epsilon_budget": total.budget.epsilon,
        "delta_budget": total.budget.delta,
    }


class Party(Protocol):
    """Somebody whom the analyzer needs."""

    party: str
    away: str | None


class Board:
    """The latest snapshot.

    Args:
        price: of the plan.
        parties: whom the run cannot go on without.
    """

    def __init__(self, price: Price, parties: Sequence[Party] = ()) -> None:
        self._parties = parties
        self._price = price
        self._lock = threading.Lock()
        self._snapshot: dict[str, Any] = {}
        self._finished: str | None = None

    def show(self, state: AnalyzerState, ledger: Ledger) -> None:
        """Replace the snapshot.

        Args:
            state: the checkpoint as it stands.
            ledger: what was charged.
        """
        plan, price = self._price.document, self._price
        share = dict(plan.participation)
        slots = share.get("slots")
        chance = share["check_in_probability"] / slots if slots else share["rate"]
        spent = ledger.spent
        rows = [{**row} for row in state.log]
        for row in rows:
            if row["present"] is not None and row["reports"] is not None and not plan.keeps_one:
                row["expected"] = expected(row["present"], chance)
        snapshot = {
            "plan": {
                "id": plan.id.hex(),
                "protocol": plan.protocol,
                "population": plan.population,
                "minimum_present": plan.minimum_present,
                "colluding": plan.colluding,
                "dropout": plan.dropout,
                "minimum_batch": plan.minimum_batch,
                "rounds": plan.rounds,
                "randomizer": price.plan.randomizer.describe(),
                "epsilon_budget": plan.epsilon_budget,
                "delta": plan.delta,
                "round_seconds": plan.round_seconds,
                "issuer": plan.issuer,
                **share,
            },
            "round": state.round,
            "under_way": state.pending is not None,
            "rounds": rows,
            "spent": {
                "charged": ledger.charged,
                "allowed": price.allowed_rounds,
                "epsilon": spent.epsilon,
                "local_epsilon": spent.local_epsilon
                if math.isfinite(spent.local_epsilon)
                else None,
            },
            "total": _total(ledger),
            "metrics": dict(state.task.metrics),
            "coalitions": [
                one.to_json()
                for one in (price.coalitions(ledger.charged) if ledger.charged else ())
            ],
            "survey": dict(state.task.shown) or None,
            "statement": str(price.statement(ledger.charged)) if ledger.charged else None,
            "influence": self._influence(rows),
        }
        with self._lock:
            self._snapshot = snapshot

    def _influence(self, rows: list[dict[str, Any]]) -> str | None:
        """What one client that lies could have done to the last round that was opened.

        A survey states it for every figure, with the estimate.
        """
        if self._price.document.encoding == OCTETS:
            return None
        opened = [row["opened"] for row in rows if row.get("opened")]
        return influence(self._price.document, opened[-1]).sentence if opened else None

    def finish(self, reason: str) -> None:
        """The run is over, and why."""
        self._finished = reason

    def snapshot(self) -> dict[str, Any]:
        """The latest one."""
        with self._lock:
            shot = {**self._snapshot, "finished": self._finished}
        return {**shot, "away": self.away()}

    def away(self) -> dict[str, str]:
        """Parties that do not answer, and why; nobody is missed when the run is over."""
        missing = {} if self._finished else {one.party: one.away for one in self._parties}
        return {party: why for party, why in missing.items() if why is not None}

    def prometheus(self) -> str:
        """The same as metrics."""
        shot = self.snapshot()
        outcomes: dict[str, int] = {}
        for row in shot["rounds"]:
            outcomes[row["state"]] = outcomes.get(row["state"], 0) + 1
        spent = shot["spent"]
        local = spent["local_epsilon"]
        lines: list[str] = []

        def gauge(name: str, help_text: str, values: dict[str, float], kind: str = "gauge") -> None:
            lines.append(f"# HELP {_PREFIX}{name} {help_text}")
            lines.append(f"# TYPE {_PREFIX}{name} {kind}")
            lines.extend(f"{_PREFIX}{name}{label} {value}" for label, value in values.items())

        gauge(
            "rounds_total",
            "Rounds settled, by outcome.",
            {f'{{outcome="{what}"}}': count for what, count in sorted(outcomes.items())},
            "counter",
        )
        opened = sum(row.get("opened", 0) for row in shot["rounds"])
        dropped = sum(row.get("dropped", 0) for row in shot["rounds"])
        gauge("reports_opened_total", "Reports opened and used.", {"": opened}, "counter")
        for name, reason, about in (
            ("reports_copied_total", COPY, "Reports that were copies of others."),
            ("tokens_forged_total", FORGED, "Reports without a good token."),
            ("tokens_spent_total", SPENT, "Reports whose token was used before."),
        ):
            count = sum(row.get("reasons", {}).get(reason, 0) for row in shot["rounds"])
            gauge(name, about, {"": count}, "counter")
        gauge("reports_dropped_total", "Reports that could not be used.", {"": dropped}, "counter")
        spoiled = sum(row.get("spoiled") is not None for row in shot["rounds"])
        gauge("rounds_spoiled_total", "Sums that were of no use.", {"": spoiled}, "counter")
        gauge("rounds_charged", "Rounds in the ledger.", {"": spent["charged"]})
        gauge("rounds_allowed", "Rounds the budget pays for.", {"": spent["allowed"]})
        gauge("epsilon_budget", "The plan's budget.", {"": shot["plan"]["epsilon_budget"]})
        gauge(
            "epsilon_spent",
            "Certified epsilon of the charged rounds, by trust in the shuffler.",
            {
                '{shuffler="honest"}': spent["epsilon"],
                '{shuffler="colluding"}': math.inf if local is None else local,
            },
        )
        reached: dict[str, float] = {
            f'{{party="{one.party}"}}': int(one.party not in shot["away"]) for one in self._parties
        }
        gauge("reached", "1 while a party answers, 0 while it is asked again and again.", reached)
        for name, value in shot["metrics"].items():
            gauge(f"task_{name}", "A figure of the task.", {"": value})
        gauge("finished", "1 when the run is over.", {"": int(shot["finished"] is not None)})
        return "\n".join(lines).replace(" inf\n", " +Inf\n") + "\n"
