"""Privacy statements as values: figures with their reasons.

A `Guarantee` carries its reasons and, always, the weaker statement that is left when the party in the middle colludes.
A `LowerBound` is another type: nothing but a guarantee can be charged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from dpcheckin.display import frame, html_facts
from dpcheckin.errors import InvalidParameter, NotAGuarantee, NumericalFailure, OutsideTheorem
from dpcheckin.numerals import Kind, rounded_down, rounded_up

# when nothing but the noise of each report protects a client
SHUFFLER_COLLUDES = "the shuffler colludes"
SLOTS_ARE_KNOWN = "it is known who reported when"
AGGREGATORS_COLLUDE = "the two aggregators work together"
Prove = Callable[[float, float], dict[str, Any]]


class Adjacency(StrEnum):
    """Which two datasets are neighbours."""

    REPLACE_ONE = "replace one client"
    REMOVE_ONE = "remove one client"
    ADD_OR_REMOVE_RECORD = "add or remove one record"


@dataclass(frozen=True, slots=True)
class Bracket:
    """The closed interval [lower, upper]; `upper` is the end a guarantee may quote.

    >>> Bracket(0.646, 0.647).relative_width < 0.002
    True
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if math.isnan(self.lower) or math.isnan(self.upper):
            raise NumericalFailure("a bound came out as NaN; no figure can be stated")
        if not self.lower <= self.upper:
            raise NumericalFailure(f"bounds crossed: lower {self.lower!r} > upper {self.upper!r}")
        if not self.upper >= 0.0 or self.lower == math.inf:
            raise NumericalFailure(f"no figure lies between {self.lower!r} and {self.upper!r}")

    @staticmethod
    def of(lower: float, upper: float) -> Bracket:
        """The interval from `lower` to `upper`; ends that differ by rounding alone are one."""
        if upper < lower <= upper + 1e-12 + 1e-9 * upper:
            lower = upper
        return Bracket(lower, upper)

    @property
    def relative_width(self) -> float:
        """(upper - lower) / upper; 0 when both ends are 0, 1 when only the upper is known."""
        if self.upper == self.lower:
            return 0.0
        if math.isinf(self.upper):
            return 1.0
        return (self.upper - self.lower) / self.upper


