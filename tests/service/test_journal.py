"""The journal notices every change, and survives every crash."""

import errno
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpcheckin.service.storage import journal as journal_module
from dpcheckin.service.storage.files import InUse
from dpcheckin.service.storage.journal import Journal, JournalDamaged, JournalUnavailable


def filled(path: Path, count: int = 4) -> list[str]:
    with Journal(path) as journal:
        return [journal.append({"n": n}).digest for n in range(count)]


def head_of(path: Path) -> Path:
    return path.with_name(path.name + ".head")


def test_what_was_appended_is_there_again(tmp_path: Path) -> None:
    digests = filled(tmp_path / "j")
    with Journal(tmp_path / "j") as journal:
        assert [entry.digest for entry in journal] == digests
        assert [entry.body for entry in journal] == [{"n": n} for n in range(4)]
        assert journal.append({"n": 4}).index == 4


def test_a_second_process_is_kept_out(tmp_path: Path) -> None:
    path = tmp_path / "j"
    program = (
        f"from pathlib import Path; from dpcheckin.service.storage.journal import Journal; Journal(Path({str(path)!r}))"
    )
    with Journal(path):
        with pytest.raises(InUse):
            Journal(path)
        other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert "InUse" in other.stderr
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(position=st.integers(0, 10_000), value=st.integers(0, 255))
def test_any_changed_byte_is_noticed(tmp_path: Path, position: int, value: int) -> None:
    path = tmp_path / f"j{position}-{value}"
    filled(path)
    content = bytearray(path.read_bytes())
    position %= len(content)
    if content[position] == value:
        return
    content[position] = value
    path.write_bytes(content)
    with pytest.raises(JournalDamaged):
        Journal(path)


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_a_journal_that_lost_its_end_is_noticed(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "j"
    filled(path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:kept]))
    with pytest.raises(JournalDamaged, match=f"holds {kept} entries, but 4 were written"):
        Journal(path)


def test_every_cut_of_the_last_entry_before_it_was_acknowledged_is_harmless(tmp_path: Path) -> None:
    """A crash inside append: the line is cut anywhere, the head is still the old one."""
    path = tmp_path / "j"
    filled(path, 3)
    old_head = head_of(path).read_bytes()
    with Journal(path) as journal:
        journal.append({"n": 3})
    whole = path.read_bytes()
    start = whole.rstrip(b"\n").rfind(b"\n") + 1
    for end in range(start, len(whole) + 1):
        path.write_bytes(whole[:end])
        head_of(path).write_bytes(old_head)
        with Journal(path) as journal:
            assert len(journal) == (4 if end == len(whole) else 3)
        with Journal(path) as journal:  # and what recovery wrote is itself in order
            assert len(journal) == (4 if end == len(whole) else 3)


def test_a_head_that_contradicts_the_journal_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "j"
    filled(path)
    last = head_of(path).read_text().split()[1]
    for said in (f"4 {'ab' * 32}", f"2 {last}", "9 " + last):
        sealed = f"{said} {hashlib.sha256(said.encode()).hexdigest()}\n"
        head_of(path).write_text(sealed)
        with pytest.raises(JournalDamaged):
            Journal(path)
    head_of(path).write_text("x" * 1024)
    with pytest.raises(JournalDamaged, match="cannot be read"):
        Journal(path)
    head_of(path).unlink()
    with pytest.raises(JournalDamaged, match="behind"):
        Journal(path)


def test_a_head_cut_short_while_it_was_written_is_survived(tmp_path: Path) -> None:
    path = tmp_path / "j"
    filled(path)  # the fourth entry's head stands in the first place
    content = bytearray(head_of(path).read_bytes())
    for cut in range(0, 512, 7):
        torn = bytes(content[:cut]) + b"\0" * (512 - cut) + bytes(content[512:])
        head_of(path).write_bytes(torn)
        with Journal(path) as journal:
            assert len(journal) == 4
        head_of(path).write_bytes(content)


def failing(error: int, real: Callable[..., Any], when: Callable[[], bool]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        if when():
            raise OSError(error, os.strerror(error))
        return real(*arguments)

    return call


def test_a_full_disk_is_said_and_survived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, full = tmp_path / "j", True
    filled(path, 2)
    with Journal(path) as journal:
        real = os.write

        def half_written(handle: int, content: Any) -> int:
            if not full:
                return real(handle, content)
            if len(content) > 20:
                return real(handle, content[:20])  # a few bytes still fit
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(journal_module.os, "write", lambda h, c: half_written(h, bytes(c)))
        with pytest.raises(JournalUnavailable, match="the disk is full"):
            journal.append({"n": 2})
        full = False
        assert journal.append({"n": 2}).index == 2
    with Journal(path) as journal:
        assert [entry.body["n"] for entry in journal] == [0, 1, 2]


def test_after_a_failed_fsync_nothing_is_written_until_it_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, broken = tmp_path / "j", True
    journal = Journal(path)
    journal.append({"n": 0})
    monkeypatch.setattr(journal_module.os, "fsync", failing(errno.EIO, os.fsync, lambda: broken))
    with pytest.raises(JournalUnavailable):
        journal.append({"n": 1})
    broken = False
    with pytest.raises(JournalUnavailable, match="open it again"):
        journal.append({"n": 1})
    journal.close()
    with Journal(path) as again:
        assert len(again) in (1, 2)  # unknown to the writer, but whole
        again.append({"n": 9})


def test_a_head_that_cannot_be_written_stops_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "j")
    with monkeypatch.context() as patched:
        patched.setattr(journal_module.os, "pwrite", failing(errno.EIO, os.pwrite, lambda: True))
        with pytest.raises(JournalUnavailable):
            journal.append({"n": 0})
    with pytest.raises(JournalUnavailable):
        journal.append({"n": 1})
    journal.close()
    with Journal(tmp_path / "j") as again:
        assert len(again) == 1


def test_a_disk_that_cannot_even_be_cut_back_stops_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path / "j")
    with monkeypatch.context() as patched:
        for name in ("write", "ftruncate"):
            real = getattr(os, name)
            patched.setattr(journal_module.os, name, failing(errno.EIO, real, lambda: True))
        with pytest.raises(JournalUnavailable):
            journal.append({"n": 0})
    with pytest.raises(JournalUnavailable, match="open it again"):
        journal.append({"n": 0})
    journal.close()
