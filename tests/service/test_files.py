"""Folders, keys and passwords: whose they are, and that nobody else gets to see them."""

from __future__ import annotations

import logging
import stat
from pathlib import Path
from typing import Any

import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.service import tls
from dpcheckin.service.analyzer.state import KeyRing
from dpcheckin.service.client import running
from dpcheckin.service.client.config import ClientConfig, Limits
from dpcheckin.service.client.tokens import TokenWallet
from dpcheckin.service.settings import SettingsFile, check_address
from dpcheckin.service.shuffler.server import open_store
from dpcheckin.service.shuffler.settings import Settings
from dpcheckin.service.storage import files
from dpcheckin.service.storage.identity import analyzer_token, load_identity
from dpcheckin.service.storage.journal import Journal
from service.cli_runner import Cli


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_folders_are_made_for_their_owner_only(cli: Cli, tmp_path: Path) -> None:
    made = [tmp_path / name for name in ("tokens", "identity", "keys", "journal", "tls", "store")]
    analyzer_token(made[0])
    load_identity(made[1])
    KeyRing(made[2], 1)
    Journal(made[3] / "ledger").close()
    tls.make_authority(made[4])
    open_store(f"sqlite:{made[5] / 'shuffler.db'}").close()
    assert cli("shuffler", "init", "--folder", str(tmp_path / "init")).code == 0
    for folder in (*made, tmp_path / "init"):
        assert mode(folder) == 0o700, folder
        for file in folder.iterdir():
            assert mode(file) & 0o077 == 0 or file.suffix == ".pem", file


@pytest.mark.parametrize("party", ["analyzer", "shuffler", "issuer"])
def test_a_misspelt_folder_gets_no_identity(cli: Cli, tmp_path: Path, party: str) -> None:
    """An operator would hand out the key of a party that nobody runs."""
    place = tmp_path / "misspelt"
    ended = cli(party, "identity", "--folder", str(place))
    assert (ended.code, ended.out) == (2, "")
    assert "--folder = '" in ended.err and f"{place.name}' is not allowed" in ended.err
    assert not place.exists()
    place.mkdir(mode=0o700)
    made = cli(party, "identity", "--folder", str(place))
    assert made.code == 0 and len(bytes.fromhex(made.out)) == 32
    assert cli(party, "identity", "--folder", str(place)).out == made.out


@pytest.mark.parametrize("kind", ["file", "link", "link to nothing"])
def test_a_secret_is_not_written_into_what_somebody_else_has_put_there(tmp_path: Path, kind: str) -> None:
    """In a folder like /tmp others can make a file of the name that is written to first."""
    theirs = tmp_path / "theirs"
    planted = {"identity.key.new": load_identity, "tokens.key.new": TokenWallet}
    for name, make in planted.items():
        folder = tmp_path / name
        folder.mkdir()
        if kind == "file":
            (folder / name).write_text("x")
            (folder / name).chmod(0o666)
            held = (folder / name).open()
        else:
            if kind == "link":
                theirs.write_text("x")
            (folder / name).symlink_to(theirs)
        make(folder)
        assert mode(folder / name.removesuffix(".new")) == 0o600
        if kind == "file":
            assert held.read() == "x"  # what they have open
            held.close()
        else:
            assert theirs.exists() == (kind == "link") and (not theirs.exists() or theirs.read_text() == "x")


