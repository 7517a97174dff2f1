"""What lies between a doorbell and the agents: whole rings or none, and nothing flows back."""

from __future__ import annotations

import os

import pytest

from dpcheckin.flower.mailbox import FILE, Mailbox, Ring


@pytest.fixture
def box(tmp_path):
    made = Mailbox(tmp_path / "box")
    made.make()
    return made


def test_a_ring_arrives_as_it_was_dropped(box):
    ring = Ring(b'{"document":{}}', bytes(range(256)) * 40)
    box.drop(ring)
    assert box.take() == ring


def test_a_ring_is_taken_once_and_the_next_one_again(box):
    for model in (b"one", b"two"):
        box.drop(Ring(b"r", model))
        found = box.take()
        assert found is not None and found.model == model
        assert box.take() is None


def test_only_the_latest_ring_is_kept(box):
    for number in range(5):
        box.drop(Ring(b"r", bytes([number])))
    found = box.take()
    assert found is not None and found.model == bytes([4])
    assert [path.name for path in box.folder.iterdir()] == [FILE]


def test_every_agent_process_sees_the_ring(box):
    box.drop(Ring(b"r", b"m"))
    assert box.take() == Mailbox(box.folder).take()


def test_the_folder_is_its_owners(box):
    assert box.folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "content", [b"", b"DPRING1\0", b"DPRING1\0\xff\xff\xff\xffshort", b"another file of the same name" * 9]
)
def test_what_is_no_ring_is_no_ring(box, content):
    (box.folder / FILE).write_bytes(content)
    assert box.take() is None


def test_a_link_to_the_owners_files_is_not_followed(box, tmp_path):
    """Whoever can write into the box must not make the agent read anything else."""
    secret = tmp_path / "secret"
    secret.write_bytes(Ring(b"r", b"secret").to_bytes())
    os.symlink(secret, box.folder / FILE)
    assert box.take() is None


def test_dropping_never_fails(tmp_path):
    """No box, no disk, no rights: the doorbell must not be able to tell, so it is not told."""
    Mailbox(tmp_path / "nowhere").drop(Ring(b"r", b"m"))
    (tmp_path / "file").write_text("not a folder")
    Mailbox(tmp_path / "file").drop(Ring(b"r", b"m"))
