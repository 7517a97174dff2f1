"""The one table of names: protocols and randomizers as people type them, and what they stand for.

The command line, the planner's form, plan documents, sweeps, audits and comparisons read it. Every
name has one spelling and perhaps some aliases; `RunQuestion` turns names and numbers into a round
of accounting, and refuses what contradicts itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from dpcheckin import accounting as a
from dpcheckin.accounting import Adjacency, Bracket, Guarantee, LocalPair, LowerBound, Round
from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols.comparators import local_only_guarantee
from dpcheckin.protocols.random_check_ins import averaged_guarantee

PURE = ("any", "binary", "dary", "hemisphere", "privunit", "laplace")
_LOAD_SHARE = 0.5  # part of delta that pays for unlucky loads of averaged windows


@dataclass(frozen=True)
class Randomizer:
    """A randomizer's name, its aliases, what its argument is called, and its label."""

    label: str
    aliases: tuple[str, ...] = ()
    argument: str | None = None


@dataclass(frozen=True)
class Protocol:
    """A protocol: what it is called, which numbers it takes, what may be asked about it.

    Args:
        label: Its name in headings.
        about: One sentence.
        fields: Parameters it takes, in the order in which they are asked for.
        randomizers: Names of those that fit.
        over: Parameters along which a picture can run.
        solvable: Those for which an epsilon can be aimed at.
        bounded: Is there a lower bound for it?
        aliases: Other spellings.
        trusted: When the first of the two figures holds.
        betrayed: When only the second does.
    """

    label: str
    about: str
    fields: tuple[str, ...]
    randomizers: tuple[str, ...]
    over: tuple[str, ...] = ()
    solvable: tuple[str, ...] = ()
    bounded: bool = True
    aliases: tuple[str, ...] = ()
    trusted: str = "If the shuffler is honest"
    betrayed: str = "If it works with the analyzer"


RANDOMIZERS: Mapping[str, Randomizer] = {
    "any": Randomizer("any pure randomizer"),
    "binary": Randomizer("binary response"),
    "dary": Randomizer("k-ary response", ("d-ary",), "K"),
    "hemisphere": Randomizer("hemisphere (LDP-SGD)", ("ldp-sgd",)),
    "privunit": Randomizer("PrivUnit", (), "DIM"),
    "laplace": Randomizer("Laplace"),
    "gaussian": Randomizer("Gaussian", (), "SIGMA"),
    "skellam": Randomizer("Skellam"),
}
_InSlots = partial(
    Protocol,
    trusted="If the slots stay secret",
    betrayed="If it is known who reported when",
)
PROTOCOLS: Mapping[str, Protocol] = {
    "shuffled-check-in": Protocol(
        "Shuffled check-in",
        "Every client flips its own coin in each round; reports pass a shuffler.",
        ("population", "rate", "rounds", "colluding", "dropout"),
        (*PURE, "gaussian"),
        ("rounds", "rate", "population", "local"),
        ("rounds", "rate", "population", "local_epsilon"),
    ),
    "subsampled-shuffle": Protocol(
        "Subsampled shuffle",
        "A cohort of fixed size is drawn in secret in each round; reports pass a shuffler.",
        ("population", "cohort", "rounds", "colluding"),
        (*PURE, "gaussian"),
        ("rounds", "cohort", "population", "local"),
        ("rounds", "population", "local_epsilon"),
    ),
    "shuffle": Protocol(
        "Full shuffle",
        "Every client reports in every round; reports pass a shuffler.",
        ("population", "rounds", "colluding"),
        ("any", "binary", "dary", "hemisphere", "privunit"),
        ("rounds", "population", "local"),
        ("rounds", "population", "local_epsilon"),
        aliases=("full-shuffle",),
    ),
    "distributed-check-in": Protocol(
        "Distributed check-in",
        "Every client flips its own coin; secure aggregation shows only the sum.",
        ("population", "rate", "rounds"),
        ("gaussian",),
        ("rounds", "rate", "population", "local"),
        bounded=False,
        trusted="If one of the two aggregators is honest",
        betrayed="If they work together",
    ),
    "random-check-in-fixed": _InSlots(
        "Random check-ins, fixed window",
        "Every client picks one slot of a window and reports at most once in it.",
        ("population", "slots", "check_in_probability", "rounds"),
        ("any", "gaussian"),
        ("rounds", "slots", "population", "local"),
        aliases=("random-check-ins-fixed",),
    ),
    "random-check-in-sliding": _InSlots(
        "Random check-ins, sliding window",
        "A client's window begins when it arrives; it reports once, in a slot it chose.",
        ("slots",),
        ("any", "gaussian"),
        ("slots", "local"),
        aliases=("random-check-ins-sliding",),
    ),
    "random-check-in-averaged": _InSlots(
        "Random check-ins, averaged",
        "All clients that chose the same slot are averaged; one window.",
        ("population", "slots"),
        ("any",),
        ("population", "slots", "local"),
        bounded=False,
        aliases=("random-check-ins-averaged",),
    ),
    "local-only": Protocol(
        "Named reports",
        "Reports are seen with their senders; only the local randomizer protects.",
        ("population", "rounds"),
        (*PURE, "gaussian"),
        bounded=False,
        trusted="Always",
        betrayed="Always",
    ),
    "central": Protocol(
        "Central DP-SGD",
        "A trusted server samples, clips and adds noise.",
        ("population", "rate", "rounds"),
        ("gaussian",),
        bounded=False,
        aliases=("central-dp-sgd",),
        trusted="If the server is honest",
        betrayed="If it is not",
    ),
}
PLANNED = tuple(name for name, protocol in PROTOCOLS.items() if protocol.over)


