"""A disk that is full: every command says so in one line, and what was there before is there after.

A file system of a few pages in memory is the disk, where this machine lets a test mount one.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpcheckin.errors import ServiceError
from dpcheckin.service.analyzer import state
from dpcheckin.service.shuffler.stores.sqlite import SqliteStore
from dpcheckin.service.wire.credentials import new_token, token_digest
from service.analyzer_world import World, small_plan
from service.cli_runner import Cli

PROGRAM = [sys.executable, "-c", "from dpcheckin.cli import main; main()"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "none", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("this machine lets no test mount a file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(disk: Path) -> None:
    with open(disk / "filler", "wb") as file, pytest.raises(OSError, match="No space"):
        while True:
            os.write(file.fileno(), bytes(4096))


def one_line(done: "subprocess.CompletedProcess[str]") -> str:
    assert done.returncode == 2, done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert len(lines) == 1, done.stderr
    return lines[0]


def run(*command: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*PROGRAM, *map(str, command)], capture_output=True, text=True, timeout=300)


def test_a_shuffler_is_not_begun_on_a_full_disk(disk: Path) -> None:
    (disk / "data").mkdir(mode=0o700)
    fill(disk)
    said = one_line(run("shuffler", "init", "--folder", disk / "data"))
    assert "disk is full" in said or "No space" in said
    assert not (disk / "data" / "analyzer.token").exists(), "no token of no bytes is left, which would be used later"


def test_a_backup_of_a_shuffler_on_a_full_disk_leaves_nothing(disk: Path, tmp_path: Path, cli: Cli) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    store = SqliteStore(folder / "shuffler.db")
    store.enroll([token_digest(new_token()) for _ in range(2000)])
    store.close()
    said = one_line(run("shuffler", "backup", "--folder", folder, "--out", disk / "backup"))
    assert "disk is full" in said or "No space" in said
    assert list(disk.iterdir()) == []


def test_an_analyzer_on_a_full_disk_ends_in_one_line_and_goes_on_when_there_is_room(disk: Path) -> None:
    world = World(disk / "analyzer", small_plan(), {})
    made = world.analyzer()
    made.close()
    fill(disk)
    before = (disk / "analyzer" / state.FILE).read_bytes()
    with pytest.raises((OSError, ServiceError)) as ended:
        world.run()
    from dpcheckin.cli.complaints import what_to_say

    said = what_to_say(ended.value, _NoCommands(), [])  # type: ignore[arg-type]
    assert said is not None and "\n" not in said[0] and said[1] == 2
    assert "disk is full" in said[0] or "No space" in said[0], said
    assert (disk / "analyzer" / state.FILE).read_bytes() == before
    (disk / "filler").unlink()
    world.run()
    assert [row["state"] for row in world.kept.log] == ["released"] * 4
    assert json.loads(json.dumps(world.charges()))[-1]["charged"] == 4


class _NoCommands:
    params: tuple[()] = ()
