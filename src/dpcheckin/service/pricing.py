"""What a plan document costs: from the words of the wire to the certified accounting.

The crowd that is priced is the plan's `population` without the share `colluding`; `dropout` widens the rates that are
allowed for. Which rounds are void is another number (`wire.documents`).

`Price` is the only place where a service learns an epsilon. It is used by the analyzer's ledger, by the client that
decides whether to take part, and by whoever writes a plan. Bad parameters and plans without a theorem raise; nothing is
guessed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from dpcheckin.accounting import CheckInRound, Guarantee, LocalGuarantee, ShuffleRound, SkellamRound, local_guarantee
from dpcheckin.errors import InvalidParameter
from dpcheckin.options import listed
from dpcheckin.protocols import DistributedCheckIn, FullShuffle, Plan, RandomCheckIns, ShuffledCheckIn, Window
from dpcheckin.protocols.coalitions import Coalition, coalitions
from dpcheckin.randomizers import (
    DaryResponse,
    DiscreteGaussianVector,
    Gaussian,
    IntegerVector,
    LdpSgd,
    PrivUnit,
    Randomizer,
    SkellamVector,
    registry,
)
from dpcheckin.service.wire.documents import OCTETS, SHARES, SYMBOL, VECTOR, PlanDocument

_LAYOUT = {"dimension", "encoding"}
_ADDED_UP = (PrivUnit, LdpSgd, Gaussian, DaryResponse, SkellamVector, DiscreteGaussianVector)
"""Reports that are checked one by one, or by their sum, as they are added up to an estimate."""


def encoding_of(name: str) -> int:
    """How the reports of a randomizer travel when a model is trained by adding them up; of an unknown name, the
    commonest.
    """
    try:
        kind = registry.kind_named(name)
    except InvalidParameter:
        return VECTOR
    if issubclass(kind, IntegerVector):
        return SHARES
    return SYMBOL if issubclass(kind, DaryResponse) else VECTOR


def randomizer_of(plan: PlanDocument) -> Randomizer:
    """The randomizer a plan names, with its parameters.

    With encoding 4 any randomizer whose reports have a fixed size, which is then the plan's `dimension`. Vectors,
    symbols and shares have entries, or kinds of symbols, there.
    """
    table = {name: plan.randomizer[name] for name in plan.randomizer.keys() - _LAYOUT}
    kind = _kind(table)
    own = registry.parameters(kind)
    if "clip" not in own:
        del table["clip"]  # every plan names one; only vectors are clipped
    if plan.encoding == OCTETS:
        made = registry.randomizer(table)
        size = made.report_format.size
        if plan.dimension != size:
            allowed = f"the {size:,} bytes sent"
            raise InvalidParameter("randomizer.dimension", plan.dimension, allowed)
        return made
    if not issubclass(kind, _ADDED_UP):
        allowed = listed([one.name for one in _ADDED_UP])
        raise InvalidParameter("randomizer.name", table["name"], allowed)
    if plan.encoding != encoding_of(kind.name):
        allowed = f"{encoding_of(kind.name)} with {kind.name}"
        raise InvalidParameter("randomizer.encoding", plan.encoding, allowed)
    sized = {"dimension": "entries", "symbols": "symbols"}
    return registry.randomizer({**table, **{key: plan.dimension for name, key in sized.items() if name in own}})


def _kind(table: dict[str, Any]) -> type[Randomizer]:
    try:
        return registry.kind_named(str(table["name"]))
    except InvalidParameter as problem:
        raise InvalidParameter("randomizer.name", table["name"], problem.allowed) from None


def protocol_of(plan: PlanDocument) -> Plan:
    """The plan as accounting knows it."""
    randomizer, share = randomizer_of(plan), plan.participation
    if plan.protocol == "shuffled-check-in":
        if share["rate"] == 1.0:
            return _full_shuffle(plan, randomizer)
        # uneven losses are uneven rates: anything from rate * (1 - dropout) to rate
        return ShuffledCheckIn(
            plan.population, share["rate"], plan.rounds, randomizer, dropout=plan.dropout, colluding=plan.colluding
        )
    if plan.dropout:
        raise InvalidParameter("dropout", plan.dropout, f"0 with {plan.protocol}: no theorem")
    if plan.protocol == "distributed-check-in":
        if plan.encoding != SHARES or not isinstance(randomizer, IntegerVector):
            raise InvalidParameter("randomizer", plan.randomizer["name"], "shares of integers")
        if plan.population > randomizer.most_reports():
            raise InvalidParameter("population", plan.population, f"at most {randomizer.most_reports()}: sums wrap")
        # those who collude can take their reports, and their noise, out of the sum
        return DistributedCheckIn(plan.honest, share["rate"], plan.rounds, randomizer)
    if plan.colluding:
        raise InvalidParameter("colluding", plan.colluding, f"0 with {plan.protocol}: no theorem")
    window = Window(plan.protocol.removeprefix("random-check-in-"))
    if plan.keeps_one and plan.minimum_batch:
        raise InvalidParameter("minimum_batch", plan.minimum_batch, "0: loads are kept secret")
    windows = RandomCheckIns(
        plan.population, share["slots"], randomizer, window, share["check_in_probability"], share["minibatch"]
    )
    if plan.rounds > windows.used_slots:
        raise InvalidParameter("rounds", plan.rounds, f"at most {windows.used_slots:,} slots")
    return windows


def _full_shuffle(plan: PlanDocument, randomizer: Randomizer) -> FullShuffle:
    """Everybody reports: then it is not enough that clients are there, their reports must be.

    So losses need no margin: a round with fewer reports than the crowd is not released.
    """
    if plan.minimum_batch < plan.population:
        raise InvalidParameter("minimum_batch", plan.minimum_batch, f"the population {plan.population:,} at rate 1")
    return FullShuffle(plan.population, plan.rounds, randomizer, colluding=plan.colluding)


@dataclass(frozen=True)
class Spent:
    """What has been given away, under the two assumptions about the shuffler."""

    epsilon: float  # it does not collude
    local_epsilon: float  # it does
    delta: float

    @staticmethod
    def sum(parts: Iterable[Spent]) -> Spent:
        """Of several plans together, however later ones were chosen."""
        figures = [(part.epsilon, part.local_epsilon, part.delta) for part in parts]
        return Spent(*map(math.fsum, zip(*figures, strict=True))) if figures else Spent(0.0, 0.0, 0.0)

    def to_json(self) -> dict[str, float | None]:
        """As it stands in ledgers and logs, where null is infinite."""
        local = self.local_epsilon if math.isfinite(self.local_epsilon) else None
        return {"epsilon": self.epsilon, "local_epsilon": local, "delta": self.delta}

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> Spent:
        """What `to_json` wrote, among other things."""
        local = body["local_epsilon"]
        return Spent(body["epsilon"], math.inf if local is None else local, body["delta"])


class Price:
    """A plan document with its costs, counted in rounds that were charged; one without a theorem raises."""

    def __init__(self, document: PlanDocument) -> None:
        self.document = document
        self.plan = protocol_of(document)
        self.delta = document.delta
        self._minibatch = int(document.participation.get("minibatch", 1))

    def _steps(self, charged: int) -> int:
        """Random check-ins are charged in slots and priced in gradient steps, rounded up."""
        return -(-charged // self._minibatch)

    def statement(self, charged: int) -> Guarantee:
        """The whole statement after `charged` rounds, 1 or more."""
        return _statement(self.plan, self.delta, self._steps(charged))

    def spent(self, charged: int) -> Spent:
        """Both figures after `charged` rounds, 0 or more."""
        if charged == 0:
            return Spent(0.0, 0.0, self.delta)
        statement = self.statement(charged)
        assert statement.local is not None
        return Spent(statement.charge(), statement.local.epsilon, self.delta)

    @cached_property
    def allowed_rounds(self) -> int:
        """Rounds that may be charged: the plan's, or fewer when the budget ends first."""
        steps = self.plan.rounds_within(self.document.epsilon_budget, self.delta)
        return min(self.document.rounds, steps * self._minibatch)

    def reports_epsilon(self, reports: int) -> float:
        """What so many reports of one client leave to whoever sees each of them with its name."""
        if reports == 0:
            return 0.0
        return _reports_epsilon(self.plan, self.delta, reports)

    def rounds_epsilon(self, rounds: int) -> float:
        """The same, before the coins fall: what so many rounds leave in which a client flips one.

        It does not depend on how often the client did report, so that a limit on it says nothing about that. Void
        rounds count: their reports left the device.
        """
        if rounds == 0:
            return 0.0
        if isinstance(self.plan, RandomCheckIns):
            return self.reports_epsilon(1)  # one slot of all
        return _reports_epsilon(self.plan, self.delta, rounds, self.document.participation["rate"])

    def coalitions(self, charged: int) -> tuple[Coalition, ...]:
        """What is left against whom after `charged` rounds, 1 or more; nothing where it is not priced."""
        if not isinstance(self.plan, ShuffledCheckIn | FullShuffle):
            return ()
        one, document = self.plan.accounting_round(), self.document
        tokens = document.issuer is not None
        return _coalitions(one, charged, self.delta, document.minimum_batch, tokens)

    @cached_property
    def local(self) -> LocalGuarantee:
        """What one report and the whole plan leave without an honest shuffler."""
        local = self.statement(self.document.rounds).local
        assert local is not None
        return local


@lru_cache(maxsize=4096)
def _reports_epsilon(plan: Plan, delta: float, rounds: int, rate: float = 1.0) -> float:
    if isinstance(plan, DistributedCheckIn):
        one = plan.accounting_round()
        if isinstance(one, SkellamRound):
            return one.renyi.exposed_epsilon(rate, rounds, delta)
    return local_guarantee([(plan.randomizer.pair, rate, rounds)], delta).epsilon


@lru_cache(maxsize=64)
def _coalitions(
    one: CheckInRound | ShuffleRound, charged: int, delta: float, minimum_batch: int, tokens: bool
) -> tuple[Coalition, ...]:
    return coalitions(one, charged, delta, minimum_batch, tokens=tokens)


@lru_cache(maxsize=4096)
def _statement(plan: Plan, delta: float, steps: int) -> Guarantee:
    return plan.guarantee(delta, steps)
