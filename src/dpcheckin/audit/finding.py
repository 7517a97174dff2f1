"""What an audit has shown, as a value that prints as a sentence."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from dpcheckin.accounting.figures import rounded_down, rounded_up
from dpcheckin.audit.betting import evidence
from dpcheckin.audit.betting.capital import Capital
from dpcheckin.audit.betting.choice import Event
from dpcheckin.audit.betting.evidence import Counts, Stakes

ENOUGH = 0.5
"""An audit that shows less than this share of what it should see says nothing either way."""


class Verdict(Enum):
    """How an audit ends."""

    VIOLATED = "violated"
    NOT_VIOLATED = "not violated"
    INCONCLUSIVE = "inconclusive"

    @property
    def sentence(self) -> str:
        return {
            Verdict.VIOLATED: "The claim is VIOLATED.",
            Verdict.NOT_VIOLATED: "The claim is not violated.",
            Verdict.INCONCLUSIVE: "INCONCLUSIVE: far less than a sound attack should see.",
        }[self]

    @property
    def exit_code(self) -> int:
        """Of the command; 2 is bad input."""
        return {Verdict.NOT_VIOLATED: 0, Verdict.VIOLATED: 1, Verdict.INCONCLUSIVE: 3}[self]


@dataclass(frozen=True, slots=True)
class Finding:
    """What an audit has shown: with the stated confidence, epsilon is at least `lower`."""

    name: str
    claimed: float
    delta: float
    confidence: float
    lower: float
    log_evidence: float
    pairs: int
    pilot_pairs: int
    counts: Counts | Capital
    event: Event
    stakes: Stakes
    seconds: float
    seed: int
    cpu_seconds: float = 0.0
    played: str = ""
    """Whose coins and whose order: a few words of the system."""
    expected: float | None = None
    """What the attack can show at best, if that is known to be less than what is claimed."""

    @property
    def refuted(self) -> bool:
        """Whether the claim is violated, at the stated confidence."""
        return self.log_evidence >= evidence.needed_capital(self.confidence)

    @property
    def wanted(self) -> float:
        """The lower bound from which on an audit that refutes nothing means something."""
        best = self.claimed if self.expected is None else min(self.claimed, self.expected)
        return ENOUGH * best if math.isfinite(best) else 0.0

    @property
    def verdict(self) -> Verdict:
        """Violated, not violated, or too little seen to say."""
        if self.refuted:
            return Verdict.VIOLATED
        if self.lower > 0.0 and self.lower >= self.wanted:
            return Verdict.NOT_VIOLATED
        return Verdict.INCONCLUSIVE

    @property
    def ratio(self) -> float:
        """Audited lower bound over claimed epsilon."""
        return self.lower / self.claimed if self.claimed > 0 else math.nan

    @property
    def clopper_pearson(self) -> float | None:
        """The classical bound on the same runs and event (without a slope), for comparison.

        None when every client took its turn: it needs runs that are independent.
        """
        if isinstance(self.counts, Capital):
            return None
        return evidence.clopper_pearson_epsilon(self.counts, self.delta, self.confidence)

    @property
    def unit(self) -> str:
        """What budgets and `pairs` count."""
        return "plays" if isinstance(self.counts, Capital) else "pairs of runs"

    def __str__(self) -> str:
        turns = isinstance(self.counts, Capital)
        runs = self.unit + (" with every client as the target in turn" if turns else "")
        return (
            f"Claimed: epsilon ≤ {rounded_up(self.claimed)} at delta = {self.delta:g}. Audited: "
            f"epsilon ≥ {rounded_down(self.lower)} with {100 * self.confidence:g}% "
            f"confidence, {self._share()}from {self.pairs:,} {runs} (event: {self.event}). "
            f"{self.verdict.sentence}"
        )

    def _share(self) -> str:
        if not math.isfinite(self.ratio) or self.refuted:
            return ""
        return f"{math.floor(100 * self.ratio) / 100:.2f} of what is claimed, "

    def to_json(self) -> dict[str, Any]:
        """A plain object for JSON."""
        return {
            "name": self.name,
            "claimed_epsilon": self.claimed if math.isfinite(self.claimed) else None,
            "delta": self.delta,
            "confidence": self.confidence,
            "lower_bound": self.lower,
            "clopper_pearson": self.clopper_pearson,
            "refuted": self.refuted,
            "verdict": self.verdict.value,
            "wanted_lower_bound": self.wanted,
            "played": self.played,
            "log_evidence": self.log_evidence if math.isfinite(self.log_evidence) else None,
            "ratio": self.ratio if math.isfinite(self.ratio) else None,
            "every_client_in_turn": isinstance(self.counts, Capital),
            "pairs": self.pairs,
            "pilot_pairs": self.pilot_pairs,
            "event": {**asdict(self.event), "text": str(self.event)},
            "counts": _counts_json(self.counts),
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "seed": self.seed,
        }


def _counts_json(counts: Counts | Capital) -> list[list[int]] | None:
    return None if isinstance(counts, Capital) else [list(row) for row in counts.table]
