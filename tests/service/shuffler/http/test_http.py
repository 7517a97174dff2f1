"""The shuffler over HTTP, as a real process: who gets which bytes, and who gets none."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpcheckin.service import tls
from dpcheckin.service.wire.canonical import digest
from dpcheckin.service.wire.problems import Problem, problem_in
from service.cli_runner import Cli
from service.shuffler_process import (
    COMMAND,
    Caller,
    MovedClock,
    ShufflerProcess,
    free_port,
    open_round,
    publish,
    state,
    wait_until,
)
from service.shuffler_world import CHARGE, Analyzer

CLIENTS = 6


class Scene:
    """A running shuffler with an open round and enrolled clients."""

    def __init__(self, folder: Path, **limits: str) -> None:
        self.shuffler = ShufflerProcess(folder, **limits).start()
        self.tokens = self.shuffler.enroll(CLIENTS)
        self.shuffler.wait_for_clients(CLIENTS)
        self.call = self.shuffler.analyzer()
        self.analyzer = Analyzer.of(population=2, minimum_batch=1, rounds=1000)
        publish(self.call, self.analyzer)
        self.number = 0
        open_round(self.call, self.analyzer, self.number, 7200.0)

    def raw(self, request: bytes) -> bytes:
        """What the shuffler sends on a connection of its own, until it hangs up."""
        with socket.create_connection(("127.0.0.1", self.shuffler.port), timeout=120) as line:
            line.sendall(request)
            found = b""
            while part := line.recv(65536):
                found += part
            return found


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    made = Scene(tmp_path_factory.mktemp("shuffler"))
    yield made
    assert made.shuffler.metrics()["internal_errors_total"] == 0
    assert made.shuffler.stop() == 0


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[Scene]:
    """One that drops slow requests soon; nothing else is asked of it, as any request may be slow
    on a busy machine."""
    made = Scene(tmp_path, HEADER_SECONDS="1", BODY_SECONDS="2")
    yield made
    assert made.shuffler.stop() == 0


def request(method: str, path: str, token: str | None, body: bytes | None = None) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: shuffler", "connection: close"]
    if token is not None:
        lines.append(f"authorization: Bearer {token}")
    if body is not None:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def without_date(answer: bytes) -> bytes:
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"date:")]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


# --- privacy of the wire --------------------------------------------------------------------


def test_participants_and_others_get_the_same_bytes_before_and_after_reporting(scene: Scene) -> None:
    """Plan, round, model, and the answers to a report and a cover, headers included."""
    number = scene.number
    report = f"/v1/rounds/{number}/report"
    seen: list[list[bytes]] = []
    envelopes = [scene.analyzer.report(number, 1), scene.analyzer.cover(number), scene.analyzer.report(number, 2)]
    for token, body in zip(scene.tokens, envelopes, strict=False):
        answers = []
        for _ in range(2):
            for path in ("/v1/plan", "/v1/round", f"/v1/model/{digest(b'm').hex()}"):
                answers.append(scene.raw(request("GET", path, token)))
            answers.append(scene.raw(request("PUT", report, token, body)))
        seen.append([without_date(answer) for answer in answers])
    statuses = [answer[:12] for answer in seen[0]]
    assert statuses == [b"HTTP/1.1 200"] * 3 + [b"HTTP/1.1 202"] + [b"HTTP/1.1 200"] * 3 + [b"HTTP/1.1 409"]
    assert seen[0] == seen[1] == seen[2]
    stays_away = [
        without_date(scene.raw(request("GET", path, scene.tokens[4])))
        for path in ("/v1/plan", "/v1/round", f"/v1/model/{digest(b'm').hex()}")
    ]
    assert stays_away == seen[0][:3]


def test_refusals_do_not_depend_on_who_asks(scene: Scene) -> None:
    for path, body in (
        (f"/v1/rounds/{scene.number}/report", b"too short"),
        (f"/v1/rounds/{scene.number + 5}/report", b"too short"),
        ("/v1/rounds/99999999999999999999/report", b"x"),
    ):
        answers = {without_date(scene.raw(request("PUT", path, token, body))) for token in scene.tokens}
        assert len(answers) == 1


def test_the_log_holds_no_address_no_token_and_no_client(scene: Scene) -> None:
    scene.raw(request("GET", "/v1/plan", "A" * 43))
    scene.raw(b"nonsense\r\n\r\n")
    text = scene.shuffler.log.read_text()
    for secret in [*scene.tokens, "127.0.0.1:", "A" * 43]:
        lines = [x for x in text.splitlines() if secret in x and '"listening"' not in x]
        assert not lines
    assert all(set(event) >= {"time", "level", "event"} for event in scene.shuffler.events())


def test_metrics_tell_nothing_of_an_open_round(scene: Scene) -> None:
    before = scene.shuffler.metrics()
    body = scene.analyzer.report(scene.number, 9)
    token = scene.tokens[5]
    path = f"/v1/rounds/{scene.number}/report"
    assert b" 202 " in scene.raw(request("PUT", path, token, body))
    assert scene.shuffler.metrics() == before


# --- who may ask ----------------------------------------------------------------------------

ANALYZERS = [
    ("PUT", "/v1/plan"),
    ("PUT", "/v1/keys/0011223344556677"),
    ("PUT", f"/v1/model/{'00' * 32}"),
    ("PUT", "/v1/rounds/7"),
    ("GET", "/v1/rounds/0"),
    ("POST", "/v1/rounds/0/claim"),
    ("GET", "/v1/rounds/0/batch"),
    ("DELETE", "/v1/rounds/0/batch"),
]
CLIENTS_ONLY = [
    ("GET", "/v1/plan"),
    ("GET", "/v1/round"),
    ("GET", f"/v1/model/{'00' * 32}"),
    ("PUT", "/v1/rounds/0/report"),
]


def problem_of(answer: bytes) -> Problem | None:
    assert b"\r\ncontent-type: application/problem+json\r\n" in answer
    return problem_in(answer.partition(b"\r\n\r\n")[2])


@pytest.mark.parametrize(("method", "path"), ANALYZERS)
def test_only_the_analyzer_may(scene: Scene, method: str, path: str) -> None:
    for token in (None, scene.tokens[0], "A" * 43, "short"):
        answer = scene.raw(request(method, path, token, b"{}"))
        assert problem_of(answer) is Problem.UNAUTHORIZED


@pytest.mark.parametrize(("method", "path"), CLIENTS_ONLY)
def test_only_a_client_may(scene: Scene, method: str, path: str) -> None:
    analyzers = (scene.shuffler.folder / "analyzer.token").read_text().strip()
    for token in (None, analyzers, "A" * 43):
        answer = scene.raw(request(method, path, token, b""))
        assert problem_of(answer) is Problem.UNAUTHORIZED


def test_a_revoked_client_is_out_and_a_rotated_one_stays_the_same_client(scene: Scene, cli: Cli) -> None:
    folder = ["--folder", str(scene.shuffler.folder)]
    said = json.loads(cli("shuffler", "enroll", *folder).out)
    caller = scene.shuffler.caller(said["token"])
    wait_until(lambda: caller.get("/v1/plan").status == 200)
    path = f"/v1/rounds/{scene.number}/report"
    body = scene.analyzer.report(scene.number, 11)
    assert caller.put(path, body).status == 202
    rotated = json.loads(cli("shuffler", "rotate", said["client"], *folder).out)
    renewed = scene.shuffler.caller(rotated["token"])
    wait_until(lambda: renewed.get("/v1/plan").status == 200)
    assert caller.get("/v1/plan").status == 401
    assert renewed.put(path, body).status == 409
    assert cli("shuffler", "revoke", said["client"], *folder).code == 0
    wait_until(lambda: renewed.get("/v1/plan").status == 401)
    again = cli("shuffler", "revoke", said["client"], *folder)
    assert again.code == 2
    assert "an enrolled client" in again.err
    assert cli("shuffler", "revoke", "not hex", *folder).code == 2


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/v1"),
        ("GET", "/v1/plan/"),
        ("DELETE", "/v1/plan"),
        ("PATCH", "/v1/rounds/0/report"),
        ("GET", "/v1/rounds/0/report"),
        ("GET", "/healthz"),
        ("GET", "/metrics"),
        ("OPTIONS", "*"),
        ("CONNECT", "localhost:80"),
    ],
)
def test_what_is_not_in_the_table_is_not_there(scene: Scene, method: str, path: str) -> None:
    answer = scene.raw(request(method, path, scene.tokens[0]))
    assert problem_of(answer) in (Problem.NOT_FOUND, Problem.MALFORMED)


@pytest.mark.parametrize(
    "path", ["/v1/rounds/00", "/v1/rounds/-1", "/v1/rounds/4294967296", "/v1/rounds/" + "9" * 5000, "/v1/rounds/x"]
)
def test_odd_round_numbers_are_not_found(scene: Scene, path: str) -> None:
    token = (scene.shuffler.folder / "analyzer.token").read_text().strip()
    assert problem_of(scene.raw(request("GET", path, token))) is Problem.NOT_FOUND


# --- sizes and times ------------------------------------------------------------------------


def test_a_body_too_large_is_cut_off_before_it_is_read(scene: Scene) -> None:
    head = request("PUT", f"/v1/rounds/{scene.number}/report", scene.tokens[3])[:-2]
    answer = scene.raw(head + b"content-length: 1000000000000\r\n\r\nabc")
    assert problem_of(answer) is Problem.TOO_LARGE
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    chunked = head + b"transfer-encoding: chunked\r\n\r\n" + chunk * 10
    for _ in range(20):
        # closed with bytes unread, a connection is reset, and the answer may be lost on the way
        with contextlib.suppress(ConnectionResetError):
            assert problem_of(scene.raw(chunked)) is Problem.TOO_LARGE
            return
    pytest.fail("never answered")


def test_a_chunked_report_of_the_right_size_is_taken(scene: Scene) -> None:
    body = scene.analyzer.report(scene.number, 3)
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in (body[:10], body[10:]))
    head = request("PUT", f"/v1/rounds/{scene.number}/report", scene.tokens[3])[:-2]
    answer = scene.raw(head + b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 202")


def test_half_sent_headers_and_bodies_are_dropped_and_nothing_is_kept(impatient: Scene) -> None:
    """Slowloris: a header without end, a body without end, silence; each ends by itself."""
    scene = impatient
    body = scene.analyzer.report(scene.number, 4)
    whole = request("PUT", f"/v1/rounds/{scene.number}/report", scene.tokens[4], body)
    before = scene.shuffler.metrics()["timeouts_total"]
    for part in (b"", whole[:20], whole[: len(whole) - 10]):
        start = time.monotonic()
        answer = scene.raw(part)
        assert time.monotonic() - start > 0.5, "it had its time"
        assert problem_of(answer) is Problem.MALFORMED
    assert scene.shuffler.metrics()["timeouts_total"] == before + 3
    with socket.create_connection(("127.0.0.1", scene.shuffler.port)) as line:
        line.sendall(whole[:-10])  # and hung up in the middle
    wait_until(lambda: scene.raw(whole).startswith(b"HTTP/1.1 202"))  # nothing of it was taken


def test_a_slow_but_steady_client_is_served(scene: Scene) -> None:
    number, token = scene.number, scene.tokens[2]
    whole = request("GET", "/v1/round", token)
    with socket.create_connection(("127.0.0.1", scene.shuffler.port), timeout=120) as line:
        for place in range(0, len(whole), 40):
            line.sendall(whole[place : place + 40])
            time.sleep(0.05)
        assert line.recv(12) == b"HTTP/1.1 200"
    assert number == scene.number


def test_endless_headers_are_refused(scene: Scene) -> None:
    head = b"GET /v1/plan HTTP/1.1\r\nhost: x\r\n" + b"x-more: " + b"y" * 40_000 + b"\r\n\r\n"
    assert problem_of(scene.raw(head)) is Problem.MALFORMED
    assert problem_of(scene.raw(b"GET /" + b"y" * 40_000 + b" HTTP/1.1\r\n\r\n")) is (Problem.MALFORMED)


def test_expect_100_continue_is_honoured(scene: Scene) -> None:
    body = b"short"
    whole = request("PUT", f"/v1/rounds/{scene.number}/report", scene.tokens[0], body)
    head, _, _ = whole.partition(b"\r\n\r\n")
    answer = scene.raw(head + b"\r\nexpect: 100-continue\r\n\r\n" + body)
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400")


# --- limits ---------------------------------------------------------------------------------


def test_rates_of_clients_and_guesses_are_limited(tmp_path: Path) -> None:
    limits = {"REQUESTS_PER_SECOND": "0.001", "BURST": "3", "FAILURE_BURST": "2"}
    with ShufflerProcess(tmp_path, **limits, FAILURES_PER_SECOND="0.001") as shuffler:
        one, two = shuffler.enroll(2)
        shuffler.wait_for_clients(2)
        statuses = [shuffler.caller(one).get("/v1/plan").status for _ in range(5)]
        assert statuses == [404, 404, 404, 429, 429]
        assert shuffler.caller(two).get("/v1/plan").status == 404
        answers = [shuffler.caller("A" * 43).get("/v1/plan") for _ in range(3)]
        assert [a.status for a in answers] == [401, 401, 429]
        assert answers[-1].headers["retry-after"] == "2"
        assert problem_in(answers[-1].content) is Problem.TOO_MANY


def test_connections_are_limited(tmp_path: Path) -> None:
    with ShufflerProcess(tmp_path, CONNECTIONS_PER_ADDRESS="5") as shuffler:
        time.sleep(0.1)
        lines = [socket.create_connection(("127.0.0.1", shuffler.port)) for _ in range(12)]
        wait_until(lambda: shuffler.metrics()["connections_refused_total"] >= 6)
        for line in lines:
            line.close()
        wait_until(lambda: _answers(shuffler))


def _answers(shuffler: ShufflerProcess) -> bool:
    try:
        return shuffler.caller().get("/v1/plan").status == 401
    except OSError:
        return False


def test_bodies_under_way_are_limited(tmp_path: Path) -> None:
    with ShufflerProcess(tmp_path, BODY_BYTES="90") as shuffler:
        (token,) = shuffler.enroll(1)
        shuffler.wait_for_clients(1)
        analyzer, call = Analyzer.of(population=2), shuffler.analyzer()
        publish(call, analyzer)
        open_round(call, analyzer, 0, 60)
        answer = shuffler.caller(token).put("/v1/rounds/0/report", analyzer.report(0))
        assert answer.status == 503


# --- TLS and the command --------------------------------------------------------------------


def test_tls_serves_those_who_trust_its_certificate(tmp_path: Path, cli: Cli) -> None:
    folder = tmp_path / "data"
    made = cli(*("shuffler", "init", "--folder", str(folder)), *("--test-certificate", "127.0.0.1", "--json"))
    said = json.loads(made.out)
    port, admin = free_port(), free_port()
    ports = ["--port", str(port), "--admin-port", str(admin)]
    process = subprocess.Popen(
        [*COMMAND, "shuffler", "serve", "--folder", str(folder), *ports], stderr=subprocess.DEVNULL
    )
    try:
        context = tls.client_context(Path(said["authority"]))
        token = Path(said["analyzer_token_file"]).read_text().strip()

        def status(context: ssl.SSLContext) -> int:
            line = http.client.HTTPSConnection("127.0.0.1", port, timeout=120, context=context)
            try:
                line.request("GET", "/v1/rounds/0", headers={"authorization": f"Bearer {token}"})
                return line.getresponse().status
            finally:
                line.close()

        def up() -> bool:
            try:
                return status(context) == 404
            except ConnectionRefusedError:
                return False

        wait_until(up)
        with pytest.raises(ssl.SSLCertVerificationError):
            status(ssl.create_default_context())
        with pytest.raises((http.client.BadStatusLine, OSError)):
            Caller(port).get("/v1/plan")
    finally:
        process.terminate()
        assert process.wait(120) == 0


# --- a whole round --------------------------------------------------------------------------


def test_a_whole_round_over_http(scene: Scene) -> None:
    folder = scene.shuffler.folder
    clock = MovedClock(folder.with_name("clock"))
    with ShufflerProcess(folder.with_name("whole"), "memory:", clock.program) as fresh:
        call = fresh.analyzer()
        analyzer = Analyzer.of(population=2, minimum_batch=0)
        publish(call, analyzer)
        open_round(call, analyzer, 0, 3600.0)
        assert call.get("/v1/rounds/0").json()["state"] == "open"
        early = call.post("/v1/rounds/0/claim", CHARGE)
        assert problem_in(early.content) is Problem.ROUND_OPEN
        clock.jump(7200.0)
        assert state(call, 0) == {"state": "void", "present": 0, "reports": None, "reason": "population"}
        late = call.get("/v1/rounds/0/batch")
        assert problem_in(late.content) is Problem.NOT_CLAIMED
