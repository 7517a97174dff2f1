"""What a party is known by, in its folder, made when it is first needed.

Its long-lived identity is an Ed25519 key. In the folder of a shuffler or issuer the access token of the analyzer that
asks it lies beside it.
"""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.storage.files import check_secret, make_folder, replace_file, write_secret
from dpcheckin.service.wire.credentials import new_token, token_digest
from dpcheckin.service.wire.signing import identity_from_seed

IDENTITY = "identity.key"
TOKEN_FILE = "analyzer.token"
_SEED = 32


def load_identity(folder: Path) -> Ed25519PrivateKey:
    """The identity in a folder, made when there is none yet."""
    file = folder / IDENTITY
    if not file.exists():
        make_folder(folder)
        replace_file(file, os.urandom(_SEED).hex().encode() + b"\n")
    try:
        identity = identity_from_seed(bytes.fromhex(file.read_text().strip()))
    except ValueError:
        raise InvalidParameter("identity", str(file), "32 bytes in hex") from None
    check_secret("identity", file)
    return identity


def analyzer_token(folder: Path) -> bytes:
    """Digest of the analyzer's token; the token is made on first use."""
    file = folder / TOKEN_FILE
    if not file.is_file():
        make_folder(folder)
        write_secret(file, new_token().encode() + b"\n")
    check_secret("analyzer_token", file)
    return token_digest(file.read_bytes().strip())
