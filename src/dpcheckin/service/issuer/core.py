"""What an issuer decides: which plans it serves, which rounds have keys, who gets a token.

No network and no clock. There are keys for a window of rounds: from the one that the analyzer last asked about on,
`ahead` of them. The window only moves forward. A client gets one token for each round of the window, whatever its coin
will say; asked again with the same blinded message the issuer gives the same answer, asked with another it refuses.
"""

from __future__ import annotations

import threading

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpcheckin.service.issuer.private_keys import PrivateKey
from dpcheckin.service.issuer.settings import DEFAULT_AHEAD, check_ahead
from dpcheckin.service.issuer.store import Asked, IssuerStore
from dpcheckin.service.wire.canonical import canonical, digest, parse
from dpcheckin.service.wire.documents import PlanDocument
from dpcheckin.service.wire.problems import Malformed, Problem, refuse
from dpcheckin.service.wire.schema import LARGEST_COUNT
from dpcheckin.service.wire.signing import public_identity, read_signed, signed_bytes
from dpcheckin.service.wire.tokens import CrowdDocument, TokenKeysDocument, TokenRequest


class Issuer:
    """One issuer over one store; every method may be called from any thread.

    `store`: keeps what must survive. `identity`: signs the announced keys. `analyzer`: 32 bytes of the analyzer's
    public identity; None: its access token is enough. `needs_analyzer`: refuse every plan while there is no identity to
    check it against. `ahead`: rounds for which there are keys at any time.
    """

    def __init__(
        self,
        store: IssuerStore,
        identity: Ed25519PrivateKey,
        *,
        analyzer: bytes | None = None,
        needs_analyzer: bool = False,
        ahead: int = DEFAULT_AHEAD,
    ) -> None:
        check_ahead(ahead)
        self.store = store
        self._identity, self._analyzer, self._ahead = identity, analyzer, ahead
        self._needs_analyzer = needs_analyzer
        self.public_identity = public_identity(identity).hex()
        self._making_keys = threading.Lock()

    def register(self, body: bytes) -> None:
        """Serve a plan that names this issuer; again: nothing happens. `body`: the signed plan."""
        if self._needs_analyzer and self._analyzer is None:
            refuse(Problem.UNKNOWN_ANALYZER)
        try:
            plan = read_signed(PlanDocument, parse(body), self._analyzer)
        except Malformed:
            refuse(Problem.MALFORMED)
        if plan.issuer != self.public_identity:
            refuse(Problem.CONFLICT)
        self.store.add_plan(plan.id, body)
        self._keys(plan.id)

    def open_round(self, plan: bytes, number: int) -> bytes:
        """The analyzer is about to open the round `number` of a `plan`: its key, and an end to the rounds before it.

        A round that lies before the window is not found any more.
        """
        first = self._first(plan)
        if number < first:
            refuse(Problem.NOT_FOUND)
        if number > first:
            self.store.pass_rounds(plan, number)
        return self._keys(plan)[number].public.to_bytes()

    def crowd(self, plan: bytes, number: int) -> bytes:
        """The signed number of clients that may have a token of the round `number` of a `plan`, while it is the last
        one that was opened or lies ahead."""
        if number < self._first(plan):
            refuse(Problem.NOT_FOUND)
        return signed_bytes(CrowdDocument(plan.hex(), number, self.store.crowd(plan, number)), self._identity)

    def keys_page(self, plan: bytes) -> bytes:
        """The signed keys of the window."""
        keys = self._keys(plan)
        document = TokenKeysDocument(plan.hex(), min(keys), [keys[n].public.to_bytes().hex() for n in sorted(keys)])
        return signed_bytes(document, self._identity)

    def issue(self, client: bytes, plan: bytes, body: bytes) -> bytes:
        """Sign what a `client` asks for in `body`, a `TokenRequest`, as JSON; `null` where it has no right to a token
        of the `plan`.
        """
        try:
            request = TokenRequest.from_object(parse(body))
        except Malformed:
            refuse(Problem.MALFORMED)
        self._first(plan)
        if not self.store.has_taken(client, request.taken):
            refuse(Problem.OLDER_COPY)
        asked = [
            Asked(number, digest(blinded)) for number, blinded in zip(request.rounds, request.blinded, strict=True)
        ]
        # durable first, signed second: a crash between them wastes nothing, as the same request
        # gets the same signatures
        keys = self.store.issue(plan, client, asked)
        if not any(keys):
            refuse(Problem.CONFLICT)
        signed = [
            None if key is None else _signed(key, blinded) for key, blinded in zip(keys, request.blinded, strict=True)
        ]
        return canonical({"signatures": signed})

    def _first(self, plan: bytes) -> int:
        first = self.store.next_round(plan)
        return refuse(Problem.NOT_FOUND) if first is None else first

    def _keys(self, plan: bytes) -> dict[int, PrivateKey]:
        """The keys of the window; those that are missing are made now."""
        with self._making_keys:
            first = self._first(plan)
            window = range(first, min(first + self._ahead, LARGEST_COUNT + 1))
            keys = self.store.keys(plan, window)
            missing = [number for number in window if number not in keys]
            if missing:
                self.store.add_keys(plan, {number: PrivateKey.generate() for number in missing})
                keys = self.store.keys(plan, window)
            return keys


def _signed(key: PrivateKey, blinded: bytes) -> str:
    try:
        return key.blind_sign(blinded).hex()
    except Malformed:
        refuse(Problem.MALFORMED)
