"""Everything the page asks for, as functions from a form to plain data.

They run in worker processes (see `workers`), so arguments and results are plain and picklable.
What goes wrong on purpose comes back as data too: `{"problem": …, "field": …}`. Every figure is
sent with the text that may be shown, rounded by its kind, so that the browser never rounds.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import Any, ParamSpec

from dpcheckin.accounting import Bracket, Kind, Round, compose, epsilon_by_rounds
from dpcheckin.accounting.composition import solve as inverse
from dpcheckin.accounting.composition.preview import CoarseRounds, coarse_epsilon, rough_epsilon
from dpcheckin.accounting.composition.sweeps import lower_by_rounds
from dpcheckin.accounting.figures import rounded_up
from dpcheckin.accounting.parameters import open_probability
from dpcheckin.dashboard.form import MOST_ROUNDS, Form
from dpcheckin.dashboard.texts import shell, texts
from dpcheckin.errors import DpCheckinError, InvalidParameter, OutsideTheorem, Unreachable
from dpcheckin.papers.catalogue import catalogue
from dpcheckin.papers.entry import PublishedBound
from dpcheckin.papers.others.clones import closed_form

Answer = dict[str, Any]
Arguments = ParamSpec("Arguments")

# CPU time that the points of one published bound may take; what is left out is drawn straight
MOST_SECONDS = 3.0
# where an error is shown when the library's name for a parameter is not the field's
_FIELDS = {
    "count": "rounds",
    "epsilon": "target",
    "cohort_size": "cohort",
}


def answering(compute: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """Turn the package's own exceptions into data that names the field to mend."""

    @wraps(compute)
    def safe(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        try:
            return compute(*args, **kwargs)
        except DpCheckinError as problem:
            return problem_of(problem)

    return safe


def problem_of(problem: DpCheckinError) -> Answer:
    """What went wrong, at which field, and the same without the parameter's name.

    The page says it with the label that its field has.
    """
    if not isinstance(problem, InvalidParameter):
        return {"problem": str(problem), "field": None}
    field = problem.name.replace("-", "_")
    fault = str(problem).removeprefix(problem.name).strip()
    return {"problem": str(problem), "field": _FIELDS.get(field, field), "fault": fault}


@answering
def quick(form: Form) -> Answer:
    """A certified figure at once; a little larger than the one `statement` gives."""
    return {"epsilon": figure(_quick(form, _decade(form.windows))), "texts": texts(form)}


@answering
def rough(form: Form) -> Answer:
    """A certified figure sooner still, often much larger: for where `quick` takes a while."""
    one = form.one_round()
    if one is None or one.is_function:
        raise OutsideTheorem("no rougher figure for this protocol")
    value = rough_epsilon(one, form.windows, form.delta)
    if math.isinf(value):
        raise Unreachable("no finite rough figure")
    return {"epsilon": figure(value), "texts": texts(form), "rough": True}


@answering
def quick_at(form: Form, axis: str, x: float) -> Answer:
    """One point of our own line, as quickly."""
    there = form.at(axis, x)
    # along rounds every point is made from the same curve of one round
    most = _decade(form.windows) if axis == "rounds" else _decade(there.windows)
    return _point(x, _quick(there, most), Kind.GUARANTEE)


@answering
def statement(form: Form) -> Answer:
    """The certified guarantee with its sentence, and the plan in three texts."""
    stated = form.question().guarantee(form.delta)
    data = stated.to_json()
    shuffled, colluding = stated.sentences()
    return {
        "epsilon": figure(stated.epsilon.upper),
        "local": None if stated.local is None else figure(stated.local.epsilon),
        "sentence": str(stated),
        "trusted": shuffled,
        "untrusted": colluding,
        "basis": list(stated.basis),
        "assumptions": list(stated.assumptions),
        "guarantee": data,
        "texts": texts(form, data),
    }


@answering
def least(form: Form) -> Answer:
    """The proven lower bound that belongs to the statement; none for some protocols."""
    if not form.about.bounded:
        return {"lower": None}
    bound = form.question().lower_bound(form.delta)
    return {
        "lower": figure(bound.epsilon.lower, Kind.LOWER_BOUND),
        "lower_bound": {"epsilon": bound.epsilon.lower, "basis": list(bound.basis)},
    }


def with_least(form: Form, stated: Answer, bound: Answer) -> Answer:
    """The statement with its lower bound, in its JSON too, and how far apart the two are."""
    if "problem" in stated or bound.get("lower") is None:
        return {"lower": None, **stated}
    data = {**stated["guarantee"], "lower_bound": bound["lower_bound"]}
    return {
        **stated,
        "guarantee": data,
        "lower": bound["lower"],
        "below": below(bound["lower"]["value"], stated["epsilon"]["value"]),
        "texts": texts(form, data),
    }


def below(lower: float, upper: float) -> str:
    """How far a proven lower bound lies below the guarantee, rounded up.

    >>> below(0.6083, 0.6089), below(0.0, 1.0), below(1.0, 1.0)
    ('0.099% below the guarantee', 'far below the guarantee', 'equal to the guarantee')
    """
    if not lower < upper:
        return "equal to the guarantee"
    if lower <= 0.0:
        return "far below the guarantee"
    return f"{rounded_up(100.0 * (1.0 - lower / upper), 2)}% below the guarantee"


@answering
def guarantee_at(form: Form, axis: str, x: float) -> Answer:
    """One point of our own line."""
    began = time.process_time()
    point = _point(x, _epsilon(form.at(axis, x)).upper, Kind.GUARANTEE)
    return {**point, "seconds": time.process_time() - began}


@answering
def lower_at(form: Form, axis: str, x: float) -> Answer:
    """One point of the lower bound."""
    there = form.at(axis, x)
    least = there.question().lower_bound(there.delta) if there.about.bounded else None
    if least is None:
        raise OutsideTheorem("no lower bound of ours for this protocol")
    return _point(x, least.epsilon.lower, Kind.LOWER_BOUND)


@answering
def guarantee_along(form: Form, counts: Sequence[float]) -> Answer:
    """Our own line along rounds, at once: the statement's curve of one round serves them all."""
    one = form.one_round()
    assert one is not None  # only forms that `shares_rounds` are asked about
    asked = [round(x) for x in counts]
    found = epsilon_by_rounds(one, asked, form.delta, near=form.windows).upper.tolist()
    reached = ((x, y) for x, y in zip(counts, found, strict=True) if math.isfinite(y))
    return {"points": [_point(x, y, Kind.GUARANTEE) for x, y in reached]}


@answering
def lower_along(form: Form, counts: Sequence[float]) -> Answer:
    """The line of the lower bound along rounds, all at once."""
    one = form.one_round()
    assert one is not None
    found = lower_by_rounds(one, [round(x) for x in counts], form.delta)
    pairs = zip(counts, found, strict=True)
    return {"points": [_point(x, y, Kind.LOWER_BOUND) for x, y in pairs]}


def shares_rounds(form: Form) -> bool:
    """Whether runs of any number of rounds are composed from one curve of one round."""
    try:
        one = form.one_round()
    except DpCheckinError:  # every point says so
        return False
    return one is not None and not one.is_function and one.renyi is None


@answering
def published_at(form: Form, key: str, axis: str, xs: Sequence[float]) -> Answer:
    """A published bound at several places: one worker can keep what does not change between."""
    (bound,) = (b for b in about(form.protocol) if key_of(b) == key)
    points: list[Answer] = []
    reason: str | None = None
    times: list[float] = []
    here = float(getattr(form, axis))
    for x in coarse_first(xs, here):
        if _too_dear(times):
            reason = f"{len(points):,} of {len(xs):,} points: each takes long"
            break
        began = time.process_time()
        try:
            value = bound.evaluate(form.at(axis, x).setting())
        except (ArithmeticError, ValueError) as problem:
            reason = f"cannot be evaluated here ({problem})"
            continue
        if value.epsilon is not None and math.isfinite(value.epsilon):
            points.append(_point(x, value.epsilon, bound.kind))
        else:
            reason = value.reason or "infinite here"
        times.append(time.process_time() - began)
    else:
        return {"points": points, "reason": reason}
    return {"points": points, "reason": reason, "partial": True}


def _too_dear(times: Sequence[float]) -> bool:
    """Whether more points would take too long; the first may have paid for what all share."""
    if sum(times) <= MOST_SECONDS:
        return False
    return times[-1] > 0.5 if len(times) > 1 else times[0] > 3 * MOST_SECONDS


@answering
def solve(form: Form, over: str, target: float, rough: bool) -> Answer:
    """The extreme value along the plot's axis that meets the target, and what it guarantees."""
    axis = form.axis(over)
    if axis not in form.about.solvable:
        raise OutsideTheorem(
            f"no inverse question for {axis.replace('_', ' ')} of this protocol: "
            "choose another horizontal axis"
        )

    def build(value: float) -> tuple[Round, int]:
        there = form.at(axis, value)
        one = there.one_round()
        assert one is not None  # protocols with questions to turn round are all of this kind
        return one, there.windows

    if rough:
        value = inverse.solve(axis, build, epsilon=target, delta=form.delta, upper=coarse_epsilon)
    else:
        value = inverse.solve(axis, build, epsilon=target, delta=form.delta)
    if axis == "rounds" and value > MOST_ROUNDS:
        raise Unreachable(f"more than {MOST_ROUNDS:,} rounds meet epsilon = {target:g}")
    there = form.at(axis, value)
    spent = _quick(there, _decade(there.windows)) if rough else _epsilon(there).upper
    return {
        "parameter": axis,
        "value": value,
        "exact": not rough,
        "epsilon": figure(spent),
        "shell": shell(form, leave_out=axis, target=target),
    }


def about(protocol: str) -> list[PublishedBound]:
    """The published bounds that speak of a protocol and have something to draw."""
    return [b for b in catalogue() if protocol in b.protocols and b.compute is not None]


def key_of(bound: PublishedBound) -> str:
    """A name that tells two bounds of one protocol apart."""
    return f"{bound.name} [{bound.paper} {bound.theorem}]"


def _epsilon(form: Form) -> Bracket:
    one = form.one_round()
    if one is None:
        return form.question().guarantee(form.delta).epsilon
    found = compose([(one, form.windows)]).epsilon(form.delta)
    if math.isinf(found.upper):
        raise Unreachable(f"no epsilon reaches delta = {form.delta:g} here")
    return found


def _quick(form: Form, most: int) -> float:
    """A certified epsilon within a blink; looser than `_epsilon`."""
    one = form.one_round()
    smallest = 10.0 ** math.floor(math.log10(open_probability("delta", form.delta)))
    if one is not None:
        if one.is_function:  # a sum: fewer groups of its visible size are enough
            one = one.simpler(smallest)
        value = _kept(one, most, smallest).epsilon(form.windows, form.delta)
    else:
        value = local = form.pair().local_epsilon  # a client reports once
        with contextlib.suppress(OutsideTheorem):
            value = min(value, closed_form(local, form.population, form.delta))
    if math.isinf(value):
        raise Unreachable(
            f"delta = {form.delta:g} cannot be reached by any epsilon: raise delta or lower "
            "the rate"
        )
    return value


def _decade(rounds: int) -> int:
    """Rounds up to which one curve serves: dragging within a decade meets it again."""
    return min(int(10 ** (math.floor(math.log10(max(rounds, 1))) + 1)), MOST_ROUNDS)


@lru_cache(maxsize=64)
def _kept(one: Round, most: int, smallest: float) -> CoarseRounds:
    return CoarseRounds(one, most, smallest)


def figure(value: float, kind: Kind = Kind.GUARANTEE) -> Answer:
    """A figure and the text that may be shown, rounded by its kind."""
    return {"value": value if math.isfinite(value) else None, "text": kind.figure(value)}


def _point(x: float, value: float, kind: Kind) -> Answer:
    return {"x": x, "y": value, "text": kind.figure(value)}


def coarse_first(values: Sequence[float], here: float | None = None) -> list[float]:
    """Both ends, the middle, the quarters, …: a line that is cut short is coarse, not half.

    Args:
        values: In ascending order.
        here: One of them that comes before all others.
    """
    order = [0, len(values) - 1]
    if here is not None and here in values:
        order.insert(0, values.index(here))
    step = 1
    while step < len(values):
        step *= 2
    while step >= 1:
        order += range(0, len(values), step)
        step //= 2
    return [values[i] for i in dict.fromkeys(order)]
