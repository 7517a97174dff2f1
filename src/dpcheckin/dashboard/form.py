"""What the page lets one choose, and the plan that a set of choices stands for.

The table of `protocols.questions` decides which fields matter, along which parameters a plot can run and which
questions can be turned round; the registry of randomizers, which of them fit and what they want to know. The page asks
for both; it has no copy of its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from dpcheckin.accounting import Round
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import count, number, typed, whole
from dpcheckin.options import DEFAULT_DELTA
from dpcheckin.papers.entry import Setting
from dpcheckin.protocols.questions import PLANNED, PROTOCOLS, Protocol, RunQuestion, randomizers_of
from dpcheckin.randomizers import AnyRandomizer, Gaussian, Randomizer, registry
from dpcheckin.randomizers.registry import typed_name

MOST_ROUNDS = 10**7
WHOLE = ("population", "cohort", "slots", "rounds")
# Along a parameter the plot runs over these: ends allowed at all, and decades below and above.
RANGES: dict[str, tuple[float, float]] = {
    "rounds": (1, MOST_ROUNDS),
    "rate": (1e-9, 0.99),
    "population": (2, 10**12),
    "cohort": (1, 10**12),
    "slots": (2, 10**9),
    "local_epsilon": (0.02, 12.0),
    "noise_multiplier": (0.1, 100.0),
}


@dataclass(frozen=True)
class Form:
    """The choices on the page; those that do not matter for a protocol are carried along.

    `arguments` are what the randomizer wants to know besides its noise, by field; if left out, the usual ones.
    """

    protocol: str = "shuffled-check-in"
    population: int = 60_000
    rate: float = 1 / 30
    cohort: int = 2_000
    slots: int = 1_000
    check_in_probability: float = 1.0
    randomizer: str = AnyRandomizer.name
    arguments: tuple[tuple[str, float], ...] = ()
    local_epsilon: float = 2.0
    noise_multiplier: float = 1.0
    rounds: int = 6_000
    delta: float = DEFAULT_DELTA
    colluding: float = 0.0
    dropout: float = 0.0

    @staticmethod
    def read(given: Mapping[str, str]) -> Form:
        """The form that a query stands for; what is left out takes its default."""
        values: dict[str, Any] = {}
        for field in fields(Form):
            text: Any = given.get(field.name)
            if text is None or field.name == "arguments":
                continue
            if field.type != "str":
                text = read_number(field.name, text, field.name in WHOLE)
            values[field.name] = text
        form = Form(**values)
        form.check()
        named = form.kind_arguments.items()
        texts = [(name, given[name], whole) for name, whole in named if name in given]
        read = tuple((name, read_number(name, text, whole)) for name, text, whole in texts)
        return replace(form, arguments=read)

    def check(self) -> None:
        """Refuse names that do not exist, nobody, and more rounds than a page should compute."""
        if self.protocol not in PLANNED:
            raise InvalidParameter("protocol", self.protocol, "one of " + ", ".join(PLANNED))
        allowed = randomizers_of(self.protocol)
        if self.randomizer not in allowed:
            raise InvalidParameter("randomizer", self.randomizer, "one of " + ", ".join(allowed))
        count("population", self.population)
        if "rounds" in self.about.fields and not 1 <= self.rounds <= MOST_ROUNDS:
            limit = f"a whole number from 1 to {MOST_ROUNDS:,} on this page"
            raise InvalidParameter("rounds", self.rounds, limit)

    @property
    def about(self) -> Protocol:
        return PROTOCOLS[self.protocol]

    @property
    def kind(self) -> type[Randomizer]:
        """The randomizer's class."""
        return registry.kind_named(self.randomizer)

    @property
    def local(self) -> str:
        """The name of the field that says how noisy a report is."""
        return self.kind.noise_field

    @property
    def kind_arguments(self) -> dict[str, bool]:
        """What the randomizer wants to know besides its noise; whether only whole numbers do."""
        asked = _asked(self.kind)
        return {name: registry.is_whole(self.kind, name) for name in asked}

    @property
    def reports(self) -> Randomizer:
        """What makes one report."""
        return registry.usual(self.kind, **dict(self.arguments), **{self.local: self.noise})

    @property
    def noise(self) -> float:
        """How noisy a report is, by the randomizer's own measure."""
        return float(getattr(self, self.local))

    @property
    def windows(self) -> int:
        """Rounds, or one where the protocol knows only one."""
        return self.rounds if "rounds" in self.about.fields else 1

    @property
    def relevant(self) -> dict[str, Any]:
        """The choices that matter, in the order of the page."""
        names = ["protocol", *self.about.fields, "randomizer", self.local, "delta"]
        shown: dict[str, Any] = {}
        for name, value in asdict(self).items():
            if name == "arguments":
                shown |= {one: getattr(self.reports, one) for one in self.kind_arguments}
            elif name in names:
                shown[name] = value
        return shown

    def question(self) -> RunQuestion:
        """The run in plain names and numbers; what the protocol does not take is left out."""
        taken = ("rate", "cohort", "slots", "check_in_probability", "colluding", "dropout")
        offered = {name: getattr(self, name) for name in taken}
        return RunQuestion.of(self.protocol, self.population, self.windows, randomizer=self.reports, **offered)

    def one_round(self) -> Round:
        """One round, or one window."""
        return self.question().round(self.delta)

    def setting(self) -> Setting:
        """The run as the published bounds know it: without colluders and dropouts."""
        run = self.question()
        names = ("rate", "cohort", "slots", "check_in_probability")
        known: dict[str, Any] = {name: getattr(run, name) for name in names}
        known[self.local] = self.noise
        return Setting(run.protocol, run.population, run.rounds, self.delta, **known)

    def axis(self, over: str) -> str:
        """The field a plot runs along; `local` stands for the one that fits the randomizer."""
        if over not in self.about.over:
            allowed = "one of " + ", ".join(self.about.over)
            raise InvalidParameter("over", over, allowed)
        return self.local if over == "local" else over

    def at(self, axis: str, value: float) -> Form:
        """The same choices with the one of this axis changed to `value`."""
        change: dict[str, Any] = {axis: round(value) if axis in WHOLE else value}
        return replace(self, **change)

    def abscissas(self, axis: str, points: int) -> list[float]:
        """So many points along an axis, evenly spread (in logarithms) round the chosen one, which is among them."""
        least, most = RANGES[axis]
        if axis == "cohort":
            most = self.population - 1
        here = float(getattr(self, axis))
        decade = 10.0 ** math.floor(math.log10(here)) if here > 0 else least
        if axis in ("local_epsilon", "noise_multiplier"):
            low, high = min(0.1, here / 2), max(10.0, 2 * here)
        else:
            low, high = decade / 100, decade * 10
        low, high = max(low, least), max(min(high, most), least)
        if not low < high:
            return [here]
        ratio = (high / low) ** (1 / (points - 1))
        spread = [float(f"{low * ratio**i:.3g}") for i in range(points)]
        if axis in WHOLE:
            spread = [float(round(x)) for x in spread]
        return sorted({*spread, here})


