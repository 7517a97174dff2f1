"""What a client believes, refuses and decides; no network, no clock, no generator of its own.

`Agent` is given bytes and answers with decisions. Everything it is told is checked against the
owner's configuration: signatures against the pinned identity, the plan against the limits, the
round against the plan, the model against its digest. The coin is the client's own, and is written
to the client's ledger before anything that depends on it can be seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from numpy.typing import NDArray

from dpcheckin.accounting.statements import rounded_up
from dpcheckin.errors import DpCheckinError, ServiceError
from dpcheckin.randomizers import Randomizer, SecureSource
from dpcheckin.service.client.config import ClientConfig, Limits
from dpcheckin.service.client.ledger import ClientLedger
from dpcheckin.service.pricing import Price
from dpcheckin.service.reports import make_envelope
from dpcheckin.service.wire import envelope
from dpcheckin.service.wire.canonical import digest, parse
from dpcheckin.service.wire.documents import KeyDocument, PlanDocument, RoundDocument
from dpcheckin.service.wire.problems import Malformed
from dpcheckin.service.wire.signing import read_signed


class Refused(ServiceError):
    """This client does not take part, and why."""


class Action(Enum):
    """What a client does in a round."""

    REPORT = "report"
    COVER = "cover"
    NOTHING = "nothing"


@dataclass(frozen=True)
class AcceptedPlan:
    """A plan that was found acceptable."""

    plan: PlanDocument
    price: Price
    randomizer: Randomizer
    keys: dict[bytes, KeyDocument]

    @property
    def id(self) -> str:
        return self.plan.id.hex()


@dataclass(frozen=True)
class Part:
    """A client's part in one round: what to do, the bytes, and what the task failed with."""

    action: Action
    envelope: bytes
    failure: Exception | None = None


def report_probability(plan: PlanDocument) -> float:
    """The largest probability that a client reports in one given round."""
    share = plan.participation
    if plan.numbered_slots:
        return float(share["check_in_probability"] / share["slots"])
    return float(share["rate"])


def check_limits(plan: PlanDocument, price: Price, limits: Limits) -> None:
    """Raise `Refused` with the first limit that a plan passes.

    Args:
        plan: as announced.
        price: of that plan.
        limits: the owner's.
    """
    measured: tuple[tuple[str, Callable[[], float], float], ...] = (
        ("rate", lambda: report_probability(plan), limits.rate),
        ("clip", lambda: float(plan.randomizer["clip"]), limits.clip),
        ("delta", lambda: plan.delta, limits.total_delta),
        ("epsilon of one report", lambda: price.reports_epsilon(1), limits.local_epsilon),
        # last, as it takes seconds: a plan that is refused anyway costs its client nothing
        (
            "epsilon of the whole plan",
            lambda: price.spent(price.allowed_rounds).epsilon,
            limits.total_epsilon,
        ),
    )
    for what, measure, limit in measured:
        value = measure()
        if not value <= limit:
            raise Refused(f"the plan's {what} is {rounded_up(value)}, this client allows {limit:g}")
    if price.allowed_rounds < 1:
        raise Refused("the plan's own budget does not pay for a single round")


