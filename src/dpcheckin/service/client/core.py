"""What a client believes, refuses and decides; no network, no clock, no generator of its own.

`Agent` is given bytes and answers with decisions. Everything it is told is checked against the
owner's configuration: signatures against the pinned identities (before anything is parsed), the
plan against the limits, the round against the plan, the model against its digest. The coin is the
client's own, and is written to the client's ledger before anything that depends on it is begun.

After heads a client sends a report, always. Whether its value can be computed is a property of its
data, which whoever writes plan and model may have chosen: so a report of the neutral value is
ready before the data are touched, and leaves unless the client's own is ready at the moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.accounting.figures import rounded_up
from dpcheckin.errors import ServiceError
from dpcheckin.randomizers import SecureSource
from dpcheckin.service.client.acceptance import (
    AcceptedPlan,
    NotBelieved,
    Refused,
    accepted,
    keys_of,
    report_probability,
)
from dpcheckin.service.client.config import ClientConfig
from dpcheckin.service.client.ledger import ClientLedger
from dpcheckin.service.client.parts import Action, Entered, Part
from dpcheckin.service.client.tokens import TokenWallet
from dpcheckin.service.pricing import Price
from dpcheckin.service.reports import make_envelope, neutral_envelope
from dpcheckin.service.wire import envelope
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.documents import KeyDocument, PlanDocument, RoundDocument
from dpcheckin.service.wire.problems import Malformed
from dpcheckin.service.wire.signing import read_plan_page, read_signed_bytes
from dpcheckin.service.wire.statements import VoidDocument

_SLACK = 1 + 1e-12


class PlanReplaced(ServiceError):
    """The round belongs to another plan than the one this client joined: look at the plan page."""


class Agent:
    """One client. Chance comes from the operating system: the type admits nothing else.

    Args:
        config: the owner's file.
        ledger: the client's own.
        source: of coins, noise and moments.
        wallet: this client's report tokens; needed when the owner's file names an issuer.
        price: how plans are priced; for many agents of one process, once for all.
    """

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
        self._last_round = -1

    @property
    def last_round(self) -> int:
        """Of the plan it joined, the last it took part in since it was started; -1: none."""
        return self._last_round

    # --- what it is told ----------------------------------------------------------------------

    def read_plan(self, body: bytes) -> AcceptedPlan:
        """Check the page of plan and keys, and join the plan if it is within the limits.

        Another plan than before is joined like the first: totals are over all plans, so it starts
        no new budget. One that is not acceptable leaves the old one standing.
        """
        try:
            plan, keys = read_plan_page(body, self.config.identity)
        except Malformed as problem:
            raise NotBelieved(str(problem)) from None
        before = self.joined
        if before is not None and plan.id == before.plan.id:
            self.joined = replace(before, keys=keys_of(plan, keys))
            return self.joined
        found = accepted(plan, keys, self.config, self._price)
        if plan.issuer is not None and self.wallet is None:
            raise Refused("a plan with an issuer, and no wallet for its tokens")
        self.joined, self._last_round = found, -1
        return found

    def read_round(self, body: bytes) -> RoundDocument:
        """The round, checked; `PlanReplaced` if it is of another plan."""
        joined = self._accepted()
        try:
            found = read_signed_bytes(RoundDocument, body, self.config.identity)
        except Malformed as problem:
            raise NotBelieved(str(problem)) from None
        if found.plan != joined.id:
            raise PlanReplaced("a round of another plan")
        if (found.token_key is None) != (joined.plan.issuer is None):
            raise Refused("a round names a token key exactly when its plan has an issuer")
        if found.round < self._last_round:
            raise NotBelieved(f"round {found.round} after round {self._last_round}")
        return found

    def read_void(self, body: bytes) -> int:
        """Rounds newly found to be void, by the statement of the shuffler that the owner trusts.

        A statement that is not its own changes nothing and raises `Refused`.
        """
        joined = self._accepted()
        if self.config.shuffler_identity is None:
            raise Refused("no shuffler's identity is in this client's configuration")
        try:
            said = read_signed_bytes(VoidDocument, body, self.config.shuffler_identity)
        except Malformed as problem:
            raise NotBelieved(str(problem)) from None
        if said.plan != joined.id:
            return 0
        return self.ledger.settle(joined.id, joined.price, said.rounds)

    def is_done(self, found: RoundDocument) -> bool:
        """Whether the coin of this round has fallen, in this life or an earlier one."""
        return self.ledger.reported(self._accepted().id, found.round) is not None

    def knows_key(self, found: RoundDocument) -> bool:
        """Whether the round's key has been announced; if not, the plan page is read again."""
        return self._accepted().key_of(found) is not None

    def has_token(self, found: RoundDocument) -> bool:
        """Whether this client can report in a round; if not, it must not count as present.

        A token of another key than the one in the round document, which all clients see, does not
        count: its client could be told from others by it.
        """
        return self._accepted().plan.issuer is None or bool(self._token(found))

    def check_model(self, found: RoundDocument, model: bytes) -> None:
        """The model must be the one the round names: reports are bound to its digest."""
        if digest(model) != found.model_digest:
            raise NotBelieved("the model is not the one that the round names")

    # --- what it decides ----------------------------------------------------------------------

    def check_budget(self) -> None:
        """Raise `Refused` when one more round would pass a limit.

        Asked before the round is fetched: a client that cannot afford heads must not be counted
        among those who flip a coin. Nothing here depends on how its coins fell, so that neither
        leaving nor staying tells.
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
            raise Refused(
                f"one more round would make the plan's epsilon {rounded_up(after)}, and it "
                f"promises to stop at {budget:g}"
            )

    def flip(self, found: RoundDocument) -> bool:
        """Whether this client reports in this round: its own chance, never the server's."""
        joined = self._accepted()
        if joined.plan.numbered_slots:
            return self._slot() == found.round
        rate = report_probability(joined.plan)
        return bool(self._source.uniform(1)[0] < rate)

    def enter(self, found: RoundDocument) -> Entered:
        """Flip, write it down; from now on the round counts, whatever becomes of the computation.

        Cover and neutral report are both made before the coin: entering takes as long either way.

        Args:
            found: the round, as `read_round` gave it.
        """
        joined = self._accepted()
        if self.is_done(found):
            raise Refused(f"round {found.round} has been dealt with already")
        key = joined.key_of(found)
        if key is None:
            raise Refused("the round names a key that the analyzer has not announced")
        if not self.has_token(found):
            raise Refused(f"no token for round {found.round}")
        neutral = Part(Action.REPORT, self._neutral(joined, found, key))
        away = Part(Action.NOTHING, b"")
        if joined.plan.cover:
            away = Part(Action.COVER, envelope.cover(joined.plan, key.public_key, found.round))
        heads = self.flip(found)
        self.ledger.take_part(joined.id, found.round, joined.price, report=heads)
        self._last_round = found.round
        return Entered(found, key, heads, neutral if heads else away)

    def complete(self, entered: Entered, value: Callable[[], NDArray[Any]]) -> Part:
        """What is sent: on heads the sealed report, of the neutral value if the task fails.

        Nobody outside sees a difference: both are reports of the randomizer, for some value.

        Args:
            entered: as `enter` gave it.
            value: computes the client's value; called only on heads.
        """
        if not entered.heads:
            return entered.prepared
        joined = self._accepted()
        try:
            with np.errstate(all="ignore"):  # a warning would be a line about the data
                sealed = self._report(joined, entered.found, entered.key, value())
            return Part(Action.REPORT, sealed)
        except BaseException:  # the owner's task may do anything, even end the process
            return replace(entered.prepared, failed=True)

    def take_part(self, found: RoundDocument, value: Callable[[], NDArray[Any]]) -> Part:
        """`enter` and `complete`, for callers that need not watch the clock.

        Args:
            found: the round, as `read_round` gave it.
            value: computes the client's value; called only on heads.
        """
        return self.complete(self.enter(found), value)

    def allowance(self, found: RoundDocument) -> float:
        """Seconds that every client takes before it may send: the plan's, in longer rounds more.

        Args:
            found: the round.
        """
        plan = self._accepted().plan
        longer = (found.closes - found.opens) / plan.round_seconds
        return plan.compute_seconds * max(longer, 1.0)

    def moment(self, now: float, found: RoundDocument, margin: float) -> float | None:
        """A uniformly random time of the window after the allowance; None: it is too late.

        It is drawn before the coin and does not depend on how long anything takes.

        Args:
            now: seconds since the epoch, before the coin.
            found: the round.
            margin: seconds kept free before it closes.
        """
        first = max(now, found.opens) + self.allowance(found)
        left = found.closes - margin - first
        return None if left <= 0 else first + left * float(self._source.uniform(1)[0])

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
            self._token(found),
        )

    def _neutral(self, joined: AcceptedPlan, found: RoundDocument, key: KeyDocument) -> bytes:
        return neutral_envelope(
            joined.plan,
            joined.randomizer,
            found.round,
            found.model_digest,
            key.public_key,
            self._source,
            self._token(found),
        )

    def _token(self, found: RoundDocument) -> bytes:
        """This client's token for a round; nothing in a plan without an issuer, or without one."""
        if self.wallet is None or found.token_key is None:
            return b""
        return self.wallet.token(found.plan, found.round, found.token_key) or b""

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