def test_an_agents_folder_is_for_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies in it tells when this client took part."""

    def end(*_: object, **__: object) -> Any:
        raise InvalidParameter("x", 1, "an end")

    monkeypatch.setattr(running, "open_client", end)
    state = tmp_path / "deep" / "state"
    limits = Limits(0.5, 1.0, 1.0, 1.0, 1.0, 0.1)
    config = ClientConfig("http://127.0.0.1:1", "t", bytes(32), limits, state)
    with pytest.raises(InvalidParameter, match="an end"):
        running.run_agent(config, None)  # type: ignore[arg-type]
    assert mode(state) == 0o700


def test_a_folder_that_everybody_may_write_to_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(InvalidParameter, match=r"^folder = .*chmod 700"):
        analyzer_token(folder)
    folder.chmod(0o1777)  # like /tmp: what is there belongs to whoever put it there
    analyzer_token(folder)
    with pytest.raises(InvalidParameter, match=r"^folder = .*a folder"):
        files.make_folder(folder / "analyzer.token")


@pytest.mark.parametrize("bits", [0o644, 0o640, 0o604, 0o620])
def test_a_key_that_others_may_read_is_not_used(tmp_path: Path, bits: int) -> None:
    load_identity(tmp_path)
    (tmp_path / "identity.key").chmod(bits)
    with pytest.raises(InvalidParameter, match=r"^identity = .*chmod 600"):
        load_identity(tmp_path)
    ring = KeyRing(tmp_path / "keys", 1)
    ring.keys[0].file.chmod(bits)
    with pytest.raises(InvalidParameter, match=r"^key = .*chmod 600"):
        KeyRing(tmp_path / "keys", 1)
    analyzer_token(tmp_path)
    (tmp_path / "analyzer.token").chmod(bits)
    with pytest.raises(InvalidParameter, match=r"^analyzer_token = .*chmod 600"):
        analyzer_token(tmp_path)


def test_the_key_of_a_certificate_may_be_shared_with_a_group_of_roots(tmp_path: Path) -> None:
    pair = tls.issue(tmp_path, tls.make_authority(tmp_path), "127.0.0.1")
    tls.server_context(pair)
    pair.key.chmod(0o644)
    with pytest.raises(InvalidParameter, match=r"^tls_key = .*chmod 600"):
        tls.server_context(pair)
    pair.key.chmod(0o640)
    if pair.key.stat().st_uid == 0:
        tls.server_context(pair)
    else:
        with pytest.raises(InvalidParameter, match=r"^tls_key = "):
            tls.server_context(pair)


def test_enroll_makes_no_folder(cli: Cli, tmp_path: Path) -> None:
    missing = tmp_path / "misspelt"
    for arguments in (["enroll"], ["rotate", "ab"], ["revoke", "ab"]):
        ended = cli("shuffler", *arguments, "--folder", str(missing))
        assert ended.code == 2
        assert f"folder = '{missing}'" in ended.err
        assert len(ended.err.splitlines()) == 1
    address = f"sqlite:{missing / 'x.db'}"
    assert cli("shuffler", "enroll", "--store", address, "--folder", str(tmp_path)).code == 2
    assert not missing.exists()


# --- passwords ------------------------------------------------------------------------------

SECRET = "hunter2%zz"


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://shuffler:{SECRET}@127.0.0.1:1/x",
        "postgresql://shuffler:hunter2@127.0.0.1:1/x?connect_timeout=1",
        "postgresql://shuffler:hunter2@ho st/x",
        "postgresql://shuffler:hunter2@127.0.0.1:port/x",
        "postgresql://127.0.0.1:1/x?user=shuffler&password=hunter2",
        "postgresql://127.0.0.1:1/x?passwrod=1&password=hunter2",
        "mysql://shuffler:hunter2@host/x",
        "postgres:shuffler:hunter2@host",
        "mysql://shuffler:hun@ter2@host/x",
    ],
)
def test_passwords_are_never_echoed(cli: Cli, tmp_path: Path, address: str) -> None:
    for command in (["serve", "--dev", "--port", "0", "--admin-port", "0"], ["enroll"]):
        ended = cli("shuffler", *command, "--folder", str(tmp_path), "--store", address)
        assert ended.code == 2
        assert len([line for line in ended.err.splitlines() if line[0] != "{"]) == 1
        for said in (ended.err, ended.out):
            assert "hunter2" not in said
            assert "ter2" not in said
    assert "hunter2" not in repr(Settings(tmp_path, store=address, dev=True))


def test_a_token_or_an_address_with_a_password_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter) as wrong:
        check_address("http://user:hunter2@example.org")
    assert "hunter2" not in str(wrong.value)
    (tmp_path / "x.toml").write_text("[shuffler]\ntoken = 1234567\n")
    with pytest.raises(InvalidParameter) as wrong:
        SettingsFile(tmp_path / "x.toml").secret("shuffler")
    assert "1234567" not in str(wrong.value)


def test_a_lost_database_is_logged_without_its_password(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("psycopg")
    from dpcheckin.service.shuffler.stores.postgres import PostgresStore
    from dpcheckin.service.storage.database import StorageFailure

    with caplog.at_level(logging.DEBUG), pytest.raises(StorageFailure) as failure:
        PostgresStore("postgresql://shuffler:hunter2@127.0.0.1:1/x")
    assert "hunter2" not in str(failure.value) + caplog.text
