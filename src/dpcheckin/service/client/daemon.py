"""The client agent at work: polls the shuffler, keeps time, sends, tries again; all decisions are `core.Agent`'s.

Seen from outside, a client that reports and one that does not do the same requests at times that do not depend on the
coin: round, model, and (in plans with cover) one envelope of the same size, at a moment drawn before the coin from what
is left of the window after an allowance for computing that is the same for everybody. If the task fails or is not ready
by then, a report of the neutral value goes, made beforehand. Retries carry the same bytes, also after a restart.
Nothing secret is logged: neither token, nor coin, nor data, nor that a task failed.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from dpcheckin.errors import ServiceError
from dpcheckin.randomizers import SecureSource
from dpcheckin.service.client.config import ClientConfig, Declined, NotBelieved, Refused
from dpcheckin.service.client.connection import Connection, ShufflerUnreachable, TokenKeeper, Unauthorized
from dpcheckin.service.client.core import Action, Agent, Entered, Part, PlanReplaced
from dpcheckin.service.client.ledger import ClientLedger, Outbox, Parcel
from dpcheckin.service.client.timekeeping import LARGEST_PAUSE, UNKNOWN_PAUSES, Clock, Timekeeper
from dpcheckin.service.client.tokens import TokenWallet
from dpcheckin.service.tasks import ClientTask, JoiningTask
from dpcheckin.service.wire.documents import RoundDocument
from dpcheckin.service.wire.problems import TRANSIENT, Problem

log = logging.getLogger("dpcheckin.client")

LEDGER, OUTBOX = "client.ledger", "client.outbox"
_MARGIN_SHARE = 0.15  # of the window, kept free for retries before it closes
_WHOSE = "is analyzer.identity in the configuration what `dpcheckin analyzer identity` prints?"
_LOOKS = 5  # for statements of void rounds before a budget that they may free is called spent


@dataclass
class Counts:
    """What an agent did, for its owner's eyes."""

    rounds: int = 0
    reports: int = 0
    covers: int = 0
    undelivered: int = 0
    failures: int = 0
    """Reports of the neutral value, because the task failed; nothing else says so."""
    lost: int = 0
    """Reports of the neutral value, because the task was not ready in time."""
    missed: int = 0
    """Rounds found too late to take part in."""
    void: int = 0
    """Rounds that were paid for, and given back because they were void."""
    without_token: int = 0
    seen: set[int] = field(default_factory=set)


