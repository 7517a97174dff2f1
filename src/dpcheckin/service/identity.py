"""A party's long-lived identity: an Ed25519 key in its folder, made when it is first needed."""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.files import check_secret, make_folder
from dpcheckin.service.journal import replace_file
from dpcheckin.service.wire.signing import identity_from_seed

IDENTITY = "identity.key"
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
