"""A privacy statement as a value: the figures, what they are worth, and why.

`guarantee` makes the statement for rounds of check-ins. Whatever the shuffler's honesty buys, the
weaker statement that is left when it colludes always comes along.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpcheckin.accounting import checks
from dpcheckin.accounting.bracket import Bracket
from dpcheckin.accounting.composition import Composition, compose
from dpcheckin.accounting.kinds import Kind, rounded_up
from dpcheckin.accounting.local_pairs import LocalPair
from dpcheckin.accounting.rounds import SHUFFLER_COLLUDES, LocalRound, Round
from dpcheckin.errors import InvalidParameter, Unreachable

REPLACE_ONE = "replace one client"
EMPTY_SEAT = "empty-seat theorem (docs/theory.md)"
BLANKET = (
    "no empty seat needed for this randomizer: privacy blanket "
    "(Balle, Bell, Gascon, Nissim, arXiv 1903.02837v2, Lemma 5.3)"
)


@dataclass(frozen=True, slots=True)
class LocalGuarantee:
    """What is left when it is seen who reported what: each report's own privacy."""

    report_epsilon: float  # of a single report; infinite if it has none with report_delta
    report_delta: float
    epsilon: float  # of all rounds together, at the statement's delta
    rounds: int
    when: str = SHUFFLER_COLLUDES

    def to_json(self) -> dict[str, Any]:
        return {
            "report_epsilon": _finite(self.report_epsilon),
            "report_delta": self.report_delta,
            "epsilon": _finite(self.epsilon),
            "rounds": self.rounds,
            "when": self.when,
        }


@dataclass(frozen=True, slots=True)
class Guarantee:
    """An (epsilon, delta) statement with its reasons. Only kind GUARANTEE may be charged."""

    kind: Kind
    epsilon: Bracket
    delta: float
    adjacency: str
    basis: tuple[str, ...]
    assumptions: tuple[str, ...]
    local: LocalGuarantee | None = None

    def charge(self) -> float:
        """The epsilon to enter in a ledger; refused for anything but a guarantee."""
        if self.kind is not Kind.GUARANTEE:
            raise InvalidParameter("kind", self.kind.value, "a guarantee: nothing else is charged")
        return self.epsilon.upper

    def __str__(self) -> str:
        return " ".join(filter(None, self.sentences()))

    def sentences(self) -> tuple[str, str | None]:
        """What holds, and what is left of it when it is seen who reported what."""
        if self.kind is not Kind.GUARANTEE:
            verb = "no mechanism of this kind can promise less than"
            if self.kind is not Kind.LOWER_BOUND:
                verb = f"{self.kind.value}, not a guarantee:"
            figure = self.kind.figure(self.epsilon.lower)
            return f"{verb} epsilon = {figure} at delta = {self.delta:.4g}.", None
        delta = rounded_up(self.delta)
        said = (
            f"The run is ({rounded_up(self.epsilon.upper)}, {delta})-differentially "
            f"private ({self.adjacency}) towards the analyzer"
        )
        if self.assumptions:
            said += ", provided that " + "; ".join(self.assumptions)
        said += "."
        if self.local is None:
            return said, None
        left = f"If {self.local.when}, nothing is left at this delta"
        if math.isfinite(self.local.epsilon):
            spent = rounded_up(self.local.epsilon)
            left = (
                f"If {self.local.when}, what is left is ({spent}, {delta}) "
                f"over {self.local.rounds:,} rounds"
            )
        if math.isfinite(self.local.report_epsilon):
            left += f" ({self.local.report_epsilon:g} for a single report)"
        return said, left + "."

    def to_json(self) -> dict[str, Any]:
        """A plain object for JSON; `from_json` reads it back."""
        return {
            "kind": self.kind.value,
            "epsilon": {"lower": self.epsilon.lower, "upper": _finite(self.epsilon.upper)},
            "delta": self.delta,
            "adjacency": self.adjacency,
            "basis": list(self.basis),
            "assumptions": list(self.assumptions),
            "local": None if self.local is None else self.local.to_json(),
        }

    @staticmethod
    def from_json(data: str | Mapping[str, Any]) -> Guarantee:
        """Read what `to_json` wrote, as text or as an object."""
        try:
            read = json.loads(data) if isinstance(data, str) else data
            epsilon, local = read["epsilon"], read["local"]
            return Guarantee(
                kind=Kind(read["kind"]),
                epsilon=Bracket(float(epsilon["lower"]), _infinite(epsilon["upper"])),
                delta=float(read["delta"]),
                adjacency=str(read["adjacency"]),
                basis=tuple(read["basis"]),
                assumptions=tuple(read["assumptions"]),
                local=None
                if local is None
                else LocalGuarantee(
                    _infinite(local["report_epsilon"]),
                    float(local["report_delta"]),
                    _infinite(local["epsilon"]),
                    int(local["rounds"]),
                    str(local.get("when", SHUFFLER_COLLUDES)),
                ),
            )
        except (KeyError, TypeError, ValueError) as problem:
            raise InvalidParameter("data", str(problem), "a guarantee written by to_json") from None


