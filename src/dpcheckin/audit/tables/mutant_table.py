"""The mutant table: how often each broken system is caught, and the honest one flagged.

Repetitions are independent audits with seeds of their own, within the mutant's budget. Results are
written after every repetition, so that a long measurement can be interrupted and taken up.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dpcheckin.accounting.figures import rounded_down, rounded_up
from dpcheckin.audit.tables.mutants import Mutant, mutants
from dpcheckin.errors import InvalidParameter
from dpcheckin.special import binomial

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
    cpu_seconds: float = 0.0
    """Of all audits of the broken package together."""
    slowest: float = 0.0
    """Processor seconds of the longest of them."""

    @property
    def detection(self) -> float:
        """Detection probability that is shown with 95% confidence (Clopper and Pearson)."""
        if self.caught == 0:
            return 0.0
        return binomial.least_probability(self.caught, self.repetitions, 0.05)

    @property
    def false_alarms(self) -> float:
        """Probability of flagging the honest system that is excluded with 95% confidence."""
        return most_likely(self.flagged, self.honest_repetitions)

    def repeat(self, mutant: Mutant) -> None:
        """One more audit of the broken system, and one of the honest one if it is its turn."""
        seed = 1 + self.repetitions
        found = mutant.audit(seed)
        if self.repetitions % mutant.honest_every == 0:
            clean = mutant.audit_honest(seed)
            self.honest_repetitions += 1
            self.flagged += clean.refuted
            self.most_honest_lower = max(self.most_honest_lower, clean.lower)
        self.repetitions += 1
        self.caught += found.refuted
        self.least_lower = min(self.least_lower, found.lower)
        self.pairs_used += found.pairs + found.pilot_pairs
        self.event = found.event.statistic
        self.cpu_seconds += found.cpu_seconds
        self.slowest = max(self.slowest, found.cpu_seconds)


def most_likely(seen: int, of: int) -> float:
    """Largest probability that is compatible with so many, with 95% confidence.

    >>> round(most_likely(0, 299), 4)
    0.01
    """
    return binomial.largest_probability(seen, of, 0.05)


def measure(
    repetitions: int,
    path: Path | None = None,
    progress: Progress = lambda share, words: None,
    chosen: Sequence[Mutant] | None = None,
) -> list[Row]:
    """Audit every mutant and its honest twin this often; a file with earlier results is used.

    Args:
        repetitions: audits of each mutant.
        path: file of results, None to keep none.
        progress: called with the share that is done and a mutant's name.
        chosen: the mutants, None for all.
    """
    if repetitions < 1:
        raise InvalidParameter("repetitions", repetitions, "at least 1")
    everyone = mutants() if chosen is None else tuple(chosen)
    rows = load(path)
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


def load(path: Path | None) -> dict[str, Row]:
    """Rows by the names of mutants, as they were saved; none if there is no file."""
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
    """The table as it stands in docs/audit-tables.md, and what the honest systems did in all."""
    head = (
        "| mutant | what is wrong | seen in | δ | claimed ε | audited ε ≥ (least) | "
        "budget, pairs | CPU seconds, mean (most) | caught | detected | honest ε | "
        "honest audited ≥ (most) | honest flagged | false alarms |\n"
    )
    lines = [
        f"| {r.name} | {r.wrong} | {r.event} | {r.delta:g} | {rounded_up(r.claimed)} | "
        f"{rounded_down(r.least_lower)} | {r.budget:,} | "
        f"{r.cpu_seconds / max(r.repetitions, 1):.1f} ({r.slowest:.1f}) | "
        f"{r.caught} of {r.repetitions} | ≥ {_down(r.detection)} | "
        f"{rounded_up(r.honest_claimed)} | {rounded_down(r.most_honest_lower)} | "
        f"{r.flagged} of {r.honest_repetitions} | ≤ {_up(r.false_alarms)} |\n"
        for r in rows
    ]
    flagged, audits = sum(r.flagged for r in rows), sum(r.honest_repetitions for r in rows)
    honest = (
        f"\nHonest systems in all: {flagged} of {audits:,} audits flagged, false alarms "
        f"≤ {_up(most_likely(flagged, audits))}. Probabilities with 95% confidence (Clopper and "
        "Pearson).\n"
    )
    return head + "|" + "---|" * 14 + "\n" + "".join(lines) + honest


def _down(probability: float) -> str:
    return f"{math.floor(1000 * probability) / 10:.1f}%"


def _up(probability: float) -> str:
    return f"{math.ceil(10_000 * probability) / 100:.2f}%"
