"""Ed25519 signatures over documents: the analyzer's, and the shuffler's on its statements.

A signed document is `{"document": …, "signature": hex}`. The signature covers the document's type as well as its bytes,
so that one kind of document can never be passed off as another. Clients check it on the bytes as they came
(`read_signed_bytes`): what nobody signed is never parsed.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dpcheckin.service.wire.canonical import LARGEST_DOCUMENT, canonical, parse
from dpcheckin.service.wire.documents import KeyDocument, PlanDocument
from dpcheckin.service.wire.problems import Malformed
from dpcheckin.service.wire.schema import Document

D = TypeVar("D", bound=Document)
SIGNATURE_BYTES = 64
_START, _END = b'{"document":', re.compile(rb',"signature":"([0-9a-f]{128})"\}')
_END_BYTES = len(b',"signature":""}') + 2 * SIGNATURE_BYTES
# a signed key as canonical JSON has it: one flat object of numbers and hex, so no brace inside
_KEY = rb'\{"document":\{[^{}]{1,8192}\},"signature":"[0-9a-f]{128}"\}'
_PAGE = re.compile(rb'\{"keys":\[((?:' + _KEY + b"(?:," + _KEY + rb')*+)?)\],"plan":')


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
    """A `document` with its signature by the private identity `key`, as an object."""
    return {"document": document.to_object(), "signature": key.sign(signed_message(document)).hex()}


def signed_bytes(document: Document, key: Ed25519PrivateKey) -> bytes:
    """A `document` with its signature by the private identity `key`, as canonical bytes."""
    return canonical(signed(document, key))


def read_signed(kind: type[D], value: Any, identity: bytes | None) -> D:
    """The document of this `kind` in a parsed `value`; checked against the pinned `identity` (32 bytes) unless that is
    None.

    Only a shuffler that was not told an identity passes None: it has authenticated the analyzer by its token, and
    clients check the signature in any case.
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


def read_signed_bytes(kind: type[D], data: bytes, identity: bytes) -> D:
    """The document of this `kind` in the `data` from the network, canonical bytes; parsed only if `identity` has signed
    it."""
    if len(data) > LARGEST_DOCUMENT:
        raise Malformed(f"a document of {len(data):,} bytes, more than {LARGEST_DOCUMENT:,}")
    end = _END.fullmatch(data, max(0, len(data) - _END_BYTES))
    if not data.startswith(_START) or end is None:
        raise Malformed("a signed document has exactly the fields document and signature")
    said = data[len(_START) : end.start()]
    message = b"dpcheckin/1 " + kind.type.encode() + b"\0" + said
    try:
        signature = bytes.fromhex(end[1].decode())
        Ed25519PublicKey.from_public_bytes(identity).verify(signature, message)
    except InvalidSignature:
        raise Malformed(f"the signature of this {kind.type} does not hold") from None
    document = kind.from_object(parse(said))
    if document.to_bytes() != said:
        raise Malformed(f"this {kind.type} is not in canonical form")
    return document


def read_plan_page(data: bytes, identity: bytes) -> tuple[PlanDocument, list[KeyDocument]]:
    """Plan and keys in the `data` of the page that a shuffler serves; nothing on it is parsed that `identity` has not
    signed."""
    start = _PAGE.match(data) if len(data) <= LARGEST_DOCUMENT else None
    if start is None or not data.endswith(b"}"):
        raise Malformed("the plan page is not one")
    plan = read_signed_bytes(PlanDocument, data[start.end() : -1], identity)
    keys = re.findall(_KEY, start[1])
    return plan, [read_signed_bytes(KeyDocument, key, identity) for key in keys]
