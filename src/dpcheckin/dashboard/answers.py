"""Everything the page asks for, as functions from a form to plain data.

They run in worker processes (see `workers`), so arguments and results are plain and picklable. What goes wrong on
purpose comes back as data too: `{"problem": …, "field": …}`. Every figure is sent with the text that may be shown,
rounded by its kind, so that the browser never rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import Any, ParamSpec

from dpcheckin.accounting import Bracket, Kind, Round, compose, tradeoff
from dpcheckin.accounting import guarantee as stated_guarantee
from dpcheckin.accounting.composition import solve as inverse
from dpcheckin.accounting.composition.preview import CoarseRounds, coarse_epsilon, rough_epsilon
from dpcheckin.accounting.proof.certificate import as_text
from dpcheckin.dashboard.form import MOST_ROUNDS, Form, shell, texts
from dpcheckin.errors import DpCheckinError, InvalidParameter, OutsideTheorem, Unreachable
from dpcheckin.numerals import open_probability, rounded_up
from dpcheckin.papers.catalogue import catalogue
from dpcheckin.papers.entry import PublishedBound

Answer = dict[str, Any]
Arguments = ParamSpec("Arguments")

# where an error is shown when the library's name for a parameter is not the field's
_FIELDS = {"count": "rounds", "epsilon": "target", "cohort_size": "cohort"}


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
    """What went wrong, at which field, and the same without the parameter's name: the page says it with its label."""
    if not isinstance(problem, InvalidParameter):
        return {"problem": str(problem), "field": None}
    field = problem.name.replace("-", "_")
    fault = str(problem).removeprefix(problem.name).strip()
    return {"problem": str(problem), "field": _FIELDS.get(field, field), "fault": fault}


@answering
def quick(form: Form) -> Answer:
    """A certified figure at once; a little larger than the one `statement` gives."""
    return {"epsilon": figure(quick_epsilon(form, decade(form.windows))), "texts": texts(form)}


@answering
def rough(form: Form) -> Answer:
    """A certified figure sooner still, often much larger: for where `quick` takes a while."""
    one = form.one_round()
    if one.is_function:
        raise OutsideTheorem("no rougher figure for this protocol")
    value = rough_epsilon(one, form.windows, form.delta)
    if math.isinf(value):
        raise Unreachable("no finite rough figure")
    return {"epsilon": figure(value), "texts": texts(form), "rough": True}


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
    if not bound.basis:
        return {"lower": None}
    return {
        "lower": figure(bound.epsilon.lower, Kind.LOWER_BOUND),
        "lower_bound": {"epsilon": bound.epsilon.lower, "basis": list(bound.basis)},
    }


def with_least(form: Form, stated: Answer, bound: Answer) -> Answer:
    """The statement (`stated`) of a form with its lower bound, in its JSON too, and how far apart the two are."""
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
    """How far a proven lower bound lies below the guarantee (`upper`), rounded up.

    >>> below(0.6083, 0.6089), below(0.0, 1.0), below(1.0, 1.0)
    ('0.099% below the guarantee', 'far below the guarantee', 'equal to the guarantee')
    """
    if not lower < upper:
        return "equal to the guarantee"
    if lower <= 0.0:
        return "far below the guarantee"
    return f"{rounded_up(100.0 * (1.0 - lower / upper), 2)}% below the guarantee"


@answering
def solve(form: Form, over: str, target: float, rough: bool) -> Answer:
    """The extreme value along an axis (`over`) of the form that meets the target, and its figure; `rough`: soon."""
    axis = form.axis(over)
    if axis not in form.about.solvable:
        raise OutsideTheorem(
            f"no inverse question for {axis.replace('_', ' ')} of this protocol: choose another horizontal axis"
        )

    def build(value: float) -> tuple[Round, int]:
        there = form.at(axis, value)
        return there.one_round(), there.windows

    priced = {"upper": coarse_epsilon} if rough else {}
    value = inverse.solve(axis, build, epsilon=target, delta=form.delta, **priced)
    if axis == "rounds" and value > MOST_ROUNDS:
        raise Unreachable(f"more than {MOST_ROUNDS:,} rounds meet epsilon = {target:g}")
    there = form.at(axis, value)
    spent = quick_epsilon(there, decade(there.windows)) if rough else exact_epsilon(there).upper
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


