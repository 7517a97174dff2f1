"""What is asked: a frozen description that randomizes answers, estimates, and states its errors.

A query knows what a client's value may be (`encode`), how it is randomized at a local epsilon
(`randomizer`, by one of its `mechanisms`), and what follows from the reports (`estimate`). Who
answers when is the plan's business, what it costs the accountant's. Descriptions travel as plain
documents.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from importlib import import_module
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols.plan import Plan
from dpcheckin.randomizers import Randomizer, registry
from dpcheckin.randomizers.formats import Reports
from dpcheckin.survey.estimates import Estimate
from dpcheckin.survey.influence import check_clients, largest_moves, least_sizes
from dpcheckin.survey.names import QUERIES
from dpcheckin.survey.received import Received
from dpcheckin.survey.sampling import Sample

Values = NDArray[Any]
Made = TypeVar("Made", bound=Randomizer)


class Query(ABC):
    """A question to every client of a fleet."""

    kind: ClassVar[str]
    unit: ClassVar[str] = "people"
    """What the error that is planned for is counted in."""
    figure_unit: ClassVar[str | None] = None
    """What the figures themselves are counted in, where that is something else."""
    stages: int = 1
    """Rounds that ask different things; a survey has a multiple of them."""

    def as_document(self) -> dict[str, Any]:
        """The description as plain data; `from_document` reads it."""
        own = {one.name: _plain(getattr(self, one.name)) for one in fields(self)}  # type: ignore[arg-type]
        return {"kind": self.kind, **own}

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> Query:
        """The query that a document describes.

        Args:
            document: as `as_document` gives it, perhaps read from JSON.
        """
        name = document.get("kind")
        if not isinstance(name, str) or name not in QUERIES:
            raise InvalidParameter("kind", name, "one of " + ", ".join(QUERIES))
        module, cls = QUERIES[name]
        kind: Any = getattr(import_module(f"dpcheckin.survey.questions.{module}"), cls)
        allowed = {one.name for one in fields(kind)}
        given = {name: value for name, value in document.items() if name != "kind"}
        strange = sorted(set(given) - allowed)
        if strange:
            raise InvalidParameter("query", strange[0], f"one of {', '.join(sorted(allowed))}")
        frozen = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given.items()
        }
        try:
            made: Query = kind(**frozen)
            return made
        except TypeError as problem:
            raise InvalidParameter("query", kind.kind, f"all it needs ({problem})") from None

    @abstractmethod
    def encode(self, values: Any) -> Values:
        """Clients' values as the randomizer takes them; what is no value is refused.

        Args:
            values: one a client: a list, a NumPy array or a pandas Series.
        """

    def encode_any(self, value: Any) -> Values:
        """One client's value as the randomizer takes it, whatever it is: nothing is refused.

        Who writes the question chooses what its values are, and so whom a refusal would tell
        about. What is no value counts as the `nearest` one.

        Args:
            value: as it was found; None if there is none.
        """
        if value is not None:
            try:
                return self.encode([value])
            except Exception:  # whatever it is, it is no value of this question
                pass
        return self.encode([self.nearest(value)])

    @abstractmethod
    def nearest(self, value: Any) -> Any:
        """The value of this question that one which is none counts as; raises for nothing.

        Args:
            value: anything; None for nothing at all.
        """

    def clipped(self, values: Any) -> tuple[int, str]:
        """How many values `encode` moves to a bound, and what is beyond it; then so is the truth.

        Args:
            values: one a client, raw.
        """
        return 0, ""

    @abstractmethod
    def mechanisms(self) -> Sequence[str]:
        """Ways to randomize an answer, by name; the planner picks the one of least error."""

    @abstractmethod
    def randomizer(self, local_epsilon: float, mechanism: str | None = None) -> Randomizer:
        """What turns a client's encoded value into its report.

        Args:
            local_epsilon: epsilon of one report.
            mechanism: one of `mechanisms`; without it the first.
        """

    def estimate(
        self,
        reports: Sequence[Reports] | Reports,
        plan: Plan,
        confidence: float = 0.95,
        simultaneous: bool = False,
    ) -> Estimate:
        """The answer, from the reports of all rounds.

        Args:
            reports: decoded reports, one array a round; an array alone is one round.
            plan: who was asked, and by which randomizer.
            confidence: of the intervals.
            simultaneous: whether all intervals are to hold at once.
        """
        kept, dropped = counted(reports, plan)
        return self.answer(Received(tuple(kept), dropped, plan, confidence, simultaneous))

    @abstractmethod
    def answer(self, received: Received) -> Estimate:
        """The answer, from reports that clients can have made.

        Args:
            received: the reports, and how sure the intervals are to be.
        """

    @abstractmethod
    def predicted_error(self, randomizer: Randomizer, sample: Sample) -> float:
        """Root of the mean squared error to be expected, in the query's unit.

        Args:
            randomizer: of the reports.
            sample: how many reports come in each round.
        """

    @abstractmethod
    def reach(self, plan: Plan) -> NDArray[np.float64]:
        """Largest minus smallest part that a report can have in a figure, in the query's unit.

        A row for each figure, or one for all; a column for each part of the reports that has a mean
        of its own, to which every report belongs with the same probability.

        Args:
            plan: of the survey.
        """

    def influence(
        self, plan: Plan, clients: int, answer: Estimate | int | None = None
    ) -> NDArray[np.float64]:
        """The most by which so many colluding clients can move each figure; proved.

        In the rows of `reach` and the query's unit.

        Args:
            plan: of the survey; a client sends at most one report a round.
            clients: how many collude; they may report in every round, whatever their coins say.
            answer: what the reports led to, hostile ones included, or how many were counted in all
                rounds. Without it, and where a number does not say how many each part has, as few
                as honest coins lead to but with probability 10⁻⁹.
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

    def moved(self, estimate: Estimate, bounds: NDArray[np.float64]) -> tuple[Values, Values]:
        """Between which values each figure would be if clients of this influence had not lied.

        Args:
            estimate: what the reports led to.
            bounds: of `influence`.
        """
        return estimate.values - bounds, estimate.values + bounds

    def asked(self, values: Values, round_index: int) -> Values:
        """What a round asks of encoded values; the same in every round unless there are stages.

        Args:
            values: encoded, one a client.
            round_index: from 0.
        """
        return values

    def truth(self, values: Any, estimate: Estimate) -> NDArray[np.float64]:
        """The figures of an estimate without noise, for simulations and tests.

        Args:
            values: one a client, raw.
            estimate: whose names say which figures.
        """
        return self.truth_of(self.encode(values), estimate)

    @abstractmethod
    def truth_of(self, values: Values, estimate: Estimate) -> NDArray[np.float64]:
        """The same, of values that are encoded.

        Args:
            values: encoded, of all clients.
            estimate: whose names say which figures.
        """

    def decode(self, payloads: Sequence[bytes], plan: Plan) -> tuple[Reports, int]:
        """The reports that can be counted, and how many were dropped.

        Args:
            payloads: the bytes of each report of a round.
            plan: of the survey.
        """
        rows, dropped = plan.randomizer.report_format.decode(payloads)
        good = plan.randomizer.well_formed(rows)
        return rows[good], dropped + int(len(good) - good.sum())

    def made(
        self, kind: Callable[..., Made], mechanism: str | None, local_epsilon: float, **known: Any
    ) -> Made:
        """The randomizer of a mechanism.

        Args:
            kind: what is needed to answer the question.
            mechanism: as the registry reads it; None for the first.
            local_epsilon: epsilon of one report.
            known: what the question says of the randomizer, by field.
        """
        text = mechanism or self.mechanisms()[0]
        found = registry.randomizer(text, known, local_epsilon=local_epsilon)
        if not isinstance(found, kind):  # type: ignore[arg-type]
            raise InvalidParameter("mechanism", text, f"one such as {self.mechanisms()[0]}")
        return cast(Made, found)


