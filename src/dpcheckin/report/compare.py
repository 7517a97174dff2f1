"""All bounds about one run, ours among them, sorted; and the same along one parameter.

The command ``dpcheckin compare`` prints what is computed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpcheckin.accounting import (
    CheckInRound,
    LocalPair,
    ShuffleRound,
    SubsampleRound,
    any_pure,
    approximate,
    compose,
    gaussian,
    lower_bound,
)
from dpcheckin.accounting.kinds import Kind
from dpcheckin.accounting.published import Setting, evaluate
from dpcheckin.accounting.rounds import Round
from dpcheckin.accounting.window import WindowRound
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.report.panel import Cell, Column, Panel, Row

PROTOCOLS = (
    "shuffled-check-in",
    "subsampled-shuffle",
    "shuffle",
    "distributed-check-in",
    "distributed-check-in-removal",
    "random-check-in-fixed",
    "random-check-in-averaged",
    "random-check-in-sliding",
)
ALONG = ("rounds", "rate", "population", "local_epsilon", "noise_multiplier", "delta", "slots")
EMPTY_SEAT = "empty-seat theorem"


@dataclass(frozen=True)
class Line:
    """One bound of the comparison."""

    name: str
    source: str
    kind: Kind
    epsilon: float | None
    note: str | None

    def to_json(self) -> dict[str, object]:
        return {
            "name": self.name,
            "source": self.source,
            "kind": self.kind.value,
            "epsilon": self.epsilon,
            "note": self.note,
        }


def compare(setting: Setting, kinds: frozenset[Kind] = frozenset(Kind)) -> list[Line]:
    """Every bound that speaks about the setting: applicable ones first, least epsilon first."""
    if setting.protocol not in PROTOCOLS:
        raise InvalidParameter("protocol", setting.protocol, "one of " + ", ".join(PROTOCOLS))
    lines = [
        Line(v.name, f"{v.paper} {v.theorem}", v.kind, v.epsilon, v.erratum or v.reason)
        for v in evaluate(setting, kinds)
    ]
    lines += _ours(setting)
    return sorted(lines, key=lambda line: (line.epsilon is None, line.epsilon or 0.0, line.name))


def best_guarantee(lines: Sequence[Line]) -> Line:
    """The least guarantee; only guarantees are looked at."""
    proved = [x for x in lines if x.kind is Kind.GUARANTEE and x.epsilon is not None]
    if not proved:
        raise OutsideTheorem(
            "nothing is proved about this run; `dpcheckin bounds` shows what is claimed"
        )
    return min(proved, key=lambda x: x.epsilon or 0.0)


def along(setting: Setting, parameter: str, values: Sequence[float]) -> Panel:
    """The comparison as a picture over one parameter."""
    if parameter not in ALONG:
        raise InvalidParameter("over", parameter, "one of " + ", ".join(ALONG))
    if not values:
        raise InvalidParameter("values", list(values), "at least one value")
    whole = parameter in ("rounds", "population", "slots")
    settings: dict[str, Setting] = {}
    for v in values:
        change: dict[str, Any] = {parameter: int(v) if whole else float(v)}
        settings[f"{v:g}"] = replace(setting, **change)
    computed = {label: compare(s) for label, s in settings.items()}
    kinds: dict[str, Kind] = {}
    for lines in computed.values():
        for line in lines:
            if line.epsilon is not None:
                kinds.setdefault(f"{line.name} [{line.source}]", line.kind)

    def cell(label: str, column: str) -> Cell:
        for line in computed[label]:
            if f"{line.name} [{line.source}]" == column:
                return line.epsilon
        return None

    rows = tuple(Row(label, float(label), {"row": float(i)}) for i, label in enumerate(settings))
    labels = list(settings)

    def column(name: str, kind: Kind) -> Column:
        return Column(name, kind, lambda p: cell(labels[int(p["row"])], name))

    return Panel(
        name="comparison",
        title=f"{setting.protocol}: bounds over {parameter}",
        rows=rows,
        columns=tuple(column(name, kind) for name, kind in kinds.items()),
        row_title=parameter,
        about=f"delta = {setting.delta:g}",
        log_x=len(values) > 2 and min(values) > 0 and max(values) / min(values) > 20,
    )


def _pair(s: Setting) -> LocalPair | None:
    if s.noise_multiplier is not None:
        return gaussian(s.noise_multiplier)
    if s.local_epsilon is not None:
        return (
            approximate(s.local_epsilon, s.local_delta)
            if s.local_delta
            else any_pure(s.local_epsilon)
        )
    return None


def theorem_round(s: Setting) -> Round | None:
    """One round of the setting as the empty-seat theorem sees it; None where it says nothing."""
    pair = _pair(s)
    if pair is None:
        return None
    if s.protocol == "shuffled-check-in":
        return CheckInRound(s.population, s.need_rate(), pair)
    if s.protocol == "subsampled-shuffle":
        return SubsampleRound(s.population, s.need_cohort(), pair)
    if s.protocol == "shuffle":
        return ShuffleRound(s.population, pair)
    if s.protocol == "random-check-in-fixed":
        p = 1.0 if s.check_in_probability is None else s.check_in_probability
        return WindowRound(s.need_slots(), pair, p, others=s.population - 1)
    if s.protocol == "random-check-in-sliding":
        s.need_one_round()
        return WindowRound(s.need_slots(), pair)
    return None


def _ours(s: Setting) -> list[Line]:
    source = "this package, docs/theory"
    try:
        one = theorem_round(s)
        if one is None:
            return []
        upper = compose([(one, s.rounds)]).epsilon(s.delta).upper
    except OutsideTheorem as reason:
        return [Line(EMPTY_SEAT, source, Kind.GUARANTEE, None, str(reason))]
    out = [Line(EMPTY_SEAT, source, Kind.GUARANTEE, upper, None)]
    if one.pair.pure or isinstance(one, WindowRound):  # for Gaussian reports the catalogue has one
        low = lower_bound([(_bad_case(one, s), s.rounds)], s.delta)
        note = "no guarantee for all pure randomizers can be smaller" if one.pair.pure else None
        said = "exact for one pair of datasets"
        out.append(Line(low.basis[0], said, Kind.LOWER_BOUND, low.epsilon.lower, note))
    return out


def _bad_case(one: Round, s: Setting) -> Round:
    """A sliding window's slots are open to as many clients as there are slots."""
    if isinstance(one, WindowRound) and s.protocol == "random-check-in-sliding":
        return replace(one, others=one.slots - 1)
    return one
