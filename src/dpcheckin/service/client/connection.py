"""What one agent asks of its shuffler and its issuer: with its token, and never more of an answer than is wanted.

Neither is trusted with this device's memory. Compression is not asked for, an answer that is compressed all the same is
not unpacked, and reading stops at the size that was expected. The time at which the shuffler answers is kept, so that
an agent can tell that its own clock is wrong. Report tokens are fetched whenever few are left: what the issuer sees is
who asks and when, and neither depends on the client's coin or data. Its answers are believed only under the signature
of the identity in the owner's file; one that does not answer, or does not know this client, is asked later and later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx

from dpcheckin.errors import ServiceError
from dpcheckin.service import tls
from dpcheckin.service.client.timekeeping import LARGEST_PAUSE, UNKNOWN_PAUSES, Backoff, Timekeeper
from dpcheckin.service.client.tokens import TokenWallet
from dpcheckin.service.settings import IssuerAccess
from dpcheckin.service.wire.canonical import LARGEST_DOCUMENT, canonical, parse
from dpcheckin.service.wire.credentials import bearer_header
from dpcheckin.service.wire.documents import MODULUS_BYTES, PlanDocument, RoundDocument
from dpcheckin.service.wire.problems import Malformed, Problem, problem_in
from dpcheckin.service.wire.schema import hex_bytes
from dpcheckin.service.wire.signing import read_signed_bytes
from dpcheckin.service.wire.tokens import TokenKeysDocument

LARGEST_ANSWER = 64 << 10
"""Bytes of an answer that is not a document or a model: `{}` or a problem."""


class ShufflerUnreachable(ServiceError):
    """The shuffler does not answer, or not as it should; the agent tries again."""


class Unauthorized(ShufflerUnreachable):
    """The shuffler does not know this client's token: revoked, replaced, or another shuffler."""


@dataclass(frozen=True)
class Answer:
    """Status and body, and when the shuffler says that it was sent (seconds since the epoch)."""

    status: int
    body: bytes
    date: float | None = None

    @property
    def problem(self) -> Problem | None:
        """The problem it speaks of, if any."""
        return problem_in(self.body)


def open_client(shuffler: str, authority: Path | None, **options: Any) -> httpx.AsyncClient:
    """Connections to a party at the address `shuffler`; certificates are always checked, by the PEM file `authority` or
    those of the system. `options` are of `httpx.AsyncClient`."""
    verify = tls.verification(shuffler, authority)
    return httpx.AsyncClient(verify=verify, timeout=30.0, trust_env=False, **options)


class Connection:
    """What one agent says, with its token, to its shuffler or issuer. Several may share the connections below."""

    def __init__(self, address: str, token: str, http: httpx.AsyncClient) -> None:
        self._address, self._http = address, http
        self._headers = {**bearer_header(token), "accept-encoding": "identity"}

    async def get(self, path: str, *, missing: Problem | None = None, limit: int = LARGEST_DOCUMENT) -> Answer | None:
        """The answer, of at most `limit` bytes, to a request for `path` that must succeed; None for the problem
        `missing`."""
        try:
            answer = await self.ask("GET", path, None, limit)
        except httpx.TransportError as failure:
            raise ShufflerUnreachable(type(failure).__name__) from None
        if answer.status == 200:
            return answer
        problem = answer.problem
        if missing is not None and problem is missing:
            return None
        if problem is Problem.UNAUTHORIZED:
            raise Unauthorized("the shuffler does not know this client's token")
        raise ShufflerUnreachable(f"{path}: {problem.slug if problem else answer.status}")

    async def put(self, path: str, content: bytes) -> Answer:
        """The answer to `content` that is put at `path`, whatever it is; `httpx.TransportError` when there is none."""
        return await self.ask("PUT", path, content, LARGEST_ANSWER)

    async def ask(self, method: str, path: str, content: bytes | None = None, limit: int = LARGEST_DOCUMENT) -> Answer:
        """The answer, of at most `limit` bytes, to a request (`method`, `path`, perhaps `content`), whatever it is;
        `httpx.TransportError` when there is none."""
        url = self._address + path
        async with self._http.stream(method, url, content=content, headers=self._headers) as answer:
            encoding = answer.headers.get("content-encoding", "identity")
            if encoding != "identity":
                raise ShufflerUnreachable(f"{path}: an answer in {encoding[:20]}, not asked for")
            body = await _read(answer, limit)
            if body is None:
                raise ShufflerUnreachable(f"{path}: an answer of more than {limit:,} bytes")
            date = _seconds(answer.headers.get("date"))
            return Answer(answer.status_code, body, date)


async def _read(answer: httpx.Response, limit: int) -> bytes | None:
    """The body as it came; None as soon as it is seen to be longer than `limit`."""
    if answer.is_stream_consumed:  # it was made in this process, such as a ring's model
        return answer.content if len(answer.content) <= limit else None
    body = bytearray()
    async for part in answer.aiter_raw():
        body += part
        if len(body) > limit:
            return None
    return bytes(body)


