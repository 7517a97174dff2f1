"""`dp.epsilon` and `dp.delta`: a run in plain names and numbers, one of which may be many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting import (
    Bracket,
    Brackets,
    Composition,
    Guarantee,
    Kind,
    LocalRound,
    LowerBound,
    Round,
    compose,
    epsilon_by_rounds,
)
from dpcheckin.display import Tabular, axes_for, legend_beside, readable_ticks
from dpcheckin.errors import InvalidParameter
from dpcheckin.handover import in_words
from dpcheckin.numerals import written
from dpcheckin.options import DEFAULT_DELTA
from dpcheckin.protocols.questions import PROTOCOLS, RunQuestion
from dpcheckin.randomizers import Randomizer


@dataclass(frozen=True, eq=False)
class Sweep(Tabular):
    """Certified epsilon for many values of one parameter.

    As an array it is its certified figures, `sweep.epsilon.upper`.

    Args:
        parameter: What varies: rounds, delta, rate, …
        values: Of the parameter.
        epsilon: Between certified bounds, one for each value.
        least: What no guarantee can be smaller than, at one value; None where nothing is known.
        about: The run in one line.
    """

    parameter: str
    values: NDArray[Any]
    epsilon: Brackets
    least: Callable[[Any], LowerBound | None] = field(repr=False)
    about: str = ""

    @cached_property
    def lower_bounds(self) -> NDArray[np.float64]:
        """Proven lower bounds, one for each value; NaN where nothing is known."""
        found = [self.least(value) for value in self.values.tolist()]
        return np.array([np.nan if one is None else one.epsilon.lower for one in found])

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self.epsilon.upper, dtype=dtype)

    def records(self) -> list[dict[str, Any]]:
        """Rows of the table: the parameter, and epsilon between its bounds."""
        return [
            {self.parameter: value, "epsilon": one.upper, "epsilon_at_least": one.lower}
            for value, one in zip(self.values.tolist(), self.epsilon, strict=True)
        ]

    def shown(self) -> list[dict[str, str]]:
        return [
            {
                self.parameter.replace("_", " "): written(row[self.parameter]),
                "ε (certified)": Kind.GUARANTEE.figure(row["epsilon"]),
            }
            for row in self.records()
        ]

    def plot(self, axes: Any = None, *, lower_bound: bool = False) -> Any:
        """Certified epsilon against the parameter.

        Args:
            axes: Of matplotlib, to draw on; left out, a new figure.
            lower_bound: Draw the proven lower bounds too, which takes longer.
        """
        axes = axes_for(axes, xlabel=self.parameter.replace("_", " "), ylabel="ε")
        order = np.argsort(self.values)
        x = self.values[order]
        axes.plot(x, self.epsilon.upper[order], color="#1b9e4b", marker="o", ms=3, label="certified")
        if lower_bound:
            least = self.lower_bounds[order]
            axes.fill_between(x, 0.0, least, color="#1f5fbf", alpha=0.15, lw=0)
            axes.plot(x, least, color="#1f5fbf", ls=(0, (4, 4)), lw=2.2, label="proven lower bound")
        if x.size > 2 and x[0] > 0 and x[-1] / x[0] > 20:
            axes.set_xscale("log")
            axes.set_yscale("log")
        readable_ticks(axes)
        axes.set_title(self.about, fontsize=9)
        legend_beside(axes)
        return axes


Whole = int | Sequence[int] | NDArray[Any]
Real = float | Sequence[float] | NDArray[Any]
# a window whose reports are averaged sets this part aside for unlucky loads
AVERAGED_LOADS = 1e-9


def epsilon(
    population: Whole,
    rate: Real | None = None,
    local_epsilon: Real | None = None,
    rounds: Whole = 1,
    delta: Real = DEFAULT_DELTA,
    *,
    randomizer: str | Randomizer = "any",
    protocol: str = "shuffled-check-in",
    cohort: Whole | None = None,
    colluding: Real = 0.0,
    dropout: Real = 0.0,
    lowest_rate: Real | None = None,
    local_delta: Real = 0.0,
    noise_multiplier: Real | None = None,
    dimension: int | None = None,
    slots: Whole | None = None,
    check_in_probability: Real | None = None,
) -> Guarantee | Sweep:
    """Certified epsilon of a run: the statement with its reasons; `float()` of it is the figure.

    One argument may be many numbers: then epsilon is told for each, as a table that plots itself.

    Args:
        population: Number of clients.
        rate: Probability that a client checks in to a round.
        local_epsilon: Epsilon of one report; none for Gaussian noise.
        rounds: Number of rounds, or windows.
        delta: Of the statement, strictly between 0 and 1.
        randomizer: By name, such as dary:10 (`dpcheckin epsilon --help` lists them), or itself.
        protocol: shuffled-check-in, subsampled-shuffle, shuffle, distributed-check-in,
            random-check-in-fixed, random-check-in-averaged, random-check-in-sliding, local-only
            or central.
        cohort: Size of a fixed cohort, instead of a rate.
        colluding: Fraction of clients that work with the analyzer.
        dropout: Largest probability that a check-in gets lost.
        lowest_rate: Rates lie between this and `rate`.
        local_delta: Delta of one report.
        noise_multiplier: Gaussian noise per clipping norm, instead of a randomizer.
        dimension: Numbers of a report, for a randomizer of vectors.
        slots: Of a random check-in window.
        check_in_probability: To check in to a window at all.

    >>> print(f"{float(epsilon(10_000, 0.01, 2.0, rounds=100, delta=1e-4)):.4f}")
    0.0695
    """
    given = {name: value for name, value in locals().items() if name != "delta"}
    many = [name for name, value in (*given.items(), ("delta", delta)) if np.ndim(value)]
    if not many:
        return RunQuestion(**given).guarantee(delta)  # type: ignore[arg-type]
    if len(many) > 1:
        raise InvalidParameter("arrays", ", ".join(many), "at most one argument of many numbers")
    (name,) = many
    values = np.asarray(delta if name == "delta" else given.pop(name))
    if values.ndim != 1 or not values.size:
        raise InvalidParameter(name, values, "one number, or a list of them")
    return _over(name, values, given, delta)


def sweep_of(name: str, values: NDArray[Any], question: RunQuestion, delta: float) -> Sweep:
    """The `question` at `delta`, with many values of one of its fields, or of delta: the `name`."""
    return _over(name, values, {one.name: getattr(question, one.name) for one in fields(question)}, delta)


def _over(name: str, values: NDArray[Any], given: dict[str, Any], delta: Any) -> Sweep:
    def asked(value: Any) -> tuple[RunQuestion, float]:
        if name == "delta":
            return RunQuestion(**given), value
        return RunQuestion(**{**given, name: value}), delta

    def least(value: Any) -> LowerBound | None:
        question, delta = asked(value)
        return question.lower_bound(delta) if question.has_lower_bound else None

    question, _ = asked(values.tolist()[0])
    if name in ("rounds", "delta") and question.stated_by_rounds:
        certified = _composed_at_once(name, values.tolist(), question, delta)
    else:
        certified = [question.guarantee(delta).epsilon for question, delta in map(asked, values.tolist())]
    about = in_words(PROTOCOLS[question.protocol].label, {**given, "delta": delta}, name)
    return Sweep(name, values, Brackets.of(certified), least, about)


def _composed_at_once(name: str, values: list[Any], question: RunQuestion, delta: Any) -> list[Bracket]:
    """Epsilon at many deltas or numbers of rounds, with the permutation or without it: the smaller of both.

    What holds without it is asked for only where it may be the smaller one, at either end of the values.
    """
    shuffled = question.round(DEFAULT_DELTA)  # of rounds that are stated as such, the same for every delta

    def composed(one: Round, some: list[Any]) -> Brackets:
        if name == "rounds":
            return epsilon_by_rounds(one, some, delta)
        return compose([(one, question.rounds)]).epsilon(np.array(some))

    certified = list(composed(shuffled, values))
    if shuffled.pair is None:
        return certified
    alone = LocalRound(shuffled.pair, shuffled.participation)
    order = sorted(range(len(values)), key=lambda i: values[i])
    ends = [order[0], order[-1]]
    least = composed(alone, [values[i] for i in ends]).upper
    if all(low > 1.05 * certified[i].upper for i, low in zip(ends, least, strict=True)):
        return certified
    uppers = [bracket.upper for bracket in composed(alone, values)]
    return [Bracket(min(b.lower, u), min(b.upper, u)) for b, u in zip(certified, uppers, strict=True)]


def delta(
    epsilon: Real, population: int, rate: float | None = None, local_epsilon: float | None = None,
    rounds: int = 1, **run: Any,
) -> Bracket | Brackets:  # fmt: skip
    """Certified delta of a run at one epsilon, or at many.

    Args:
        epsilon: Of the statement, 0 or more; or a list of them.
        population: Number of clients.
        rate: Probability that a client checks in to a round.
        local_epsilon: Epsilon of one report; none for Gaussian noise.
        rounds: Number of rounds, or windows.
        run: What else `epsilon` takes.

    >>> delta(0.0695, 10_000, 0.01, 2.0, rounds=100).upper < 1.001e-4
    True
    """
    question = RunQuestion(
        population=population, rate=rate, local_epsilon=local_epsilon, rounds=rounds,
        **{"protocol": "shuffled-check-in", **run},
    )  # fmt: skip
    return round_and_run(question)[1].delta(epsilon)


def round_and_run(question: RunQuestion) -> tuple[Round, Composition]:
    """The round that a question is about, and its composition."""
    one = question.round(delta=AVERAGED_LOADS)
    return one, compose([(one, question.rounds)])
