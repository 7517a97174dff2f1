"""RSA blind signatures as RFC 9474 has them: what a client and a verifier do; no private key is ever loaded here.

The client hides a message from the signer, the signer signs what it cannot read (`service.issuer`), the client uncovers
the signature, and anybody can check it as an RSA-PSS signature: SHA-384, salt of 48 bytes. Report tokens hold 32 random
bytes already, so that RSABSSA-SHA384-PSS-Deterministic is enough (section 7.3: messages of high entropy).
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from dpcheckin.service.wire.problems import Malformed

EXPONENT = 65537
SALT_BYTES = 48
HASH_BYTES = 48
_TRAILER = b"\xbc"
_FACTOR_FOUND = "a factor of the modulus was found: not an honest key"


@dataclass(frozen=True)
class PublicKey:
    """An RSA public key with exponent 65537. `modulus`: odd, of a whole number of bytes."""

    modulus: int

    def __post_init__(self) -> None:
        bits = self.modulus.bit_length()
        if self.modulus % 2 == 0 or bits % 8 or bits < 2048:
            raise Malformed("the modulus of a token key is odd and has 2048 bits or more")

    @staticmethod
    def from_bytes(raw: bytes) -> PublicKey:
        """The key whose modulus these bytes are, first byte first."""
        return PublicKey(int.from_bytes(raw, "big"))

    def to_bytes(self) -> bytes:
        """The modulus."""
        return self.modulus.to_bytes(self.size, "big")

    @property
    def size(self) -> int:
        """Bytes of the modulus, of a blinded message and of a signature."""
        return self.modulus.bit_length() // 8

    @cached_property
    def _verifier(self) -> rsa.RSAPublicKey:
        try:
            return rsa.RSAPublicNumbers(EXPONENT, self.modulus).public_key()
        except ValueError:
            raise Malformed("not an RSA modulus") from None

    def verify(self, message: bytes, signature: bytes, salt_bytes: int = SALT_BYTES) -> None:
        """Raise `Malformed` unless this is a `signature` of the `message`; without salt `salt_bytes` is 0."""
        try:
            self._verifier.verify(signature, message, _scheme(salt_bytes), hashes.SHA384())
        except InvalidSignature:
            raise Malformed("the signature does not hold") from None


@dataclass(frozen=True)
class Blinded:
    """A message as the signer sees it, and what uncovers the signature again."""

    message: bytes
    inverse: int
    """Secret: of the blinding factor, modulo the modulus."""


def encode(message: bytes, salt: bytes, bits: int) -> bytes:
    """EMSA-PSS-ENCODE of RFC 8017 (section 9.1.1) with SHA-384 and MGF1-SHA-384: of a `message` with a random `salt`,
    in so many `bits`, one less than the modulus has."""
    size = -(-bits // 8)
    rest = size - HASH_BYTES - len(salt) - 2
    if rest < 0:
        raise Malformed("the modulus is too short for this hash and salt")
    hashed = _sha384(bytes(8) + _sha384(message) + salt)
    block = bytes(rest) + b"\x01" + salt
    mask = _mgf1(hashed, len(block))
    masked = bytearray(a ^ b for a, b in zip(block, mask, strict=True))
    masked[0] &= 0xFF >> (8 * size - bits)
    return bytes(masked) + hashed + _TRAILER


def blind(key: PublicKey, message: bytes, salt: bytes, factor: int) -> Blinded:
    """Hide a `message` from the signer whose `key` this is; `salt` (48 bytes) and `factor` (uniform below the modulus)
    are secret and fresh for every message."""
    encoded = int.from_bytes(encode(message, salt, key.modulus.bit_length() - 1), "big")
    if not 0 < factor < key.modulus:
        raise Malformed("a blinding factor lies strictly between 0 and the modulus")
    try:
        inverse = pow(factor, -1, key.modulus)
    except ValueError:
        raise Malformed(_FACTOR_FOUND) from None
    if math.gcd(encoded, key.modulus) != 1:
        raise Malformed(_FACTOR_FOUND)
    hidden = encoded * pow(factor, EXPONENT, key.modulus) % key.modulus
    return Blinded(hidden.to_bytes(key.size, "big"), inverse)


def finalize(key: PublicKey, message: bytes, signed: bytes, inverse: int, salt_bytes: int = SALT_BYTES) -> bytes:
    """Uncover the signature of a `message` that was hidden from the signer with this `key`: it `signed`, and `inverse`
    is what `blind` gave. What does not hold, for a salt of `salt_bytes`, raises `Malformed`."""
    if len(signed) != key.size:
        raise Malformed(f"a blind signature has {key.size:,} bytes")
    found = int.from_bytes(signed, "big") * inverse % key.modulus
    signature = found.to_bytes(key.size, "big")
    key.verify(message, signature, salt_bytes)
    return signature


def _scheme(salt_bytes: int) -> padding.PSS:
    return padding.PSS(padding.MGF1(hashes.SHA384()), salt_bytes)


def _sha384(data: bytes) -> bytes:
    return hashlib.sha384(data).digest()


def _mgf1(seed: bytes, length: int) -> bytes:
    blocks = range(-(-length // HASH_BYTES))
    return b"".join(_sha384(seed + i.to_bytes(4, "big")) for i in blocks)[:length]