def counted(reports: Sequence[Reports] | Reports, plan: Plan) -> tuple[list[Reports], int]:
    """Reports round by round without those that no client could have made, and their number."""
    rounds = [reports] if isinstance(reports, np.ndarray) else [np.asarray(r) for r in reports]
    kept, dropped = [], 0
    for some in rounds:
        rows = plan.randomizer.report_format.shaped(some)
        good = plan.randomizer.well_formed(rows) if len(rows) else np.zeros(0, dtype=np.bool_)
        kept.append(rows[good])
        dropped += len(some) - int(good.sum())
    return kept, dropped


def numbers_of(given: Values) -> NDArray[np.float64]:
    """Values as finite numbers; the first that is none is named.

    Args:
        given: one a client, perhaps texts.
    """
    try:
        numbers = np.asarray(given.astype(np.float64))
    except (TypeError, ValueError):
        numbers = np.array([_number(value) for value in given.ravel()])
    strange = np.flatnonzero(~np.isfinite(numbers.ravel()))
    if strange.size:
        place = int(strange[0])
        raise no_value(given.ravel()[place], place, "finite numbers")
    return numbers


def no_value(value: Any, place: int, allowed: str) -> InvalidParameter:
    """The complaint about one of many values, which says which one it is.

    >>> print(no_value("blue", 2, "one of the categories"))
    values = 'blue (value 3)' is not allowed: expected one of the categories

    Args:
        value: as it was given.
        place: counted from 0.
        allowed: what is expected.
    """
    return InvalidParameter("values", f"{value} (value {place + 1:,})", allowed)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan


def number_between(value: Any, low: float, high: float) -> float:
    """The number that is nearest to a value, between bounds; to what is no number, 0 is.

    >>> [number_between(value, -1, 10) for value in ("12", "-inf", "text", None)]
    [10.0, -1.0, 0.0, 0.0]

    Args:
        value: anything.
        low: smallest number.
        high: largest number.
    """
    try:
        number = float(value)
    except Exception:  # a text, nothing, or a whole number of a thousand digits
        number = 0.0
    return float(min(max(0.0 if np.isnan(number) else number, low), high))


def plain_values(values: Any, name: str = "values") -> Values:
    """A flat NumPy array of what may be a list, an array or a pandas Series."""
    found = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    if found.ndim != 1:
        raise InvalidParameter(name, f"{found.ndim}-dimensional", "one value a client")
    return np.asarray(found)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
