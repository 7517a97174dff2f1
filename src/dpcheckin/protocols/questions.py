"""Questions in plain names and numbers, as they are typed: what run is meant, and its figures."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from dpcheckin import accounting as a
from dpcheckin.accounting import Guarantee, LocalPair, LowerBound, Round
from dpcheckin.accounting.parameters import keep_count, open_probability
from dpcheckin.accounting.rounds.base import MOST_ROUNDS
from dpcheckin.errors import InvalidParameter, OutsideTheorem
from dpcheckin.protocols.comparators import local_only_guarantee
from dpcheckin.protocols.names import PROTOCOL_OF, PROTOCOLS, RANDOMIZER_OF, RANDOMIZERS
from dpcheckin.protocols.random_check_ins import LOAD_SHARE, averaged_guarantee


def pair_named(text: str, local_epsilon: float | None, local_delta: float = 0.0) -> LocalPair:
    """The local pair of a randomizer.

    Args:
        text: Its name, with its argument: `any`, `dary:10`, `privunit:784`, `gaussian:2`, …
        local_epsilon: Of one report; none for Gaussian noise.
        local_delta: Of one report; only with `any`.
    """
    name, _, argument = text.partition(":")
    kind = RANDOMIZER_OF.get(name, name)
    allowed = "any, binary, dary:K, hemisphere, privunit:DIM, gaussian:SIGMA or laplace"
    if kind not in (*_MAKERS, "gaussian"):
        raise InvalidParameter("randomizer", text, allowed)
    if argument and RANDOMIZERS[kind].argument is None:
        raise InvalidParameter("randomizer", text, f"{name}, and {argument} as --local-epsilon")
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
    maker = _MAKERS.get(kind)
    whole = number is not None and number.is_integer()
    if maker is not None and whole == (RANDOMIZERS[kind].argument is not None):
        made: LocalPair = getattr(a, maker)(
            local_epsilon, *([] if number is None else [int(number)])
        )
        return made
    raise InvalidParameter("randomizer", text, allowed)


_MAKERS = {
    "any": "any_pure",
    "binary": "binary_response",
    "dary": "dary_response",
    "hemisphere": "hemisphere",
    "laplace": "laplace",
    "privunit": "privunit",
}


def _gaussian(text: str, sigma: float | None, local_epsilon: float | None) -> LocalPair:
    if sigma is None:
        raise InvalidParameter(
            "randomizer",
            text,
            "gaussian:SIGMA, SIGMA the noise multiplier (or --noise-multiplier beside it)",
        )
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
    local_epsilon: float | None = None
    local_delta: float = 0.0
    noise_multiplier: float | None = None
    rate: float | None = None
    lowest_rate: float | None = None
    dropout: float = 0.0
    colluding: float = 0.0
    cohort: int | None = None
    slots: int | None = None
    check_in_probability: float | None = None

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOL_OF:
            raise InvalidParameter("protocol", self.protocol, "one of " + ", ".join(PROTOCOLS))
        object.__setattr__(self, "protocol", PROTOCOL_OF[self.protocol])
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

    def pair(self) -> LocalPair:
        """What one report gives away."""
        if self.noise_multiplier is None:
            return pair_named(self.randomizer, self.local_epsilon, self.local_delta)
        if self.randomizer not in ("any", "gaussian"):
            raise InvalidParameter(
                "noise-multiplier",
                self.noise_multiplier,
                f"left out with --randomizer {self.randomizer}",
            )
        return pair_named(f"gaussian:{self.noise_multiplier!r}", self.local_epsilon)

    def round(self, delta: float) -> Round:
        """One round as accounting describes it; delta matters to averaged windows only."""
        if self.protocol in _WINDOWS:
            return self._window(delta)
        return _ROUNDS[self.protocol](self)

    def guarantee(self, delta: float) -> Guarantee:
        """The certified statement about the whole run, with its reasons."""
        open_probability("delta", delta)
        if self.protocol == "random-check-in-averaged":
            if self.slots is None:
                raise InvalidParameter("slots", self.slots, "the number of slots of a window")
            return averaged_guarantee(self.population, self.slots, self.pair(), self.rounds, delta)
        if self.protocol == "local-only":
            return local_only_guarantee(self.pair(), self.rounds, delta)
        return a.guarantee([(self.round(delta), self.rounds)], delta)

    @property
    def stated_by_rounds(self) -> bool:
        """Is the statement that of one kind of round, composed?"""
        return self.protocol not in ("random-check-in-averaged", "local-only")

    @property
    def has_lower_bound(self) -> bool:
        """Is a lower bound asked for at all? Comparators have none."""
        return self.protocol not in ("local-only", "central")

    def lower_bound(self, delta: float) -> LowerBound:
        """What no guarantee about the run can be smaller than; zero if nothing is known."""
        if self.protocol == "random-check-in-averaged":
            return a.LowerBound(a.Bracket(0.0, math.inf), delta, a.Adjacency.REPLACE_ONE, ())
        one = self.round(delta)
        if self.protocol == "random-check-in-sliding" and isinstance(one, a.WindowRound):
            # a sliding window's slots are open to as many clients as there are slots
            one = replace(one, others=one.slots - 1)
        return a.lower_bound([(one, self.rounds)], delta)

    def _window(self, delta: float) -> Round:
        if self.slots is None:
            raise InvalidParameter("slots", self.slots, "the number of slots of a window")
        if self.protocol == "random-check-in-averaged":
            unlucky = LOAD_SHARE * delta / max(self.rounds, 1)
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
    "local-only": ("rate",),  # a client that reports every time is counted
}
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
