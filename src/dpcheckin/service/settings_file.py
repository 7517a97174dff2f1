"""Settings files: TOML tables read strictly, for the analyzer and for the client agent.

What is unknown, missing or of the wrong type is an error that names the entry: a misspelt limit
must not be ignored.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dpcheckin.errors import InvalidParameter

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def check_address(address: str) -> None:
    """Plain HTTP is for the machine itself only."""
    parts = urlsplit(address)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK:
        raise InvalidParameter(
            "shuffler.address", address, "an https address (http only on the loopback interface)"
        )


class SettingsFile:
    """Tables of a TOML file, read strictly: what is unknown or of the wrong type is an error.

    Args:
        path: a TOML file; paths in it are relative to its folder.
    """

    def __init__(self, path: Path) -> None:
        self.folder = path.parent
        try:
            self._tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as problem:
            raise InvalidParameter("config", str(path), f"a file ({problem.strerror})") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
            raise InvalidParameter("config", str(path), f"TOML ({problem})") from None

    def take(self, table: str, name: str, kind: type, default: Any = ...) -> Any:
        """One entry; tables are used up, so that `finish` can name what was not understood.

        Args:
            table: name of the table.
            name: name of the entry.
            kind: its type; an integer passes for a float.
            default: for an entry that is not there; without one it must be.
        """
        found = self._tables.get(table, {})
        if not isinstance(found, dict):
            raise InvalidParameter(table, found, "a table")
        if name not in found:
            if default is ...:
                raise InvalidParameter(f"{table}.{name}", "missing", f"a {kind.__name__}")
            return default
        value = found.pop(name)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise InvalidParameter(f"{table}.{name}", value, f"a {kind.__name__}")
        return value

    def table(self, name: str) -> dict[str, Any]:
        """A whole table, for others to understand."""
        found = self._tables.pop(name, {})
        if not isinstance(found, dict):
            raise InvalidParameter(name, found, "a table")
        return found

    def path(self, table: str, name: str, default: Any = ...) -> Path | None:
        """A path, relative to the file.

        Args:
            table: name of the table.
            name: name of the entry.
            default: for an entry that is not there; without one it must be.
        """
        value = self.take(table, name, str, default)
        return None if value is None else self.folder / value

    def secret(self, table: str) -> str:
        """`token`, or the content of `token_file`."""
        token = self.take(table, "token", str, None)
        file = self.path(table, "token_file", None)
        if (token is None) == (file is None):
            raise InvalidParameter(f"{table}.token", "…", "either token or token_file")
        if token is None:
            assert file is not None
            try:
                token = file.read_text(encoding="ascii").strip()
            except (OSError, UnicodeDecodeError):
                raise InvalidParameter(f"{table}.token_file", str(file), "a token file") from None
        return str(token)

    def hex(self, table: str, name: str, default: Any = ...) -> bytes | None:
        """Bytes in hex.

        Args:
            table: name of the table.
            name: name of the entry.
            default: for an entry that is not there; without one it must be.
        """
        value = self.take(table, name, str, default)
        try:
            return None if value is None else bytes.fromhex(value)
        except ValueError:
            raise InvalidParameter(f"{table}.{name}", value, "bytes in hex") from None

    def finish(self) -> None:
        """Refuse what nobody asked for: a misspelt limit must not be ignored."""
        odd = [
            f"{table}.{name}" if isinstance(found, dict) else table
            for table, found in self._tables.items()
            for name in (found if isinstance(found, dict) else [""])
        ]
        if odd:
            raise InvalidParameter("config", odd, "only the entries that are described")
