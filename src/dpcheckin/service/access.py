"""The analyzer's access token, in the folder of the party that it asks: shuffler or issuer."""

from __future__ import annotations

from pathlib import Path

from dpcheckin.service.files import check_secret, make_folder, write_secret
from dpcheckin.service.wire.credentials import new_token, token_digest

TOKEN_FILE = "analyzer.token"


def analyzer_token(folder: Path) -> bytes:
    """Digest of the analyzer's token; the token is made on first use."""
    file = folder / TOKEN_FILE
    if not file.is_file():
        make_folder(folder)
        write_secret(file, new_token().encode() + b"\n")
    check_secret("analyzer_token", file)
    return token_digest(file.read_bytes().strip())
