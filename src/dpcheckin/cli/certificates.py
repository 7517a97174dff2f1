"""`init --test-certificate` of the parties that serve HTTPS: a test authority, a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from dpcheckin.errors import InvalidParameter

TEST_HOSTS = typer.Option(
    [], "--test-certificate", help="Make a test CA and a certificate for this host."
)


def make_test_certificates(
    folder: Path, hosts: Sequence[str], settings: str, table: str = ""
) -> dict[str, str]:
    """Certificates for trials, named in the party's settings if it has none yet.

    Args:
        folder: of the party.
        hosts: names and addresses it is reached by; none: nothing is made.
        settings: name of its settings file.
        table: of that file which the entries belong to; empty: none.

    Returns:
        The files by what they are.
    """
    from dpcheckin.service import tls

    if not hosts:
        return {}
    if (folder / "authority.key").exists():
        raise InvalidParameter("folder", str(folder), "one without certificates of its own yet")
    authority = tls.make_authority(folder)
    pair = tls.issue(folder, authority, *hosts)
    file = folder / settings
    if not file.exists():
        head = [f"[{table}]"] if table else []
        entries = [f'tls_certificate = "{pair.certificate.name}"', f'tls_key = "{pair.key.name}"']
        file.write_text("\n".join([*head, *entries, ""]), encoding="utf-8")
    return {
        "authority": str(authority.certificate),
        "tls_certificate": str(pair.certificate),
        "tls_key": str(pair.key),
    }
