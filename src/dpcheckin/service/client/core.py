"""What a client believes, refuses and decides; no network, no clock, no generator of its own.

Everything it is told is checked against the owner's configuration: signatures against the pinned identities (before
anything is parsed), the plan against the limits, the round against the plan, the model against its digest. The coin is
the client's own, and is in the client's ledger before anything that depends on it is begun.

After heads a client sends a report, always. Whether its value can be computed is a property of its data, which whoever
writes plan and model may have chosen: so a report of the neutral value is ready before the data are touched, and leaves
unless the client's own is ready at the moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import ServiceError
from dpcheckin.numerals import rounded_up
from dpcheckin.randomizers import SecureSource
from dpcheckin.service.client.config import (
    AcceptedPlan,
    ClientConfig,
    Declined,
    NotBelieved,
    Refused,
    accepted,
    keys_of,
)
from dpcheckin.service.client.ledger import ClientLedger
from dpcheckin.service.client.tokens import TokenWallet
from dpcheckin.service.pricing import Price
from dpcheckin.service.reports import make_envelope, neutral_value
from dpcheckin.service.wire import envelope
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.documents import KeyDocument, PlanDocument, RoundDocument, VoidDocument
from dpcheckin.service.wire.problems import Malformed
from dpcheckin.service.wire.signing import read_plan_page, read_signed_bytes


class Action(Enum):
    """What a client does in a round."""

    REPORT = "report"
    COVER = "cover"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Part:
    """A client's part in one round: what to do, and the bytes. `failed`: the task failed, and the bytes are the neutral
    report. For a counter on the device; why is kept nowhere, since it may say something about the data."""

    action: Action
    envelope: bytes
    failed: bool = False


@dataclass(frozen=True)
class Entered:
    """A round whose coin has fallen, and what is sent unless the owner's report is ready in time. On heads that is a
    report of the neutral value, sealed like any other."""

    announced: RoundDocument
    key: KeyDocument
    heads: bool
    prepared: Part


_SLACK = 1 + 1e-12


class PlanReplaced(ServiceError):
    """The round belongs to another plan than the one this client joined: look at the plan page."""


@contextmanager
def _unless_believed(identity: bytes, entry: str) -> Iterator[None]:
    """What the `identity` in this `entry` of the owner's file has not signed is not believed."""
    try:
        yield
    except Malformed as problem:
        raise NotBelieved(f"{problem}; believed is {entry} {identity.hex()[:16]}…") from None


