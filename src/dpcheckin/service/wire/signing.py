"""Ed25519 signatures of the analyzer's identity over documents.

A signed document is `{"document": …, "signature": hex}`. The signature covers the document's type
as well as its bytes, so that one kind of document can never be passed off as another.
"""

from __future__ import annotations

from typing import Any, TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dpcheckin.service.wire.canonical import canonical
from dpcheckin.service.wire.documents import Document, KeyDocument, PlanDocument, RoundDocument
from dpcheckin.service.wire.problems import Malformed

D = TypeVar("D", PlanDocument, KeyDocument, RoundDocument)
IDENTITY_BYTES = 32
SIGNATURE_BYTES = 64


def identity_from_seed(seed: bytes) -> Ed25519PrivateKey:
    """The private identity key of 32 secret bytes."""
    return Ed25519PrivateKey.from_private_bytes(seed)


def public_identity(key: Ed25519PrivateKey) -> bytes:
    """The 32 bytes that clients pin."""
    return key.public_key().public_bytes_raw()


def signed_message(document: Document) -> bytes:
    """The bytes a signature covers."""
    return b"dpcheckin/1 " + document.type.encode() + b"\0" + document.to_bytes()


def signed(document: Document, key: Ed25519PrivateKey) -> dict[str, Any]:
    """The document with its signature, as an object.

    Args:
        document: plan, key or round.
        key: the analyzer's private identity.
    """
    return {
        "document": document.to_object(),
        "signature": key.sign(signed_message(document)).hex(),
    }


def signed_bytes(document: Document, key: Ed25519PrivateKey) -> bytes:
    """The document with its signature, as canonical bytes.

    Args:
        document: plan, key or round.
        key: the analyzer's private identity.
    """
    return canonical(signed(document, key))


def read_signed(kind: type[D], value: Any, identity: bytes | None) -> D:
    """The document inside; checked against the pinned identity unless that is None.

    Only a shuffler that was not told an identity passes None: it has authenticated the analyzer
    by its token, and clients check the signature in any case.

    Args:
        kind: the class of document that is expected.
        value: what `canonical.parse` gave.
        identity: 32 bytes of the analyzer's public identity, or None: the signature is not checked.
    """
    if not isinstance(value, dict) or value.keys() != {"document", "signature"}:
        raise Malformed("a signed document has exactly the fields document and signature")
    document = kind.from_object(value["document"])
    signature = value["signature"]
    try:
        raw = bytes.fromhex(signature) if isinstance(signature, str) else b""
    except ValueError:
        raw = b""
    if len(raw) != SIGNATURE_BYTES or raw.hex() != signature:
        raise Malformed(f"a signature is {SIGNATURE_BYTES} bytes in lower-case hex")
    if identity is not None:
        try:
            Ed25519PublicKey.from_public_bytes(identity).verify(raw, signed_message(document))
        except InvalidSignature:
            raise Malformed(f"the signature of this {document.type} does not hold") from None
    return document
