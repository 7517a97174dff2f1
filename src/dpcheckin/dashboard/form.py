"""What the page lets one choose, and the plan that a set of choices stands for.

The table of `protocols.names` decides which fields matter, which randomizers fit, along which
parameters a plot can run and which questions can be turned round. The page asks for it; it has no
copy of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from dpcheckin.accounting import LocalPair, Round
from dpcheckin.accounting.parameters import count
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import number, typed, whole
from dpcheckin.options import DEFAULT_DELTA
from dpcheckin.papers.entry import Setting
from dpcheckin.protocols.names import PLANNED, PROTOCOLS, RANDOMIZERS, Protocol
from dpcheckin.protocols.questions import RunQuestion

MOST_ROUNDS = 10**7
WHOLE = ("population", "cohort", "slots", "symbols", "dimension", "rounds")
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
    """The choices on the page. Fields that do not matter for a protocol are carried along."""

    protocol: str = "shuffled-check-in"
    population: int = 60_000
    rate: float = 1 / 30
    cohort: int = 2_000
    slots: int = 1_000
    check_in_probability: float = 1.0
    randomizer: str = "any"
    symbols: int = 10
    dimension: int = 1_000
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
            if text is None:
                continue
            if field.type != "str":
                text = read_number(field.name, text, field.name in WHOLE)
            values[field.name] = text
        form = Form(**values)
        form.check()
        return form

    def check(self) -> None:
        """Refuse names that do not exist, nobody, and more rounds than a page should compute."""
        if self.protocol not in PLANNED:
            raise InvalidParameter("protocol", self.protocol, "one of " + ", ".join(PLANNED))
        allowed = self.about.randomizers
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
    def is_gaussian(self) -> bool:
        return self.randomizer == "gaussian"

    @property
    def local(self) -> str:
        """The name of the field that says how noisy a report is."""
        return "noise_multiplier" if self.is_gaussian else "local_epsilon"

    @property
    def windows(self) -> int:
        """Rounds, or one where the protocol knows only one."""
        return self.rounds if "rounds" in self.about.fields else 1

    @property
    def relevant(self) -> dict[str, Any]:
        """The choices that matter, in the order of the page."""
        names = ["protocol", *self.about.fields, "randomizer", self.local, "delta"]
        names += {"dary": ["symbols"], "privunit": ["dimension"]}.get(self.randomizer, [])
        everything = asdict(self)
        return {name: everything[name] for name in everything if name in names}

    def randomizer_text(self) -> str:
        """The randomizer as `--randomizer` takes it."""
        if self.is_gaussian:
            return f"gaussian:{self.noise_multiplier!r}"
        argument = {"dary": self.symbols, "privunit": self.dimension}.get(self.randomizer)
        return self.randomizer if argument is None else f"{self.randomizer}:{argument}"

    def question(self) -> RunQuestion:
        """The run in plain names and numbers; what the protocol does not take is left out."""
        shown = self.about.fields
        taken = ("rate", "cohort", "slots", "check_in_probability", "colluding", "dropout")
        return RunQuestion(
            self.protocol,
            self.population,
            self.windows,
            self.randomizer_text(),
            local_epsilon=None if self.is_gaussian else self.local_epsilon,
            **{name: getattr(self, name) for name in taken if name in shown},
        )

    def pair(self) -> LocalPair:
        """The local pair of one report."""
        return self.question().pair()

    def one_round(self) -> Round | None:
        """One round with a single curve; None for averaged windows, which have many steps."""
        if self.protocol == "random-check-in-averaged":
            return None
        return self.question().round(self.delta)

    def setting(self) -> Setting:
        """The run as the published bounds know it: without colluders and dropouts."""
        shown = self.about.fields
        return Setting(
            protocol=self.protocol,
            population=self.population,
            rounds=self.windows,
            delta=self.delta,
            rate=self.rate if "rate" in shown else None,
            cohort=self.cohort if "cohort" in shown else None,
            local_epsilon=None if self.is_gaussian else self.local_epsilon,
            noise_multiplier=self.noise_multiplier if self.is_gaussian else None,
            slots=self.slots if "slots" in shown else None,
            check_in_probability=self.check_in_probability
            if "check_in_probability" in shown
            else None,
        )

    def axis(self, over: str) -> str:
        """The field a plot runs along; `local` stands for the one that fits the randomizer."""
        if over not in self.about.over:
            allowed = "one of " + ", ".join(self.about.over)
            raise InvalidParameter("over", over, allowed)
        return self.local if over == "local" else over

    def at(self, axis: str, value: float) -> Form:
        """The same choices with one of them changed."""
        change: dict[str, Any] = {axis: round(value) if axis in WHOLE else value}
        return replace(self, **change)

    def abscissas(self, axis: str, points: int) -> list[float]:
        """Evenly spread (in logarithms) values round the chosen one, which is among them."""
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
    """A number as people type it.

    Args:
        name: of the field, for the problem.
        text: what was typed.
        is_whole: whether only whole numbers are meant.
    """
    try:
        value = whole(text) if is_whole else number(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        wanted = "a whole number" if is_whole else "a number such as 0.02, 1e-5, 1/30 or 2%"
        raise InvalidParameter(name, text, wanted)
    return value


def describe() -> dict[str, Any]:
    """The tables, for the page."""
    return {
        "defaults": {
            name: value if isinstance(value, str) else typed(value)
            for name, value in asdict(Form()).items()
        },
        "protocols": {name: asdict(PROTOCOLS[name]) for name in PLANNED},
        "randomizers": {name: randomizer.label for name, randomizer in RANDOMIZERS.items()},
        "whole": list(WHOLE),
    }
