"""What an audit has shown: as a sentence, JSON, a page, a picture, and as the state from which it goes on."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from dpcheckin.audit import evidence
from dpcheckin.audit.choice import Choice, Event
from dpcheckin.audit.evidence import Capital, Counts, Stakes
from dpcheckin.document import Document, Table, versions
from dpcheckin.errors import InvalidParameter
from dpcheckin.files import replacing
from dpcheckin.numerals import rounded_down, rounded_up

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
        """The classical bound on the same event (without a slope), to compare with; None for plays."""
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
            "counts": None if isinstance(self.counts, Capital) else [list(row) for row in self.counts.table],
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "seed": self.seed,
        }


def write_page(finding: Finding, words: str, picture: Path | None, path: Path) -> None:
    """Write the page of one audit to `path`: the finding, the `words` in which it is printed, and a picture of it."""
    claimed = f"≤\u00a0{rounded_up(finding.claimed)}" if math.isfinite(finding.claimed) else "none"
    classical = finding.clopper_pearson
    rows = {
        "attacked": finding.name,
        "played": finding.played or "–",
        "event": str(finding.event),
        f"{finding.unit}, to choose the event": f"{finding.pilot_pairs:,}",
        "classical bound on the same event": "–" if classical is None else rounded_down(classical),
        "seconds": f"{finding.seconds:,.1f}",
        "CPU seconds": f"{finding.cpu_seconds:,.1f}",
        "seed": finding.seed,
    }
    Document(
        kind="Audit report",
        title=f"ε\u00a0≥\u00a0{rounded_down(finding.lower)} shown, {claimed} claimed",
        chip=finding.verdict.value,
        statement=words,
        figures={
            "audited ε": f"≥ {rounded_down(finding.lower)}",
            "claimed ε": claimed,
            "δ": f"{finding.delta:g}",
            "confidence": f"{100 * finding.confidence:g}%",
            finding.unit: f"{finding.pairs:,}",
        },
        pictures={} if picture is None else {picture: "What was shown beside what is claimed"},
        tables=(Table("The attack", list(rows.items())), versions()),
        bad=finding.verdict is not Verdict.NOT_VIOLATED,
    ).write(path)


def draw_finding(finding: Finding, path: Path) -> None:
    """Draw the finding to `path`: the audited lower bound as a bar, with the claim as a mark."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 2.25), layout="constrained")
    axes = figure.add_subplot()
    axes.barh([0], [finding.lower], height=0.45, color="#d62728" if finding.refuted else "#1f77b4")
    if math.isfinite(finding.claimed):
        axes.plot([finding.claimed] * 2, [-0.33, 0.33], color="black", linewidth=2.5)
    name = finding.name.replace("; ", "\n")
    axes.set_yticks([0], [f"{name}\nδ = {finding.delta:g}, {finding.pairs:,} {finding.unit}"], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(left=0.0)
    axes.set_xlabel("epsilon")
    axes.set_title(
        f"bar: audited lower bound, confidence {100 * finding.confidence:g}% (red: claim violated)\n"
        "black mark: claimed epsilon",
        fontsize=9,
    )
    figure.savefig(path, dpi=130)


@dataclass
class State:
    """Everything needed to go on."""

    seed: int
    choice: Choice
    pilot_pairs: int
    next_block: int
    counts: Counts | Capital | None = None
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def save(self, path: Path, fingerprint: str) -> None:
        """Write the state of the check with this fingerprint to `path`; an interruption leaves the old one."""
        content = {"fingerprint": fingerprint, **asdict(replace(self, counts=None))}
        if self.counts is not None:
            content["counts"] = self.counts.to_json()
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            json.dump(content, file)

    @staticmethod
    def load(path: Path, fingerprint: str) -> State:
        """The state at `path`, refused unless it is of the check with this fingerprint."""
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
            chosen = read["choice"]
            stakes = Stakes(*(tuple(chosen["stakes"][key]) for key in ("sizes", "shares")))
            state = State(
                int(read["seed"]),
                Choice(Event(**chosen["event"]), stakes, float(chosen["promised"])),
                int(read["pilot_pairs"]),
                int(read["next_block"]),
                _read_counts(read["counts"]),
                float(read["seconds"]),
                float(read["cpu_seconds"]),
            )
        except FileNotFoundError:
            raise InvalidParameter("resume", str(path), "a folder with a saved audit") from None
        except (KeyError, TypeError, ValueError) as problem:
            raise InvalidParameter("resume", str(problem), "a state saved by an audit") from None
        if read["fingerprint"] != fingerprint:
            raise InvalidParameter("resume", str(path), "the state of an audit with the same options")
        return state


def _read_counts(read: Any) -> Counts | Capital | None:
    if read is None:
        return None
    if "table" in read:
        return Counts(tuple(tuple(row) for row in read["table"]))
    return Capital.from_json(read)