def read_number(name: str, text: str, is_whole: bool) -> float | int:
    """A number from the text of the field of this name, as people type it; `is_whole` if only whole ones are meant."""
    try:
        value = whole(text) if is_whole else number(text)
        finite = math.isfinite(value)
    except (ValueError, OverflowError):  # a whole number may have more digits than any float
        finite = False
    if not finite:
        wanted = "a whole number" if is_whole else "a number such as 0.02, 1e-5, 1/30 or 2%"
        raise InvalidParameter(name, text, wanted)
    return value


def _asked(kind: type[Randomizer]) -> list[str]:
    """Fields behind a randomizer's name, without its noise and those that need not be said."""
    known = registry.needed_arguments(kind)
    return [name for name in known if name != kind.noise_field]


def _words(protocol: Protocol) -> dict[str, Any]:
    """What the page is told of a protocol: all but how its plan is made."""
    return {name: value for name, value in vars(protocol).items() if name not in ("plan", "beside", "understood")}


def describe() -> dict[str, Any]:
    """The tables, for the page."""
    kinds = registry.kinds()
    usual = {one.field: one.usual for kind in kinds.values() for one in kind.arguments}
    defaults = {**asdict(Form()), **usual}
    asked = {name: _asked(kind) for name, kind in kinds.items()}
    about = {one: registry.parameters(kinds[name])[one] for name in asked for one in asked[name]}
    whole = {one for name in asked for one in asked[name] if registry.is_whole(kinds[name], one)}
    return {
        "defaults": {
            name: value if isinstance(value, str) else typed(value)
            for name, value in defaults.items()
            if name != "arguments"
        },
        "protocols": {name: {**_words(PROTOCOLS[name]), "randomizers": randomizers_of(name)} for name in PLANNED},
        "randomizers": {
            name: {"label": kind.label or name, "noise": kind.noise_field, "arguments": asked[name]}
            for name, kind in kinds.items()
        },
        "arguments": about,
        "whole": [*WHOLE, *sorted(whole)],
    }


