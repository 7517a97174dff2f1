"""Questions in plain names and numbers, as they are typed: what run is meant, and its figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from dpcheckin.accounting import Guarantee, LocalPair, LowerBound, Round
from dpcheckin.accounting.parameters import count, keep_count, open_probability
from dpcheckin.accounting.rounds.base import MOST_ROUNDS
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.protocols.comparators import CentralDpSgd, LocalOnly
from dpcheckin.protocols.distributed import DistributedCheckIn
from dpcheckin.protocols.names import PROTOCOL_OF, PROTOCOLS, RunFields, protocol_name
from dpcheckin.protocols.plan import Plan
from dpcheckin.protocols.random_check_ins import RandomCheckIns, Window
from dpcheckin.protocols.shuffled import FullShuffle, ShuffledCheckIn, SubsampledShuffle
from dpcheckin.randomizers import Gaussian, IntegerVector, Randomizer, registry


@dataclass(frozen=True)
class RunQuestion(RunFields):
    """A run in plain names and numbers, as it is typed; what a protocol does not take is refused.

    Its fields are those of `RunFields`. `randomizer` is a text as `randomizers.registry` reads it,
    such as `dary:10`, or the thing itself; `rounds` are windows where there are such.
    """

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOL_OF:
            raise InvalidParameter("protocol", self.protocol, "one of " + ", ".join(PROTOCOLS))
        object.__setattr__(self, "protocol", PROTOCOL_OF[self.protocol])
        if self.population is None:
            raise InvalidParameter("population", None, "a whole number (it is required)")
        keep_count(self, "population")
        keep_count(self, "rounds", 0, MOST_ROUNDS)
        taken = (*PROTOCOLS[self.protocol].fields, *_ALSO_TAKEN.get(self.protocol, ()))
        for name in _MAY_BE_LEFT_OUT:
            value = getattr(self, name)
            if value and name not in taken:
                option = name.replace("_", "-")
                raise InvalidParameter(option, value, f"left out: not used with {self.protocol}")
        if self.protocol == "random-check-in-sliding" and self.rounds > 1:
            raise OutsideTheorem("a sliding window is proved for one run: rounds = 1")

    @staticmethod
    def of(protocol: str, population: int, rounds: int, **offered: Any) -> RunQuestion:
        """The question that leaves out what its protocol does not take.

        Args:
            protocol: Any spelling of its name.
            population: Number of clients.
            rounds: Rounds, or windows.
            offered: By field.
        """
        fields = PROTOCOLS[protocol_name(protocol)].fields
        beside = [name for name in _MAY_BE_LEFT_OUT if name not in fields]
        taken = {name: value for name, value in offered.items() if name not in beside}
        return RunQuestion(protocol, population, rounds, **taken)

    def reports(self) -> Randomizer:
        """What makes one report."""
        named, noise = self.randomizer, self.noise_multiplier
        if noise is not None and named == "any":
            named = "gaussian"
        return registry.randomizer(
            named,
            local_epsilon=self.local_epsilon,
            local_delta=self.local_delta or None,
            noise_multiplier=noise,
        )

    def pair(self) -> LocalPair:
        """What one report gives away."""
        return self.reports().pair

    def plan(self, minibatch: int = 1) -> Plan:
        """The run as it is priced, played and deployed; of no rounds at all, one of them.

        Args:
            minibatch: Slots to a gradient step, in windows.
        """
        return _PLANS[self.protocol](self, minibatch)

    def round(self, delta: float) -> Round:
        """One round as accounting describes it; delta matters to averaged windows only."""
        return self.plan().parts(delta)[0]

    def guarantee(self, delta: float) -> Guarantee:
        """The certified statement about the whole run, with its reasons."""
        open_probability("delta", delta)
        return self.plan().guarantee(delta, None if self.rounds else 0)

    @property
    def stated_by_rounds(self) -> bool:
        """Is the statement that of one kind of round, composed?"""
        return self.protocol not in ("random-check-in-averaged", "local-only")

    @property
    def has_lower_bound(self) -> bool:
        """Is a lower bound asked for at all? Comparators have none, nor have noisy integers."""
        if self.protocol == "distributed-check-in":
            return not isinstance(self.reports(), IntegerVector)
        return self.protocol not in ("local-only", "central")

    def lower_bound(self, delta: float) -> LowerBound:
        """What no guarantee about the run can be smaller than; zero if nothing is known."""
        return self.plan().lower_bound(delta)

    def needed(self, name: str, allowed: str) -> Any:
        """A number that the protocol cannot do without.

        Args:
            name: Of the field.
            allowed: What it must be.
        """
        value = getattr(self, name)
        if value is None:
            raise InvalidParameter(name, value, f"{allowed}, for {self.protocol}")
        return value

    @property
    def counted(self) -> int:
        """Rounds of the plan."""
        return max(self.rounds, 1)


_MAY_BE_LEFT_OUT = (
    "rate",
    "cohort",
    "slots",
    "check_in_probability",
    "colluding",
    "dropout",
    "lowest_rate",
)
_ALSO_TAKEN = {
    "shuffled-check-in": ("lowest_rate", "cohort"),  # a cohort is refused with a better reason
    "subsampled-shuffle": ("rate",),  # instead of a cohort
    "shuffle": ("rate", "cohort"),  # everybody
}


def _check_in(q: RunQuestion, _: int) -> Plan:
    if q.cohort is not None:
        raise InvalidParameter("cohort", q.cohort, "left out: check-in has a rate, not a cohort")
    rate = q.needed("rate", "a probability")
    adverse = (q.lowest_rate, q.dropout, q.colluding)
    return ShuffledCheckIn(q.population, rate, q.counted, q.reports(), *adverse)


def _subsample(q: RunQuestion, _: int) -> Plan:
    cohort = q.cohort
    if cohort is None and q.rate is not None:
        cohort = round(q.rate * q.population)
        if abs(cohort - q.rate * q.population) > 1e-6 * max(cohort, 1):
            raise InvalidParameter("rate", q.rate, "a rate that gives a whole cohort, or --cohort")
    elif q.rate is not None:
        raise InvalidParameter("rate", q.rate, "left out when --cohort is given")
    if cohort is None:
        raise InvalidParameter("cohort", cohort, "a whole number, for subsampled-shuffle")
    cohort = count("cohort", cohort, 0, q.population)
    return SubsampledShuffle(q.population, cohort, q.counted, q.reports(), q.colluding)


def _shuffle(q: RunQuestion, _: int) -> Plan:
    if q.rate not in (None, 1.0) or q.cohort not in (None, q.population):
        raise InvalidParameter("rate", q.rate, "left out: everybody takes part in a full shuffle")
    return FullShuffle(q.population, q.counted, q.reports(), q.colluding)


def _distributed(q: RunQuestion, _: int) -> Plan:
    made = q.reports()
    if not isinstance(made, Gaussian | IntegerVector):
        allowed = f"gaussian, skellam or discrete-gaussian with {q.protocol}"
        raise InvalidParameter("randomizer", made.name, allowed)
    return DistributedCheckIn(q.population, q.needed("rate", "a probability"), q.counted, made)


def _window(kind: Window) -> Callable[[RunQuestion, int], Plan]:
    def window(q: RunQuestion, minibatch: int) -> Plan:
        slots = count("slots", q.needed("slots", "the number of slots of a window"))
        # who else there is does not matter to a sliding window
        people = max(q.population, slots) if kind is Window.SLIDING else q.population
        p = 1.0 if q.check_in_probability is None else q.check_in_probability
        return RandomCheckIns(people, slots, q.reports(), kind, p, minibatch, q.counted)

    return window


def _local_only(q: RunQuestion, _: int) -> Plan:
    return LocalOnly(q.population, 1.0 if q.rate is None else q.rate, q.counted, q.reports())


def _central(q: RunQuestion, _: int) -> Plan:
    made = q.reports()
    if not isinstance(made, Gaussian):
        raise InvalidParameter("randomizer", made.name, f"gaussian:SIGMA with {q.protocol}")
    rate = q.needed("rate", "a probability")
    return CentralDpSgd(q.population, rate, q.counted, made.noise_multiplier, made.clip)


_PLANS: dict[str, Callable[[RunQuestion, int], Plan]] = {
    "shuffled-check-in": _check_in,
    "subsampled-shuffle": _subsample,
    "shuffle": _shuffle,
    "distributed-check-in": _distributed,
    "random-check-in-fixed": _window(Window.FIXED),
    "random-check-in-averaged": _window(Window.AVERAGED),
    "random-check-in-sliding": _window(Window.SLIDING),
    "local-only": _local_only,
    "central": _central,
}


@cache
def fits(protocol: str, kind: type[Randomizer]) -> bool:
    """Whether a protocol has a theorem about a randomizer.

    Args:
        protocol: its one name.
        kind: of the registry.
    """
    if protocol == "central":
        return issubclass(kind, Gaussian)
    if protocol == "distributed-check-in":
        return issubclass(kind, Gaussian | IntegerVector)
    try:
        pair = registry.usual(kind).pair
    except OutsideTheorem:  # priced in sums only
        return False
    if protocol == "shuffle":
        return pair.full_shuffle_proved
    return pair.pure or protocol != "random-check-in-averaged"


def randomizers_of(protocol: str) -> tuple[str, ...]:
    """The names of all randomizers that fit a protocol.

    Args:
        protocol: its one name.
    """
    return tuple(name for name, kind in registry.kinds().items() if fits(protocol, kind))
