"""The one table of protocols as people type them, and a run in those names and numbers: what is meant, its figures.

The command line, the planner's form, plan documents, sweeps, audits and comparisons read the table. Plans, and with
them accounting, are loaded when a question is answered: help texts need no mathematics. Randomizers say their names
themselves (`randomizers.registry`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from dpcheckin.errors import InvalidParameter, OutsideTheorem, Superfluous
from dpcheckin.numerals import count, keep_count, open_probability
from dpcheckin.options import listed, option

if TYPE_CHECKING:
    from dpcheckin.accounting import Guarantee, LowerBound, Round
    from dpcheckin.protocols.plan import Plan
    from dpcheckin.randomizers import Randomizer


@dataclass(frozen=True)
class Protocol:
    """A protocol: what it is called, which numbers it takes, what may be asked about it, and how its plan is made."""

    label: str  # its name in headings
    about: str  # one sentence
    fields: tuple[str, ...]  # parameters it takes, in the order in which they are asked for
    plan: Callable[[RunQuestion, int], Plan]  # of a run; windows are told how many slots are a gradient step
    over: tuple[str, ...] = ()  # parameters along which a picture can run
    solvable: tuple[str, ...] = ()  # those for which an epsilon can be aimed at
    bounded: bool = True  # is there a lower bound for it?
    empty_seats: bool = True  # is its guarantee the empty-seat theorem? Sums and averages have others
    aliases: tuple[str, ...] = ()  # other spellings
    trusted: str = "If the shuffler is honest"  # when the first of the two figures holds
    betrayed: str = "If it works with the analyzer"  # when only the second does
    beside: tuple[str, ...] = ()  # parameters that it takes too, without being asked for them
    understood: tuple[str, ...] = ()  # parameters that may stand for one of the fields, or are refused with a reason


def _check_in(run: RunQuestion, _: int) -> Plan:
    from dpcheckin.protocols.plan import ShuffledCheckIn

    if run.cohort is not None:
        raise Superfluous("cohort", run.cohort, "leave it out: check-in has a rate, not a cohort")
    rate = run.needed("rate", "a probability")
    adverse = (run.lowest_rate, run.dropout, run.colluding)
    return ShuffledCheckIn(run.population, rate, run.counted, run.reports(), *adverse)


def _subsample(run: RunQuestion, _: int) -> Plan:
    from dpcheckin.protocols.plan import SubsampledShuffle

    if run.rate is None:
        cohort = run.needed("cohort", "a whole number")
    elif run.cohort is not None:
        raise Superfluous("rate", run.rate, "leave it out when --cohort is given")
    else:
        cohort = round(run.rate * run.population)
        if abs(cohort - run.rate * run.population) > 1e-6 * max(cohort, 1):
            raise InvalidParameter("rate", run.rate, "a rate that gives a whole cohort, or --cohort")
    cohort = count("cohort", cohort, 0, run.population)
    return SubsampledShuffle(run.population, cohort, run.counted, run.reports(), run.colluding)


def _shuffle(run: RunQuestion, _: int) -> Plan:
    from dpcheckin.protocols.plan import FullShuffle

    if run.rate not in (None, 1.0) or run.cohort not in (None, run.population):
        raise Superfluous("rate", run.rate, "leave it out: everybody takes part in a full shuffle")
    return FullShuffle(run.population, run.counted, run.reports(), run.colluding)


def _distributed(run: RunQuestion, _: int) -> Plan:
    from dpcheckin.protocols.plan import DistributedCheckIn
    from dpcheckin.randomizers import Gaussian, IntegerVector

    made = run.reports()
    if not isinstance(made, Gaussian | IntegerVector):
        raise InvalidParameter("randomizer", made.name, f"gaussian, skellam or discrete-gaussian with {run.protocol}")
    return DistributedCheckIn(run.population, run.needed("rate", "a probability"), run.counted, made)


def _window(kind: str, run: RunQuestion, minibatch: int) -> Plan:
    from dpcheckin.protocols.random_check_ins import RandomCheckIns, Window

    slots = count("slots", run.needed("slots", "the number of slots of a window"))
    # who else there is does not matter to a sliding window
    people = max(run.population, slots) if kind == "sliding" else run.population
    p = 1.0 if run.check_in_probability is None else run.check_in_probability
    return RandomCheckIns(people, slots, run.reports(), Window(kind), p, minibatch, run.counted)


def _local_only(run: RunQuestion, _: int) -> Plan:
    from dpcheckin.protocols.comparators import LocalOnly

    return LocalOnly(run.population, 1.0 if run.rate is None else run.rate, run.counted, run.reports())


def _central(run: RunQuestion, _: int) -> Plan:
    from dpcheckin.protocols.comparators import CentralDpSgd
    from dpcheckin.randomizers import Gaussian

    made = run.reports()
    if not isinstance(made, Gaussian):
        raise InvalidParameter("randomizer", made.name, f"gaussian:SIGMA with {run.protocol}")
    rate = run.needed("rate", "a probability")
    return CentralDpSgd(run.population, rate, run.counted, made.noise_multiplier, made.clip)


_Other = partial(Protocol, bounded=False, empty_seats=False)
_InSlots = partial(Protocol, trusted="If the slots stay secret", betrayed="If it is known who reported when")
PROTOCOLS: Mapping[str, Protocol] = {
    "shuffled-check-in": Protocol(
        "Shuffled check-in",
        "Every client flips its own coin in each round; reports pass a shuffler.",
        ("population", "rate", "rounds", "colluding", "dropout"),
        _check_in,
        ("rounds", "rate", "population", "local"),
        ("rounds", "rate", "population", "local_epsilon"),
        beside=("lowest_rate",),
        understood=("cohort",),  # refused with a better reason
    ),
    "subsampled-shuffle": Protocol(
        "Subsampled shuffle",
        "A cohort of fixed size is drawn in secret in each round; reports pass a shuffler.",
        ("population", "cohort", "rounds", "colluding"),
        _subsample,
        ("rounds", "cohort", "population", "local"),
        ("rounds", "population", "local_epsilon"),
        understood=("rate",),  # instead of a cohort
    ),
    "shuffle": Protocol(
        "Full shuffle",
        "Every client reports in every round; reports pass a shuffler.",
        ("population", "rounds", "colluding"),
        _shuffle,
        ("rounds", "population", "local"),
        ("rounds", "population", "local_epsilon"),
        aliases=("full-shuffle",),
        understood=("rate", "cohort"),  # everybody
    ),
    "distributed-check-in": _Other(
        "Distributed check-in",
        "Every client flips its own coin; secure aggregation shows only the sum.",
        ("population", "rate", "rounds"),
        _distributed,
        ("rounds", "rate", "population", "local"),
        trusted="If one of the two aggregators is honest",
        betrayed="If they work together",
    ),
    "random-check-in-fixed": _InSlots(
        "Random check-ins, fixed window",
        "Every client picks one slot of a window and reports at most once in it.",
        ("population", "slots", "check_in_probability", "rounds"),
        partial(_window, "fixed"),
        ("rounds", "slots", "population", "local"),
        aliases=("random-check-ins-fixed",),
    ),
    "random-check-in-sliding": _InSlots(
        "Random check-ins, sliding window",
        "A client's window begins when it arrives; it reports once, in a slot it chose.",
        ("slots", "check_in_probability"),
        partial(_window, "sliding"),
        ("slots", "local"),
        aliases=("random-check-ins-sliding",),
    ),
    "random-check-in-averaged": _InSlots(
        "Random check-ins, averaged",
        "All clients that chose the same slot are averaged; one window.",
        ("population", "slots"),
        partial(_window, "averaged"),
        ("population", "slots", "local"),
        beside=("rounds",),
        aliases=("random-check-ins-averaged",),
    ),
    "local-only": _Other(
        "Named reports",
        "Reports are seen with their senders; only the local randomizer protects.",
        ("population", "rate", "rounds"),
        _local_only,
        trusted="Always",
        betrayed="Always",
    ),
    "central": _Other(
        "Central DP-SGD",
        "A trusted server samples, clips and adds noise.",
        ("population", "rate", "rounds"),
        _central,
        aliases=("central-dp-sgd",),
        trusted="If the server is honest",
        betrayed="If it is not",
    ),
}
PLANNED = tuple(name for name, protocol in PROTOCOLS.items() if protocol.over)
PROTOCOL_OF = {spelling: name for name, entry in PROTOCOLS.items() for spelling in (name, *entry.aliases)}
"""The one name for every spelling: the names themselves first, then their aliases."""
_MAY_BE_LEFT_OUT = ("rate", "cohort", "slots", "check_in_probability", "colluding", "dropout", "lowest_rate")


def protocol_name(text: str, allowed: tuple[str, ...] = tuple(PROTOCOLS)) -> str:
    """The protocol's one name, among those `allowed`, for any of its spellings: the `text` that was typed."""
    name = PROTOCOL_OF.get(text, text)
    if name not in allowed:
        raise InvalidParameter("protocol", text, "one of " + ", ".join(allowed))
    return name


