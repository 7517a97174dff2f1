"""What the analyzer shows to the world: snapshots for the page, and metrics for Prometheus.

Nothing here is secret: rounds, counts, budget and accuracy, all of which are functions of what the analyzer may know
and publish. Snapshots are whole values; readers never see one half written.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from dpcheckin.service.analyzer.batches import COPY, FORGED, SPENT
from dpcheckin.service.analyzer.ledger import Ledger, TotalLedger
from dpcheckin.service.analyzer.parties import PatientClient
from dpcheckin.service.analyzer.state import AnalyzerState
from dpcheckin.service.pricing import Price
from dpcheckin.service.reports import influence
from dpcheckin.service.web.metrics import Metrics
from dpcheckin.service.wire.documents import OCTETS
from dpcheckin.special import intervals

_SHOWN = (
    "protocol", "population", "minimum_present", "colluding", "dropout", "minimum_batch", "rounds", "epsilon_budget",
    "delta", "round_seconds", "issuer",
)  # fmt: skip
"""Fields of the plan that are on the page as they are."""
_METRICS = {
    "rounds_total": "Rounds settled, by outcome.",
    "reports_opened_total": "Reports opened and used.",
    "reports_copied_total": "Reports that were copies of others.",
    "tokens_forged_total": "Reports without a good token.",
    "tokens_spent_total": "Reports whose token was used before.",
    "reports_dropped_total": "Reports that could not be used.",
    "rounds_spoiled_total": "Sums that were of no use.",
    "rounds_charged": "Rounds in the ledger.",
    "rounds_allowed": "Rounds the budget pays for.",
    "epsilon_budget": "The plan's budget.",
    "epsilon_spent": "Certified epsilon of the charged rounds, by trust in the shuffler.",
    "reached": "1 while a party answers, 0 while it is asked again and again.",
}
_REASONS = {COPY: "reports_copied_total", FORGED: "tokens_forged_total", SPENT: "tokens_spent_total"}
_BAND = 0.005  # a round lies below or above the band with this probability each


@lru_cache(maxsize=4096)
def expected(present: int, chance: float) -> dict[str, float]:
    """Mean of Bin(present, chance), and an interval that holds 99% of it."""
    return {
        "mean": present * chance,
        "low": intervals.quantile(_BAND, present, chance),
        "high": intervals.quantile(1 - _BAND, present, chance),
    }


def _total(total: TotalLedger) -> dict[str, Any]:
    """What all plans of the fleet have spent of their common budget."""
    spent = total.spent
    return {
        "epsilon": spent.epsilon,
        "delta": spent.delta,
        "plans": total.plans,
        "epsilon_budget": total.budget.epsilon,
        "delta_budget": total.budget.delta,
    }


class Board:
    """The latest snapshot. `price`: of the plan; `parties`: whom the run cannot go on without."""

    def __init__(self, price: Price, parties: Sequence[PatientClient] = ()) -> None:
        self._parties = parties
        self._price = price
        self._lock = threading.Lock()
        self._snapshot: dict[str, Any] = {}
        self._finished: str | None = None

    def show(self, state: AnalyzerState, ledger: Ledger) -> None:
        """Replace the snapshot. `state`: the checkpoint as it stands; `ledger`: what was charged."""
        plan, price = self._price.document, self._price
        spent = ledger.spent
        rows = [{**row} for row in state.log]
        for row in rows:
            if row["present"] is not None and row["reports"] is not None and not plan.keeps_one:
                row["expected"] = expected(row["present"], plan.report_probability)
        snapshot = {
            "plan": {
                "id": plan.id.hex(),
                **{name: getattr(plan, name) for name in _SHOWN},
                "randomizer": price.plan.randomizer.describe(),
                **plan.participation,
            },
            "round": state.round,
            "under_way": state.pending is not None,
            "rounds": rows,
            "spent": {
                "charged": ledger.charged,
                "allowed": price.allowed_rounds,
                "epsilon": spent.epsilon,
                "local_epsilon": spent.to_json()["local_epsilon"],
            },
            "total": None if ledger.total is None else _total(ledger.total),
            "metrics": dict(state.task.metrics),
            "coalitions": [held.to_json() for held in (price.coalitions(ledger.charged) if ledger.charged else ())],
            "survey": dict(state.task.shown) or None,
            "statement": str(price.statement(ledger.charged)) if ledger.charged else None,
            "influence": self._influence(rows),
        }
        with self._lock:
            self._snapshot = snapshot

    def _influence(self, rows: list[dict[str, Any]]) -> str | None:
        """What one client that lies could have done to the last round that was opened. A survey states it for every
        figure, with the estimate."""
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
        missing = {} if self._finished else {other.party: other.away for other in self._parties}
        return {party: why for party, why in missing.items() if why is not None}

    def prometheus(self) -> str:
        """The same as metrics."""
        shot = self.snapshot()
        spent, figures = shot["spent"], {f"task_{name}": value for name, value in shot["metrics"].items()}
        meanings = {
            **_METRICS,
            **dict.fromkeys(figures, "A figure of the task."),
            "finished": "1 when the run is over.",
        }
        metrics = Metrics("dpcheckin_analyzer_", meanings, labelled=("rounds_total", "reached"))
        for row in shot["rounds"]:
            metrics.add("rounds_total", outcome=row["state"])
            metrics.add("reports_opened_total", row.get("opened", 0))
            metrics.add("reports_dropped_total", row.get("dropped", 0))
            metrics.add("rounds_spoiled_total", row.get("spoiled") is not None)
            for reason, name in _REASONS.items():
                metrics.add(name, row.get("reasons", {}).get(reason, 0))
        local = spent["local_epsilon"]
        metrics.add("epsilon_spent", spent["epsilon"], shuffler="honest")
        metrics.add("epsilon_spent", math.inf if local is None else local, shuffler="colluding")
        for other in self._parties:
            metrics.add("reached", int(other.party not in shot["away"]), party=other.party)
        gauges = {
            "rounds_charged": spent["charged"],
            "rounds_allowed": spent["allowed"],
            "epsilon_budget": shot["plan"]["epsilon_budget"],
            "finished": int(shot["finished"] is not None),
        }
        for name, value in (gauges | figures).items():
            metrics.set(name, value)
        return metrics.text().replace(" inf\n", " +Inf\n")
