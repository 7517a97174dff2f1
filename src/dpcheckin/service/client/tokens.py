"""A client's report tokens: fetched for many rounds in advance, each used in its own round only.

Everything secret about a token (its number, the salt, the blinding factor) follows from one secret of the device and
from plan, round and key. So a client that was killed at any moment asks for the same token again, in the same words,
and the issuer answers the same: nothing is lost and nothing is issued twice. That a token is used once follows from the
client's ledger, which lets a client take part in a round once.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.storage.files import check_secret, make_folder, replace_file
from dpcheckin.service.wire.blind_signatures import SALT_BYTES, Blinded, PublicKey, blind, finalize
from dpcheckin.service.wire.canonical import canonical, parse
from dpcheckin.service.wire.documents import MODULUS_BYTES, TOKEN_BYTES
from dpcheckin.service.wire.problems import Malformed
from dpcheckin.service.wire.schema import hex_bytes, integer, mapping
from dpcheckin.service.wire.tokens import NUMBER_BYTES, Token, TokenKeysDocument, TokenRequest, token_message

SECRET_FILE = "tokens.key"
TOKENS_FILE = "tokens.json"
_SECRET_BYTES = 32
_CONTEXT = b"dpcheckin/1 token secret"
_LARGEST = 16 << 20
_MORE = 16
"""Bytes beyond the modulus that a blinding factor is reduced from: its bias is 2**-128."""


@dataclass(frozen=True)
class _Held:
    key: str
    token: bytes


class TokenWallet:
    """The tokens of one client. `folder`: the client's own, beside its ledger; secret and tokens are made in it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / TOKENS_FILE
        self._secret = _secret(folder / SECRET_FILE)
        self._asked: dict[str, tuple[bytes, Blinded]] = {}
        """Spares work twice between question and answer; a crash loses nothing."""
        self._plan, self._held = self._read()
        self.closed = False
        """By the issuer this folder is an older copy: no token is given out, or rounds would be spent twice."""

    def missing(self, keys: TokenKeysDocument) -> list[int]:
        """The rounds for which there is no token under the key that was announced."""
        return [number for number in keys.rounds if self.token(keys.plan, number, keys.key_of(number)) is None]

    def token(self, plan: str, round_number: int, key: str) -> bytes | None:
        """The token of round `round_number` of a `plan` (its id, in hex); None if there is none that this `key` (in
        hex) signed."""
        held = self._held.get(round_number) if plan == self._plan and not self.closed else None
        return held.token if held is not None and held.key == key else None

    def count_from(self, plan: str, round_number: int) -> int:
        """How many tokens there are for round `round_number` of a `plan` and those after it."""
        return sum(number >= round_number for number in self._held) if plan == self._plan else 0

    def request(self, keys: TokenKeysDocument, rounds: list[int], taken: int = 0) -> TokenRequest:
        """What to ask the issuer for under the announced `keys` of some `rounds`, with so many rounds `taken` part in;
        the same every time."""
        return TokenRequest(rounds, [self._blinded(keys, number)[1].message for number in rounds], taken)

    def take_in(self, keys: TokenKeysDocument, rounds: list[int], signatures: list[bytes | None]) -> int:
        """Uncover the issuer's `signatures`, made with `keys` for `rounds`, and keep them, durably; how many were good.
        None is the issuer's refusal. Tokens of other plans and of rounds before the announced ones are forgotten."""
        found = {}
        for number, signature in zip(rounds, signatures, strict=True):
            if signature is not None:
                try:
                    found[number] = self._uncovered(keys, number, signature)
                except Malformed:
                    continue  # a wrong answer is no token; the round will be without one
        old = self._held if keys.plan == self._plan else {}
        kept = {number: held for number, held in old.items() if number >= keys.first}
        self._write(keys.plan, kept | found)
        self._asked.clear()
        return len(found)

    # --- inside -------------------------------------------------------------------------------

    def _uncovered(self, keys: TokenKeysDocument, number: int, signature: bytes) -> _Held:
        own, hidden = self._blinded(keys, number)
        message = token_message(bytes.fromhex(keys.plan), number, own)
        public = _public(keys, number)
        made = Token(own, finalize(public, message, signature, hidden.inverse))
        return _Held(keys.key_of(number), made.to_bytes())

    def _blinded(self, keys: TokenKeysDocument, number: int) -> tuple[bytes, Blinded]:
        """The token's own number, and its message as the issuer sees it."""
        if keys.key_of(number) in self._asked:
            return self._asked[keys.key_of(number)]
        public = _public(keys, number)
        stream = hashlib.shake_256(
            _CONTEXT + self._secret + bytes.fromhex(keys.plan) + number.to_bytes(4, "big") + public.to_bytes()
        ).digest(NUMBER_BYTES + SALT_BYTES + MODULUS_BYTES + _MORE)
        own, salt = stream[:NUMBER_BYTES], stream[NUMBER_BYTES : NUMBER_BYTES + SALT_BYTES]
        factor = int.from_bytes(stream[NUMBER_BYTES + SALT_BYTES :], "big") % public.modulus
        message = token_message(bytes.fromhex(keys.plan), number, own)
        made = own, blind(public, message, salt, factor)
        self._asked[keys.key_of(number)] = made
        return made

    def _write(self, plan: str, held: dict[int, _Held]) -> None:
        tokens = [{"round": number, "key": one.key, "token": one.token.hex()} for number, one in sorted(held.items())]
        replace_file(self._file, canonical({"plan": plan, "tokens": tokens}))
        self._plan, self._held = plan, held

    def _read(self) -> tuple[str, dict[int, _Held]]:
        """What lies in the file; a file that cannot be read holds nothing, as all can be fetched
        again."""
        try:
            content = mapping("tokens", parse(self._file.read_bytes(), _LARGEST))
            plan: str = hex_bytes(32)("tokens.plan", content.get("plan"))
            held = {}
            for one in content["tokens"]:
                number: int = integer(0)("tokens.round", one["round"])
                key: str = hex_bytes(MODULUS_BYTES)("tokens.key", one["key"])
                token: str = hex_bytes(TOKEN_BYTES)("tokens.token", one["token"])
                held[number] = _Held(key, bytes.fromhex(token))
            return plan, held
        except (FileNotFoundError, Malformed, KeyError, TypeError):
            return "", {}


def _public(keys: TokenKeysDocument, number: int) -> PublicKey:
    return PublicKey.from_bytes(bytes.fromhex(keys.key_of(number)))


def _secret(file: Path) -> bytes:
    if not file.exists():
        make_folder(file.parent)
        replace_file(file, os.urandom(_SECRET_BYTES).hex().encode() + b"\n")
    try:
        check_secret("tokens.key", file)
        found = bytes.fromhex(file.read_text(encoding="ascii").strip())
    except ValueError:
        found = b""
    if len(found) != _SECRET_BYTES:
        raise InvalidParameter("tokens.key", str(file), f"{_SECRET_BYTES} bytes in hex")
    return found
