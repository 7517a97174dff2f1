"""The measurements of docs/audit-tables.md: how often broken systems are caught, and how tight certified figures are.

Both take long, so what is finished is kept in a file, and an interrupted measurement goes on where it stopped.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dpcheckin.audit.budget import Budget
from dpcheckin.audit.examination import Progress, examine
from dpcheckin.audit.mutants import Mutant, all_mutants
from dpcheckin.audit.plans import check_plan, plan_named, rounds_text
from dpcheckin.errors import InvalidParameter
from dpcheckin.files import replacing
from dpcheckin.numerals import at_least, rounded_down, rounded_up
from dpcheckin.randomizers import registry
from dpcheckin.special import intervals

AIM, COMPOSED_AIM = 0.7, 0.5  # of the certified epsilon, for one round and for many
_RESPONSES = {"binary": "binary", "dary:3": "3-ary"}
_POPULATIONS = (100, 1000)
_RATES = (0.1, 1.0)
_EPSILONS = (1.0, 2.0, 3.0, 4.0)
_STRONG = ((100, 0.1, 4.0), (100, 1.0, 2.0), (1000, 1.0, 4.0))
_BEYOND = (100, 1.0, 4.0)


def _stored(path: Path | None, what: str) -> dict[str, Any]:
    """What the file holds, by name; nothing if there is none."""
    if path is None or not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise InvalidParameter("out", str(path), what)
    return content


def _store(path: Path | None, content: Mapping[str, Any]) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            json.dump(content, file, indent=1)


@dataclass
class Row:
    """What was measured for one mutant; `cpu_seconds` of all audits of the broken package, `slowest` of one."""

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
    slowest: float = 0.0

    @property
    def detection(self) -> float:
        """Detection probability that is shown with 95% confidence (Clopper and Pearson)."""
        return 0.0 if self.caught == 0 else intervals.least_probability(self.caught, self.repetitions, 0.05)

    @property
    def false_alarms(self) -> float:
        """Probability of flagging the honest system that is excluded with 95% confidence."""
        return most_likely(self.flagged, self.honest_repetitions)

    def repeat(self, mutant: Mutant) -> None:
        """One more audit of the broken system, and one of the honest one if it is its turn."""
        seed = 1 + self.repetitions
        finding = mutant.audit(seed)
        if self.repetitions % mutant.honest_every == 0:
            clean = mutant.audit_honest(seed)
            self.honest_repetitions += 1
            self.flagged += clean.refuted
            self.most_honest_lower = max(self.most_honest_lower, clean.lower)
        self.repetitions += 1
        self.caught += finding.refuted
        self.least_lower = min(self.least_lower, finding.lower)
        self.pairs_used += finding.pairs + finding.pilot_pairs
        self.event = finding.event.statistic
        self.cpu_seconds += finding.cpu_seconds
        self.slowest = max(self.slowest, finding.cpu_seconds)


def most_likely(seen: int, of: int) -> float:
    """Largest probability that is compatible with `seen` out of `of`, with 95% confidence.

    >>> round(most_likely(0, 299), 4)
    0.01
    """
    return intervals.largest_probability(seen, of, 0.05)


def measure(
    repetitions: int,
    path: Path | None = None,
    progress: Progress = lambda share, words: None,
    chosen: Sequence[Mutant] | None = None,
) -> list[Row]:
    """Audit every mutant, or the `chosen` ones, and its honest twin so many `repetitions`, each with its own seed.

    Earlier results in the file at `path` count; `progress` is called with the share that is done and a mutant's name.
    """
    at_least("repetitions", repetitions, 1)
    everyone = all_mutants() if chosen is None else tuple(chosen)
    rows = load_rows(path)
    total = repetitions * len(everyone)
    for count in range(repetitions):
        for place, mutant in enumerate(everyone):
            row = rows.setdefault(mutant.name, _row(mutant))
            progress((count * len(everyone) + place) / total, mutant.name)
            if row.repetitions <= count:
                row.repeat(mutant)
                _store(path, {name: asdict(row) for name, row in rows.items()})
    return [rows[mutant.name] for mutant in everyone]


def _row(mutant: Mutant) -> Row:
    return Row(
        mutant.name, mutant.wrong, mutant.broken.delta, mutant.broken.epsilon, mutant.honest.epsilon, mutant.pairs
    )


def load_rows(path: Path | None) -> dict[str, Row]:
    """Rows by the names of mutants, as they were saved; none if there is no file."""
    try:
        return {name: Row(**row) for name, row in _stored(path, "a mutant table").items()}
    except TypeError as problem:
        raise InvalidParameter("out", str(path), f"a mutant table ({problem})") from None


def mutants_markdown(rows: Sequence[Row]) -> str:
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
        f"{r.caught} of {r.repetitions} | ≥ {math.floor(1000 * r.detection) / 10:.1f}% | "
        f"{rounded_up(r.honest_claimed)} | {rounded_down(r.most_honest_lower)} | "
        f"{r.flagged} of {r.honest_repetitions} | ≤ {_percent_up(r.false_alarms)} |\n"
        for r in rows
    ]
    flagged, audits = sum(r.flagged for r in rows), sum(r.honest_repetitions for r in rows)
    honest = (
        f"\nHonest systems in all: {flagged} of {audits:,} audits flagged, false alarms "
        f"≤ {_percent_up(most_likely(flagged, audits))}. Probabilities with 95% confidence (Clopper and Pearson).\n"
    )
    return head + "|" + "---|" * 14 + "\n" + "".join(lines) + honest


def _percent_up(probability: float) -> str:
    return f"{math.ceil(10_000 * probability) / 100:.2f}%"


@dataclass(frozen=True)
class Cell:
    """One plan of the tightness figure."""

    randomizer: str
    population: int
    rate: float
    local_epsilon: float
    rounds: int = 1
    delta: float = 1e-3

    @property
    def key(self) -> str:
        """Its name in the file of finished cells."""
        return (
            f"{self.randomizer} n={self.population} rate={self.rate:g} "
            f"eps0={self.local_epsilon:g} rounds={self.rounds} delta={self.delta:g}"
        )


def _delta(response: str, population: int, local_epsilon: float) -> float:
    """Binary response comes near its bound in large crowds only for small deltas."""
    far = (response, population) == ("binary", 1000) and local_epsilon <= 2
    return 1e-4 if far else 1e-3


def one_round_cells() -> list[Cell]:
    """Every response, population, rate and local epsilon, one round."""
    return [
        Cell(r, n, g, e, delta=_delta(r, n, e))
        for r in _RESPONSES
        for n in _POPULATIONS
        for e in _EPSILONS
        for g in _RATES
    ]


def composed_cells() -> list[Cell]:
    """A hundred rounds, where the certified epsilon is within reach of sampling.

    No sampling shows an epsilon much beyond the logarithm of the number of runs. So delta is 0.1 where the certified
    epsilon is beyond 10 at 0.01, and a hundred full shuffles of 100 reports with local epsilon 4, certified at 94 or
    more whatever delta, are left out.
    """
    return [
        Cell(r, n, g, e, rounds=100, delta=0.1 if (n, g, e) in _STRONG else 0.01)
        for r in _RESPONSES
        for n in _POPULATIONS
        for e in (2.0, 4.0)
        for g in _RATES
        if (n, g, e) != _BEYOND
    ]


def audit_cells(
    cells: Sequence[Cell],
    budget: Budget,
    path: Path | None = None,
    *,
    confidence: float = 0.99,
    workers: int = 1,
    seed: int = 1,
    progress: Progress = lambda share, words: None,
) -> list[dict[str, Any]]:
    """Audit cells within a budget, from a seed; path keeps them; confidence, workers, progress as for `examine`."""
    done = _stored(path, "a file of finished cells")
    for place, cell in enumerate(cells):
        if cell.key in done:
            continue
        randomizer = registry.randomizer(cell.randomizer, local_epsilon=cell.local_epsilon)
        plan = plan_named("shuffled-check-in", randomizer, cell.population, cell.rate, cell.rounds)
        # about theorems, not about the code that ships, which is slower
        check = check_plan(plan, cell.delta, confidence, turns=True, fast=True)

        def show(share: float, words: str, place: int = place, cell: Cell = cell) -> None:
            progress((place + share) / len(cells), f"{cell.key}: {words}")

        finding = examine(check, budget, seed=seed, workers=workers, progress=show)
        done[cell.key] = {**finding.to_json(), "cell": cell.__dict__, "budget": str(budget)}
        _store(path, done)
    return [done[cell.key] for cell in cells]


def cells_markdown(results: Sequence[dict[str, Any]]) -> str:
    """The table as it stands in docs/audit-tables.md."""
    lines = [
        "| response | n | γ | ε₀ | rounds | δ | certified ε ≤ | audited ε ≥ | ratio | plays | CPU seconds |\n",
        "|" + "---|" * 11 + "\n",
    ]
    for result in results:
        c = result["cell"]
        claimed, lower = result["claimed_epsilon"], result["lower_bound"]
        lines.append(
            f"| {_RESPONSES[c['randomizer']]} | {c['population']} | {c['rate']:g} | {c['local_epsilon']:g} | "
            f"{c['rounds']} | {c['delta']:g} | {rounded_up(claimed)} | {rounded_down(lower)} | "
            f"{_ratio(lower / claimed, c['rounds'])} | "
            f"{result['pairs'] + result['pilot_pairs']:,} | {result['cpu_seconds']:.0f} |\n"
        )
    return "".join(lines)


def tightness_tables(done: Mapping[str, dict[str, Any]]) -> str:
    """Both tables, one round and a hundred, of finished cells by their keys."""
    one, many = (
        cells_markdown([done[cell.key] for cell in cells if cell.key in done])
        for cells in (one_round_cells(), composed_cells())
    )
    return f"{one}\nA hundred rounds:\n\n{many}"


def _ratio(value: float, rounds: int) -> str:
    """Two digits, rounded down; in italics what falls short of the aim."""
    shown = f"{math.floor(100 * value) / 100:.2f}"
    return shown if value >= (AIM if rounds == 1 else COMPOSED_AIM) else f"*{shown}*"


def draw(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw `results` at `path`: certified curves with audited points, a panel for each response and population."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7), layout="constrained")
    panels = [(r, n) for r in _RESPONSES for n in _POPULATIONS]
    axes = figure.subplots(2, 2, sharex=True)
    for (response, population), place in zip(panels, axes.ravel(), strict=True):
        for rate, colour in zip(_RATES, ("#1f77b4", "#d95f02"), strict=True):
            shown = {"randomizer": response, "population": population, "rate": rate}
            curve = [r for r in results if r["cell"].items() >= shown.items()]
            x = [r["cell"]["local_epsilon"] for r in curve]
            certified = [r["claimed_epsilon"] for r in curve]
            place.plot(x, certified, "_-", color=colour, label=f"certified, γ = {rate:g}")
            lower = [r["lower_bound"] for r in curve]
            place.plot(x, lower, "o:", color=colour, label=f"audited, γ = {rate:g}")
        place.set_yscale("log")
        deltas = sorted({_delta(response, population, e) for e in _EPSILONS}, reverse=True)
        values = " and ".join(f"{delta:g}" for delta in deltas)
        title = f"{_RESPONSES[response]} response, n = {population:,}, {rounds_text(1)}, δ = {values}"
        place.set_title(title, fontsize=9)
        place.grid(alpha=0.3)
    for place in axes[-1]:
        place.set_xlabel("local epsilon")
    for place in axes[:, 0]:
        place.set_ylabel("epsilon")
    axes[0, 0].legend(fontsize=8)
    confidence = 100 * min(r["confidence"] for r in results)
    figure.suptitle(f"audited lower bounds ({confidence:g}% confidence) under certified upper bounds", fontsize=10)
    figure.savefig(path, dpi=130)