class Agent:
    """One client, by the owner's `config`. Chance comes from the operating system: the type of `source` admits nothing
    else. It needs a `wallet` when the owner's file names an issuer. Many agents of one process may share a `price`."""

    def __init__(
        self,
        config: ClientConfig,
        ledger: ClientLedger,
        source: SecureSource,
        price: Callable[[PlanDocument], Price] = Price,
        wallet: TokenWallet | None = None,
    ) -> None:
        self.wallet = wallet
        self.config, self.ledger, self._source = config, ledger, source
        self._price = price
        self.joined: AcceptedPlan | None = None
        self.last_round = -1
        """Of the plan it joined, the last it took part in since it was started; -1: none."""
        self._declined: tuple[bytes, str] | None = None

    # --- what it is told ----------------------------------------------------------------------

    def read_plan(self, body: bytes) -> AcceptedPlan:
        """Check the page of plan and keys, and join the plan if it is within the limits.

        Another plan than before is joined like the first: totals are over all plans, so it starts no new budget. One
        that is not acceptable raises `Declined` and leaves the old one standing.
        """
        identity = self.config.identity
        with _unless_believed(identity, "analyzer.identity"):
            plan, keys = read_plan_page(body, identity)
        before = self.joined
        if before is not None and plan.id == before.plan.id:
            self.joined = replace(before, keys=keys_of(plan, keys))
            return self.joined
        if self._declined is not None and self._declined[0] == plan.id:  # a price takes time
            raise Declined(self._declined[1])
        try:
            joined = accepted(plan, keys, self.config, self._price)
        except Declined as reason:
            self.decline(plan, str(reason))
        if plan.issuer is not None and self.wallet is None:
            raise Refused("a plan with an issuer, and no wallet for its tokens")
        self.joined, self.last_round = joined, -1
        return joined

    def decline(self, plan: PlanDocument, reason: str) -> NoReturn:
        """Take no part in a `plan`, for this `reason`, until there is another one."""
        if self.joined is not None and self.joined.plan.id == plan.id:
            self.joined = None
        self._declined = plan.id, f"plan {plan.id.hex()[:16]}…: {reason}"
        raise Declined(self._declined[1])

    def read_round(self, body: bytes) -> RoundDocument:
        """The round, checked; `PlanReplaced` if it is of another plan."""
        joined = self._accepted()
        with _unless_believed(self.config.identity, "analyzer.identity"):
            announced = read_signed_bytes(RoundDocument, body, self.config.identity)
        if announced.plan != joined.id:
            raise PlanReplaced("a round of another plan")
        if (announced.token_key is None) != (joined.plan.issuer is None):
            raise NotBelieved("a round names a token key exactly when its plan has an issuer")
        if announced.round < self.last_round:
            raise NotBelieved(f"round {announced.round} after round {self.last_round}")
        return announced

    def read_void(self, body: bytes) -> int:
        """Rounds newly found to be void, by the statement of the shuffler that the owner trusts. A statement that is
        not its own changes nothing and raises `Refused`."""
        joined = self._accepted()
        identity = self.config.shuffler_identity
        if identity is None:
            raise Refused("no shuffler's identity is in this client's configuration")
        with _unless_believed(identity, "shuffler.identity"):
            statement = read_signed_bytes(VoidDocument, body, identity)
        if statement.plan != joined.id:
            return 0
        return self.ledger.settle(joined.id, joined.price, statement.rounds)

    def is_done(self, announced: RoundDocument) -> bool:
        """Whether the coin of this round has fallen, in this life or an earlier one."""
        return self.ledger.reported(self._accepted().id, announced.round) is not None

    def knows_key(self, announced: RoundDocument) -> bool:
        """Whether the round's key has been announced; if not, the plan page is read again."""
        return self._accepted().key_of(announced) is not None

    def has_token(self, announced: RoundDocument) -> bool:
        """Whether this client can report in a round; if not, it must not count as present.

        A token of another key than the one in the round document, which all clients see, does not count: its client
        could be told from others by it.
        """
        return self._accepted().plan.issuer is None or bool(self._token(announced))

    def check_model(self, announced: RoundDocument, model: bytes) -> None:
        """The `model` must be the one the round `announced` names: reports are bound to its digest."""
        if digest(model) != announced.model_digest:
            raise NotBelieved("the model is not the one that the round names")

    # --- what it decides ----------------------------------------------------------------------

    def check_budget(self) -> None:
        """Raise `Refused` when one more round would pass a limit.

        Asked before the round is fetched: a client that cannot afford heads must not be counted among those who flip a
        coin. Nothing here depends on how its coins fell, so that neither leaving nor staying tells.
        """
        joined, limits = self._accepted(), self.config.limits
        after = self.ledger.totals_after(joined.id, joined.price)
        for what, value, limit in (
            ("epsilon", after.epsilon, limits.total_epsilon),
            ("epsilon without an honest shuffler", after.local_epsilon, limits.total_local_epsilon),
            ("delta", after.delta, limits.total_delta),
        ):
            if not value <= limit * _SLACK:
                raise Refused(f"one more round would make {what} {rounded_up(value)} > {limit:g}")
        self._check_promise(joined)
        void = self.ledger.void_in_a_row(joined.id)
        if void >= limits.void_rounds:
            raise Refused(f"{void} rounds in a row were void, this client allows that many")

    def _check_promise(self, joined: AcceptedPlan) -> None:
        """The plan's own budget, which the analyzer has signed and might pass all the same."""
        budget, price = joined.plan.epsilon_budget, joined.price
        # an honest shuffler releases no more rounds than the plan has
        rounds = min(self.ledger.rounds_of(joined.id) + 1, joined.plan.rounds)
        after = price.spent(rounds).epsilon
        if rounds > price.allowed_rounds or not after <= budget * _SLACK:
            raise Declined(
                f"one more round would make the plan's epsilon {rounded_up(after)}, and it "
                f"promises to stop at {budget:g}"
            )

    def flip(self, announced: RoundDocument) -> bool:
        """Whether this client reports in this round: its own chance, never the server's."""
        joined = self._accepted()
        if joined.plan.numbered_slots:
            return self._slot() == announced.round
        return bool(self._source.uniform(1)[0] < joined.plan.report_probability)

    def enter(self, announced: RoundDocument) -> Entered:
        """Flip, write it down; from now on the round counts, whatever becomes of the computation. Cover and neutral
        report are both made before the coin: entering takes as long either way."""
        joined = self._accepted()
        if self.is_done(announced):
            raise Refused(f"round {announced.round} has been dealt with already")
        key = joined.key_of(announced)
        if key is None:
            raise NotBelieved("the round names a key that the plan page does not show")
        if not self.has_token(announced):
            raise Refused(f"no token for round {announced.round}")
        neutral = Part(Action.REPORT, self._report(announced, key, neutral_value(joined.plan, joined.randomizer)))
        away = Part(Action.NOTHING, b"")
        if joined.plan.cover:
            away = Part(Action.COVER, envelope.cover(joined.plan, key.public_key, announced.round))
        heads = self.flip(announced)
        self.ledger.take_part(joined.id, announced.round, joined.price, report=heads)
        self.last_round = announced.round
        return Entered(announced, key, heads, neutral if heads else away)

    def complete(self, entered: Entered, value: Callable[[], NDArray[Any]]) -> Part:
        """What is sent: on heads the sealed report of the owner's `value`, of the neutral value if the task fails.

        It is computed only when `entered` with heads. Nobody outside sees a difference: both are reports of the
        randomizer, for some value.
        """
        if not entered.heads:
            return entered.prepared
        try:
            with np.errstate(all="ignore"):  # a warning would be a line about the data
                return Part(Action.REPORT, self._report(entered.announced, entered.key, value()))
        except BaseException:  # the owner's task may do anything, even end the process
            return replace(entered.prepared, failed=True)

    def take_part(self, announced: RoundDocument, value: Callable[[], NDArray[Any]]) -> Part:
        """`enter` the round `announced` and `complete` it with a `value`, for callers that need not watch the clock."""
        return self.complete(self.enter(announced), value)

    def allowance(self, announced: RoundDocument) -> float:
        """Seconds that every client takes before it may send: the plan's, in longer rounds more."""
        plan = self._accepted().plan
        longer = (announced.closes - announced.opens) / plan.round_seconds
        return plan.compute_seconds * max(longer, 1.0)

    def moment(self, now: float, announced: RoundDocument, margin: float) -> float | None:
        """A uniformly random time of the window of the round `announced` after the allowance; None: it is too late.

        It is drawn before the coin, at the time `now`, and does not depend on how long anything takes; `margin` seconds
        before the round closes are kept free.
        """
        first = max(now, announced.opens) + self.allowance(announced)
        left = announced.closes - margin - first
        return None if left <= 0 else first + left * float(self._source.uniform(1)[0])

    def _report(self, announced: RoundDocument, key: KeyDocument, value: NDArray[Any]) -> bytes:
        joined, token = self._accepted(), self._token(announced)
        about, opening = (announced.round, announced.model_digest), key.public_key
        return make_envelope(joined.plan, joined.randomizer, *about, opening, value, self._source, token)

    def _token(self, announced: RoundDocument) -> bytes:
        """This client's token for a round; nothing in a plan without an issuer, or without one."""
        if self.wallet is None or announced.token_key is None:
            return b""
        return self.wallet.token(announced.plan, announced.round, announced.token_key) or b""

    # --- inside -------------------------------------------------------------------------------

    def _accepted(self) -> AcceptedPlan:
        if self.joined is None:
            raise Refused("no plan has been accepted yet")
        return self.joined

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
