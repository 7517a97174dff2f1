"""`dp.plan`: solve for the one parameter left out, so that a run meets a target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpcheckin.accounting import Guarantee, Kind, Round, guarantee
from dpcheckin.accounting.composition.solve import solve
from dpcheckin.display import Tabular
from dpcheckin.errors import InvalidParameter, Superfluous
from dpcheckin.numerals import written
from dpcheckin.options import DEFAULT_DELTA, listed
from dpcheckin.protocols.questions import RunQuestion
from dpcheckin.randomizers import Randomizer, registry


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
        return [{self.parameter: self.value, "epsilon": self.guarantee.epsilon.upper, "delta": self.guarantee.delta}]

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
    solve_for: str | None = None,
    lowest_ratio: float | None = None,
    on_question: Callable[[str], None] = lambda _: None,
    **run: Any,
) -> PlannedRun:
    """Solve for the one parameter left out, so that the run meets the target epsilon.

    Args:
        epsilon: The target.
        delta: Of the statement.
        solve_for: The parameter left out, if one wants to say so. A noise multiplier is solved for
            with randomizer="gaussian".
        lowest_ratio: Rates lie between this part of the rate and the rate, whatever that comes to.
        on_question: Told which value is tried.
        run: What `dp.epsilon` takes, but for windows, by name; rounds have no default.

    >>> plan(epsilon=0.07, delta=1e-4, population=10_000, rate=0.01, local_epsilon=2.0).value
    101
    """
    free_ones = ("population", "rate", "local_epsilon", "noise_multiplier", "rounds")
    given: dict[str, Any] = {"protocol": "shuffled-check-in", "randomizer": "any"}
    given |= {**dict.fromkeys(free_ones), **run}
    asked = ["population", "rounds"]
    if given["protocol"] == "shuffled-check-in":
        asked.append("rate")
    if lowest_ratio is not None and (not 0.0 < lowest_ratio <= 1.0 or given.get("lowest_rate") is not None):
        raise InvalidParameter("lowest_ratio", lowest_ratio, "above 0 and at most 1, without a lowest rate")
    named = solve_for.replace("-", "_") if solve_for else None
    asked += _unknown_noise(given["randomizer"], given["noise_multiplier"], named)
    free = _left_out({name: given[name] for name in asked}, named, solve_for)

    def asked_of(value: float) -> RunQuestion:
        chosen: dict[str, Any] = {**given, free: value}
        if lowest_ratio is not None and chosen["rate"] is not None:
            chosen["lowest_rate"] = lowest_ratio * chosen["rate"]
        whole = {name: int(chosen[name] or 0) for name in ("population", "rounds")}
        return RunQuestion(**{**chosen, **whole})

    def build(value: float) -> tuple[Round, int]:
        on_question(f"trying {free.replace('_', ' ')} = {written(value)}")
        question = asked_of(value)
        return question.round(delta), question.rounds

    value = solve(free, build, epsilon=epsilon, delta=delta)
    return PlannedRun(free, value, guarantee([build(value)], delta), asked_of(value))


def _unknown_noise(randomizer: str | Randomizer, noise_multiplier: float | None, solve_for: str | None) -> list[str]:
    """The field that says how noisy a report is, unless its text or a number beside it does."""
    if solve_for == "noise_multiplier":
        return [solve_for]
    if not isinstance(randomizer, str) or (randomizer == "any" and noise_multiplier is not None):
        return []
    name, *words = randomizer.split(":")
    kind = registry.kind_named(name)
    behind = registry.needed_arguments(kind)
    said = kind.noise_field in behind and len(words) == len(behind)
    return [] if said else [kind.noise_field]


def _left_out(given: dict[str, Any], free: str | None, typed: str | None) -> str:
    """The one parameter to solve for: that which was named, as it was `typed`, or the only one missing."""
    missing = [name for name, value in given.items() if value is None]
    if free is None and len(missing) == 1:
        free = missing[0]
    if free is not None and missing == [free]:
        return free
    rule = f"one of {listed(tuple(given))}"
    if free is not None and free not in missing:
        raise InvalidParameter("solve", typed, f"{rule}, and that one left out")
    if not missing:
        others = f"another of {listed([name for name in given if name != 'rounds'])}: it is found"
        raise Superfluous("rounds", given["rounds"], "leave it out, or " + others)
    needed = next(name for name in missing if name != (free or missing[0]))
    *most, last = missing
    few = f"a value ({', '.join(most)} and {last} are left out, one can be solved for)"
    raise InvalidParameter(needed, None, few)
