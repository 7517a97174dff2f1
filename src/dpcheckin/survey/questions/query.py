"""What is asked: a frozen description that randomizes answers, estimates, and states its errors.

A query knows what a client's value may be (`encode`), how it is randomized at a local epsilon (`randomizer`, by one of
its `mechanisms`), and what follows from the reports (`estimate`). Who answers when is the plan's business, what it
costs the accountant's. Descriptions travel as plain documents.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols.plan import Plan
from dpcheckin.randomizers import Randomizer, registry
from dpcheckin.randomizers.formats import Reports
from dpcheckin.survey.estimates import Estimate, Figures, Received, Sample, check_clients, largest_moves, least_sizes
from dpcheckin.survey.questions import QUERIES

Values = NDArray[Any]


class Query(ABC):
    """A question to every client of a fleet."""

    kind: ClassVar[str]
    unit: ClassVar[str] = "people"
    """What the error that is planned for is counted in."""
    reads: ClassVar[tuple[Any, str]]
    """The kind of randomizers whose reports answer the question, and the same in words."""
    figure_unit: ClassVar[str | None] = None
    """What the figures themselves are counted in, where that is something else."""

    @property
    def figure_scale(self) -> float:
        """What a planned error is multiplied by to be one of the figures, if values are spread evenly."""
        return 1.0

    @property
    def figure_rounding(self) -> float:
        """How much wider on either side an interval of the figures is on average, because it ends at edges."""
        return 0.0

    stages: int = 1
    """Rounds that ask different things; a survey has a multiple of them."""

    def as_document(self) -> dict[str, Any]:
        """The description as plain data; `from_document` reads it."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {"kind": self.kind, **{k: list(v) if isinstance(v, tuple) else v for k, v in own.items()}}

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> Query:
        """The query that a document describes, as `as_document` gives it or as it was read from JSON."""
        kind = query_class(document.get("kind"))
        allowed = {field.name for field in fields(kind)}
        given = {name: value for name, value in document.items() if name != "kind"}
        strange = sorted(set(given) - allowed)
        if strange:
            raise InvalidParameter("query", strange[0], f"one of {', '.join(sorted(allowed))}")
        frozen = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
        try:
            made: Query = kind(**frozen)
            return made
        except TypeError as problem:
            raise InvalidParameter("query", kind.kind, f"all it needs ({problem})") from None

    @abstractmethod
    def encode(self, values: Any) -> Values:
        """Clients' values (a list, an array, a pandas Series) as the randomizer takes them; what is none is refused."""

    def encode_any(self, value: Any) -> Values:
        """One client's value as the randomizer takes it, whatever it is (None: there is none): nothing is refused.

        Who writes the question chooses what its values are, and so whom a refusal would tell about. What is no value
        counts as the `nearest` one.
        """
        if value is not None:
            try:
                return self.encode([value])
            except Exception:  # whatever it is, it is no value of this question
                pass
        return self.encode([self.nearest(value)])

    @abstractmethod
    def nearest(self, value: Any) -> Any:
        """The value of this question that anything else, or None, counts as; raises for nothing."""

    def clipped(self, values: Any) -> tuple[int, str]:
        """How many raw values `encode` moves to a bound, and what is beyond it; then so is the truth."""
        return 0, ""

    @abstractmethod
    def mechanisms(self) -> Sequence[str]:
        """Ways to randomize an answer, by name; the planner picks the one of least error."""

    def known(self) -> dict[str, Any]:
        """What the question says of its randomizer, by field."""
        return {}

    def randomizer(self, local_epsilon: float, mechanism: str | None = None) -> Randomizer:
        """What makes reports of this local_epsilon of encoded values: a mechanism by name that the query `reads`."""
        text = mechanism or self.mechanisms()[0]
        randomizer: Randomizer = registry.randomizer(text, {**self.known(), "local_epsilon": local_epsilon})
        fits = isinstance(randomizer, self.reads[0]) and randomizer.noise_field == "local_epsilon"
        if not fits:
            raise InvalidParameter("mechanism", text, f"one such as {self.mechanisms()[0]}")
        return randomizer

    def estimate(
        self, reports: Sequence[Reports] | Reports, plan: Plan, confidence: float = 0.95, simultaneous: bool = False
    ) -> Estimate:
        """The answer, from the decoded reports of all rounds; an array alone is one round.

        The plan says who was asked, and by which randomizer. Intervals have the given confidence, all of them at once
        if `simultaneous`.
        """
        rounds = [reports] if isinstance(reports, np.ndarray) else [np.asarray(r) for r in reports]
        form = plan.randomizer.report_format
        kept = [_possible(form.shaped(some), plan) for some in rounds]
        dropped = sum(map(len, rounds)) - sum(map(len, kept))
        return self.answer(Received(tuple(kept), dropped, plan, confidence, simultaneous))

    @abstractmethod
    def answer(self, received: Received) -> Estimate:
        """The answer, from reports that clients can have made."""

    @abstractmethod
    def predicted_error(self, randomizer: Randomizer, sample: Sample) -> float:
        """Root of the mean squared error that a randomizer's reports of such a sample lead to, in the query's unit."""

    @abstractmethod
    def reach(self, plan: Plan) -> Figures:
        """Largest minus smallest part that a report of the plan can have in a figure, in the query's unit.

        A row for each figure, or one for all; a column for each part of the reports that has a mean of its own, to
        which every report belongs with the same probability.
        """

    def influence(self, plan: Plan, clients: int, answer: Estimate | int | None = None) -> Figures:
        """The most by which so many colluding clients can move each figure; proved.

        In the rows of `reach` and the query's unit. Those that collude may report in every round of the plan, whatever
        their coins say. The `answer` is what the reports led to, hostile ones included, or how many were counted in all
        rounds. Without it, and where a number does not say how many each part has, there are as few as honest coins
        lead to but with probability 10⁻⁹.
        """
        count, reach = check_clients(clients, plan.population), self.reach(plan)
        parts, rounds = reach.shape[1], plan.rounds // self.stages
        if isinstance(answer, Estimate):
            return largest_moves(reach, answer.parts or (answer.reports,), count * rounds)
        if answer is None:
            honest = (plan.population - count) * rounds
            least = least_sizes(honest, getattr(plan, "rate", 1.0) / parts, parts)
        else:
            honest = max(int(answer) - count * plan.rounds, 0)
            least = least_sizes(honest, 1.0 / (parts * self.stages), parts)
        # a part of its own has all of the hostile reports; of several, perhaps none
        sizes = least + (count * rounds if parts == 1 else 0)
        return largest_moves(reach, sizes.tolist(), count * rounds)

    def moved(self, estimate: Estimate, bounds: Figures) -> tuple[Figures, Figures]:
        """Between which values each figure of the estimate would be without lies of this influence (`bounds`)."""
        return estimate.values - bounds, estimate.values + bounds

    def round_details(self, finished: Sequence[Reports], plan: Plan) -> dict[str, Any]:
        """What clients are told of the round of a `plan` after the `finished` ones, besides its number."""
        return {}

    def asked(self, values: Values, round_index: int) -> Values:
        """What a round (round_index, from 0) asks of encoded values: the same in each unless there are stages."""
        return values

    def truth(self, values: Any, estimate: Estimate) -> Figures:
        """The figures that an estimate has names for, of clients' raw values without noise."""
        return self.truth_of(self.encode(values), estimate)

    @abstractmethod
    def truth_of(self, values: Values, estimate: Estimate) -> Figures:
        """The figures that an estimate has names for, of the encoded values of all clients."""

    def decode(self, payloads: Sequence[bytes], plan: Plan) -> tuple[Reports, int]:
        """The reports that can be counted among a round's payloads under a plan, and how many were dropped."""
        rows, dropped = plan.randomizer.report_format.decode(payloads)
        kept = _possible(rows, plan)
        return kept, dropped + len(rows) - len(kept)

    def readable(self, randomizer: Randomizer) -> Any:
        """The randomizer, if it is of the kind that the query `reads`."""
        kind, in_words = self.reads
        if not isinstance(randomizer, kind):
            raise InvalidParameter("randomizer", randomizer.describe(), in_words)
        return randomizer