@dataclass(frozen=True, slots=True)
class LocalGuarantee:
    """What is left when it is seen who reported what: each report's own privacy.

    Args:
        report_epsilon: Of a single report; infinite if it has none with report_delta.
        report_delta: Of a single report.
        epsilon: Of all rounds together, at the statement's delta.
        rounds: How many there are.
        when: In which case only this is left.
    """

    report_epsilon: float
    report_delta: float
    epsilon: float
    rounds: int
    when: str = SHUFFLER_COLLUDES

    def __post_init__(self) -> None:
        if not self.epsilon >= 0.0:  # NaN is not
            raise NumericalFailure(f"a local epsilon came out as {self.epsilon!r}")

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
    """An (epsilon, delta) statement with its reasons: the one kind of figure that may be charged.

    Args:
        epsilon: `upper` is what is guaranteed; `lower` says how closely it was computed, and is no
            `LowerBound` (docs/theory.md, section 7).
        delta: Of the statement.
        adjacency: Which datasets are neighbours.
        basis: Theorems it rests on, with versions.
        assumptions: What must hold.
        local: What is left when it is seen who reported what.
        prove: Makes a certificate of the run, from epsilon and delta.
    """

    epsilon: Bracket
    delta: float
    adjacency: Adjacency
    basis: tuple[str, ...]
    assumptions: tuple[str, ...]
    local: LocalGuarantee | None = None
    prove: Prove | None = field(default=None, compare=False, repr=False)

    @property
    def kind(self) -> Kind:
        return Kind.GUARANTEE

    def certificate(self) -> dict[str, Any]:
        """The statement with its proof, as plain data (docs/certificate.md)."""
        if self.prove is None:
            raise OutsideTheorem("no certificate: the statement does not know its run any more")
        return self.prove(self.epsilon.upper, self.delta)

    def report(self, path: str | Path, **run: Any) -> None:
        """Write the page to hand over to `path` (.html), with card and certificate beside it; `run` are parameters."""
        from dpcheckin.handover import hand_over

        hand_over(Path(path), self, run)

    def charge(self) -> float:
        """The epsilon to enter in a ledger."""
        return self.epsilon.upper

    def __float__(self) -> float:
        return self.epsilon.upper

    def __str__(self) -> str:
        return " ".join(filter(None, self.sentences()))

    def _repr_html_(self) -> str:
        facts = {"ε (certified)": rounded_up(self.epsilon.upper), "δ": rounded_up(self.delta)}
        if self.local is not None:
            finite = math.isfinite(self.local.epsilon)
            left = rounded_up(self.local.epsilon) if finite else "nothing is left"
            facts[f"ε if {self.local.when}"] = left
        facts |= {"adjacency": self.adjacency.value, "basis": "; ".join(self.basis)}
        return html_facts(facts, str(self))

    def to_frame(self) -> Any:
        """One row of a pandas DataFrame, with every digit."""
        return frame([_flat(self, local=self.local)])

    def sentences(self) -> tuple[str, str | None]:
        """What holds, and what is left of it when it is seen who reported what."""
        delta = rounded_up(self.delta)
        statement = (
            f"The run is {_both(self.epsilon.upper, delta)}-differentially "
            f"private ({self.adjacency.value}) towards the analyzer"
        )
        if self.assumptions:
            statement += ", provided that " + "; ".join(self.assumptions)
        statement += "."
        if self.local is None:
            return statement, None
        left = "nothing is left at this delta"
        if math.isfinite(self.local.epsilon):
            over = rounds_in_words(self.local.rounds)
            left = f"what is left is {_both(self.local.epsilon, delta)} over {over}"
        left = f"If {self.local.when}, {left}"
        if math.isfinite(self.local.report_epsilon):
            left += f" ({rounded_up(self.local.report_epsilon)} for a single report)"
        return statement, left + "."

    def to_json(self) -> dict[str, Any]:
        """A plain object for JSON; `from_json` reads it back."""
        return {
            **_common_json(self),
            "assumptions": list(self.assumptions),
            "local": None if self.local is None else self.local.to_json(),
        }

    @staticmethod
    def from_json(data: str | Mapping[str, Any]) -> Guarantee:
        """Read what `to_json` wrote, as text or as an object."""
        try:
            read = json.loads(data) if isinstance(data, str) else data
            if Kind(read["kind"]) is not Kind.GUARANTEE:
                raise NotAGuarantee(f"a {read['kind']} is not a guarantee")
            epsilon, local = read["epsilon"], read["local"]
            return Guarantee(
                epsilon=Bracket(float(epsilon["lower"]), _infinite(epsilon["upper"])),
                delta=float(read["delta"]),
                adjacency=Adjacency(read["adjacency"]),
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


@dataclass(frozen=True, slots=True)
class LowerBound:
    """An epsilon below which no guarantee about these rounds can be true.

    Args:
        epsilon: `lower` is proved; `upper` is infinite.
        delta: Of the statement.
        adjacency: Which datasets are neighbours.
        basis: The bad case it was computed for.
    """

    epsilon: Bracket
    delta: float
    adjacency: Adjacency
    basis: tuple[str, ...]

    @property
    def kind(self) -> Kind:
        return Kind.LOWER_BOUND

    def __str__(self) -> str:
        figure = rounded_down(self.epsilon.lower)
        return (
            f"no mechanism of this kind can promise less than epsilon = {figure} at delta = {rounded_down(self.delta)}."
        )

    def __float__(self) -> float:
        return self.epsilon.lower

    def _repr_html_(self) -> str:
        facts = {
            "ε (proven lower bound)": rounded_down(self.epsilon.lower),
            "δ": rounded_down(self.delta),
            "adjacency": self.adjacency.value,
            "bad case": "; ".join(self.basis),
        }
        return html_facts(facts, str(self))

    def to_frame(self) -> Any:
        """One row of a pandas DataFrame, with every digit."""
        return frame([_flat(self)])

    def to_json(self) -> dict[str, Any]:
        """A plain object for JSON."""
        return _common_json(self)

    if not TYPE_CHECKING:  # for the type checker there is no such method at all

        def charge(self) -> NoReturn:
            raise NotAGuarantee("a lower bound is not a guarantee: it cannot be charged")


def _both(epsilon: float, delta: str) -> str:
    """(epsilon, delta); a semicolon keeps them apart where epsilon has a comma of its own."""
    figure = rounded_up(epsilon)
    return f"({figure}{';' if ',' in figure else ','} {delta})"


def rounds_in_words(count: int) -> str:
    """How many rounds, as it is said."""
    return "1 round" if count == 1 else f"{count:,} rounds"


def _common_json(statement: Guarantee | LowerBound) -> dict[str, Any]:
    return {
        "kind": statement.kind.value,
        "epsilon": {"lower": statement.epsilon.lower, "upper": _finite(statement.epsilon.upper)},
        "delta": statement.delta,
        "adjacency": statement.adjacency.value,
        "basis": list(statement.basis),
    }


def _flat(statement: Guarantee | LowerBound, local: LocalGuarantee | None = None) -> dict[str, object]:
    return {
        "kind": statement.kind.value,
        "epsilon": float(statement),
        "delta": statement.delta,
        "local_epsilon": None if local is None else local.epsilon,
        "adjacency": statement.adjacency.value,
        "basis": "; ".join(statement.basis),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _infinite(value: float | None) -> float:
    return math.inf if value is None else float(value)