@dataclass(frozen=True)
class RunQuestion:
    """A run in plain names and numbers, as it is typed; what a protocol does not take is refused.

    `randomizer` is a text as `randomizers.registry` reads it, such as `dary:10`, or the thing itself; `rounds` are
    windows where there are such. Commands take their options from here.
    """

    protocol: str = option("shuffled-check-in", f"{listed(tuple(PROTOCOLS))}.")
    population: int = option(None, "Number of clients.")  # type: ignore[assignment]
    rounds: int = option(1, "Number of rounds, or windows.")
    randomizer: Any = option("any", "{any}.")
    local_epsilon: float | None = option(None, "Epsilon of one report.")
    local_delta: float = option(0.0, "Delta of one report, with --randomizer any.")
    noise_multiplier: float | None = option(None, "Noise per clipping norm, for Gaussian reports.")
    dimension: int | None = option(None, "Numbers of a report, for a --randomizer of vectors.")
    rate: float | None = option(None, "Probability that a client checks in.")
    lowest_rate: float | None = option(None, "Rates lie between this and --rate.")
    dropout: float = option(0.0, "Largest probability that a check-in gets lost.")
    colluding: float = option(0.0, "Fraction of clients working with the analyzer.")
    cohort: int | None = option(None, "Size of a fixed cohort, for subsampled-shuffle.")
    slots: int | None = option(None, "Slots of a random check-in window.")
    check_in_probability: float | None = option(None, "Probability to check in to a window.")
    joins: int = 1
    """The first round in which the client in question takes part; the last one is the last of the run."""
    lowest_local_epsilon: float | None = None
    """Given when clients choose their own local epsilon, from this to `local_epsilon` (`own_terms`)."""

    def __post_init__(self) -> None:
        from dpcheckin.accounting.rounds.base import MOST_ROUNDS

        object.__setattr__(self, "protocol", protocol_name(self.protocol))
        if self.population is None:
            raise InvalidParameter("population", None, "a whole number (it is required)")
        keep_count(self, "population")
        keep_count(self, "rounds", 0, MOST_ROUNDS)
        entry = PROTOCOLS[self.protocol]
        for name in _MAY_BE_LEFT_OUT:
            value = getattr(self, name)
            if value and name not in (*entry.fields, *entry.beside, *entry.understood):
                raise Superfluous(name.replace("_", "-"), value, f"leave it out: not used with {self.protocol}")
        keep_count(self, "joins", 1, max(self.rounds, 1))
        least = self.lowest_local_epsilon
        if least is not None and not 0.0 < least <= (self.local_epsilon or 0.0):
            raise InvalidParameter("local_epsilon", f"{least:g}..", "two with dots, the smaller first: 1..4")
        if self.protocol == "random-check-in-sliding" and self.rounds > 1:
            raise OutsideTheorem("a sliding window is proved for one run: rounds = 1")

    @staticmethod
    def of(protocol: str, population: int, rounds: int, **offered: Any) -> RunQuestion:
        """The question about `rounds` of a `protocol` in a `population` that leaves out what is `offered` in vain."""
        entry = PROTOCOLS[protocol_name(protocol)]
        vain = {*_MAY_BE_LEFT_OUT} - {*entry.fields, *entry.beside}
        taken = {name: value for name, value in offered.items() if name not in vain}
        return RunQuestion(protocol, population, rounds, **taken)

    def reports(self) -> Randomizer:
        """What makes one report."""
        from dpcheckin.randomizers import registry

        named, noise = self.randomizer, self.noise_multiplier
        if noise is not None and named == "any":
            named = "gaussian"
        return registry.randomizer(
            named, local_epsilon=self.local_epsilon, local_delta=self.local_delta or None, noise_multiplier=noise,
            dimension=self.dimension,
        )  # fmt: skip

    def plan(self, minibatch: int = 1) -> Plan:
        """The run as it is priced, played and deployed, with `minibatch` slots of a window to a gradient step."""
        return PROTOCOLS[self.protocol].plan(self, minibatch)

    def round(self, delta: float) -> Round:
        """One round as accounting describes it; delta matters to averaged windows only."""
        return self.plan().parts(delta)[0]

    def guarantee(self, delta: float) -> Guarantee:
        """The certified statement about the whole run, with its reasons."""
        open_probability("delta", delta)
        if self.lowest_local_epsilon is not None or self.joins > 1:
            from dpcheckin.protocols.own_terms import asked_guarantee

            return asked_guarantee(self, delta)
        return self.plan().guarantee(delta, None if self.rounds else 0)

    @property
    def stated_by_rounds(self) -> bool:
        """Is the statement that of one kind of round, composed?"""
        return self.protocol not in ("random-check-in-averaged", "local-only") and self.joins == 1

    @property
    def has_lower_bound(self) -> bool:
        """Is a lower bound asked for at all? Comparators have none, nor have noisy integers."""
        from dpcheckin.randomizers import IntegerVector

        if self.protocol == "distributed-check-in":
            return not isinstance(self.reports(), IntegerVector)
        return self.protocol not in ("local-only", "central")

    def lower_bound(self, delta: float) -> LowerBound:
        """What no guarantee about the run can be smaller than; zero if nothing is known."""
        return self.plan().lower_bound(delta)

    def needed(self, name: str, allowed: str) -> Any:
        """The field `name`, which the protocol cannot do without; `allowed` says what it must be."""
        value = getattr(self, name)
        if value is None:
            raise InvalidParameter(name, value, f"{allowed}, for {self.protocol}")
        return value

    @property
    def counted(self) -> int:
        """Rounds of the plan, from the first in which the client takes part; of no rounds at all, one."""
        return max(self.rounds - self.joins + 1, 1)


@cache
def fits(protocol: str, kind: type[Randomizer]) -> bool:
    """Has a `protocol` (by its one name) a theorem about a randomizer, that is a `kind` of the registry?"""
    from dpcheckin.randomizers import Gaussian, IntegerVector, registry

    if protocol == "central":
        return issubclass(kind, Gaussian)
    if protocol == "distributed-check-in":
        return issubclass(kind, Gaussian | IntegerVector)
    try:
        return bool(registry.usual(kind).pair)
    except OutsideTheorem:  # priced in sums only
        return False


def randomizers_of(protocol: str) -> tuple[str, ...]:
    """The names of all randomizers that fit a protocol."""
    from dpcheckin.randomizers import registry

    return tuple(name for name, kind in registry.kinds().items() if fits(protocol, kind))