def query_class(name: object) -> Any:
    """The class of a kind of question."""
    if not isinstance(name, str) or name not in QUERIES:
        raise InvalidParameter("kind", name, "one of " + ", ".join(QUERIES))
    return getattr(import_module(f"{__package__}.{QUERIES[name].module}"), QUERIES[name].cls)


def _possible(rows: Reports, plan: Plan) -> Reports:
    """The reports that some client can have made."""
    return rows[plan.randomizer.well_formed(rows)] if len(rows) else rows


def numbers_of(given: Values) -> NDArray[np.float64]:
    """Values, perhaps texts, as finite numbers; the first that is none is named."""
    try:
        numbers = np.asarray(given.astype(np.float64))
    except (TypeError, ValueError):
        numbers = np.array([_number(value) for value in given.ravel()])
    strange = np.flatnonzero(~np.isfinite(numbers.ravel()))
    if strange.size:
        place = int(strange[0])
        raise no_value(given.ravel()[place], place, "finite numbers, without units or commas, such as 1234.5")
    return numbers


def no_value(value: Any, place: int, allowed: str) -> InvalidParameter:
    """The complaint about the value at a place, counted from 0, where something else is allowed.

    >>> print(no_value("blue", 2, "one of the categories"))
    values = 'blue (value 3)' is not allowed: expected one of the categories
    """
    return InvalidParameter("values", f"{value} (value {place + 1:,})", allowed)


def _number(value: Any) -> float:
    """A value as a number, NaN if it is none."""
    try:
        return float(value)
    except Exception:  # a text, nothing, or a whole number of a thousand digits
        return np.nan


def number_between(value: Any, low: float, high: float) -> float:
    """The number between low and high that is nearest to a value; to what is no number, 0 is.

    >>> [number_between(value, -1, 10) for value in ("12", "-inf", "text", None)]
    [10.0, -1.0, 0.0, 0.0]
    """
    number = _number(value)
    return float(min(max(0.0 if np.isnan(number) else number, low), high))


def plain_values(values: Any) -> Values:
    """A flat NumPy array of what may be a list, an array or a pandas Series."""
    array = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    if array.ndim != 1:
        raise InvalidParameter("values", f"{array.ndim}-dimensional", "one value a client")
    return np.asarray(array)