def guarantee(rounds: Sequence[tuple[Round, int]] | Composition, delta: float) -> Guarantee:
    """The certified statement for these rounds at this delta.

    >>> from dpcheckin.accounting import CheckInRound, any_pure
    >>> said = guarantee([(CheckInRound(10_000, 0.01, any_pure(2.0)), 100)], delta=1e-4)
    >>> print(str(said)[:60])
    The run is (0.07354, 0.0001)-differentially private (replace
    """
    delta = checks.open_probability("delta", delta)
    run = rounds if isinstance(rounds, Composition) else compose(rounds)
    epsilon = run.epsilon(delta)
    if math.isinf(epsilon.upper):
        raise Unreachable(
            f"delta = {delta:g} cannot be reached by any epsilon: mass without counterpart or "
            "rounds in which every client reports exceed it; raise delta or lower the rate"
        )
    seen = [(one.pair, one.participation, n) for one, n in run.rounds]
    exposed = [(one.pair, one.participation_in_bad_hands, n) for one, n in run.rounds]
    when = "; or if ".join(dict.fromkeys(one.exposed for one, _ in run.rounds))
    local = local_guarantee(exposed, delta, when or SHUFFLER_COLLUDES)
    # what holds without the permutation holds with it
    unshuffled = local if exposed == seen else local_guarantee(seen, delta)
    upper = min(epsilon.upper, unshuffled.epsilon)
    epsilon = Bracket(min(epsilon.lower, upper), upper)
    assumptions: dict[str, None] = {}
    basis = {EMPTY_SEAT: None}
    for one, _ in run.rounds:
        assumptions.update(dict.fromkeys(one.assumptions()))
        if one.participation == 1.0:
            basis[BLANKET] = None
    return Guarantee(
        kind=Kind.GUARANTEE,
        epsilon=epsilon,
        delta=delta,
        adjacency=REPLACE_ONE,
        basis=tuple(basis),
        assumptions=tuple(assumptions),
        local=local,
    )


def local_guarantee(
    reports: Sequence[tuple[LocalPair, float, int]], delta: float, when: str = SHUFFLER_COLLUDES
) -> LocalGuarantee:
    """What (pair, probability of reporting, rounds) leaves when it is seen who reported what."""
    total = sum(n for _, _, n in reports)
    seen = [(LocalRound(pair, rate), n) for pair, rate, n in reports if rate > 0 and n > 0]
    if not seen:
        return LocalGuarantee(0.0, 0.0, 0.0, total, when)
    run = compose(seen)
    pair = max((one.pair for one, _ in seen), key=lambda pair: pair.local_epsilon)
    spent = run.epsilon(delta).upper
    return LocalGuarantee(pair.local_epsilon, pair.local_delta, spent, total, when)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _infinite(value: float | None) -> float:
    return math.inf if value is None else float(value)
