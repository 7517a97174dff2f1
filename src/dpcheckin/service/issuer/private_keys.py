"""The issuer's private key of one round, and the one thing it does: BlindSign of RFC 9474.

Against timing the operation is hidden three times: the base is multiplied by a fresh random number
whose power is taken out again, the exponents get a fresh random multiple of the group's order, and
the power itself is OpenSSL's in constant time where that can be loaded (`modular_power`). What is
left is assumed harmless: multiplications and remainders of blinded numbers by Python's integers,
and one comparison of public values. A signature is checked before it leaves, so that a fault in one
half of the computation cannot give the factors away.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import cached_property

from cryptography.hazmat.primitives.asymmetric import rsa

from dpcheckin.errors import ServiceError
from dpcheckin.service.issuer.modular_power import Power, best_power
from dpcheckin.service.wire.blind_signatures import EXPONENT, PublicKey
from dpcheckin.service.wire.documents import MODULUS_BYTES
from dpcheckin.service.wire.problems import Malformed

_EXPONENT_BLINDING_BITS = 64


class SigningFailure(ServiceError):
    """A signature came out wrong: nothing is given out."""


@dataclass(frozen=True)
class PrivateKey:
    """Two primes whose product is the public modulus.

    Args:
        first: a prime.
        second: another.
    """

    first: int
    second: int

    @staticmethod
    def generate() -> PrivateKey:
        """A fresh key of 2048 bits."""
        made = rsa.generate_private_key(EXPONENT, 8 * MODULUS_BYTES).private_numbers()
        return PrivateKey(made.p, made.q)

    @staticmethod
    def from_bytes(raw: bytes) -> PrivateKey:
        """What `to_bytes` gave."""
        half = len(raw) // 2
        return PrivateKey(int.from_bytes(raw[:half], "big"), int.from_bytes(raw[half:], "big"))

    def to_bytes(self) -> bytes:
        """Both primes, each in half as many bytes as the modulus has."""
        half = self.public.size // 2
        return self.first.to_bytes(half, "big") + self.second.to_bytes(half, "big")

    @cached_property
    def public(self) -> PublicKey:
        """The public half."""
        return PublicKey(self.first * self.second)

    @cached_property
    def _parts(self) -> tuple[int, int, int]:
        """Exponents modulo p - 1 and q - 1, and the inverse of q modulo p."""
        return (
            pow(EXPONENT, -1, self.first - 1),
            pow(EXPONENT, -1, self.second - 1),
            pow(self.second, -1, self.first),
        )

    def blind_sign(self, blinded: bytes, power: Power | None = None) -> bytes:
        """The signature of a message that stays hidden.

        Args:
            blinded: as `blind_signatures.blind` made it.
            power: how powers are taken; None: the best there is.
        """
        public = self.public
        message = int.from_bytes(blinded, "big")
        if len(blinded) != public.size or message >= public.modulus:
            raise Malformed(f"a blinded message has {public.size:,} bytes and is below the modulus")
        mask, unmask = self._mask()
        masked = message * pow(mask, EXPONENT, public.modulus) % public.modulus
        signature = self._root(masked, power or best_power()) * unmask % public.modulus
        if pow(signature, EXPONENT, public.modulus) != message:
            raise SigningFailure("a signature did not verify")
        return signature.to_bytes(public.size, "big")

    def check(self) -> None:
        """Raise unless it signs: of a key that was changed no signature holds."""
        if not (self.first > 2 and self.second > 2):
            raise Malformed("a key is not the one that was written")
        self.blind_sign((2).to_bytes(self.public.size, "big"))

    def _mask(self) -> tuple[int, int]:
        """A random number and its inverse; a divisor of the modulus never turns up."""
        mask = 1 + secrets.randbelow(self.public.modulus - 1)
        return mask, pow(mask, -1, self.public.modulus)

    def _root(self, value: int, power: Power) -> int:
        """The EXPONENT-th root modulo both primes, put together."""
        p, q = self.first, self.second
        by_first, by_second, q_inverse = self._parts
        mod_p = power(value % p, by_first + _multiple(p - 1), p)
        mod_q = power(value % q, by_second + _multiple(q - 1), q)
        return mod_q + q * ((mod_p - mod_q) * q_inverse % p)


def _multiple(order: int) -> int:
    return order * secrets.randbits(_EXPONENT_BLINDING_BITS)
