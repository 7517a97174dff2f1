"""What an entry of the catalogue is: a published bound, its standing, and its value in a setting.

The standing decides what may be done with a number: only a guarantee can be turned into a statement for a ledger; a
lower bound, a conjecture or a refuted claim can be printed beside it and nothing more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any

from dpcheckin.accounting.renyi import RenyiCurve
from dpcheckin.accounting.statements import Bracket
from dpcheckin.errors import InvalidParameter, NotAGuarantee, NumericalFailure, OutsideTheorem
from dpcheckin.numerals import Kind
from dpcheckin.papers.tables import tables

PAPERS: dict[str, str] = {
    tag: cited for table in tables("catalogue.toml").values() for tag, cited in table["papers"].items()
}
"""Every paper by its tag, with the version that is cited."""

CHECK_IN = "shuffled-check-in"
SUBSAMPLE = "subsampled-shuffle"
SHUFFLE = "shuffle"
DISTRIBUTED = "distributed-check-in"
REMOVAL = "distributed-check-in-removal"
FIXED = "random-check-in-fixed"
AVERAGED = "random-check-in-averaged"
SLIDING = "random-check-in-sliding"

_NEEDED = {
    "local_epsilon": "a local epsilon",
    "rate": "a check-in rate",
    "cohort": "a fixed cohort",
    "noise_multiplier": "Gaussian reports (a noise multiplier)",
    "slots": "a number of slots",
}
"""What a run has to have that lets a bound apply, in the words of its refusal."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Everything a published bound may ask about a run; what it needs and lacks, it refuses."""

    protocol: str
    population: int
    rounds: int
    delta: float
    rate: float | None = None
    cohort: int | None = None
    local_epsilon: float | None = None
    local_delta: float = 0.0
    noise_multiplier: float | None = None
    slots: int | None = None
    check_in_probability: float | None = None
    colluding: float = 0.0
    dropout: float = 0.0
    lowest_rate: float | None = None
    randomizer: Any = None
    """What makes the reports; None for any that keeps the local epsilon, or adds Gaussian noise."""

    @property
    def adverse(self) -> bool:
        """Is there what no published bound knows of: colluders, lost check-ins, rates that differ?"""
        return bool(self.colluding or self.dropout or self.lowest_rate is not None)

    @property
    def reports(self) -> int:
        """Of a shuffle in which everybody takes part."""
        return self.population

    def arguments(self, function: Callable[..., Any]) -> dict[str, Any]:
        """What a bound's function asks for, by the names of its parameters; what the run lacks is refused.

        A function that does not ask for `rounds` is about one run, unless it returns the Rényi curve of a round; one
        that does not ask for `local_delta` is about pure reports. Parameters that no run knows keep their defaults.
        """
        asked = signature(function, eval_str=True)
        if "rounds" not in asked.parameters and asked.return_annotation is not RenyiCurve:
            self.need_one_round()
        known = {}
        for name, parameter in asked.parameters.items():
            if getattr(self, name, None) is None and parameter.default is not Parameter.empty:
                continue
            pure = name == "local_epsilon" and "local_delta" not in asked.parameters
            known[name] = self.need(name, "a pure local epsilon" if pure else None)
            if pure and self.local_delta > 0.0:
                raise OutsideTheorem("is stated for pure local randomizers (local_delta = 0)")
        return known

    def need(self, name: str, words: str | None = None) -> Any:
        """The field of this name; a run that lacks it is refused, in these or the usual words."""
        value = getattr(self, name)
        if value is None:
            raise OutsideTheorem(f"needs {words or _NEEDED[name]}")
        return value

    def need_one_round(self) -> None:
        """Refuse a run of several rounds."""
        if self.rounds != 1:
            raise OutsideTheorem("is stated for one run; compose runs numerically")


@dataclass(frozen=True, slots=True)
class Statement:
    """One (epsilon, delta) statement of a paper."""

    epsilon: float
    delta: float


Computed = float | Bracket | Statement | RenyiCurve
"""What a bound's function may return."""


def epsilon_of(computed: Computed, kind: Kind, rounds: int, delta: float) -> float:
    """The epsilon that is computed of a bound of this kind.

    A Rényi curve is of one of the rounds, and converted at delta; of a bracket the end counts that is proved.
    """
    if isinstance(computed, RenyiCurve):
        return computed.times(rounds).epsilon(delta).epsilon
    if isinstance(computed, Bracket):
        return computed.lower if kind is Kind.LOWER_BOUND else computed.upper
    return computed.epsilon if isinstance(computed, Statement) else computed


@dataclass(frozen=True, slots=True)
class PublishedBound:
    """One published bound: where it stands, what it says, and the function that computes it.

    `compute` takes what it needs of a `Setting` by the names of its parameters, see `Setting.arguments`.
    """

    name: str
    paper: str
    theorem: str
    statement: str
    kind: Kind
    protocols: tuple[str, ...]
    compute: Callable[..., Computed] = field(compare=False, repr=False)
    erratum: str | None = None

    def __post_init__(self) -> None:
        if self.paper not in PAPERS:
            raise InvalidParameter("paper", self.paper, "one of " + ", ".join(PAPERS))

    @property
    def citation(self) -> str:
        return PAPERS[self.paper]

    def evaluate(self, setting: Setting) -> BoundValue:
        """The bound's epsilon, or the reason why it does not apply here."""
        if setting.protocol not in self.protocols:
            return BoundValue(self, None, f"not about the protocol {setting.protocol}")
        try:
            computed = self.compute(**setting.arguments(self.compute))
            value = epsilon_of(computed, self.kind, setting.rounds, setting.delta)
        except (OutsideTheorem, NumericalFailure) as reason:
            return BoundValue(self, None, str(reason))
        if not value >= 0.0:
            raise InvalidParameter("epsilon", value, "a non-negative number")
        return BoundValue(self, value, None)


@dataclass(frozen=True, slots=True)
class BoundValue:
    """A published bound in one setting: a number with its standing, or a reason without one."""

    bound: PublishedBound
    epsilon: float | None
    reason: str | None

    @property
    def name(self) -> str:
        return self.bound.name

    @property
    def paper(self) -> str:
        return self.bound.paper

    @property
    def theorem(self) -> str:
        return self.bound.theorem

    @property
    def kind(self) -> Kind:
        return self.bound.kind

    @property
    def erratum(self) -> str | None:
        return self.bound.erratum

    @property
    def applies(self) -> bool:
        return self.epsilon is not None

    def guaranteed_epsilon(self) -> float:
        """The number, if and only if it is a guarantee; the one door from here to a ledger."""
        if self.kind is not Kind.GUARANTEE:
            raise NotAGuarantee(
                f"{self.paper} {self.theorem} is a {self.kind.value}, not a guarantee: "
                f"{self.erratum or self.bound.statement}"
            )
        if self.epsilon is None:
            raise OutsideTheorem(f"{self.paper} {self.theorem} {self.reason}")
        return self.epsilon

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "paper": self.paper,
            "citation": self.bound.citation,
            "theorem": self.theorem,
            "statement": self.bound.statement,
            "kind": self.kind.value,
            "epsilon": self.epsilon,
            "reason": self.reason,
            "erratum": self.erratum,
        }
