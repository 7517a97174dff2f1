"""Files and folders of a party: for its own eyes only, used by one process at a time.

Folders are made with mode 0700 and secrets with mode 0600. A key that others may read is not used, as with ssh, and
neither is a folder that everybody may write to: whoever can, can put another key there.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from pathlib import Path

from dpcheckin.errors import InvalidParameter, ServiceError

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_IN_ADDRESS = re.compile(r"(://[^:/@\s]*):\S*@")
_NAME_ONLY = re.compile(r"\w+://[^:/@\s]*@[^@]*")
_IN_OPTIONS = re.compile(r"(password\s*=\s*)[^&\s]+", re.IGNORECASE)


def without_password(address: str) -> str:
    """An address as it may be shown: in logs, errors and on the screen.

    >>> without_password("postgresql://shuffler:s3cret@db/x?sslmode=require")
    'postgresql://shuffler:…@db/x?sslmode=require'
    >>> without_password("postgresql://db/x?password=s3cret&user=shuffler")
    'postgresql://db/x?password=…&user=shuffler'
    >>> without_password("postgresql://shuffler@127.0.0.1:5432/x")
    'postgresql://shuffler@127.0.0.1:5432/x'
    """
    shown = _IN_ADDRESS.sub(r"\1:…@", address)
    if (
        shown == address and " " not in address and not _NAME_ONLY.fullmatch(address)
    ):  # not quite an address: nothing between : and @
        shown = re.sub(":.*@", ":…@", address)
    return _IN_OPTIONS.sub(r"\1…", shown)


def has_password(address: str) -> bool:
    """Whether an address holds a password, so that it must not stand where others can read it."""
    return bool(_IN_ADDRESS.search(address) or _IN_OPTIONS.search(address))


class InUse(ServiceError):
    """Another process works with these files."""


def make_folder(folder: Path) -> None:
    """A folder of one's own, made with its parents and mode 0700; one that everybody may write to is not."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
    except FileExistsError:
        check_folder(folder)


def check_folder(folder: Path) -> None:
    """Refuse what is no folder, and what everybody may write to. `folder`: has to exist."""
    if not folder.is_dir():
        raise InvalidParameter("folder", str(folder), "a folder")
    mode = folder.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise InvalidParameter("folder", str(folder), f"one that only its owner may write to (chmod 700 {folder})")


def check_secret(name: str, file: Path, *, group: bool = False) -> None:
    """Refuse a `file`, given as the parameter `name`, that others may read; with `group`, its group may if it is
    root's, as is usual for certificates' keys.
    """
    status = file.stat()
    forbidden = _OTHERS
    if group and status.st_uid == 0:
        forbidden &= ~stat.S_IRGRP
    if status.st_mode & forbidden:
        raise InvalidParameter(name, str(file), f"a file that only its owner may read (chmod 600 {file})")


def write_secret(file: Path, content: bytes) -> None:
    """A new `file` of this `content` that only its owner may read; one that is there stays, and a crash or a full disk
    leaves none: a token of no bytes would be used later."""
    fresh = file.with_name(file.name + ".new")
    handle = open_fresh(fresh)
    try:
        write_all(handle, content)
        os.fsync(handle)
        os.link(fresh, file)
    finally:
        os.close(handle)
        fresh.unlink(missing_ok=True)


def open_fresh(file: Path) -> int:
    """A descriptor of a new file that only its owner may read; what had its name is gone.

    Not one that somebody else has put there, who could read what is written to it.
    """
    file.unlink(missing_ok=True)
    return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def take_lock(file: Path) -> int:
    """Lock a file that is only there to be locked, made if need be; the descriptor that holds the lock.

    The system lets go of it when the process ends, however it ends.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise InUse(f"{file} is held by another process") from None
    return descriptor


def replace_file(path: Path, content: bytes) -> None:
    """Put `content` in the place of the file `path`, durably: a crash leaves the old one or the new one, and perhaps
    `<name>.new`.
    """
    fresh = path.with_name(path.name + ".new")
    handle = open_fresh(fresh)
    try:
        write_all(handle, content)
        os.fsync(handle)
    finally:
        os.close(handle)
    os.replace(fresh, path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_all(handle: int, content: bytes) -> None:
    """Write `content` to the file behind `handle`, in as many calls as it takes."""
    view = memoryview(content)
    while view:
        view = view[os.write(handle, view) :]
