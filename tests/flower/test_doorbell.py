"""The ClientApp: same answer always, from its own configuration, and no protocol in it."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("flwr", reason="Flower is not installed (extra: flower)")

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects

from dpcheckin.flower.doorbell import ENVIRONMENT, RECORD, NoAgent, NotARing, make_doorbell
from dpcheckin.flower.mailbox import Mailbox, Ring


@pytest.fixture(autouse=True)
def in_a_run(a_flower_task):
    """Messages can only be made where Flower runs an app."""


def context(**node_config):
    return Context(run_id=1, node_id=7, node_config=node_config, state=RecordDict(), run_config={})


def message(**more):
    record = ConfigRecord({"round": b"signed round", "model": b"\0" * 4000, **more})
    return Message(RecordDict({RECORD: record}), dst_node_id=7, message_type="train")


def content_of(reply):
    """Everything of a reply but its metadata, as it travels."""
    return {name: thing.deflate() for name, thing in get_all_nested_objects(reply.content).items()}


def test_the_ring_is_in_the_box_when_the_answer_comes(tmp_path):
    box = Mailbox(tmp_path / "box")
    box.make()
    reply = make_doorbell()(message(), context(doorbell=str(box.folder)))
    assert not reply.has_error()
    assert box.take() == Ring(b"signed round", b"\0" * 4000)


def test_the_answer_is_the_same_whoever_is_behind_the_door(tmp_path):
    """An agent's box, a box nobody empties, a full disk, no folder: equal bytes, no error."""
    box = Mailbox(tmp_path / "box")
    box.make()
    (tmp_path / "file").write_text("in the way")
    places = [box.folder, tmp_path / "gone", tmp_path / "file" / "deeper", "/dev/full"]
    replies = [make_doorbell()(message(), context(doorbell=str(place))) for place in places]
    first = content_of(replies[0])
    assert first and all(content_of(reply) == first for reply in replies)
    assert not any(reply.has_error() for reply in replies)


def test_a_message_cannot_say_where_the_box_is(tmp_path):
    box = Mailbox(tmp_path / "box")
    box.make()
    evil = message(doorbell=str(tmp_path / "elsewhere"))
    make_doorbell()(evil, context(doorbell=str(box.folder)))
    assert box.take() is not None and not (tmp_path / "elsewhere").exists()


def test_simulated_nodes_have_boxes_by_number(tmp_path, monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "{node}"))
    box = Mailbox(tmp_path / "3")
    box.make()
    make_doorbell()(message(), context(**{"partition-id": 3, "num-partitions": 9}))
    assert box.take() is not None


def test_a_node_without_an_agent_refuses(monkeypatch):
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    with pytest.raises(NoAgent, match="dpcheckin flower agent"):
        make_doorbell()(message(), context())


def test_an_ordinary_strategy_is_refused(tmp_path):
    """FedAvg on this ClientApp would collect reports by name: it gets an error instead."""
    plain = Message(RecordDict({"config": ConfigRecord({"lr": 0.1})}), dst_node_id=7, message_type="train")
    with pytest.raises(NotARing, match="ordinary strategy"):
        make_doorbell()(plain, context(doorbell=str(tmp_path)))


def test_the_doorbell_knows_nothing_of_data_or_noise():
    """It loads neither torch, nor randomizers, nor accounting: there is nothing to leak."""
    code = (
        "import sys, dpcheckin.flower.doorbell;"
        "print([m for m in sys.modules if m == 'torch' or m.startswith('dpcheckin.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(eval(done.stdout.splitlines()[-1]))
    doorbell = {"dpcheckin.flower", "dpcheckin.flower.doorbell", "dpcheckin.flower.mailbox"}
    assert loaded == doorbell | {"dpcheckin.errors", "dpcheckin.lazy"}  # lazy loads names when they are touched