Table = Mapping[str, Protocol] | Mapping[str, Randomizer]


def spellings(table: Table, names: tuple[str, ...] | None = None) -> tuple[str, ...]:
    """Every way to write these names: the names themselves first, then their aliases."""
    chosen = tuple(table) if names is None else names
    return chosen + tuple(alias for name in chosen for alias in table[name].aliases)


def _canonical(table: Table) -> dict[str, str]:
    return {alias: name for name, entry in table.items() for alias in (name, *entry.aliases)}


_PROTOCOL_SPELLINGS, _RANDOMIZER_SPELLINGS = _canonical(PROTOCOLS), _canonical(RANDOMIZERS)


def protocol_name(text: str, allowed: tuple[str, ...] = tuple(PROTOCOLS)) -> str:
    """The protocol's one name for any of its spellings."""
    name = _PROTOCOL_SPELLINGS.get(text, text)
    if name not in allowed:
        raise InvalidParameter("protocol", text, "one of " + ", ".join(allowed))
    return name


def spelling(randomizer: str) -> str:
    """The randomizer's one name for any of its spellings; an unknown name stays as it is."""
    return _RANDOMIZER_SPELLINGS.get(randomizer, randomizer)


def pair_named(text: str, local_epsilon: float | None, local_delta: float = 0.0) -> LocalPair:
    """The local pair of a randomizer.

    Args:
        text: Its name, with its argument: `any`, `dary:10`, `privunit:784`, `gaussian:2`, …
        local_epsilon: Of one report; none for Gaussian noise.
        local_delta: Of one report; only with `any`.
    """
    name, _, argument = text.partition(":")
    kind = spelling(name)
    allowed = "any, binary, dary:K, hemisphere, privunit:DIM, gaussian:SIGMA or laplace"
    try:
        number = float(argument) if argument else None
    except ValueError:
        raise InvalidParameter("randomizer", text, allowed) from None
    if kind == "gaussian":
        return _gaussian(text, number, local_epsilon)
    if local_epsilon is None:
        raise InvalidParameter("local-epsilon", None, "a number, for every randomizer but gaussian")
    if local_delta:
        if kind != "any":
            raise InvalidParameter("local-delta", local_delta, "0 unless --randomizer any")
        return a.approximate(local_epsilon, local_delta)
    if kind in _PLAIN and number is None:
        return _PLAIN[kind](local_epsilon)
    if kind in _WITH_NUMBER and number is not None and number.is_integer():
        return _WITH_NUMBER[kind](local_epsilon, int(number))
    raise InvalidParameter("randomizer", text, allowed)


_PLAIN: dict[str, Callable[[float], LocalPair]] = {
    "any": a.any_pure,
    "binary": a.binary_response,
    "hemisphere": a.hemisphere,
    "laplace": a.laplace,
}
_WITH_NUMBER: dict[str, Callable[[float, int], LocalPair]] = {
    "dary": a.dary_response,
    "privunit": a.privunit,
}


def _gaussian(text: str, sigma: float | None, local_epsilon: float | None) -> LocalPair:
    if sigma is None:
        raise InvalidParameter("randomizer", text, "gaussian:SIGMA, SIGMA the noise multiplier")
    if local_epsilon is not None:
        raise InvalidParameter(
            "local-epsilon", local_epsilon, "left out: gaussian:SIGMA says it all"
        )
    return a.gaussian(sigma)