def _seconds(date: str | None) -> float | None:
    """An HTTP date in seconds since the epoch.

    >>> _seconds("Thu, 01 Jan 1970 00:01:00 GMT")
    60.0
    >>> _seconds("yesterday") is None
    True
    """
    try:
        return None if date is None else parsedate_to_datetime(date).replace(tzinfo=UTC).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


log = logging.getLogger("dpcheckin.client")


class IssuerUnreachable(ServiceError):
    """No tokens could be fetched; the agent tries again."""


class UnknownToIssuer(IssuerUnreachable):
    """The issuer gives this client nothing for now: it does not know its access token (revoked, or another issuer), or
    knows of more rounds than the client's ledger."""


class TokenKeeper:
    """Keeps a `wallet` filled by the `issuer` on the connection `http`; says what goes wrong, and does not ask again
    too soon by `time`: after `poll_seconds` at first. It tells the issuer how many rounds this client has `taken` part
    in, by its ledger: first of all, so that a folder that was put back in time spends nothing twice."""

    def __init__(
        self,
        issuer: IssuerAccess,
        wallet: TokenWallet,
        http: httpx.AsyncClient,
        time: Timekeeper,
        poll_seconds: float,
        taken: Callable[[], int] = lambda: 0,
    ) -> None:
        self._issuer, self.wallet, self._taken = issuer, wallet, taken
        self._connection = Connection(issuer.address, issuer.token, http)
        self._window = 1
        self._asked = False
        """Since this process began."""
        wallet.closed = True  # a copy of the folder has its tokens too: first the issuer hears how far this client is
        self._away = Backoff(time, poll_seconds, LARGEST_PAUSE)
        self._unknown = Backoff(time, *UNKNOWN_PAUSES)

    async def refill(self, plan: PlanDocument, from_round: int) -> None:
        """Fetch tokens of a `plan` when for `from_round`, the round after the last that was seen, and later ones less
        than half of a window is left: before a round is looked at, whatever coins will say, so who asks when says
        nothing."""
        plan_id = plan.id.hex()
        few = 2 * self.wallet.count_from(plan_id, from_round) <= self._window
        await self._try(plan_id, few or not self._asked)

    async def look_for(self, announced: RoundDocument) -> None:
        """Fetch the token of a round that is open, if it is missing or its key was replaced."""
        assert announced.token_key is not None
        held = self.wallet.token(announced.plan, announced.round, announced.token_key)
        await self._try(announced.plan, held is None)

    async def _try(self, plan_id: str, needed: bool) -> None:
        if not (self._away.over and self._unknown.over):
            return
        try:
            if needed:
                await self.fetch(plan_id)
        except UnknownToIssuer as problem:
            log.error("%s; asking again in about %d seconds", problem, self._unknown.failed())
        except IssuerUnreachable as problem:
            pause = self._away.failed()
            log.warning("no tokens fetched, trying again in about %.1f seconds: %s", pause, problem)
        else:
            if not (self._away.calm and self._unknown.calm):
                log.info("issuer reached again")
            self._away.reset()
            self._unknown.reset()

    async def fetch(self, plan_id: str) -> int:
        """Ask for every token of the issuer's window that is missing; how many came."""
        try:
            body = await self._ask("GET", f"/v1/plans/{plan_id}/keys")
            keys = read_signed_bytes(TokenKeysDocument, body, self._issuer.identity)
            if keys.plan != plan_id:
                raise IssuerUnreachable("keys of another plan")
            self._window = len(keys.keys)
            missing = self.wallet.missing(keys)
            if not missing and self._asked:
                return 0
            # a new process asks in any case, for one again: that tells how far this client has come
            missing = missing or [keys.first]
            request = canonical(self.wallet.request(keys, missing, self._taken()).to_object())
            answer = await self._ask("POST", f"/v1/plans/{plan_id}/tokens", request)
            self._asked, self.wallet.closed = True, False
            return self.wallet.take_in(keys, missing, _signatures(answer, len(missing)))
        except httpx.TransportError as failure:
            raise IssuerUnreachable(type(failure).__name__) from None
        except (Malformed, ShufflerUnreachable) as problem:
            raise IssuerUnreachable(str(problem)) from None

    async def _ask(self, method: str, path: str, content: bytes | None = None) -> bytes:
        answer = await self._connection.ask(method, path, content)
        if answer.status == 200:
            return answer.body
        if answer.problem is Problem.UNAUTHORIZED:
            raise UnknownToIssuer("the issuer does not know this client's access token")
        if answer.problem is Problem.OLDER_COPY:
            self.wallet.closed = True
            raise UnknownToIssuer("by the issuer this folder is an older copy, which has forgotten what was spent")
        raise IssuerUnreachable(answer.problem.slug if answer.problem else str(answer.status))


def _signatures(body: bytes, count: int) -> list[bytes | None]:
    check, value = hex_bytes(MODULUS_BYTES), parse(body)
    signatures = value.get("signatures") if isinstance(value, dict) else None
    if not isinstance(signatures, list) or len(signatures) != count:
        raise Malformed("one signature for each round that was asked for")
    return [None if part is None else bytes.fromhex(check("signature", part)) for part in signatures]
