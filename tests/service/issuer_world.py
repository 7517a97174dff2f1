"""An issuer with a plan, and clients that ask it for tokens, without any network."""

from __future__ import annotations

import itertools
import json
import secrets
from pathlib import Path
from typing import Any

import pytest

from dpcheckin.service.issuer.core import Issuer
from dpcheckin.service.issuer.private_keys import PrivateKey
from dpcheckin.service.issuer.store import IssuerStore
from dpcheckin.service.wire.blind_signatures import Blinded, PublicKey, blind, finalize
from dpcheckin.service.wire.canonical import canonical, parse
from dpcheckin.service.wire.documents import PlanDocument
from dpcheckin.service.wire.signing import identity_from_seed, public_identity, read_signed, signed_bytes
from dpcheckin.service.wire.tokens import Token, TokenKeysDocument, TokenRequest, token_message
from service.plans import plan as plan_document

ISSUER = identity_from_seed(b"i" * 32)
ANALYZER = identity_from_seed(b"a" * 32)
ISSUER_IDENTITY = public_identity(ISSUER).hex()


def issued_plan(**changes: Any) -> PlanDocument:
    """A plan that names the issuer of these tests."""
    return plan_document(**{"issuer": ISSUER_IDENTITY, "minimum_batch": 2, **changes})


class IssuerWorld:
    """An issuer over a file, with `ahead` rounds of keys."""

    def __init__(self, folder: Path, ahead: int = 3, **plan: Any) -> None:
        self.file = folder / "issuer.db"
        self.ahead = ahead
        self.plan = issued_plan(**plan)
        self.store = IssuerStore(self.file)
        self.issuer = self._issuer()
        self.issuer.register(signed_bytes(self.plan, ANALYZER))

    def _issuer(self) -> Issuer:
        return Issuer(self.store, ISSUER, analyzer=public_identity(ANALYZER), ahead=self.ahead)

    def restart(self) -> None:
        """As after a crash: everything that was only in memory is gone."""
        self.store.close()
        self.store = IssuerStore(self.file)
        self.issuer = self._issuer()

    def keys(self) -> TokenKeysDocument:
        page = parse(self.issuer.keys_page(self.plan.id))
        return read_signed(TokenKeysDocument, page, bytes.fromhex(ISSUER_IDENTITY))

    def key(self, number: int) -> PublicKey:
        return PublicKey.from_bytes(bytes.fromhex(self.keys().key_of(number)))

    def ask(self, client: bytes, rounds: list[int], blinded: list[bytes]) -> list[bytes | None]:
        body = canonical(TokenRequest(rounds, blinded).to_object())
        answer = json.loads(self.issuer.issue(client, self.plan.id, body))["signatures"]
        return [None if one is None else bytes.fromhex(one) for one in answer]

    def blinded(self, number: int, key: PublicKey | None = None, plan_id: bytes | None = None) -> tuple[bytes, Blinded]:
        """A fresh number, and its blinded message."""
        fresh, used = secrets.token_bytes(32), key or self.key(number)
        message = token_message(plan_id or self.plan.id, number, fresh)
        factor = 1 + secrets.randbelow(used.modulus - 1)
        return fresh, blind(used, message, secrets.token_bytes(48), factor)

    def token(self, client: bytes, number: int) -> Token:
        """One token of one client, the whole way."""
        fresh, hidden = self.blinded(number)
        (signed,) = self.ask(client, [number], [hidden.message])
        assert signed is not None
        message = token_message(self.plan.id, number, fresh)
        return Token(fresh, finalize(self.key(number), message, signed, hidden.inverse))


_POOL: list[PrivateKey] = []
_make = PrivateKey.generate  # the real one, also when a test has patched it already


def use_pooled_keys(patch: pytest.MonkeyPatch) -> None:
    """Fresh keys for a test that other tests have had too: making RSA keys takes time."""
    drawn = itertools.count()

    def next_key() -> PrivateKey:
        place = next(drawn)
        while len(_POOL) <= place:
            _POOL.append(_make())
        return _POOL[place]

    patch.setattr(PrivateKey, "generate", staticmethod(next_key))
