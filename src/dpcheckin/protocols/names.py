"""The one table of names: protocols and randomizers as people type them, and what they stand for.

The command line, the planner's form, plan documents, sweeps, audits and comparisons read it. Every
name has one spelling and perhaps some aliases. Nothing is computed here, so that help texts need no
mathematics; `protocols.questions` turns names and numbers into a round of accounting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from dpcheckin.errors import InvalidParameter

PURE = ("any", "binary", "dary", "hemisphere", "privunit", "laplace")


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
        empty_seats: Is its guarantee the empty-seat theorem? Sums and averages have others.
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
    empty_seats: bool = True
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
        empty_seats=False,
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
        empty_seats=False,
        aliases=("random-check-ins-averaged",),
    ),
    "local-only": Protocol(
        "Named reports",
        "Reports are seen with their senders; only the local randomizer protects.",
        ("population", "rounds"),
        (*PURE, "gaussian"),
        bounded=False,
        empty_seats=False,
        trusted="Always",
        betrayed="Always",
    ),
    "central": Protocol(
        "Central DP-SGD",
        "A trusted server samples, clips and adds noise.",
        ("population", "rate", "rounds"),
        ("gaussian",),
        bounded=False,
        empty_seats=False,
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


PROTOCOL_OF, RANDOMIZER_OF = _canonical(PROTOCOLS), _canonical(RANDOMIZERS)
"""The one name for every spelling."""


def protocol_name(text: str, allowed: tuple[str, ...] = tuple(PROTOCOLS)) -> str:
    """The protocol's one name for any of its spellings."""
    name = PROTOCOL_OF.get(text, text)
    if name not in allowed:
        raise InvalidParameter("protocol", text, "one of " + ", ".join(allowed))
    return name


def spelling(randomizer: str) -> str:
    """The randomizer's one name for any of its spellings; an unknown name stays as it is."""
    return RANDOMIZER_OF.get(randomizer, randomizer)
