"""The one table of protocols as people type them, and what they stand for.

The command line, the planner's form, plan documents, sweeps, audits and comparisons read it. Every
name has one spelling and perhaps some aliases. Nothing is computed here, so that help texts need no
mathematics; `protocols.questions` turns names and numbers into a round of accounting. Randomizers
say their names themselves (`randomizers.registry`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpcheckin.errors import InvalidParameter
from dpcheckin.options import listed, option


@dataclass(frozen=True)
class Protocol:
    """A protocol: what it is called, which numbers it takes, what may be asked about it.

    Args:
        label: Its name in headings.
        about: One sentence.
        fields: Parameters it takes, in the order in which they are asked for.
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
    over: tuple[str, ...] = ()
    solvable: tuple[str, ...] = ()
    bounded: bool = True
    empty_seats: bool = True
    aliases: tuple[str, ...] = ()
    trusted: str = "If the shuffler is honest"
    betrayed: str = "If it works with the analyzer"


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
        ("rounds", "rate", "population", "local"),
        ("rounds", "rate", "population", "local_epsilon"),
    ),
    "subsampled-shuffle": Protocol(
        "Subsampled shuffle",
        "A cohort of fixed size is drawn in secret in each round; reports pass a shuffler.",
        ("population", "cohort", "rounds", "colluding"),
        ("rounds", "cohort", "population", "local"),
        ("rounds", "population", "local_epsilon"),
    ),
    "shuffle": Protocol(
        "Full shuffle",
        "Every client reports in every round; reports pass a shuffler.",
        ("population", "rounds", "colluding"),
        ("rounds", "population", "local"),
        ("rounds", "population", "local_epsilon"),
        aliases=("full-shuffle",),
    ),
    "distributed-check-in": Protocol(
        "Distributed check-in",
        "Every client flips its own coin; secure aggregation shows only the sum.",
        ("population", "rate", "rounds"),
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
        ("rounds", "slots", "population", "local"),
        aliases=("random-check-ins-fixed",),
    ),
    "random-check-in-sliding": _InSlots(
        "Random check-ins, sliding window",
        "A client's window begins when it arrives; it reports once, in a slot it chose.",
        ("slots",),
        ("slots", "local"),
        aliases=("random-check-ins-sliding",),
    ),
    "random-check-in-averaged": _InSlots(
        "Random check-ins, averaged",
        "All clients that chose the same slot are averaged; one window.",
        ("population", "slots"),
        ("population", "slots", "local"),
        bounded=False,
        empty_seats=False,
        aliases=("random-check-ins-averaged",),
    ),
    "local-only": Protocol(
        "Named reports",
        "Reports are seen with their senders; only the local randomizer protects.",
        ("population", "rate", "rounds"),
        bounded=False,
        empty_seats=False,
        trusted="Always",
        betrayed="Always",
    ),
    "central": Protocol(
        "Central DP-SGD",
        "A trusted server samples, clips and adds noise.",
        ("population", "rate", "rounds"),
        bounded=False,
        empty_seats=False,
        aliases=("central-dp-sgd",),
        trusted="If the server is honest",
        betrayed="If it is not",
    ),
}
PLANNED = tuple(name for name, protocol in PROTOCOLS.items() if protocol.over)


PROTOCOL_OF = {
    spelling: name for name, entry in PROTOCOLS.items() for spelling in (name, *entry.aliases)
}
"""The one name for every spelling: the names themselves first, then their aliases."""


def protocol_name(text: str, allowed: tuple[str, ...] = tuple(PROTOCOLS)) -> str:
    """The protocol's one name for any of its spellings.

    Args:
        text: as it was typed.
        allowed: names that may be meant.
    """
    name = PROTOCOL_OF.get(text, text)
    if name not in allowed:
        raise InvalidParameter("protocol", text, "one of " + ", ".join(allowed))
    return name


@dataclass(frozen=True)
class RunFields:
    """A run in plain names and numbers: what it is told, and what each of them means.

    `questions.RunQuestion` is one that can be priced; commands take their options from here.
    """

    protocol: str = option("shuffled-check-in", f"{listed(tuple(PROTOCOLS))}.")
    population: int = option(None, "Number of clients.")  # type: ignore[assignment]
    rounds: int = option(1, "Number of rounds, or windows.")
    randomizer: Any = option("any", "{any}.")
    local_epsilon: float | None = option(None, "Epsilon of one report.")
    local_delta: float = option(0.0, "Delta of one report, with --randomizer any.")
    noise_multiplier: float | None = option(None, "Noise per clipping norm, for Gaussian reports.")
    rate: float | None = option(None, "Probability that a client checks in.")
    lowest_rate: float | None = option(None, "Rates lie between this and --rate.")
    dropout: float = option(0.0, "Largest probability that a check-in gets lost.")
    colluding: float = option(0.0, "Fraction of clients working with the analyzer.")
    cohort: int | None = option(None, "Size of a fixed cohort, for subsampled-shuffle.")
    slots: int | None = option(None, "Slots of a random check-in window.")
    check_in_probability: float | None = option(None, "Probability to check in to a window.")