@dataclass(frozen=True)
class RunQuestion:
    """A run in plain names and numbers, as it is typed; what a protocol does not take is refused.

    Args:
        protocol: Any spelling of its name.
        population: Number of clients.
        rounds: Rounds, or windows.
        randomizer: As `pair_named` takes it.
        rate: Probability that a client checks in to a round.
        cohort: Size of a fixed cohort.
        local_epsilon: Of one report.
        local_delta: Of one report.
        noise_multiplier: Gaussian noise per clipping norm, instead of a randomizer.
        slots: Of a window.
        check_in_probability: With which a client chooses a slot at all.
        colluding: Fraction of clients that work with the analyzer.
        dropout: Largest probability that a check-in gets lost.
        lowest_rate: Rates lie between this and `rate`.
    """

    protocol: str
    population: int
    rounds: int = 1
    randomizer: str = "any"
    rate: float | None = None
    cohort: int | None = None
    local_epsilon: float | None = None
    local_delta: float = 0.0
    noise_multiplier: float | None = None
    slots: int | None = None
    check_in_probability: float | None = None
    colluding: float = 0.0
    dropout: float = 0.0
    lowest_rate: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "protocol", protocol_name(self.protocol))

    def pair(self) -> LocalPair:
        """What one report gives away."""
        if self.noise_multiplier is None:
            return pair_named(self.randomizer, self.local_epsilon, self.local_delta)
        if self.randomizer != "any":
            raise InvalidParameter(
                "noise-multiplier", self.noise_multiplier, "left out when --randomizer is given"
            )
        return pair_named(f"gaussian:{self.noise_multiplier!r}", self.local_epsilon)

    def round(self, delta: float) -> Round:
        """One round as accounting describes it; delta matters to averaged windows only."""
        if self.protocol != "shuffled-check-in":
            for name, value in (("dropout", self.dropout), ("lowest-rate", self.lowest_rate)):
                if value:
                    raise InvalidParameter(name, value, "used with check-ins")
        if self.protocol in _WINDOWS:
            return self._window(delta)
        return _ROUNDS[self.protocol](self)

    def guarantee(self, delta: float) -> Guarantee:
        """The certified statement about the whole run, with its reasons."""
        if self.protocol == "random-check-in-averaged":
            if self.slots is None:
                raise InvalidParameter("slots", self.slots, "the number of slots of a window")
            return averaged_guarantee(self.population, self.slots, self.pair(), self.rounds, delta)
        if self.protocol == "local-only":
            return local_only_guarantee(self.pair(), self.rounds, delta)
        return a.guarantee([(self.round(delta), self.rounds)], delta)

    @property
    def has_lower_bound(self) -> bool:
        """Is a lower bound asked for at all? Comparators have none."""
        return self.protocol not in ("local-only", "central")

    def lower_bound(self, delta: float) -> LowerBound:
        """What no guarantee about the run can be smaller than; zero if nothing is known."""
        if self.protocol == "random-check-in-averaged":
            return LowerBound(Bracket(0.0, math.inf), delta, Adjacency.REPLACE_ONE, ())
        one = self.round(delta)
        if self.protocol == "random-check-in-sliding" and isinstance(one, a.WindowRound):
            # a sliding window's slots are open to as many clients as there are slots
            one = replace(one, others=one.slots - 1)
        return a.lower_bound([(one, self.rounds)], delta)

    def _window(self, delta: float) -> Round:
        if self.slots is None:
            raise InvalidParameter("slots", self.slots, "the number of slots of a window")
        if self.protocol == "random-check-in-averaged":
            unlucky = _LOAD_SHARE * delta / self.rounds
            return a.averaged_window(self.population, self.slots, self.pair(), unlucky)
        if self.protocol == "random-check-in-sliding":
            return a.WindowRound(self.slots, self.pair())
        p = 1.0 if self.check_in_probability is None else self.check_in_probability
        return a.WindowRound(self.slots, self.pair(), p, others=self.population - 1)

    def needed_rate(self) -> float:
        """The rate, for protocols that cannot do without."""
        if self.rate is None:
            raise InvalidParameter("rate", self.rate, f"a probability, for {self.protocol}")
        return self.rate


_WINDOWS = ("random-check-in-fixed", "random-check-in-sliding", "random-check-in-averaged")


def _check_in(q: RunQuestion) -> Round:
    if q.cohort is not None:
        raise InvalidParameter("cohort", q.cohort, "left out: check-in has a rate, not a cohort")
    return a.CheckInRound(
        q.population, q.needed_rate(), q.pair(), q.colluding, q.dropout, q.lowest_rate
    )


def _subsample(q: RunQuestion) -> Round:
    cohort = q.cohort
    if cohort is None and q.rate is not None:
        cohort = round(q.rate * q.population)
        if abs(cohort - q.rate * q.population) > 1e-6 * max(cohort, 1):
            raise InvalidParameter("rate", q.rate, "a rate that gives a whole cohort, or --cohort")
    elif q.rate is not None:
        raise InvalidParameter("rate", q.rate, "left out when --cohort is given")
    if cohort is None:
        raise InvalidParameter("cohort", cohort, "a whole number, for subsampled-shuffle")
    return a.SubsampleRound(q.population, cohort, q.pair(), q.colluding)


def _shuffle(q: RunQuestion) -> Round:
    if q.rate not in (None, 1.0) or q.cohort not in (None, q.population):
        raise InvalidParameter("rate", q.rate, "left out: everybody takes part in a full shuffle")
    return a.ShuffleRound(q.population, q.pair(), q.colluding)


def _noise(q: RunQuestion) -> float:
    pair = q.pair()
    if not isinstance(pair, a.GaussianPair):
        raise InvalidParameter("randomizer", pair.label, f"gaussian:SIGMA with {q.protocol}")
    return pair.noise_multiplier


_ROUNDS: dict[str, Callable[[RunQuestion], Round]] = {
    "shuffled-check-in": _check_in,
    "subsampled-shuffle": _subsample,
    "shuffle": _shuffle,
    "distributed-check-in": lambda q: a.DistributedRound(q.population, q.needed_rate(), _noise(q)),
    "local-only": lambda q: a.LocalRound(q.pair()),
    "central": lambda q: a.SampledGaussianRound(q.needed_rate(), _noise(q)),
}
