"""The mutant table: how often each broken system is caught, and the honest one flagged.

Repetitions are independent audits with seeds of their own, within the mutant's budget. Results are
written after every repetition, so that a long measurement can be interrupted and taken up.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dpcheckin.accounting.kinds import rounded_down, rounded_up
from dpcheckin.audit.budget import Budget
from dpcheckin.audit.examination import examine
from dpcheckin.audit.mutants import Mutant, mutants
from dpcheckin.errors import InvalidParameter

Progress = Callable[[float, str], None]


@dataclass
class Row:
    """What was measured for one mutant."""

    name: str
    wrong: str
    delta: float
    claimed: float
    honest_claimed: float
    budget: int
    repetitions: int = 0
    caught: int = 0
    honest_repetitions: int = 0
    flagged: int = 0
    least_lower: float = float("inf")
    most_honest_lower: float = 0.0
    pairs_used: int = 0
    event: str = ""

    @property
    def detection(self) -> float:
        """Detection probability that is shown with 95% confidence (Clopper and Pearson)."""
        from scipy import stats

        if self.caught == 0:
            return 0.0
        missed = self.repetitions - self.caught
        return float(stats.beta.ppf(0.05, self.caught, missed + 1))

    def repeat(self, mutant: Mutant) -> None:
        """One more audit of the broken system, and one of the honest one if it is its turn."""
        seed, budget = 1 + self.repetitions, Budget(pairs=mutant.pairs)
        found = examine(mutant.broken, budget, seed=seed, stop_when_refuted=True)
        if self.repetitions % mutant.honest_every == 0:
            clean = examine(mutant.honest, budget, seed=seed, stop_when_refuted=True)
            self.honest_repetitions += 1
            self.flagged += clean.refuted
            self.most_honest_lower = max(self.most_honest_lower, clean.lower)
        self.repetitions += 1
        self.caught += found.refuted
        self.least_lower = min(self.least_lower, found.lower)
        self.pairs_used += found.pairs + found.pilot_pairs
        self.event = found.event.statistic


def measure(
    repetitions: int,
    path: Path | None = None,
    progress: Progress = lambda share, words: None,
    chosen: Sequence[Mutant] | None = None,
) -> list[Row]:
    """Audit every mutant and its honest twin this often; a file with earlier results is used."""
    if repetitions < 1:
        raise InvalidParameter("repetitions", repetitions, "at least 1")
    everyone = mutants() if chosen is None else tuple(chosen)
    rows = _load(path)
    total = repetitions * len(everyone)
    for count in range(repetitions):
        for place, mutant in enumerate(everyone):
            row = rows.setdefault(mutant.name, _row(mutant))
            progress((count * len(everyone) + place) / total, mutant.name)
            if row.repetitions <= count:
                row.repeat(mutant)
                _save(path, rows)
    return [rows[mutant.name] for mutant in everyone]


def _row(mutant: Mutant) -> Row:
    return Row(
        mutant.name,
        mutant.wrong,
        mutant.broken.delta,
        mutant.broken.epsilon,
        mutant.honest.epsilon,
        mutant.pairs,
    )


def _load(path: Path | None) -> dict[str, Row]:
    if path is None or not path.exists():
        return {}
    try:
        return {name: Row(**row) for name, row in json.loads(path.read_text()).items()}
    except (TypeError, ValueError, AttributeError) as problem:
        raise InvalidParameter("out", str(path), f"a mutant table ({problem})") from None


def _save(path: Path | None, rows: dict[str, Row]) -> None:
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({name: asdict(row) for name, row in rows.items()}, indent=1))
    os.replace(fresh, path)


def markdown(rows: Sequence[Row]) -> str:
    """The table as it stands in docs/audit.md."""
    head = (
        "| mutant | what is wrong | seen in | δ | claimed ε | audited ε ≥ (least) | "
        "budget, pairs | caught | honest ε | honest audited ≥ (most) | honest flagged |\n"
    )
    lines = [
        f"| {r.name} | {r.wrong} | {r.event} | {r.delta:g} | {rounded_up(r.claimed)} | "
        f"{rounded_down(r.least_lower)} | {r.budget:,} | "
        f"{r.caught} of {r.repetitions} | "
        f"{rounded_up(r.honest_claimed)} | {rounded_down(r.most_honest_lower)} | "
        f"{r.flagged} of {r.honest_repetitions} |\n"
        for r in rows
    ]
    return head + "|" + "---|" * 11 + "\n" + "".join(lines)