def exact_epsilon(form: Form) -> Bracket:
    """The certified epsilon of the statement."""
    found = compose([(form.one_round(), form.windows)]).epsilon(form.delta)
    if math.isinf(found.upper):
        raise Unreachable(f"no epsilon reaches delta = {form.delta:g} here")
    return found


def quick_epsilon(form: Form, most: int) -> float:
    """A certified epsilon of the form within a blink, by a curve up to `most` rounds; looser than `exact_epsilon`."""
    one_round = form.one_round()
    smallest = 10.0 ** math.floor(math.log10(open_probability("delta", form.delta)))
    if one_round.is_function:  # a sum: fewer groups of its visible size are enough
        one_round = one_round.simpler(smallest)
    value = _kept(one_round, most, smallest).epsilon(form.windows, form.delta)
    if math.isinf(value):
        raise Unreachable(f"delta = {form.delta:g} cannot be reached by any epsilon: raise delta or lower the rate")
    return value


def decade(rounds: int) -> int:
    """Rounds up to which one curve serves: dragging within a decade meets it again."""
    return min(int(10 ** (math.floor(math.log10(max(rounds, 1))) + 1)), MOST_ROUNDS)


@lru_cache(maxsize=64)
def _kept(one: Round, most: int, smallest: float) -> CoarseRounds:
    return CoarseRounds(one, most, smallest)


def figure(value: float, kind: Kind = Kind.GUARANTEE) -> Answer:
    """A `value` and the text that may be shown, rounded by its kind."""
    return {"value": value if math.isfinite(value) else None, "text": kind.figure(value)}


# false positives at which curves are drawn
FALSE_ALARMS = (
    *(0.0, 1e-4, 2e-4, 5e-4, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07),
    *(0.1 + 0.05 * i for i in range(18)),
    1.0,
)


@answering
def trade_off(form: Form) -> Answer:
    """True positives for so many false ones: at most, and by the best known attack."""
    one_round = form.one_round()
    if one_round.renyi is not None or one_round.is_function:
        raise OutsideTheorem("no curve of delta for this protocol yet: no trade-off is shown")
    curve = tradeoff([(one_round, form.windows)], form.delta)
    missed = curve.false_negatives(FALSE_ALARMS)
    words = f"{curve.in_words[0].upper()}{curve.in_words[1:]}."
    if math.isfinite(curve.gdp.upper):
        words += f" As one Gaussian experiment: {curve.gaussian_sentence}."
    return {
        "points": _per_cent(missed.lower.tolist(), Kind.GUARANTEE),
        "known": _per_cent(missed.upper.tolist(), Kind.LOWER_BOUND) if curve.attacks else [],
        "words": words,
    }


def _per_cent(missed: Sequence[float], kind: Kind) -> list[Answer]:
    """True positives at every share of false ones, in per cent; a guarantee is rounded up."""
    shares = [100.0 * min(max(1.0 - share, 0.0), 1.0) for share in missed]
    return [
        {"x": 100.0 * alarms, "y": share, "text": f"{kind.figure(share)}%"}
        for alarms, share in zip(FALSE_ALARMS, shares, strict=True)
    ]


@answering
def certificate(form: Form) -> Answer:
    """The plan's certificate, as the text of its file."""
    return {"text": as_text(form.question().guarantee(form.delta).certificate())}


@answering
def mixed(forms: tuple[Form, ...]) -> Answer:
    """One statement about rounds of several kinds, at the delta they have in common."""
    rounds = [(form.one_round(), form.windows) for form in forms]
    stated = stated_guarantee(rounds, forms[0].delta)
    return {"epsilon": figure(stated.epsilon.upper), "sentence": str(stated)}
