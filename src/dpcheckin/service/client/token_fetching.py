"""How a client fetches its tokens: whenever few are left, whatever its coin will say.

What the issuer sees is who asks and when, and neither depends on the client's coin or data. The
issuer's answers are believed only under the signature of the identity in the owner's file. An
issuer that does not answer, or does not know this client, is asked again later and later.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Any

import httpx

from dpcheckin.errors import ServiceError
from dpcheckin.service.client.connection import Connection, ShufflerUnreachable
from dpcheckin.service.client.timekeeping import (
    LARGEST_PAUSE,
    UNKNOWN_PAUSES,
    Backoff,
    Timekeeper,
)
from dpcheckin.service.client.tokens import TokenWallet
from dpcheckin.service.settings_file import IssuerAccess
from dpcheckin.service.wire.canonical import canonical, parse
from dpcheckin.service.wire.documents import MODULUS_BYTES, PlanDocument, RoundDocument
from dpcheckin.service.wire.fields import hex_bytes
from dpcheckin.service.wire.problems import Malformed, Problem
from dpcheckin.service.wire.signing import read_signed_bytes
from dpcheckin.service.wire.tokens import TokenKeysDocument

log = logging.getLogger("dpcheckin.client")


class IssuerUnreachable(ServiceError):
    """No tokens could be fetched; the agent tries again."""


class UnknownToIssuer(IssuerUnreachable):
    """The issuer does not know this client's access token: revoked, or another issuer."""


class TokenFetcher:
    """Keeps a wallet filled.

    Args:
        issuer: where it is, and this client's access token.
        wallet: what is filled.
        http: the connection.
    """

    def __init__(self, issuer: IssuerAccess, wallet: TokenWallet, http: httpx.AsyncClient) -> None:
        self._issuer, self.wallet = issuer, wallet
        self._connection = Connection(issuer.address, issuer.token, http)
        self._window = 1

    async def refill(self, plan: PlanDocument, from_round: int) -> None:
        """Fetch tokens when less than half of a window is left.

        Args:
            plan: has an issuer.
            from_round: the round after the last one that this client has seen.
        """
        plan_id = plan.id.hex()
        if 2 * self.wallet.count_from(plan_id, from_round) <= self._window:
            await self.fetch(plan_id)

    async def token_for(self, found: RoundDocument) -> bytes | None:
        """The token of a round that is open; fetched if it is missing or its key was replaced.

        Args:
            found: the round, which names its token key.
        """
        assert found.token_key is not None
        held = self.wallet.token(found.plan, found.round, found.token_key)
        if held is None:
            await self.fetch(found.plan)
            held = self.wallet.token(found.plan, found.round, found.token_key)
        return held

    async def fetch(self, plan_id: str) -> int:
        """Ask for every token of the issuer's window that is missing; how many came."""
        keys = self._keys(plan_id, await self._ask("GET", f"/v1/plans/{plan_id}/keys"))
        self._window = len(keys.keys)
        missing = self.wallet.missing(keys)
        if not missing:
            return 0
        try:
            request = self.wallet.request(keys, missing)
        except Malformed as problem:
            raise IssuerUnreachable(str(problem)) from None
        body = canonical(request.to_object())
        answer = await self._ask("POST", f"/v1/plans/{plan_id}/tokens", body)
        return self.wallet.take_in(keys, missing, _signatures(answer, len(missing)))

    def _keys(self, plan_id: str, body: bytes) -> TokenKeysDocument:
        try:
            found = read_signed_bytes(TokenKeysDocument, body, self._issuer.identity)
        except Malformed as problem:
            raise IssuerUnreachable(str(problem)) from None
        if found.plan != plan_id:
            raise IssuerUnreachable("keys of another plan")
        return found

    async def _ask(self, method: str, path: str, content: bytes | None = None) -> bytes:
        try:
            answer = await self._connection.ask(method, path, content)
        except httpx.TransportError as failure:
            raise IssuerUnreachable(type(failure).__name__) from None
        except ShufflerUnreachable as problem:
            raise IssuerUnreachable(str(problem)) from None
        if answer.status == 200:
            return answer.body
        said = answer.problem
        if said is Problem.UNAUTHORIZED:
            raise UnknownToIssuer("the issuer does not know this client's access token")
        raise IssuerUnreachable(said.slug if said else str(answer.status))


def _signatures(body: bytes, count: int) -> list[bytes | None]:
    check = hex_bytes(MODULUS_BYTES)
    try:
        value: Any = parse(body)
        found = value.get("signatures") if isinstance(value, dict) else None
        if not isinstance(found, list) or len(found) != count:
            raise Malformed("one signature for each round that was asked for")
        return [None if one is None else bytes.fromhex(check("signature", one)) for one in found]
    except Malformed as problem:
        raise IssuerUnreachable(str(problem)) from None


class TokenKeeper:
    """Sees to it that there are tokens, says what goes wrong, and does not ask again too soon.

    Args:
        fetcher: asks the issuer.
        time: by which pauses are kept.
        poll_seconds: the first pause after a failure.
    """

    def __init__(self, fetcher: TokenFetcher, time: Timekeeper, poll_seconds: float) -> None:
        self._fetcher, self._time = fetcher, time
        self._away = Backoff(time, poll_seconds, LARGEST_PAUSE)
        self._unknown = Backoff(time, *UNKNOWN_PAUSES)

    async def refill(self, plan: PlanDocument, from_round: int) -> None:
        """Before a round is looked at, and whatever coins will say: who asks when says nothing.

        Args:
            plan: has an issuer.
            from_round: the round after the last one that this client has seen.
        """
        if self._may_ask():
            await self._try(self._fetcher.refill(plan, from_round))

    async def look_for(self, found: RoundDocument) -> None:
        """Fetch the token of a round that is open, if it is missing.

        Args:
            found: the round, which names its token key.
        """
        if self._may_ask():
            await self._try(self._fetcher.token_for(found))

    def _may_ask(self) -> bool:
        return self._away.over and self._unknown.over

    async def _try(self, asking: Awaitable[Any]) -> None:
        try:
            await asking
        except UnknownToIssuer as problem:
            log.error("%s; asking again in about %d seconds", problem, self._unknown.failed())
        except IssuerUnreachable as problem:
            pause = self._away.failed()
            log.warning("no tokens fetched, trying again in about %.1f seconds: %s", pause, problem)
        else:
            self._away.reset()
            self._unknown.reset()