class Agent:
    """One client. Chance comes from the operating system: the type admits nothing else.

    Args:
        config: the owner's file.
        ledger: the client's own.
        source: of coins, noise and moments.
        price: how plans are priced; for many agents of one process, once for all.
    """

    def __init__(
        self,
        config: ClientConfig,
        ledger: ClientLedger,
        source: SecureSource,
        price: Callable[[PlanDocument], Price] = Price,
    ) -> None:
        self.config, self.ledger, self._source = config, ledger, source
        self._price = price
        self.joined: AcceptedPlan | None = None
        self._last_round = -1

    # --- what it is told ----------------------------------------------------------------------

    def read_plan(self, body: bytes) -> AcceptedPlan:
        """Check the page of plan and keys; a second plan in one life is refused."""
        page = self._parsed(body)
        if not isinstance(page, dict) or page.keys() != {"plan", "keys"}:
            raise Refused("the plan page is not one")
        if not isinstance(page["keys"], list):
            raise Refused("the plan page has no list of keys")
        identity = self.config.identity
        try:
            plan = read_signed(PlanDocument, page["plan"], identity)
            keys = [read_signed(KeyDocument, key, identity) for key in page["keys"]]
        except Malformed as problem:
            raise Refused(str(problem)) from None
        if self.config.plan is not None and plan.id != self.config.plan:
            raise Refused("another plan than the one in this client's configuration")
        if self.joined is not None and plan.id != self.joined.plan.id:
            raise Refused("the plan was changed while this client took part")
        price = self.joined.price if self.joined is not None else self._priced(plan)
        own = {key.key_id: key for key in keys if self._fits(key, plan)}
        self.joined = AcceptedPlan(plan, price, price.plan.randomizer, own)
        return self.joined

    def read_round(self, body: bytes) -> RoundDocument:
        """The round, checked."""
        joined = self._accepted()
        try:
            found = read_signed(RoundDocument, self._parsed(body), self.config.identity)
        except Malformed as problem:
            raise Refused(str(problem)) from None
        if found.plan != joined.id:
            raise Refused("a round of another plan")
        if found.round < self._last_round:
            raise Refused(f"round {found.round} after round {self._last_round}")
        return found

    def is_done(self, found: RoundDocument) -> bool:
        """Whether the coin of this round has fallen, in this life or an earlier one."""
        return self.ledger.reported(self._accepted().id, found.round) is not None

    def knows_key(self, found: RoundDocument) -> bool:
        """Whether the round's key has been announced; if not, the plan page is read again."""
        return self._usable_key(found) is not None

    def check_model(self, found: RoundDocument, model: bytes) -> None:
        """The model must be the one the round names: reports are bound to its digest."""
        if digest(model) != found.model_digest:
            raise Refused("the model is not the one that the round names")

    # --- what it decides ----------------------------------------------------------------------

    def check_budget(self) -> None:
        """Raise `Refused` when one more report might pass a limit.

        Asked before the round is fetched: a client that cannot afford heads must not be counted
        among those who flip a coin.
        """
        joined, limits = self._accepted(), self.config.limits
        after = self.ledger.totals_after(joined.id, joined.price, report=True)
        for what, value, limit in (
            ("epsilon", after.epsilon, limits.total_epsilon),
            ("epsilon without an honest shuffler", after.local_epsilon, limits.total_local_epsilon),
            ("delta", after.delta, limits.total_delta),
        ):
            if not value <= limit * (1 + 1e-12):
                raise Refused(f"one more report would make {what} {rounded_up(value)} > {limit:g}")

    def flip(self, found: RoundDocument) -> bool:
        """Whether this client reports in this round: its own chance, never the server's."""
        joined = self._accepted()
        if joined.plan.numbered_slots:
            return self._slot() == found.round
        rate = report_probability(joined.plan)
        return bool(self._source.uniform(1)[0] < rate)

    def take_part(self, found: RoundDocument, value: Callable[[], NDArray[Any]]) -> Part:
        """Flip, compute and seal if it came up, write it down; then there is something to send.

        When the computation fails the round counts as reported and looks as if the coin had fallen
        the other way: it is not flipped again, and nobody outside sees a difference.

        Args:
            found: the round, as `read_round` gave it.
            value: computes the client's value; called only on heads.
        """
        joined = self._accepted()
        if self.is_done(found):
            raise Refused(f"round {found.round} has been dealt with already")
        key = self._usable_key(found)
        if key is None:
            raise Refused("the round names a key that the analyzer has not announced")
        action, sealed = Action.NOTHING, b""
        if joined.plan.cover:
            action, sealed = Action.COVER, envelope.cover(joined.plan, key.public_key, found.round)
        report = self.flip(found)
        failure: Exception | None = None
        if report:
            try:
                sealed = self._report(joined, found, key, value())
                action = Action.REPORT
            except Exception as problem:  # the owner's task may do anything; the coin has fallen
                failure = problem
        self.ledger.take_part(joined.id, found.round, joined.price, report=report)
        self._last_round = found.round
        return Part(action, sealed, failure)

    def moment(self, now: float, found: RoundDocument, margin: float) -> float:
        """A uniformly random time of what is left of the window.

        Args:
            now: seconds since the epoch.
            found: the round.
            margin: seconds kept free before it closes.
        """
        left = max(0.0, found.closes - margin - now)
        return now + left * float(self._source.uniform(1)[0])

    def _report(
        self, joined: AcceptedPlan, found: RoundDocument, key: KeyDocument, value: NDArray[Any]
    ) -> bytes:
        return make_envelope(
            joined.plan,
            joined.randomizer,
            found.round,
            found.model_digest,
            key.public_key,
            value,
            self._source,
        )

    # --- inside -------------------------------------------------------------------------------

    def _parsed(self, body: bytes) -> Any:
        try:
            return parse(body)
        except Malformed as problem:
            raise Refused(str(problem)) from None

    def _accepted(self) -> AcceptedPlan:
        if self.joined is None:
            raise Refused("no plan has been accepted yet")
        return self.joined

    def _priced(self, plan: PlanDocument) -> Price:
        try:
            price = self._price(plan)
            check_limits(plan, price, self.config.limits)
        except Refused:
            raise
        except DpCheckinError as problem:
            raise Refused(f"the plan cannot be priced: {problem}") from None
        return price

    def _fits(self, key: KeyDocument, plan: PlanDocument) -> bool:
        return key.plan == plan.id.hex() and key.suite == plan.suite

    def _usable_key(self, found: RoundDocument) -> KeyDocument | None:
        key = self._accepted().keys.get(found.key_id)
        return key if key is not None and key.from_round <= found.round else None

    def _slot(self) -> int | None:
        """This client's slot, drawn once for a plan and remembered."""
        joined = self._accepted()
        if not self.ledger.has_slot(joined.id):
            self.ledger.choose_slot(joined.id, self._draw_slot(joined.plan))
        return self.ledger.slot_of(joined.id)

    def _draw_slot(self, plan: PlanDocument) -> int | None:
        slots = int(plan.participation["slots"])
        if not self._source.uniform(1)[0] < plan.participation["check_in_probability"]:
            return None
        picked = int(self._source.integers(slots, 1)[0])
        if plan.protocol == "random-check-in-sliding":
            # round 0 is the first slot that all earlier clients could have chosen: slot m - 1
            picked += self.config.arrival - (slots - 1)
        return picked
