"""Claims of the papers, put to the test by attack; and how many runs that takes.

Printed figures (P1 Table 2) go by their table and column; the catalogue's refuted entries go by their names and are
evaluated for the plan at hand. `forecast` answers what an audit that refuted nothing leaves open: whether more runs
would, and how many.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from dpcheckin.accounting import Kind
from dpcheckin.audit import plans
from dpcheckin.audit.evidence import needed_capital
from dpcheckin.audit.examination import PILOT, Check
from dpcheckin.audit.finding import Finding
from dpcheckin.audit.plans import exact_delta
from dpcheckin.audit.requests import Request
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.papers.catalogue import catalogue
from dpcheckin.papers.entry import CHECK_IN, SHUFFLE, PublishedBound, Setting
from dpcheckin.papers.figures import panels
from dpcheckin.protocols import FullShuffle, Plan, ShuffledCheckIn
from dpcheckin.randomizers import DaryResponse, Gaussian, registry

# column of P1's Table 2 -> its key in the rows, and the cell that lies furthest below the truth
_COLUMNS = {
    "p1-table2-baseline": ("baseline", (2.0, 1e-3)),
    "p1-table2-approach1": ("one", (2.0, 1e-3)),
    "p1-table2-approach2": ("two", (2.0, 1e-2)),
}


@dataclass(frozen=True)
class Claimed:
    """A figure somebody printed, and the plan it is about."""

    name: str
    plan: Plan
    epsilon: float
    delta: float


def claim_names() -> list[str]:
    """Every claim that can be attacked."""
    return [*_COLUMNS, *(_slug(entry) for entry in _refuted())]


def claimed(request: Request) -> Claimed:
    """The published figure that a request attacks; what it leaves open takes the paper's value, or a telling one."""
    name, local_epsilon, noise = request.claim or "", request.local_epsilon, None
    request.refuse("--claim", "protocol", "slots")
    if request.randomizer is not None:
        made = registry.randomizer(request.randomizer, local_epsilon=local_epsilon)
        if not isinstance(made, Gaussian):
            raise InvalidParameter("randomizer", request.randomizer, "gaussian:SIGMA, for a claim")
        noise = made.noise_multiplier
    if name in _COLUMNS:
        return _printed(name, request)
    entries = {_slug(entry): entry for entry in _refuted()}
    if name not in entries:
        raise InvalidParameter("claim", name, ", ".join(claim_names()))
    noise = None if local_epsilon is not None else (noise or 1.0)
    run = Setting(
        entries[name].protocols[0], request.population or 100, request.rounds or 1, request.delta or 1e-2,
        rate=0.1 if request.rate is None else request.rate, local_epsilon=local_epsilon, noise_multiplier=noise,
    )  # fmt: skip
    value = entries[name].evaluate(run)
    if value.epsilon is None:
        raise OutsideTheorem(f"{name} {value.reason}")
    randomizer = DaryResponse(local_epsilon, 3) if local_epsilon else Gaussian(noise or 1.0)
    if run.protocol == SHUFFLE:
        return Claimed(name, FullShuffle(run.population, run.rounds, randomizer), value.epsilon, run.delta)
    plan = ShuffledCheckIn(run.population, run.need("rate"), run.rounds, randomizer)
    return Claimed(name, plan, value.epsilon, run.delta)


def _printed(name: str, request: Request) -> Claimed:
    """A figure of P1's Table 2."""
    column, cell = _COLUMNS[name]
    cell = (request.local_epsilon or cell[0], request.rate or cell[1])
    table = {(p["local_epsilon"], p["rate"]): p for p in (row.parameters for row in panels()["p1-table2"].rows)}
    for key in ("population", "rounds", "delta"):
        given, printed = getattr(request, key), table[2.0, 1e-3][key]
        if given not in (None, printed):
            raise InvalidParameter(key, given, f"{printed:g}: the table is about that")
    if cell not in table:
        raise InvalidParameter("rate", cell, "a cell of the table: local epsilon 2 or 8, rate 0.01 or 0.001")
    plan = ShuffledCheckIn(10_000, cell[1], 100, DaryResponse(cell[0], 3))
    return Claimed(name, plan, table[cell][column], 1e-4)


def check_claim(request: Request) -> Check:
    """The check that puts the claimed figure to the test."""
    if request.attack != "released":
        raise InvalidParameter("attack", request.attack, "released, for a claim")
    request.refuse("--attack released", "arrival")
    made = claimed(request)
    return plans.check_plan(
        made.plan, made.delta, request.confidence, epsilon=made.epsilon, turns=True, fast=request.fast_coins
    )


def _refuted() -> list[PublishedBound]:
    refuted = [entry for entry in catalogue() if entry.kind is Kind.REFUTED]
    return [entry for entry in refuted if entry.protocols[0] in (CHECK_IN, SHUFFLE)]


def _slug(entry: PublishedBound) -> str:
    return re.sub(r"[^a-z0-9]+", "-", entry.name.lower()).strip("-")


@dataclass(frozen=True, slots=True)
class Forecast:
    """Pairs of runs after which a false claim falls, or None when this attack never refutes it."""

    pairs: int | None
    seconds: float | None
    unit: str = "pairs of runs"

    def __str__(self) -> str:
        if self.pairs is None:
            return "No number of runs of this attack refutes the claim: the exact loss is smaller."
        assert self.seconds is not None
        minutes = self.seconds / 60
        time = f"{minutes:.0f} minutes" if minutes < 90 else f"{minutes / 60:.1f} hours"
        return (
            f"Refuting it takes about {self.pairs:,} {self.unit}, {time} at the pace of this audit: begin anew with "
            f"--budget {self.pairs} or more, since a short pilot bets on another event than a long one."
        )


def forecast(plan: Plan, finding: Finding) -> Forecast:
    """How many pairs it takes on average to refute a claim about the plan, after a finding that refuted nothing.

    The excess P(S) - e^ε Q(S) - δ of the best event is known exactly from the accountant's own lower bound; its
    variance from pair to pair is what was seen.
    """
    excess = exact_delta(plan, finding.claimed, finding.delta) - finding.delta
    if excess <= 0.0:
        return Forecast(None, None)
    variance = finding.counts.variance(finding.claimed)
    needed = 2 * needed_capital(finding.confidence) * variance / excess**2 / (1 - PILOT)
    pairs = max(math.ceil(needed), 1)
    pace = (finding.pairs + finding.pilot_pairs) / max(finding.seconds, 1e-9)
    return Forecast(pairs, pairs / pace, finding.unit)
