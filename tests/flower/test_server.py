"""The server's side: all are rung alike, nobody is waited for, and no shuffler means no run."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

pytest.importorskip("flwr", reason="Flower is not installed (extra: flower)")

from flwr.app import ConfigRecord, Error, Message, RecordDict
from flwr.common.constant import ErrorCode

from dpcheckin.deployment.demo import toml
from dpcheckin.deployment.processes import start_shuffler
from dpcheckin.flower.doorbell import RECORD
from dpcheckin.flower.mailbox import Ring
from dpcheckin.flower.server import FOLDER, Messenger, NoShuffler, check_in, settings_for
from dpcheckin.service.storage.identity import TOKEN_FILE, analyzer_token


@pytest.fixture(autouse=True)
def in_a_run(a_flower_task):
    """Messages can only be made where Flower runs an app."""


FAILED = ErrorCode.CLIENT_APP_RAISED_EXCEPTION


class FakeGrid:
    """Remembers what was pushed; replies are what the test says."""

    def __init__(self, nodes):
        self.nodes, self.pushed, self.replies, self.pulls = nodes, [], [], 0

    def get_node_ids(self):
        return self.nodes

    def push_messages(self, messages):
        self.pushed.append(list(messages))
        return [f"{len(self.pushed)}-{m.metadata.dst_node_id}" for m in self.pushed[-1]]

    def pull_messages(self, message_ids):
        self.pulls += 1
        wanted = set(message_ids)
        return [r for r in self.replies if r.metadata.reply_to_message_id in wanted]


def reply_to(message, number, code=None):
    body = RecordDict({"a": ConfigRecord({})}) if code is None else Error(code, reason="no agent")
    made = Message(body, reply_to=message)
    made.metadata.__dict__["_reply_to_message_id"] = number
    return made


def test_every_node_gets_the_same_message():
    grid = FakeGrid([11, 22, 33])
    Messenger(grid, now=lambda: 100.0).ring("4", Ring(b"round", b"model"), closes=110.0)
    (messages,) = grid.pushed
    assert [m.metadata.dst_node_id for m in messages] == [11, 22, 33]
    assert {m.metadata.group_id for m in messages} == {"4"}
    contents = [dict(m.content[RECORD]) for m in messages]
    assert all(c == {"round": b"round", "model": b"model"} for c in contents)
    assert all(10 < m.metadata.ttl <= 20 for m in messages), "a late ring is not delivered"


def test_rounds_do_not_wait_for_replies():
    """Nobody ever answers: rings go out all the same, to whoever is there now."""
    grid = FakeGrid([1, 2])
    messenger = Messenger(grid, now=lambda: 0.0)
    for number in range(3):
        messenger.ring(str(number), Ring(b"r", b"m"), closes=5.0)
        grid.nodes = [2]
    assert [outcome.nodes for outcome in messenger.outcomes] == [2, 1, 1]
    assert [outcome.replies for outcome in messenger.outcomes] == [0, 0, 0]


def test_replies_and_errors_are_counted_and_decide_nothing():
    grid = FakeGrid([1, 2, 3])
    messenger = Messenger(grid, now=lambda: 0.0)
    messenger.ring("0", Ring(b"r", b"m"), closes=5.0)
    (sent,) = grid.pushed
    grid.replies = [reply_to(sent[0], "1-1"), reply_to(sent[1], "1-2", FAILED)]
    messenger.ring("1", Ring(b"r", b"m"), closes=9.0)
    assert (messenger.outcomes[0].replies, messenger.outcomes[0].errors) == (2, 1)
    assert messenger.outcomes[1].nodes == 3


def test_what_the_superlink_puts_in_the_place_of_a_late_reply_is_none():
    grid = FakeGrid([1, 2])
    messenger = Messenger(grid, now=lambda: 0.0)
    messenger.ring("0", Ring(b"r", b"m"), closes=5.0)
    (sent,) = grid.pushed
    late = [ErrorCode.MESSAGE_UNAVAILABLE, ErrorCode.NODE_UNAVAILABLE]
    grid.replies = [reply_to(m, f"1-{i}", c) for i, (m, c) in enumerate(zip(sent, late, strict=True), 1)]
    messenger.collect()
    assert (messenger.outcomes[0].replies, messenger.outcomes[0].errors) == (0, 0)


def test_an_empty_grid_is_no_error():
    grid = FakeGrid([])
    assert Messenger(grid).ring("0", Ring(b"r", b"m"), closes=1.0).nodes == 0
    assert grid.pushed == []


class NobodyMayBeAsked(FakeGrid):
    def push_messages(self, messages):
        raise AssertionError("a message went out before the shuffler was checked")


def refused(run_config, words):
    with pytest.raises(NoShuffler, match=words) as found:
        check_in(NobodyMayBeAsked([1, 2, 3]), run_config)
    assert "\n" not in str(found.value)


def configured(tmp_path, address, token="A" * 43):
    tables = {
        "shuffler": {"address": address, "token": token},
        "plan": {
            "protocol": "shuffled-check-in",
            "population": 30,
            "rate": 0.3,
            "rounds": 3,
            "delta": 1e-5,
            "epsilon_budget": 50.0,
            "round_seconds": 5.0,
        },
        "randomizer": {"name": "privunit", "local_epsilon": 4.0},
        "task": {"data": "digits", "model": "small"},
    }
    (tmp_path / "analyzer.toml").touch(mode=0o600)
    (tmp_path / "analyzer.toml").write_text(toml(tables))
    return {FOLDER: str(tmp_path)}


def test_a_run_without_a_shuffler_is_refused():
    refused({}, "guarantee but the local one")
    refused({FOLDER: ""}, "dpcheckin shuffler serve")


def test_a_folder_without_settings_is_refused(tmp_path):
    refused({FOLDER: str(tmp_path)}, r"analyzer\.toml is missing")


def test_an_address_where_nobody_answers_is_refused(tmp_path):
    refused(configured(tmp_path, "http://127.0.0.1:9"), "no shuffler answers")


def test_another_server_is_no_shuffler(tmp_path):
    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(404)
            self.end_headers()
            self.wfile.write(b"<html>")

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            address = f"http://127.0.0.1:{server.server_address[1]}"
            refused(configured(tmp_path, address), "is no shuffler")
        finally:
            server.shutdown()


def test_a_shuffler_that_does_not_know_us_is_refused(tmp_path):
    folder = tmp_path / "shuffler"
    analyzer_token(folder)
    party = start_shuffler(folder)
    try:
        address = str(party.listening["address"])
        refused(configured(tmp_path, address), "does not know this analyzer's token")
        token = (folder / TOKEN_FILE).read_text().strip()
        settings = settings_for(configured(tmp_path, address, token))
        from dpcheckin.flower.server import check_shuffler

        check_shuffler(settings)  # and the right token is welcome
    finally:
        party.stop()


def test_plain_http_to_a_far_shuffler_is_refused(tmp_path):
    from dpcheckin.errors import InvalidParameter

    with pytest.raises(InvalidParameter, match="https"):
        settings_for(configured(tmp_path, "http://shuffler.example:8440"))
