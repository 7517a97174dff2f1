"""Certificates made here hold between our own server and client, and between no others."""

import socket
import ssl
import threading
from pathlib import Path

import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.service import tls


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> str | None:
    """The TLS version agreed on; raises what the client raises."""
    left, right = socket.socketpair()

    def answer() -> None:
        try:
            server.wrap_socket(left, server_side=True).close()
        except OSError:
            left.close()

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        with client.wrap_socket(right, server_hostname=name) as connection:
            return connection.version()
    finally:
        right.close()
        thread.join(10)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[tls.Pair, tls.Pair]:
    folder = tmp_path_factory.mktemp("tls")
    authority = tls.make_authority(folder)
    return authority, tls.issue(folder, authority, "localhost", "127.0.0.1")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_client_that_knows_the_authority_connects(made: tuple[tls.Pair, tls.Pair], host: str) -> None:
    authority, server = made
    context = tls.client_context(authority.certificate)
    assert shake_hands(tls.server_context(server), context, host) == "TLSv1.3"


def test_a_stranger_and_a_wrong_name_are_refused(made: tuple[tls.Pair, tls.Pair], tmp_path: Path) -> None:
    authority, server = made
    other = tls.make_authority(tmp_path)
    for known, host in ((other, "localhost"), (authority, "example.org")):
        with pytest.raises(ssl.SSLCertVerificationError):
            context = tls.client_context(known.certificate)
            shake_hands(tls.server_context(server), context, host)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(tls.server_context(server), tls.client_context(None), "localhost")


def test_keys_are_for_their_owner_only_and_never_overwritten(made: tuple[tls.Pair, tls.Pair]) -> None:
    authority, server = made
    for pair in made:
        assert pair.key.stat().st_mode & 0o077 == 0
    with pytest.raises(FileExistsError):
        tls.issue(server.key.parent, authority, "localhost")


def test_missing_and_mismatched_files_are_named(made: tuple[tls.Pair, tls.Pair], tmp_path: Path) -> None:
    authority, server = made
    with pytest.raises(InvalidParameter, match="tls_key"):
        tls.server_context(tls.Pair(server.certificate, tmp_path / "none"))
    with pytest.raises(InvalidParameter, match="tls_certificate"):
        tls.server_context(tls.Pair(server.certificate, authority.key))
    with pytest.raises(InvalidParameter, match="tls_authority"):
        tls.client_context(tmp_path / "none")
