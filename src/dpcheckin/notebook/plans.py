"""`dp.plan`: solve for the one parameter left out, so that a run meets a target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpcheckin.accounting import Guarantee, Kind, Round, guarantee
from dpcheckin.accounting.composition.solve import solve
from dpcheckin.display import Tabular
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import written
from dpcheckin.options import DEFAULT_DELTA, listed
from dpcheckin.protocols.questions import RunQuestion


@dataclass(frozen=True)
class PlannedRun(Tabular):
    """The answer to an inverse question.

    Args:
        parameter: What was left out: rounds, population, rate, local_epsilon or noise_multiplier.
        value: Its extreme value that meets the target; one step further fails.
        guarantee: What is certified of the run.
        run: All parameters, the answer among them.
    """

    parameter: str
    value: float
    guarantee: Guarantee
    run: RunQuestion

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        return f"{self.parameter.replace('_', ' ')} = {written(self.value)}. {self.guarantee}"

    def records(self) -> list[dict[str, Any]]:
        """One row: the answer, and what is certified."""
        return [
            {
                self.parameter: self.value,
                "epsilon": self.guarantee.epsilon.upper,
                "delta": self.guarantee.delta,
            }
        ]

    def shown(self) -> list[dict[str, str]]:
        return [
            {
                self.parameter.replace("_", " "): written(self.value),
                "ε (certified)": Kind.GUARANTEE.figure(self.guarantee.epsilon.upper),
                "δ": Kind.GUARANTEE.figure(self.guarantee.delta),
            }
        ]

    @property
    def caption(self) -> str:
        return str(self.guarantee)


def plan(
    *,
    epsilon: float,
    delta: float = DEFAULT_DELTA,
    population: int | None = None,
    rate: float | None = None,
    local_epsilon: float | None = None,
    rounds: int | None = None,
    randomizer: str = "any",
    protocol: str = "shuffled-check-in",
    cohort: int | None = None,
    colluding: float = 0.0,
    dropout: float = 0.0,
    lowest_rate: float | None = None,
    local_delta: float = 0.0,
    noise_multiplier: float | None = None,
    solve_for: str | None = None,
    on_question: Callable[[str], None] = lambda _: None,
) -> PlannedRun:
    """Solve for the one parameter left out, so that the run meets the target epsilon.

    Args:
        epsilon: The target.
        delta: Of the statement.
        population: Number of clients.
        rate: Probability that a client checks in to a round.
        local_epsilon: Epsilon of one report; none for Gaussian noise.
        rounds: Number of rounds.
        randomizer: any, binary, dary:K, hemisphere, privunit:DIM, gaussian:SIGMA or laplace.
        protocol: shuffled-check-in, subsampled-shuffle, shuffle or distributed-check-in.
        cohort: Size of a fixed cohort.
        colluding: Fraction of clients that work with the analyzer.
        dropout: Largest probability that a check-in gets lost.
        lowest_rate: Rates lie between this and `rate`.
        local_delta: Delta of one report.
        noise_multiplier: Gaussian noise per clipping norm, instead of a randomizer. It is solved
            for with randomizer="gaussian" if it is left out.
        solve_for: The parameter left out, if one wants to say so.
        on_question: Told which value is tried.

    >>> plan(epsilon=0.07, delta=1e-4, population=10_000, rate=0.01, local_epsilon=2.0).value
    101
    """
    given = {
        "population": population, "rate": rate, "local_epsilon": local_epsilon, "rounds": rounds,
        "randomizer": randomizer, "protocol": protocol, "cohort": cohort, "colluding": colluding,
        "dropout": dropout, "lowest_rate": lowest_rate, "local_delta": local_delta,
        "noise_multiplier": noise_multiplier,
    }  # fmt: skip
    asked = ["population", "rounds"]
    if protocol == "shuffled-check-in":
        asked.append("rate")
    if randomizer == "gaussian" or _name(solve_for) == "noise_multiplier":
        asked.append("noise_multiplier")
    elif noise_multiplier is None and not randomizer.startswith("gaussian"):
        asked.append("local_epsilon")
    free = _left_out({name: given[name] for name in asked}, solve_for)

    def run(value: float) -> RunQuestion:
        chosen: dict[str, Any] = {**given, free: value}
        whole = {name: int(chosen[name] or 0) for name in ("population", "rounds")}
        return RunQuestion(**{**chosen, **whole})

    def build(value: float) -> tuple[Round, int]:
        on_question(f"trying {free.replace('_', ' ')} = {written(value)}")
        question = run(value)
        return question.round(delta), question.rounds

    value = solve(free, build, epsilon=epsilon, delta=delta)
    return PlannedRun(free, value, guarantee([build(value)], delta), run(value))


def _name(solve_for: str | None) -> str | None:
    """The parameter that was named, as it is written in Python."""
    return solve_for.replace("-", "_") if solve_for else None


def _left_out(given: dict[str, Any], solve_for: str | None) -> str:
    """The one parameter to solve for."""
    missing = [name for name, value in given.items() if value is None]
    free = _name(solve_for)
    if free is None and len(missing) == 1:
        free = missing[0]
    if free is not None and missing == [free]:
        return free
    rule = f"one of {listed(tuple(given))}"
    if free is not None and free not in missing:
        raise InvalidParameter("solve", solve_for, f"{rule}, and that one left out")
    if not missing:
        others = f"another of {listed([name for name in given if name != 'rounds'])}: it is found"
        raise InvalidParameter("rounds", given["rounds"], "left out, or " + others)
    needed = next(name for name in missing if name != (free or missing[0]))
    *most, last = missing
    few = f"a value ({', '.join(most)} and {last} are left out, one can be solved for)"
    raise InvalidParameter(needed, None, few)
