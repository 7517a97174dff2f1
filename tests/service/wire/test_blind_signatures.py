"""RSA blind signatures against the test vectors of RFC 9474, Appendix A, and against misuse."""

import json
import secrets
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from dpcheckin.service.issuer.private_keys import OpenSslPower, PrivateKey, SigningFailure, best_power, python_power
from dpcheckin.service.wire.blind_signatures import EXPONENT, PublicKey, blind, encode, finalize
from dpcheckin.service.wire.problems import Malformed

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "rfc9474.json").read_text())
SMALL = PrivateKey.generate()


def number(text: str) -> int:
    return int(text, 16)


@pytest.fixture(params=VECTORS["vectors"], ids=lambda vector: vector["name"])
def vector(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return found


def test_all_four_variants_of_the_rfc_are_there() -> None:
    assert VECTORS["exponent"] == EXPONENT
    assert {v["name"] for v in VECTORS["vectors"]} == {
        f"RSABSSA-SHA384-{salt}-{kind}" for salt in ("PSS", "PSSZERO") for kind in ("Randomized", "Deterministic")
    }


def test_every_step_gives_the_bytes_of_the_rfc(vector: dict[str, Any]) -> None:
    key = PrivateKey(number(vector["p"]), number(vector["q"]))
    public = key.public
    message, salt = bytes.fromhex(vector["input_msg"]), bytes.fromhex(vector["salt"])
    assert message == bytes.fromhex(vector["msg_prefix"] + vector["msg"])
    assert len(salt) == number(vector["sLen"])
    if "encoded_msg" in vector:
        encoded = encode(message, salt, public.modulus.bit_length() - 1)
        assert encoded.hex() == vector["encoded_msg"]
    inverse = number(vector["inv"])
    hidden = blind(public, message, salt, pow(inverse, -1, public.modulus))
    assert hidden.message.hex() == vector["blinded_msg"]
    assert hidden.inverse == inverse
    for power in (python_power, best_power()):
        assert key.blind_sign(hidden.message, power).hex() == vector["blind_sig"]
    signed = bytes.fromhex(vector["blind_sig"])
    assert finalize(public, message, signed, inverse, len(salt)).hex() == vector["sig"]


def test_a_signature_is_an_ordinary_rsa_pss_signature() -> None:
    """Checked by the library alone, without anything of ours."""
    hidden = blind(SMALL.public, b"message", b"s" * 48, 12345)
    signature = finalize(SMALL.public, b"message", SMALL.blind_sign(hidden.message), hidden.inverse)
    theirs = rsa.RSAPublicNumbers(EXPONENT, SMALL.first * SMALL.second).public_key()
    scheme = padding.PSS(padding.MGF1(hashes.SHA384()), 48)
    theirs.verify(signature, b"message", scheme, hashes.SHA384())


def test_a_signature_holds_for_its_message_and_key_only() -> None:
    hidden = blind(SMALL.public, b"message", secrets.token_bytes(48), 7)
    signature = finalize(SMALL.public, b"message", SMALL.blind_sign(hidden.message), hidden.inverse)
    SMALL.public.verify(b"message", signature)
    other = PrivateKey.generate().public
    changed = bytes([signature[0] ^ 1]) + signature[1:]
    for key, message, found in (
        (SMALL.public, b"messagf", signature),
        (other, b"message", signature),
        (SMALL.public, b"message", changed),
        (SMALL.public, b"message", signature[:-1]),
        (SMALL.public, b"message", b"\0" + signature),
        (SMALL.public, b"message", b""),
        (SMALL.public, b"message", bytes(256)),
        (SMALL.public, b"message", b"\xff" * 256),
    ):
        with pytest.raises(Malformed, match="does not hold"):
            key.verify(message, found)


def test_the_signer_sees_nothing_that_depends_on_the_message() -> None:
    """For every message there is a factor that gives the same blinded message: perfect hiding."""
    public = SMALL.public
    salt = b"s" * 48
    hidden = blind(public, b"one message", salt, 987654321)
    other = int.from_bytes(encode(b"another", salt, 2047), "big")
    root = int.from_bytes(SMALL.blind_sign(other.to_bytes(256, "big")), "big")
    signed = int.from_bytes(SMALL.blind_sign(hidden.message), "big")
    factor = signed * pow(root, -1, public.modulus) % public.modulus
    assert blind(public, b"another", salt, factor).message == hidden.message


def test_the_client_notices_a_signer_that_signs_something_else() -> None:
    hidden = blind(SMALL.public, b"message", b"s" * 48, 99)
    wrong = SMALL.blind_sign(bytes(255) + b"\x05")
    with pytest.raises(Malformed, match="does not hold"):
        finalize(SMALL.public, b"message", wrong, hidden.inverse)
    with pytest.raises(Malformed, match="256 bytes"):
        finalize(SMALL.public, b"message", b"short", hidden.inverse)


@pytest.mark.parametrize("blinded", [b"", bytes(255), bytes(257), b"\xff" * 256])
def test_the_signer_refuses_what_is_no_blinded_message(blinded: bytes) -> None:
    with pytest.raises(Malformed, match="blinded message"):
        SMALL.blind_sign(blinded)


def test_a_fault_in_one_half_never_leaves() -> None:
    """Bellcore's attack: a signature wrong modulo one prime only would give the factors away."""

    def faulty(base: int, exponent: int, modulus: int) -> int:
        right = pow(base, exponent, modulus)
        return right ^ 1 if modulus == SMALL.first else right

    with pytest.raises(SigningFailure):
        SMALL.blind_sign(bytes(255) + b"\x07", faulty)


def test_no_two_signatures_use_the_same_base_or_exponent() -> None:
    """What a clock on the outside could average over is different every time."""
    seen: list[tuple[int, int]] = []

    def watching(base: int, exponent: int, modulus: int) -> int:
        seen.append((base, exponent))
        return pow(base, exponent, modulus)

    message = bytes(255) + b"\x09"
    answers = {SMALL.blind_sign(message, watching) for _ in range(3)}
    assert len(answers) == 1
    assert len({base for base, _ in seen}) == len({e for _, e in seen}) == len(seen) == 6


def test_powers_agree_whoever_takes_them() -> None:
    power = best_power()
    if not isinstance(power, OpenSslPower):
        pytest.skip("libcrypto cannot be loaded here")
    for base, exponent in ((0, 5), (1, 2**70), (SMALL.first - 1, 3), (2, 0), (5, 2**2000 + 1)):
        expected = pow(base, exponent, SMALL.first)
        assert power(base, exponent, SMALL.first) == python_power(base, exponent, SMALL.first)
        assert power(base, exponent, SMALL.first) == expected
    with pytest.raises(ArithmeticError):  # an even modulus has no Montgomery form
        power(3, 5, 1 << 64)


def test_without_the_library_python_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        return None

    monkeypatch.setattr("ctypes.util.find_library", missing)
    best_power.cache_clear()
    assert best_power() is python_power
    monkeypatch.setattr("ctypes.util.find_library", lambda name: "no-such-library.so")
    best_power.cache_clear()
    assert best_power() is python_power
    best_power.cache_clear()


def test_keys_are_checked() -> None:
    assert PrivateKey.from_bytes(SMALL.to_bytes()) == SMALL
    assert PublicKey.from_bytes(SMALL.public.to_bytes()) == SMALL.public
    for modulus in (0, 15, 1 << 2047, (1 << 1024) + 1):
        with pytest.raises(Malformed, match="modulus"):
            PublicKey(modulus)
    for factor in (0, SMALL.public.modulus):
        with pytest.raises(Malformed, match="blinding factor"):
            blind(SMALL.public, b"m", b"", factor)
    with pytest.raises(Malformed, match="not an honest key"):
        blind(SMALL.public, b"m", b"", SMALL.first)
    with pytest.raises(Malformed, match="too short"):
        encode(b"m", bytes(48), 512)
