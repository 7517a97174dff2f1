"""What must hold between the package's answers and the exact loss of a run.

Everything is compared in delta: a claimed epsilon is crossed if the true delta at it says so.
That is well conditioned where an epsilon read off a flat curve is not.
"""

from __future__ import annotations

import importlib
import re
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import exp, inf, isinf, isnan
from typing import TypeVar

import numpy as np

import dpcheckin.accounting as accounting
from dpcheckin.errors import InvalidParameter, OutsideTheorem, Unreachable
from oracles.exact.families import Family, adaptive_delta, adaptive_epsilon
from oracles.standing.cases import Case

# Rounding of the oracle itself: sums of a few thousand products of doubles.
RELATIVE, ABSOLUTE = 1e-9, 1e-14
# The bridge hands over to dp-accounting, whose FFT rounds at the scale of one.
BRIDGE_ABSOLUTE = 1e-12
BRIDGE_INTERVAL = 5e-3
ORDERS = (1.25, 1.5, 2.0, 3.0, 4.5, 8.0, 16.0, 32.0, 100.0)

_T = TypeVar("_T")

_REFUSALS = (InvalidParameter, OutsideTheorem, Unreachable)


@dataclass(frozen=True)
class Crossing:
    """An answer that cannot be right: who was asked, what is wrong, and how to see it again."""

    kind: str
    what: str
    finding: str
    recipe: str

    @property
    def sort(self) -> tuple[str, str]:
        """The question without its arguments and the finding without its numbers."""
        question = re.sub(r"delta\([^)]*\)", "delta(.)", self.what).replace("compose(run)", "compose")
        if question.startswith("renyi_curve"):
            question = "renyi_curve"
        return question, re.sub(r"[-+]?[\d.]+(e[-+]?\d+)?", "#", self.finding)[:60]

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}: {self.finding}\n{self.recipe}"


@dataclass
class Report:
    """What came of a case."""

    crossings: list[Crossing] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    checked: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    closest: float = 0.0  # largest true delta / claimed delta of an upper claim that holds
    empty_lower: bool = False  # a lower bound of 0 where the truth is not


