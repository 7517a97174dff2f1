"""Powers with a secret exponent: by OpenSSL in constant time where it can be loaded.

Python's own integers take a time that depends on their values. OpenSSL has a power that does not
(BN_mod_exp_mont_consttime), and the library is nearly always there, since Python's `ssl` uses it;
the package `cryptography` has a copy of its own, but offers no bare RSA operation. Where the
library cannot be found, Python's integers do the work: callers then have to hide base and exponent
(`private_keys` always does), and the server says at its start which of the two it uses.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable
from functools import lru_cache

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
    """`pow(base, exponent, modulus)` for an odd modulus, in constant time.

    Args:
        library: libcrypto, as `load` finds it.
    """

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
    """The same by Python's integers, in a time that depends on them."""
    return pow(base, exponent, modulus)


@lru_cache(maxsize=1)
def best_power() -> Power:
    """OpenSSL's where it is found and right, otherwise Python's."""
    name = ctypes.util.find_library("crypto")
    if name is None:
        return python_power
    try:
        found = OpenSslPower(ctypes.CDLL(name))
        right = found(3, 2**64 + 13, 2**127 - 1) == pow(3, 2**64 + 13, 2**127 - 1)
    except (OSError, AttributeError, ArithmeticError):
        return python_power
    return found if right else python_power
