"""What goes wrong with stores, whoever's they are: how SQLite says it, and how long it counts.

A full disk and a damaged file are failures: what was under way is not done. A lock that somebody
else holds is not: trying again is enough. A store that can be read may still take nothing, so that
only something written ends a failure.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dpcheckin.errors import ServiceError


class StorageFailure(ServiceError):
    """Disk full, database away: whatever was under way is not done and was not acknowledged."""


class StorageBusy(ServiceError):
    """Somebody else is in the way for the moment; trying again is enough."""


def damaged(why: str) -> StorageFailure:
    """The one line about a database that does not hold what was written to it.

    Args:
        why: somebody thinks so; its first line is shown.
    """
    first = why.strip().split("\n", 1)[0]
    return StorageFailure(f"the database is damaged: {first} (docs/upgrading.md: restore)")


_DOUBT_SECONDS = 5.0
"""After a failure, so long without another one before it is worth trying to write something."""


class Health:
    """Whether a store takes what it is given, as far as is known.

    Args:
        monotonic: seconds.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._failed_at: float | None = None
        """When the store last failed to take something, until it has taken something again."""

    @property
    def ok(self) -> bool:
        """Has nothing failed since something was last written?"""
        return self._failed_at is None

    def failed(self) -> None:
        """Something could not be written or read."""
        self._failed_at = self._monotonic()

    def stored(self) -> None:
        """Something was written: whatever was wrong is over."""
        self._failed_at = None

    @property
    def worth_a_probe(self) -> bool:
        """Is the last failure so long ago that writing something may succeed?"""
        failed = self._failed_at
        return failed is not None and self._monotonic() - failed > _DOUBT_SECONDS


@contextmanager
def translated() -> Iterator[None]:
    """SQLite's exceptions as ours; what is wrong with the statement itself stays a bug."""
    try:
        yield
    except sqlite3.OperationalError as problem:
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise StorageBusy(f"SQLite: {problem}") from problem
        raise StorageFailure(f"SQLite: {problem}") from problem
    except UnicodeDecodeError as problem:  # sqlite3 speaks UTF-8, also of what it cannot read
        raise damaged("a text in it is not UTF-8") from problem
    except sqlite3.DatabaseError as problem:
        if isinstance(problem, (sqlite3.IntegrityError, sqlite3.ProgrammingError)):
            raise
        raise StorageFailure(f"SQLite: {problem}") from problem
