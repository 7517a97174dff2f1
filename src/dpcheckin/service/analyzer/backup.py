"""Backup and restore of an analyzer's folder: settings, identity, checkpoint, ledger, a survey's rounds.

Taken beside a running analyzer: first the checkpoint, then rounds and ledger, which may only be newer. The opening keys
stay out unless they are asked for: a key in a backup is a key that was not destroyed, and opens what was sealed to it.
Without them the rounds under way are lost, and stay charged. A restored analyzer asks its shuffler about every round
that it has forgotten, and charges those that were released in the meantime.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.analyzer import state
from dpcheckin.service.analyzer.ledger import LEDGER
from dpcheckin.service.analyzer.settings import FILE, identity_place
from dpcheckin.service.storage.backup_file import BackupDamaged, read_backup, write_backup
from dpcheckin.service.storage.files import make_folder, replace_file
from dpcheckin.service.storage.identity import IDENTITY
from dpcheckin.service.storage.journal import journal_bytes, restore_journal

KIND = "analyzer"
_KEYS = "keys"
_OF_FOLDERS = re.compile(rf"{_KEYS}/from-\d+\.key|{state.ROUNDS}/round-\d+\.npy")


def backup(folder: Path, file: Path, *, with_keys: bool = False) -> int:
    """Write the `folder` of an analyzer, which may be running, to a new `file`, and its opening keys `with_keys`; how
    many files of it that were."""
    if not (folder / state.FILE).is_file() or not (folder / LEDGER).is_file():
        raise InvalidParameter("folder", str(folder), "the folder of an analyzer that has run")
    state.load(folder)  # damage is not carried on
    places = {FILE: folder, IDENTITY: identity_place(folder), state.FILE: folder}
    held = [_record(name, (at / name).read_bytes()) for name, at in places.items() if (at / name).is_file()]
    for below in (_KEYS, state.ROUNDS) if with_keys else (state.ROUNDS,):
        found = [f"{below}/{file.name}" for file in sorted((folder / below).glob("*-*"))]
        held += [_record(name, (folder / name).read_bytes()) for name in found if _OF_FOLDERS.fullmatch(name)]
    held.append(_record(LEDGER, journal_bytes(folder / LEDGER)))
    return write_backup(file, KIND, held)


def _record(name: str, content: bytes) -> dict[str, Any]:
    return {"file": name, "content": base64.b64encode(content).decode()}


def restore(folder: Path, file: Path) -> list[str]:
    """Make a `folder` from the backup in a `file`; the names of its files. Settings that are there are kept."""
    contents: dict[str, bytes] = {}
    for record in read_backup(file, KIND):
        try:
            contents[_checked_name(record["file"])] = base64.b64decode(record["content"])
        except (KeyError, TypeError, ValueError, AttributeError):
            raise BackupDamaged(f"{file} holds a file that is none of an analyzer's") from None
    if not {state.FILE, LEDGER} <= contents.keys():
        raise BackupDamaged(f"{file} lacks checkpoint or ledger")
    for name in (IDENTITY, state.FILE, LEDGER):
        if (folder / name).exists():
            raise InvalidParameter("folder", str(folder), f"one without {name}")
    state.AnalyzerState.from_bytes(contents[state.FILE])  # of a version that is known
    make_folder(folder)
    for below in {folder / name for name in contents if "/" in name}:
        make_folder(below.parent)
    for name, content in contents.items():
        if name == LEDGER:
            restore_journal(folder / name, content)
        elif not (name == FILE and (folder / name).exists()):
            replace_file(folder / name, content)
    return sorted(contents)


def _checked_name(name: str) -> str:
    """Nothing is written outside of the folder, whoever wrote the backup."""
    if name not in (FILE, IDENTITY, state.FILE, LEDGER) and not _OF_FOLDERS.fullmatch(name):
        raise ValueError(name)
    return name
