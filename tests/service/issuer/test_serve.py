"""The issuer as a process and on the command line: killed at any moment, no token twice."""

import json
import random
import ssl
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from dpcheckin.deployment.processes import COMMAND, start, start_issuer
from dpcheckin.errors import InvalidParameter
from dpcheckin.service.issuer.settings import load
from dpcheckin.service.issuer.store import IssuerStore
from dpcheckin.service.wire.blind_signatures import PublicKey, blind, finalize
from dpcheckin.service.wire.canonical import canonical
from dpcheckin.service.wire.credentials import token_digest
from dpcheckin.service.wire.signing import identity_from_seed, signed_bytes
from dpcheckin.service.wire.tokens import token_message
from service.cli_runner import Cli
from service.issuer_world import issued_plan

ANALYZER = identity_from_seed(b"a" * 32)


def test_kills_lose_nothing_and_give_nobody_a_second_token(tmp_path: Path, cli: Cli) -> None:
    """Clients ask while the issuer is killed; every answer ever given to one question is one."""
    place = tmp_path / "issuer"
    made = json.loads(cli("issuer", "init", "-f", str(place), "--json").out)
    tokens = [json.loads(line)["token"] for line in cli(
        "issuer", "enroll", "-f", str(place), "--count", "3"
    ).out.splitlines()]  # fmt: skip
    plan = issued_plan(issuer=made["identity"])
    party = start_issuer(place, rounds_ahead=2)
    address = party.listening["address"]
    port = urlsplit(address).port or 0
    owner = {"authorization": f"Bearer {(place / 'analyzer.token').read_text().strip()}"}
    base = f"{address}/v1/plans/{plan.id.hex()}"
    httpx.put(f"{address}/v1/plan", headers=owner, content=signed_bytes(plan, ANALYZER))
    line = httpx.Client(trust_env=False, verify=False, timeout=30.0)
    keys = _patiently(line, "GET", f"{base}/keys", tokens[0]).json()["document"]["keys"]
    public = [PublicKey.from_bytes(bytes.fromhex(key)) for key in keys]
    chance, stop = random.Random(5), threading.Event()
    answers: dict[tuple[str, int], set[str]] = {}

    def ask(token: str, number: int, kind: int) -> None:
        """Client `token` asks for round `number`, once honestly and once for a second token."""
        own = token_digest(f"{token}{number}{kind}")
        message = token_message(plan.id, number, own)
        hidden = blind(public[number], message, own + own[:16], 3 + kind)
        body = canonical({"rounds": [number], "blinded": [hidden.message.hex()]})
        while not stop.is_set():
            answer = _patiently(line, "POST", f"{base}/tokens", token, body)
            if answer.status_code == 200:
                signed = answer.json()["signatures"][0]
                finalize(public[number], message, bytes.fromhex(signed), hidden.inverse)
                answers.setdefault((token, number), set()).add(signed)
            else:
                assert answer.status_code == 409, answer.content
            time.sleep(0.1)

    workers = [
        threading.Thread(target=ask, args=(token, number, kind))
        for token in tokens
        for number in range(2)
        for kind in range(2)
    ]
    for worker in workers:
        worker.start()
    try:
        for _ in range(3):
            time.sleep(chance.uniform(0.1, 0.6))
            party.kill()
            party = start_issuer(place, port, rounds_ahead=2)
        time.sleep(0.5)
    finally:
        stop.set()
        for worker in workers:
            worker.join(60)
        line.close()
        party.stop()
    assert len(answers) == 6, "everybody got something"
    assert all(len(found) == 1 for found in answers.values()), "and nobody two tokens of a round"
    store = IssuerStore(place / "issuer.db")
    stored = store.keys(plan.id, range(2))
    assert [stored[number].public for number in range(2)] == public, "the same keys all along"
    store.close()


def _patiently(line: httpx.Client, method: str, url: str, token: str, body: bytes | None = None) -> httpx.Response:
    """Again while the issuer is away or does not know the client yet."""
    limit = time.monotonic() + 120
    while True:
        try:
            headers = {"authorization": f"Bearer {token}"}
            answer = line.request(method, url, content=body, headers=headers)
            if answer.status_code in (200, 409):
                return answer
        except httpx.TransportError:
            pass
        assert time.monotonic() < limit, "the issuer stays away"
        time.sleep(0.1)