def texts(form: Form, guarantee: dict[str, Any] | None = None) -> dict[str, str]:
    """All three texts of a form; the JSON holds the guarantee too once it is known."""
    return {"shell": shell(form), "python": python(form), "json": as_json(form, guarantee)}


def shell(form: Form, *, leave_out: str | None = None, target: float | None = None) -> str:
    """The form as `dpcheckin epsilon …`, or as `dpcheckin plan …` for a `target`, without the parameter `leave_out`."""
    words = ["dpcheckin", "epsilon" if target is None else "plan"]
    if target is not None:
        words += ["--epsilon", typed(target)]
    for name, value in _options(form).items():
        if name != leave_out:
            text = value if isinstance(value, str) else typed(value)
            words += [f"--{name.replace('_', '-')}", text]
    return " ".join(words)


def python(form: Form) -> str:
    """A few lines that print the guarantee."""
    lines = [f"    {name}={_literal(value)},\n" for name, value in _options(form).items()]
    return (
        f"import dpcheckin as dp\n\nstated = dp.epsilon(\n{''.join(lines)})\nprint(stated)\nprint(stated.epsilon.upper)"
    )


_IN_ORDER = ("population", "rate", "cohort", "slots", "check_in_probability", "rounds", "colluding", "dropout")
_USUAL = {"protocol": "shuffled-check-in", "randomizer": AnyRandomizer.name}


def _options(form: Form) -> dict[str, Any]:
    """What `dpcheckin epsilon` and `dp.epsilon` must be told; what they suppose is left out."""
    shown = {"population": form.population, **form.relevant}
    taken = {name: shown[name] for name in _IN_ORDER if name in shown}
    may_not_go_wrong = [name for name in ("colluding", "dropout") if not taken.get(name)]
    for name in may_not_go_wrong:
        taken.pop(name, None)
    named = typed_name(form.kind, shown, form.local)
    if form.local == "noise_multiplier" and named == Gaussian.name:
        named = _USUAL["randomizer"]  # a noise multiplier alone means it
    words = {"protocol": form.protocol, "randomizer": named}
    said = {name: text for name, text in words.items() if text != _USUAL[name]}
    protocol = {"protocol": said.pop("protocol")} if "protocol" in said else {}
    return {**protocol, **taken, form.local: form.noise, **said, "delta": form.delta}


def as_json(form: Form, guarantee: dict[str, Any] | None = None) -> str:
    """The choices of a form that matter, and what `dpcheckin epsilon --json` says about them (`guarantee`)."""
    content: dict[str, Any] = {"plan": form.relevant}
    if guarantee is not None:
        content["guarantee"] = guarantee
    return json.dumps(content, indent=2, ensure_ascii=False)


def _literal(value: str | float) -> str:
    """The value in Python."""
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value:_}" if isinstance(value, int) else typed(value).replace("/", " / ")
