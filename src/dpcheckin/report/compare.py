"""All bounds about one run, ours among them, sorted; and the same along one parameter.

The command ``dpcheckin compare`` prints what is computed here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any

from dpcheckin.accounting import CheckInRound, Kind, ShuffleRound, SubsampleRound, WindowRound, compose
from dpcheckin.accounting.rounds.averaged import AveragedRound
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.handover import in_words
from dpcheckin.numerals import written
from dpcheckin.papers.catalogue import evaluate
from dpcheckin.papers.entry import REMOVAL, Setting
from dpcheckin.papers.panel import Column, Panel, Row
from dpcheckin.protocols.questions import PLANNED, PROTOCOLS, RunQuestion, protocol_name
from dpcheckin.randomizers import IntegerVector

# bounds about the removal of a client are published, but no protocol of its own
COMPARED = (*PLANNED, REMOVAL)
ALONG = ("rounds", "rate", "population", "local_epsilon", "noise_multiplier", "delta", "slots")
EMPTY_SEAT = "empty-seat theorem"
ONE_LAW = "empty-seat theorem, one law for all"
_KNOWS_NOT = "knows neither colluders nor lost check-ins nor rates that differ"
_WITHOUT_TYPES = "without types: everybody else counted as the worst in both tails at once"


@dataclass(frozen=True)
class Line:
    """One bound of the comparison."""

    name: str
    source: str
    kind: Kind
    epsilon: float | None
    note: str | None
    ours: bool = False

    @property
    def key(self) -> str:
        """A name that tells two bounds of one name apart."""
        return f"{self.name} [{self.source}]"

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "source": self.source,
            "kind": self.kind.value,
            "epsilon": self.epsilon,
            "note": self.note,
        }


def compare(
    setting: Setting, kinds: frozenset[Kind] = frozenset(Kind), on_bound: Callable[[str], None] = lambda _: None
) -> list[Line]:
    """Every bound about the setting, published ones of these kinds: applicable and least first; on_bound is told."""
    setting = replace(setting, protocol=protocol_name(setting.protocol, COMPARED))
    on_bound("published bounds")
    if setting.randomizer is not None:  # published lower bounds are about the worst randomizer
        kinds = kinds - {Kind.LOWER_BOUND}
    plain = replace(setting, colluding=0.0, dropout=0.0, lowest_rate=None)
    lines = [
        Line(v.name, f"{v.paper} {v.theorem}", v.kind, v.epsilon, v.erratum or v.reason) for v in evaluate(plain, kinds)
    ]
    if setting.adverse:
        lines = [replace(line, epsilon=None, note=_KNOWS_NOT) for line in lines]
    on_bound(EMPTY_SEAT)
    lines += _ours(setting)
    return sorted(lines, key=lambda line: (line.epsilon is None, line.epsilon or 0.0, line.name))


def along(
    setting: Setting, parameter: str, values: Sequence[float], on_value: Callable[[str], None] = lambda _: None
) -> Panel:
    """The comparison as a picture over the values of one parameter of the setting; `on_value` is told which is next."""
    if parameter not in ALONG:
        raise InvalidParameter("over", parameter, "one of " + ", ".join(ALONG))
    if not values:
        raise InvalidParameter("values", list(values), "at least one value")
    computed = {}
    for i, v in enumerate(values, 1):
        on_value(f"{parameter} = {written(v)} ({i:,} of {len(values):,})")
        computed[f"{v:g}"] = compare(_changed(setting, parameter, v))
    cells = [{line.key: line.epsilon for line in lines} for lines in computed.values()]
    bounds: dict[str, Line] = {}
    for line in chain.from_iterable(computed.values()):
        if line.epsilon is not None:
            bounds.setdefault(line.key, line)
    names = Counter(line.name for line in bounds.values())
    rows = tuple(Row(label, float(label), {"row": float(i)}) for i, label in enumerate(computed))

    def column(line: Line) -> Column:
        name = line.name if names[line.name] == 1 else line.key
        return Column(name, line.kind, lambda p: cells[int(p["row"])].get(line.key), source=line.source, ours=line.ours)

    return Panel(
        name="comparison",
        title=f"{in_words(_label(setting), _facts(setting), parameter)}: bounds over {parameter.replace('_', ' ')}",
        rows=rows,
        columns=tuple(map(column, bounds.values())),
        row_title=parameter,
        about=f"delta = {setting.delta:g}",
        log_x=len(values) > 2 and min(values) > 0 and max(values) / min(values) > 20,
    )


def _facts(setting: Setting) -> dict[str, Any]:
    made = {} if setting.randomizer is None else {"randomizer": setting.randomizer.describe(), "local_epsilon": None}
    return {field.name: getattr(setting, field.name) for field in fields(setting)} | made


def _label(setting: Setting) -> str:
    known = PROTOCOLS.get(setting.protocol)
    return setting.protocol if known is None else known.label


def _changed(setting: Setting, parameter: str, value: float) -> Setting:
    whole = parameter in ("rounds", "population", "slots")
    change: dict[str, Any] = {parameter: int(value) if whole else float(value)}
    made = setting.randomizer
    if made is not None and parameter == made.noise_field:
        change["randomizer"] = replace(made, **change)
    return replace(setting, **change)


def question_of(s: Setting) -> RunQuestion | None:
    """The setting as a question about the empty-seat theorem, or a sum of integers; None where neither speaks of it."""
    protocol = PROTOCOLS.get(s.protocol)
    nothing = (s.randomizer, s.noise_multiplier, s.local_epsilon) == (None, None, None)
    if protocol is None or nothing or not (protocol.empty_seats or isinstance(s.randomizer, IntegerVector)):
        return None
    if "rounds" not in (*protocol.fields, *protocol.beside):
        s.need_one_round()
    needed: dict[str, Any] = {name: s.need(name) for name in ("rate", "cohort", "slots") if name in protocol.fields}
    if s.noise_multiplier is None:
        needed |= {"local_delta": s.local_delta}
        if s.randomizer is None:
            needed |= {"local_epsilon": s.local_epsilon}
    asked = RunQuestion.of(
        s.protocol,
        s.population,
        s.rounds,
        randomizer="any" if s.randomizer is None else s.randomizer,
        noise_multiplier=s.noise_multiplier,
        check_in_probability=s.check_in_probability,
        **needed,
    )
    # what the protocol does not take is refused, never left out
    return replace(asked, colluding=s.colluding, dropout=s.dropout, lowest_rate=s.lowest_rate)


def _ours(s: Setting) -> list[Line]:
    source = "this package, docs/theory"
    try:
        question = question_of(s)
        if question is None:
            return []
        one_round = question.round(s.delta)
        upper = compose([(one_round, s.rounds)]).epsilon(s.delta).upper
    except OutsideTheorem as reason:
        return [Line(EMPTY_SEAT, source, Kind.GUARANTEE, None, str(reason), ours=True)]
    name = EMPTY_SEAT if PROTOCOLS[s.protocol].empty_seats else one_round.basis()[0]
    out = [Line(name, source, Kind.GUARANTEE, upper, None, ours=True)]
    if isinstance(one_round, CheckInRound | SubsampleRound) and one_round.pair.typed:
        before = replace(one_round, pair=one_round.pair.without_types())
        value = compose([(before, s.rounds)]).epsilon(s.delta).upper
        out.append(Line(ONE_LAW, source, Kind.GUARANTEE, max(value, upper), _WITHOUT_TYPES, True))
    pure = one_round.pair is not None and one_round.pair.pure
    # of Gaussian reports that check in the catalogue has one
    if pure or isinstance(one_round, ShuffleRound | WindowRound | AveragedRound):
        low = question.lower_bound(s.delta)
        if not low.basis:  # none is known
            return out
        any_pure = pure and s.randomizer is None
        note = "no guarantee for all pure randomizers can be smaller" if any_pure else None
        about = "exact for one pair of datasets"
        out.append(Line(low.basis[0], about, Kind.LOWER_BOUND, low.epsilon.lower, note))
    return out