class Daemon:
    """One agent with its ledger on its own connection `http`, or one that it shares with others in the process.

    The connection to the issuer is `issuer_http`, or the same; `clock` is time, sleeping and working; `agent` are
    further arguments of `Agent`.
    """

    def __init__(
        self,
        config: ClientConfig,
        task: ClientTask,
        http: httpx.AsyncClient,
        clock: Clock | None = None,
        issuer_http: httpx.AsyncClient | None = None,
        **agent: Any,
    ) -> None:
        self.config, self._task = config, task
        self._connection = Connection(config.shuffler, config.token, http)
        self._source = SecureSource()
        self._time = Timekeeper(clock or Clock(), self._source)
        self._working: asyncio.Future[Part] | None = None
        self._looks = _LOOKS
        self._asked_after = -1
        self._trouble: str | None = None
        """Why this client has taken no part lately, as it was said."""
        self.counts = Counts()
        self._most_rounds: int | None = None
        self._outbox = Outbox(config.state / OUTBOX)
        self.ledger = ClientLedger(config.state / LEDGER)
        self._tokens: TokenKeeper | None = None
        if config.issuer is not None:
            wallet = TokenWallet(config.state)
            tokens = config.issuer, wallet, issuer_http or http, self._time, config.poll_seconds
            self._tokens = TokenKeeper(*tokens, lambda: self.ledger.taken)
            agent["wallet"] = wallet
        self.agent = Agent(config, self.ledger, self._source, **agent)

    def close(self) -> None:
        """Give the ledger back."""
        self.ledger.close()

    async def run(self, stop: asyncio.Event | None = None) -> None:
        """Take part until `stop` is set; raises `Refused` when a total of the owner's is used up."""
        pause, unknown = self.config.poll_seconds, UNKNOWN_PAUSES[0]
        while stop is None or not stop.is_set():
            try:
                until = await self.once()
                if self._trouble is not None and until is not None:
                    log.info("back: taking part again")
                self._trouble = None if until is not None else self._trouble
                pause, unknown = self.config.poll_seconds, UNKNOWN_PAUSES[0]
                if until is None:
                    await self._time.sleep_about(pause)
                else:
                    await self._time.sleep_until(until)
                    await self._time.sleep_about(0.2 * pause)
            except Unauthorized as problem:
                self._trouble = str(problem)
                log.error("%s; asking again in about %d seconds", problem, unknown)
                await self._time.sleep_about(unknown)
                unknown = min(2 * unknown, UNKNOWN_PAUSES[1])
            except (ShufflerUnreachable, NotBelieved, Declined) as problem:
                self._say(problem)
                await self._time.sleep_about(pause)
                pause = min(2 * pause, LARGEST_PAUSE)

    def _say(self, problem: ServiceError) -> None:
        """Nobody's answer, or a plan, is a reason to end: it may be another one the next time."""
        if isinstance(problem, Declined):
            if self._trouble != str(problem):
                log.warning("not taking part, waiting for another plan: %s", problem)
        elif isinstance(problem, NotBelieved):
            # never heard of its analyzer: rather the owner's file that is wrong
            hint = "" if self.agent.joined is not None else f" ({_WHOSE})"
            log.warning("shuffler not believed, trying again: %s%s", problem, hint)
        else:
            log.warning("shuffler not reached, trying again: %s", problem)
        self._trouble = str(problem)

    # --- one round ----------------------------------------------------------------------------

    async def once(self) -> float | None:
        """One look at the current round; returns its end if there is one, dealt with by then."""
        agent = self.agent
        look = agent.joined is None or self._trouble is not None or self._has_said_enough()
        if look and not await self._join():
            return None
        if self._outbox.held is not None:  # of a life that ended within its round
            return await self._deliver(self._outbox.held)
        if self._has_said_enough():
            return None
        await self._look_for_void_rounds()
        if not self._may_go_on():
            return None
        if self._tokens is not None and agent.joined is not None:
            await self._tokens.refill(agent.joined.plan, agent.last_round + 1)
        announced = await self._current()
        if announced is None or agent.is_done(announced):
            return None if announced is None else announced.closes
        self._time.within(announced.opens, announced.closes)
        await self._look_for_key(announced)
        if not await self._has_token(announced):
            return announced.closes  # not there at all: who cannot report must not count as present
        model = await self._model_of(announced)
        margin = _MARGIN_SHARE * (announced.closes - announced.opens)
        moment = agent.moment(self._time.now(), announced, margin)
        if moment is None:
            self.counts.missed += 1
            log.warning("round %d was found too late to take part in", announced.round)
            return announced.closes
        await self._take_part(announced, model, moment)
        return announced.closes

    async def _take_part(self, announced: RoundDocument, model: bytes, moment: float) -> None:
        entered, parcel = await self._time.clock.aside(self._enter, announced, moment)
        self._looks = _LOOKS
        working = self._begin(entered, model)
        # Until its moment every client waits alike; only then does it look what there is to send.
        await self._time.sleep_until(moment)
        part = self._finished(working, entered) if entered.heads else entered.prepared
        self.counts.rounds += 1
        self.counts.seen.add(announced.round)
        parcel = replace(parcel, envelope=part.envelope)
        await self._time.clock.aside(self._outbox.put, parcel)
        await self._deliver(parcel)
        self.counts.reports += part.action is Action.REPORT
        self.counts.covers += part.action is Action.COVER

    def _enter(self, announced: RoundDocument, moment: float) -> tuple[Entered, Parcel]:
        """The coin, and what is sent in any case: both on disk before the data are touched."""
        entered = self.agent.enter(announced)
        times = announced.opens, announced.closes, moment
        parcel = Parcel(announced.plan, announced.round, *times, entered.prepared.envelope)
        self._outbox.put(parcel)
        return entered, parcel

    async def _deliver(self, parcel: Parcel) -> float | None:
        """Send what is kept at its moment, and keep it no longer; the end of its round."""
        joined = self.agent.joined
        now = self._time.now()
        if joined is None or joined.id != parcel.plan or not now < parcel.closes:
            self._outbox.clear()
            return None
        await self._time.sleep_until(parcel.moment)
        if parcel.envelope:
            self.counts.undelivered += not await self._send(parcel)
        self._outbox.clear()
        return parcel.closes

    def _begin(self, entered: Entered, model: bytes) -> asyncio.Future[Part] | None:
        """The computation beside the waiting; None on tails, or while an old one still runs."""
        if not entered.heads or (self._working is not None and not self._working.done()):
            return None
        call = lambda: self.agent.complete(entered, lambda: self._task.value(model))  # noqa: E731
        self._working = self._time.clock.work(call)
        return self._working

    def _finished(self, working: asyncio.Future[Part] | None, entered: Entered) -> Part:
        if working is None or not working.done():
            self.counts.lost += 1
            return entered.prepared
        part = working.result()
        self.counts.failures += part.failed
        return part

    def _has_said_enough(self) -> bool:
        """Whether this client took part as often as the plan asks for: then it is not there. Rounds are counted and not
        reports: that it is gone must not say how its coins fell."""
        joined, most = self.agent.joined, self._most_rounds
        return joined is not None and most is not None and self.ledger.rounds_of(joined.id) >= most

    async def _has_token(self, announced: RoundDocument) -> bool:
        if self._tokens is not None:
            await self._tokens.look_for(announced)
        if self.agent.has_token(announced):
            return True
        self.counts.without_token += 1
        log.warning("round %d is left out: no token under the key that it names", announced.round)
        return False

    # --- what there is ------------------------------------------------------------------------

    async def _join(self) -> bool:
        """Read the plan page and join its plan; whether there is one. The task hears of a new plan, and may have
        nothing to say to it."""
        page = await self._connection.get("/v1/plan", missing=Problem.NOT_FOUND)
        if page is None:
            return False
        self._time.compare(page.date)
        before = self.agent.joined
        joined = await self._time.clock.aside(self.agent.read_plan, page.body)
        if before is None or before.id != joined.id:
            log.info("taking part", extra={"fields": {"plan": joined.id}})
            self._most_rounds = None
            if isinstance(self._task, JoiningTask):
                try:
                    self._most_rounds = self._task.join(joined.plan)
                except ServiceError as problem:
                    self.agent.decline(joined.plan, str(problem))
        return True

    async def _look_for_key(self, announced: RoundDocument) -> None:
        if not self.agent.knows_key(announced):
            await self._join()
            if not self.agent.knows_key(announced):  # of several front ends one may be behind
                raise NotBelieved("the plan page does not show the key of the round")

    async def _current(self) -> RoundDocument | None:
        """The round that is open; a new plan is joined on the way."""
        for _ in range(2):
            assert self.agent.joined is not None
            # named so that nobody is counted as present in a plan that it has not joined
            answer = await self._connection.get(f"/v1/round?plan={self.agent.joined.id}", missing=Problem.NO_ROUND)
            if answer is None:
                return None
            self._time.compare(answer.date)
            try:
                return self.agent.read_round(answer.body)
            except PlanReplaced:
                log.info("the analyzer has another plan; looking at it")
                if not await self._join() or self._has_said_enough() or not self._may_go_on():
                    return None
        return None

    async def _model_of(self, announced: RoundDocument) -> bytes:
        """Fetched every round, whatever the coin will say: who asks must not depend on it."""
        answer = await self._connection.get(f"/v1/model/{announced.model}", limit=self.config.model_bytes)
        assert answer is not None
        self.agent.check_model(announced, answer.body)
        return answer.body

    async def _look_for_void_rounds(self) -> None:
        """Once after every round, whatever the coin was: what need not be paid is given back."""
        if self.config.shuffler_identity is None or self.counts.rounds == self._asked_after:
            return
        answer = await self._connection.get("/v1/void", missing=Problem.NOT_FOUND)
        if answer is not None:
            self.counts.void += await self._time.clock.aside(self.agent.read_void, answer.body)
            self._asked_after = self.counts.rounds

    def _may_go_on(self) -> bool:
        """Within every limit? A statement that the last round was void may be on its way."""
        try:
            self.agent.check_budget()
        except Refused:
            if self.config.shuffler_identity is None or self._looks == 0:
                raise
            self._looks -= 1
            self._asked_after = -1
            return False
        return True

    # --- sending ------------------------------------------------------------------------------

    async def _send(self, parcel: Parcel) -> bool:
        """The same bytes again and again, until they are taken or the window is over."""
        pause = 0.05 * (parcel.closes - parcel.opens)
        path = f"/v1/rounds/{parcel.round}/report"
        while True:
            try:
                answer = await self._connection.put(path, parcel.envelope)
                problem = answer.problem
                if answer.status == 202 or problem is Problem.DUPLICATE:
                    return True  # a duplicate after a lost answer means delivered
                if problem is Problem.UNAUTHORIZED:
                    raise Unauthorized("the shuffler does not know this client's token")
                if problem not in (*TRANSIENT, Problem.NO_ROUND):
                    log.warning("report not taken: %s", problem or answer.status)
                    return False
            except httpx.TransportError as failure:
                log.warning("report not sent, trying again: %s", type(failure).__name__)
            wait = self._time.about(pause)
            if self._time.now() + wait >= parcel.closes:
                return False
            await self._time.sleep(wait)
            pause *= 2
