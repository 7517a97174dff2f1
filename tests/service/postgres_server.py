"""A PostgreSQL of one's own: made in a temporary folder, run as a user who is not root, stopped.

`PostgresServer.missing()` says why there is none, if there is none.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

# Small, durable, and with a log whose old segments are removed instead of kept for reuse.
_SETTINGS = {
    "fsync": "on",
    "wal_recycle": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "min_wal_size": "4MB",
    "max_wal_size": "256MB",
    "shared_buffers": "64MB",
    "max_connections": "60",
    "listen_addresses": "'127.0.0.1'",
}


def _program(name: str) -> str | None:
    found = shutil.which(name)
    if found is None:
        installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
        found = str(installed[-1]) if installed else None
    return found


def _user() -> str | None:
    """Whom to run as: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    raise RuntimeError("no user to run PostgreSQL as")


def _place() -> str | None:
    """In memory if there is room: the tests are about what is stored, not about how fast."""
    shared = Path("/dev/shm")
    roomy = shared.is_dir() and shutil.disk_usage(shared).free > 2 << 30
    return str(shared) if roomy else None


class PostgresServer:
    """One server; `stop` and `start` may be called in between."""

    def __init__(self) -> None:
        # Not pytest's own folder: that one is closed to other users.
        self.folder = Path(tempfile.mkdtemp(prefix="dpcheckin-postgres-", dir=_place()))
        self._user = _user()
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self.data = self.folder / "data"
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port = taken.getsockname()[1]
        self._call(*("initdb", "-D", self.data, "-U", "shuffler", "-A", "trust"), *("-E", "UTF8", "--wal-segsize=1"))
        with (self.data / "postgresql.conf").open("a", encoding="utf-8") as file:
            for name, value in _SETTINGS.items():
                file.write(f"{name} = {value}\n")
        self.start()

    @staticmethod
    def missing() -> str | None:
        for name in ("initdb", "pg_ctl"):
            if _program(name) is None:
                return f"PostgreSQL is not installed: no {name} on PATH or in /usr/lib/postgresql"
        return None

    @property
    def address(self) -> str:
        return f"postgresql://shuffler@127.0.0.1:{self.port}/postgres"

    def new_schema(self, name: str) -> str:
        """As good as a fresh database, and made faster; its address."""
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f'CREATE SCHEMA "{name}"')
        return f"{self.address}?options=-csearch_path%3D{name}"

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder}"
        log = self.folder / "log"
        self._call("pg_ctl", "-D", self.data, "-l", log, "-o", options, "-w", "start")

    def stop(self, mode: str = "fast") -> None:
        self._call("pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    def remove(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, name: str, *arguments: object) -> None:
        program = _program(name)
        assert program is not None
        done = subprocess.run(
            [program, *map(str, arguments)],
            user=self._user,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            timeout=120,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
        if done.returncode:
            raise RuntimeError(f"{name}: {done.stderr.decode(errors='replace')}")
