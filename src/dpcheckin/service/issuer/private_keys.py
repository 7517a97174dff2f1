"""The issuer's private key of one round, and the one thing it does: BlindSign of RFC 9474.

Against timing the operation is hidden three times: the base is multiplied by a fresh random number whose power is taken
out again, the exponents get a fresh random multiple of the group's order, and the power itself is OpenSSL's in constant
time where that can be loaded: Python's own integers take a time that depends on their values, OpenSSL's
BN_mod_exp_mont_consttime does not. The library is nearly always there, since Python's `ssl` uses it; the package
`cryptography` has a copy of its own, but offers no bare RSA operation. Without it Python's integers do the work; the
server says at its start which of the two it uses. What is left is assumed harmless: multiplications and remainders of
blinded numbers by Python's integers, and one comparison of public values. A signature is checked before it leaves, so
that a fault in one half of the computation cannot give the factors away.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from cryptography.hazmat.primitives.asymmetric import rsa

from dpcheckin.errors import ServiceError
from dpcheckin.service.wire.blind_signatures import EXPONENT, PublicKey
from dpcheckin.service.wire.documents import MODULUS_BYTES
from dpcheckin.service.wire.problems import Malformed

Power = Callable[[int, int, int], int]

_POINTER = ctypes.c_void_p
_SIGNATURES: dict[str, tuple[object, list[object]]] = {
    "BN_CTX_secure_new": (_POINTER, []),
    "BN_CTX_free": (None, [_POINTER]),
    "BN_new": (_POINTER, []),
    "BN_clear_free": (None, [_POINTER]),
    "BN_bin2bn": (_POINTER, [ctypes.c_char_p, ctypes.c_int, _POINTER]),
    "BN_bn2binpad": (ctypes.c_int, [_POINTER, ctypes.c_char_p, ctypes.c_int]),
    "BN_mod_exp_mont_consttime": (ctypes.c_int, [_POINTER] * 6),
}


class OpenSslPower:
    """`pow(base, exponent, modulus)` for an odd modulus, in constant time. `library`: libcrypto, as `load` finds it."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments

    def __call__(self, base: int, exponent: int, modulus: int) -> int:
        library, size = self._library, (modulus.bit_length() + 7) // 8
        numbers = [_number(library, value, size) for value in (base, exponent, modulus)]
        power, context = library.BN_new(), library.BN_CTX_secure_new()
        try:
            out = ctypes.create_string_buffer(size)
            if (
                None in (*numbers, power, context)
                or library.BN_mod_exp_mont_consttime(power, *numbers, context, None) != 1
                or library.BN_bn2binpad(power, out, size) != size
            ):
                raise ArithmeticError("OpenSSL could not compute a power")
            return int.from_bytes(out.raw, "big")
        finally:
            for number in (*numbers, power):
                library.BN_clear_free(number)
            library.BN_CTX_free(context)


def _number(library: ctypes.CDLL, value: int, size: int) -> int | None:
    raw = value.to_bytes(max(size, (value.bit_length() + 7) // 8), "big")
    found: int | None = library.BN_bin2bn(raw, len(raw), None)
    return found


def python_power(base: int, exponent: int, modulus: int) -> int:
    """The same by Python's integers, in a time that depends on `base`, `exponent` and `modulus`."""
    return pow(base, exponent, modulus)


@lru_cache(maxsize=1)
def best_power() -> Power:
    """OpenSSL's where it is found and right, otherwise Python's."""
    name = ctypes.util.find_library("crypto")
    if name is None:
        return python_power
    try:
        power = OpenSslPower(ctypes.CDLL(name))
        right = power(3, 2**64 + 13, 2**127 - 1) == pow(3, 2**64 + 13, 2**127 - 1)
    except (OSError, AttributeError, ArithmeticError):
        return python_power
    return power if right else python_power


_EXPONENT_BLINDING_BITS = 64


class SigningFailure(ServiceError):
    """A signature came out wrong: nothing is given out."""


@dataclass(frozen=True)
class PrivateKey:
    """Two primes whose product is the public modulus. `first`: a prime; `second`: another."""

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
        return (pow(EXPONENT, -1, self.first - 1), pow(EXPONENT, -1, self.second - 1), pow(self.second, -1, self.first))

    def blind_sign(self, blinded: bytes, power: Power | None = None) -> bytes:
        """The signature of a message `blinded` by `blind_signatures.blind`, with the best `power` there is or a given
        one.
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