class _Examination:
    """One case under way."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.report = Report()
        self.names = {**{name: getattr(accounting, name) for name in accounting.__all__}, "inf": inf}
        self.run = [
            (eval(one.text, self.names), count)
            for one, count in case.rounds  # our own text
        ]
        self.covered = [one.covered for one, count in case.rounds for _ in range(count)]
        self.attained = [one.attained for one, count in case.rounds for _ in range(count)]

    def ask(self, what: str, question: Callable[[], _T]) -> _T | None:
        """The answer, or None if it was refused; any other failure, or a warning, is a crossing."""
        start = time.process_time()
        try:
            with warnings.catch_warnings(record=True) as heard:
                warnings.simplefilter("always")
                answer = question()
            for warning in {str(w.message): w for w in heard}.values():
                self.cross(what, f"{warning.category.__name__}: {warning.message}")
            return answer
        except _REFUSALS as refusal:
            self.report.refusals.append(f"{what}: {type(refusal).__name__}: {refusal}")
        except Exception as fault:
            self.cross(what, f"{type(fault).__name__}: {fault}")
        finally:
            self.report.seconds[what] = time.process_time() - start
        return None

    @cached_property
    def composed(self) -> accounting.Composition | None:
        """The composition, which several questions share."""
        return self.ask("compose(run)", lambda: accounting.compose(self.run))

    def cross(self, what: str, finding: str) -> None:
        """Note a crossing, with all that is needed to see it again."""
        case = self.case
        recipe = (
            "    from dpcheckin.accounting import *\n"
            f"    delta, epsilon = {case.delta}, {case.epsilon}\n"
            f"    {what.replace('run', case.text)}\n"
            f"    # {case.source}"
        )
        self.report.crossings.append(Crossing(case.kind, what, finding, recipe))

    def at_most(self, what: str, epsilon: float, delta: float, absolute: float = ABSOLUTE) -> None:
        """The claim that the run is (epsilon, delta)-DP."""
        self.report.checked += 1
        if isnan(epsilon) or isnan(delta):
            self.cross(what, f"not a number: epsilon {epsilon}, delta {delta}")
            return
        if isinf(epsilon):
            return  # nothing is claimed
        true = float(adaptive_delta(self.covered, [exp(min(epsilon, 700.0))])[0])
        if true > delta * (1 + RELATIVE) + absolute:
            true_epsilon = adaptive_epsilon(self.covered, delta)
            self.cross(
                what,
                f"said epsilon <= {epsilon:.10g} at delta {delta:.10g}; "
                f"true epsilon {true_epsilon:.10g}, true delta there {true:.10g}",
            )
        elif delta > 1e-9:  # below that the quotient is the oracle's own rounding
            self.report.closest = max(self.report.closest, true / delta)

    def at_least(self, what: str, epsilon: float, delta: float) -> None:
        """The claim that the run is (epsilon', delta)-DP for no epsilon' < epsilon."""
        self.report.checked += 1
        if isnan(epsilon) or isnan(delta):
            self.cross(what, f"not a number: epsilon {epsilon}, delta {delta}")
            return
        if epsilon <= 0:
            return
        just_below = min(epsilon * (1 - RELATIVE), 700.0)
        true = max(float(adaptive_delta(run, [exp(just_below)])[0]) for run in self._orders())
        if true < delta * (1 - RELATIVE) - ABSOLUTE:
            true_epsilon = max(adaptive_epsilon(run, delta) for run in self._orders())
            self.cross(
                what,
                f"said epsilon >= {epsilon:.10g} at delta {delta:.10g}; "
                f"true epsilon {true_epsilon:.10g}, true delta there {true:.10g}",
            )

    def _orders(self) -> Iterator[list[Family]]:
        """The run as given and backwards: an adaptive adversary may gain by either."""
        yield self.attained
        if len(self.case.rounds) > 1:
            yield self.attained[::-1]

    def ordered(self, what: str, bracket: accounting.Bracket) -> None:
        """A bracket's ends are not crossed."""
        self.report.checked += 1
        if not bracket.lower <= bracket.upper:
            self.cross(what, f"ends crossed: {bracket}")


def _composition(one: _Examination) -> None:
    case, composed = one.case, one.composed
    if composed is None:
        return
    is_local = all(r.is_local for r, _ in case.rounds)
    by_delta = one.ask("compose(run).epsilon(delta)", lambda: composed.epsilon(case.delta))
    if by_delta is not None:
        one.ordered("compose(run).epsilon(delta)", by_delta)
        one.at_most("compose(run).epsilon(delta).upper", by_delta.upper, case.delta)
        if is_local:  # the bracket of an unshuffled run surrounds the truth itself
            one.at_least("compose(run).epsilon(delta).lower", by_delta.lower, case.delta)
    for epsilon in (case.epsilon, 40.0):
        what = f"compose(run).delta({epsilon})"
        found = one.ask(what, lambda at=epsilon: composed.delta(at))
        if found is not None:
            one.ordered(what, found)
            one.at_most(f"{what}.upper", epsilon, found.upper)
            if is_local and found.lower > 0:
                one.at_least(f"{what}.lower", epsilon, found.lower)


def _guarantee(one: _Examination) -> None:
    case = one.case
    # the rarer costs more where the composition has been asked for its epsilon already
    run = one.run if case.index % 3 == 0 or one.composed is None else one.composed
    said = one.ask("guarantee(run, delta)", lambda: accounting.guarantee(run, case.delta))
    if said is not None:
        one.at_most("guarantee(run, delta).epsilon.upper", said.epsilon.upper, case.delta)


def _lower_bound(one: _Examination) -> None:
    case = one.case
    bound = one.ask("lower_bound(run, delta)", lambda: accounting.lower_bound(one.run, case.delta))
    if bound is not None:
        one.at_least("lower_bound(run, delta).epsilon.lower", bound.epsilon.lower, case.delta)
        if bound.epsilon.lower <= 0:
            true = max(adaptive_delta(run, [1.0])[0] for run in one._orders())
            one.report.empty_lower = bool(true > 1.01 * case.delta)


def _bridge(one: _Examination) -> None:
    case = one.case
    # Imported where used: the bridge needs an optional library and has moved before.
    module = importlib.import_module("dpcheckin.accounting.bridge")

    def composed() -> object:
        whole = None
        for single, count in one.run:
            loss = module.event_distribution(single, BRIDGE_INTERVAL)
            many = loss.self_compose(count) if count > 1 else loss
            whole = many if whole is None else whole.compose(many)
        return whole

    whole = one.ask("event_distribution of run", composed)
    if whole is None:
        return
    what = "event_distribution of run, composed, get_delta_for_epsilon"
    for epsilon in (0.0, case.epsilon):
        found = one.ask(what, lambda at=epsilon: float(whole.get_delta_for_epsilon(at)))
        if found is not None:
            one.at_most(what, epsilon, found, BRIDGE_ABSOLUTE)


def _renyi(one: _Examination) -> None:
    case = one.case
    module = importlib.import_module("dpcheckin.accounting.bridge")
    for (single, _), (drawn, _) in zip(one.run, case.rounds, strict=True):
        what = f"renyi_curve({drawn.text}, orders)"
        curve = one.ask(what, lambda it=single: np.asarray(module.renyi_curve(it, ORDERS)))
        if curve is None:
            return
        for order, found in zip(ORDERS, curve, strict=True):
            one.report.checked += 1
            true = drawn.covered.renyi(order)
            if not true <= found * (1 + RELATIVE) + 1e-13:
                one.cross(what, f"order {order}: said {found:.10g}, true {true:.10g}")
                break
    orders = {} if case.index % 5 == 0 else {"orders": ORDERS}
    found = one.ask(
        "epsilon_by_renyi(run, delta)", lambda: float(module.epsilon_by_renyi(one.run, case.delta, **orders))
    )
    if found is not None:
        one.at_most("epsilon_by_renyi(run, delta)", found, case.delta)


# Groups of questions about a run. An exploration may ask one of them at a time.
QUESTIONS: dict[str, Callable[[_Examination], None]] = {
    "composition": _composition,
    "guarantee": _guarantee,
    "lower bound": _lower_bound,
    "bridge": _bridge,
    "renyi": _renyi,
}


def questions(case: Case) -> tuple[str, ...]:
    """The groups that have an answer within milliseconds: the bridge and its Rényi curves take long over noise."""
    return tuple(name for name in QUESTIONS if name not in ("bridge", "renyi") or not case.continuous)


def examine(case: Case, asked: Collection[str] | None = None) -> Report:
    """Hold the answers about a case against its exact loss.

    Args:
        case: The run.
        asked: The groups of questions; if not given, all that the case has quick answers to, the
            bridge in every other case.
    """
    if asked is None:
        asked = [name for name in questions(case) if name != "bridge" or case.index % 2 == 0]
    try:
        one = _Examination(case)
    except _REFUSALS as refusal:
        return Report(refusals=[f"the run: {type(refusal).__name__}: {refusal}"])
    for name, ask in QUESTIONS.items():
        if name in asked:
            ask(one)
    return one.report