def test_an_issuer_speaks_tls(tmp_path: Path, cli: Cli) -> None:
    place = tmp_path / "issuer"
    cli("issuer", "init", "-f", str(place), "--test-certificate", "127.0.0.1")
    command = [*COMMAND, "issuer", "serve", "-f", place, "--port", "0", "--admin-port", "0"]
    party = start("issuer", command, tmp_path / "log")
    try:
        address = party.listening["address"]
        assert address.startswith("https://")

        trusted = ssl.create_default_context(cafile=str(place / "authority.pem"))
        answer = httpx.get(f"{address}/v1/plans/00/keys", verify=trusted, trust_env=False)
        assert answer.status_code == 401
        admin = httpx.get(f"{party.listening['admin']}/healthz", trust_env=False)
        assert admin.text == "ok\n"
    finally:
        assert party.stop(120.0) == 0


def test_folders_clients_and_keys_on_the_command_line(tmp_path: Path, cli: Cli) -> None:
    place = str(tmp_path / "issuer")
    for command in ("identity", "enroll", "rekey", "serve"):
        ended = cli("issuer", command, "-f", place, *(["--dev"] if command == "serve" else []))
        assert ended.code == 2
        assert "issuer init" in ended.err and len(ended.err.splitlines()) == 1
    assert not (tmp_path / "issuer").exists(), "nothing is made by mistake"
    said = cli("issuer", "init", "-f", place).out
    identity = cli("issuer", "identity", "-f", place).out.strip()
    assert f"identity: {identity}" in said
    assert (tmp_path / "issuer").stat().st_mode & 0o077 == 0
    out = tmp_path / "clients.jsonl"
    made = cli("issuer", "enroll", "-f", place, "--count", "2", "--out", str(out))
    assert (made.code, made.out) == (0, f"{out}: 2 clients\n")
    clients = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(clients) == 2
    assert cli("issuer", "enroll", "-f", place, "--out", str(out)).code == 2
    assert cli("issuer", "revoke", clients[0]["client"], "-f", place).code == 0
    assert "an enrolled client" in cli("issuer", "revoke", clients[0]["client"], "-f", place).err
    assert "an id in hex" in cli("issuer", "revoke", "zz", "-f", place).err
    store = IssuerStore(tmp_path / "issuer" / "issuer.db")
    assert list(store.clients()) == [token_digest(clients[1]["token"])]
    store.close()
    assert cli("issuer", "rekey", "-f", place).out == "0 keys destroyed\n"


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("[issuer]\nport = 70000\n", {"dev": True}, "port"),
        ("[issuer]\nrounds_ahead = 0\n", {"dev": True}, "rounds_ahead"),
        ("[issuer]\nlog_level = 'loud'\n", {"dev": True}, "log_level"),
        ("[issuer]\nrequests_per_second = 0.0\n", {"dev": True}, "requests_per_second"),
        ("[issuer]\nanalyzer_identity = 'zz'\n", {"dev": True}, "analyzer_identity"),
        ("[issuer]\nhost = '192.0.2.1'\n", {"dev": True}, "loopback"),
        ("[issuer]\nwrong = 1\n", {"dev": True}, "wrong"),
        ("", {}, "tls_certificate"),
    ],
)
def test_bad_settings_are_named(tmp_path: Path, text: str, options: dict[str, bool], said: str) -> None:
    (tmp_path / "issuer.toml").write_text(text)
    with pytest.raises(InvalidParameter, match=said):
        load(tmp_path, options)


def test_options_go_before_the_file(tmp_path: Path) -> None:
    identity = "00" * 32
    (tmp_path / "issuer.toml").write_text(f"[issuer]\nport = 1\nadmin_port = 2\nanalyzer_identity = '{identity}'\n")
    found = load(tmp_path, {"dev": True, "port": 3, "host": None})
    assert (found.port, found.admin_port, found.host) == (3, 2, "127.0.0.1")
    assert found.identity == bytes(32)
    assert load(tmp_path / "none", {"dev": True}).identity is None
