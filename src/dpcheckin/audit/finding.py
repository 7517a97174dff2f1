"""What an audit has shown, as a value that prints as a sentence."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from dpcheckin.accounting.kinds import rounded_down, rounded_up
from dpcheckin.audit import evidence
from dpcheckin.audit.choice import Event
from dpcheckin.audit.evidence import Counts, Stakes


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
    counts: Counts
    event: Event
    stakes: Stakes
    seconds: float
    seed: int

    @property
    def refuted(self) -> bool:
        """Whether the claim is violated, at the stated confidence."""
        return self.log_evidence >= evidence.needed_capital(self.confidence)

    @property
    def ratio(self) -> float:
        """Audited lower bound over claimed epsilon."""
        return self.lower / self.claimed if self.claimed > 0 else math.nan

    @property
    def clopper_pearson(self) -> float:
        """The classical bound on the same runs and event (without a slope), for comparison."""
        return evidence.clopper_pearson_epsilon(self.counts, self.delta, self.confidence)

    def __str__(self) -> str:
        verdict = "The claim is VIOLATED." if self.refuted else "The claim is not violated."
        return (
            f"Claimed: epsilon ≤ {rounded_up(self.claimed)} at delta = {self.delta:g}. Audited: "
            f"epsilon ≥ {rounded_down(self.lower)} with {100 * self.confidence:g}% "
            f"confidence, from {self.pairs:,} pairs of runs (event: {self.event}). {verdict}"
        )

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
            "log_evidence": self.log_evidence if math.isfinite(self.log_evidence) else None,
            "pairs": self.pairs,
            "pilot_pairs": self.pilot_pairs,
            "event": {**asdict(self.event), "text": str(self.event)},
            "counts": [list(row) for row in self.counts.table],
            "seconds": self.seconds,
            "seed": self.seed,
        }
