"""What an operator can set, from where, and what is said when it is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.settings import is_loopback
from dpcheckin.service.shuffler import settings
from dpcheckin.service.shuffler.server import open_store
from dpcheckin.service.storage import identity
from dpcheckin.service.wire.credentials import token_digest
from service.cli_runner import Cli

DEV = {"dev": True}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ([], "tls_certificate"),
        (["--dev", "--host", "0.0.0.0"], "host"),
        (["--dev", "--host", "example.org"], "host"),
        (["--dev", "--store", "mysql://x"], "store"),
        (["--dev", "--port", "70000"], "port"),
        (["--dev", "--log-level", "loud"], "log_level"),
        (["--dev", "--analyzer-identity", "abc"], "analyzer_identity"),
        (["--tls-certificate", "/none", "--tls-key", "/none"], "tls_certificate"),
        (["--dev", "--store", "sqlite:/proc/none/x.db"], "cannot open"),
        (["--dev", "--store", "postgresql://nobody@127.0.0.1:1/x"], "PostgreSQL"),
    ],
)
def test_serve_refuses_bad_settings_in_one_line(cli: Cli, tmp_path: Path, options: list[str], named: str) -> None:
    ports = ["--admin-port", "0"] + ([] if "--port" in options else ["--port", "0"])
    ended = cli("shuffler", "serve", "--folder", str(tmp_path), *ports, *options)
    assert ended.code == 2
    lines = [line for line in ended.err.splitlines() if not line.startswith("{")]
    assert len(lines) == 1
    assert named.replace("_", "-") in lines[0].replace("_", "-")  # an option by its own spelling


def test_options_go_before_environment_before_file_before_defaults(tmp_path: Path) -> None:
    (tmp_path / "shuffler.toml").write_text(
        "port = 1\nadmin_port = 2\nlog_level = 'error'\n[limits]\nburst = 7\nbody_seconds = 5\n"
    )
    environment = {"DPCHECKIN_SHUFFLER_PORT": "3", "DPCHECKIN_SHUFFLER_ADMIN_PORT": "4"}
    found = settings.load(tmp_path, DEV | {"port": 5, "host": None}, environment)
    assert (found.port, found.admin_port, found.log_level, found.host) == (5, 4, "error", "127.0.0.1")
    assert (found.limits.burst, found.limits.body_seconds) == (7, 5.0)
    assert found.store_address == f"sqlite:{tmp_path / 'shuffler.db'}"
    assert found.identity is None
    known = settings.load(tmp_path, DEV | {"analyzer_identity": "ab" * 32}, {})
    assert known.identity == b"\xab" * 32


def test_dev_can_come_from_the_environment(tmp_path: Path) -> None:
    assert settings.load(tmp_path, {}, {"DPCHECKIN_SHUFFLER_DEV": "true"}).dev
    for text in ("false", "maybe"):
        with pytest.raises(InvalidParameter):
            settings.load(tmp_path, {}, {"DPCHECKIN_SHUFFLER_DEV": text})


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("port = 'x'", "port"),
        ("port = 1.5", "port"),
        ("dev = 1", "dev"),
        ("prot = 1", "prot"),
        ("[limits]\nburst = 0", "burst"),
        ("[limits]\nspeed = 1", "speed"),
        ("port = ", "in TOML"),
    ],
)
def test_a_wrong_line_in_the_file_is_named(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "shuffler.toml").write_text(text)
    with pytest.raises(InvalidParameter, match=named):
        settings.load(tmp_path, DEV, {})


def test_a_wrong_environment_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match=r"^port = 'x'"):
        settings.load(tmp_path, DEV, {"DPCHECKIN_SHUFFLER_PORT": "x"})


@pytest.mark.parametrize(
    ("host", "expected"), [("127.0.0.1", True), ("localhost", True), ("::1", True), ("10.0.0.1", False), ("x", False)]
)
def test_loopback_is_what_only_this_machine_reaches(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_the_analyzers_token_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    stored = identity.analyzer_token(folder)
    file = folder / identity.TOKEN_FILE
    assert file.stat().st_mode & 0o077 == 0
    assert token_digest(file.read_text().strip()) == stored
    assert identity.analyzer_token(folder) == stored


def test_enroll_writes_tokens_to_a_new_file_and_the_store_keeps_digests(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "tokens"
    arguments = ["--folder", str(tmp_path), "--count", "3", "--out", str(out)]
    assert cli("shuffler", "enroll", *arguments).code == 0
    assert out.stat().st_mode & 0o077 == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    store = open_store(f"sqlite:{tmp_path / 'shuffler.db'}")
    assert store.clients() == {token_digest(line["token"]): bytes.fromhex(line["client"]) for line in lines}
    store.close()
    for line in lines:
        assert line["token"].encode() not in (tmp_path / "shuffler.db").read_bytes()


def test_init_says_what_it_made(cli: Cli, tmp_path: Path) -> None:
    ended = cli("shuffler", "init", "--folder", str(tmp_path / "data"))
    assert ended.code == 0
    assert f"analyzer token file: {tmp_path / 'data' / 'analyzer.token'}" in ended.out
