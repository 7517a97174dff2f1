"""`dp.epsilon` and `dp.delta`: a run in plain names and numbers, one of which may be many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting import (
    Bracket,
    Brackets,
    Composition,
    Guarantee,
    LocalRound,
    LowerBound,
    Round,
    compose,
    epsilon_by_rounds,
)
from dpcheckin.accounting.figures import is_array
from dpcheckin.errors import InvalidParameter
from dpcheckin.notebook.sweeps import Sweep
from dpcheckin.options import DEFAULT_DELTA
from dpcheckin.protocols.questions import RunQuestion
from dpcheckin.randomizers import Randomizer

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
        slots: Of a random check-in window.
        check_in_probability: To check in to a window at all.

    >>> print(f"{float(epsilon(10_000, 0.01, 2.0, rounds=100, delta=1e-4)):.4f}")
    0.0695
    """
    given = {name: value for name, value in locals().items() if name != "delta"}
    many = [name for name, value in (*given.items(), ("delta", delta)) if is_array(value)]
    if not many:
        return RunQuestion(**given).guarantee(delta)  # type: ignore[arg-type]
    if len(many) > 1:
        raise InvalidParameter("arrays", ", ".join(many), "at most one argument of many numbers")
    (name,) = many
    values = np.asarray(delta if name == "delta" else given.pop(name))
    if values.ndim != 1 or not values.size:
        raise InvalidParameter(name, values, "one number, or a list of them")
    if name == "delta":
        return _over_deltas(RunQuestion(**given), values)
    return _over(name, values, given, delta)  # type: ignore[arg-type]


def _over_deltas(question: RunQuestion, deltas: NDArray[Any]) -> Sweep:
    if question.stated_by_rounds:
        run = compose([(question.round(float(deltas.min())), question.rounds)])
        found = _unshuffled(list(run.epsilon(deltas)), deltas.tolist(), question, "delta")
    else:
        found = [question.guarantee(delta).epsilon for delta in deltas.tolist()]
    return Sweep("delta", deltas, Brackets.of(found), _least(lambda d: (question, d)))


def _over(name: str, values: NDArray[Any], given: dict[str, Any], delta: float) -> Sweep:
    def question(value: Any) -> RunQuestion:
        return RunQuestion(**{**given, name: value})

    first = question(values.tolist()[0])
    if name == "rounds" and first.stated_by_rounds:
        counts = values.tolist()
        one = first.round(delta)
        found = list(epsilon_by_rounds(one, counts, delta))
        found = _unshuffled(found, counts, first, "rounds", delta)
    else:
        found = [question(value).guarantee(delta).epsilon for value in values.tolist()]
    return Sweep(name, values, Brackets.of(found), _least(lambda value: (question(value), delta)))


def _unshuffled(
    found: list[Bracket],
    values: list[Any],
    question: RunQuestion,
    name: str,
    delta: float = DEFAULT_DELTA,
) -> list[Bracket]:
    """What holds without the permutation holds with it: the smaller of both.

    Asked for only where it may be the smaller one, at either end of the values.
    """
    one = question.round(delta)
    if one.pair is None:
        return found
    seen = LocalRound(one.pair, one.participation)

    def alone(some: list[Any]) -> Brackets:
        if name == "rounds":
            return epsilon_by_rounds(seen, some, delta)
        return compose([(seen, question.rounds)]).epsilon(some)

    order = sorted(range(len(values)), key=lambda i: values[i])
    ends = [order[0], order[-1]]
    least = alone([values[i] for i in ends]).upper
    if all(low > 1.05 * found[i].upper for i, low in zip(ends, least, strict=True)):
        return found
    return [_smaller(one, two.upper) for one, two in zip(found, alone(values), strict=True)]


def _smaller(one: Bracket, upper: float) -> Bracket:
    return Bracket(min(one.lower, upper), min(one.upper, upper))


def _least(
    asked: Callable[[Any], tuple[RunQuestion, float]],
) -> Callable[[Any], LowerBound | None]:
    def least(value: Any) -> LowerBound | None:
        question, delta = asked(value)
        return question.lower_bound(delta) if question.has_lower_bound else None

    return least


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
