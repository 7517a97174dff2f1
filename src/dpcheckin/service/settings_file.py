"""Settings files: TOML tables read strictly, for the analyzer and for the client agent.

What is unknown, missing or of the wrong type is an error that names the entry: a misspelt limit
must not be ignored. A token that others may read is not used, wherever it stands.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.files import check_secret, without_password

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def check_address(address: str, name: str = "shuffler.address") -> None:
    """Plain HTTP is for the machine itself only.

    Args:
        address: such as `https://shuffler.example:8440`.
        name: of the entry, for the message.
    """
    parts = urlsplit(address)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK:
        raise InvalidParameter(
            name,
            without_password(address),
            "an https address (http only on the loopback interface)",
        )


@dataclass(frozen=True)
class IssuerAccess:
    """Where an issuer of report tokens is, and how to ask it."""

    address: str
    token: str
    """The access token: a client's, or the analyzer's."""
    identity: bytes
    """Who signs the keys, 32 bytes: plans name it, and clients insist on it."""
    authority: Path | None = None

    def __post_init__(self) -> None:
        check_address(self.address, "issuer.address")
        if len(self.identity) != 32:
            raise InvalidParameter("issuer.identity", self.identity.hex(), "32 bytes in hex")


class MissingEntry(InvalidParameter):
    """An entry that has to be there is not.

    >>> print(MissingEntry("limits.rate", None, "a float"))
    limits.rate is missing: expected a float
    """

    def __str__(self) -> str:
        return f"{self.name} is missing: expected {self.allowed}"


class SettingsFile:
    """Tables of a TOML file, read strictly: what is unknown or of the wrong type is an error.

    Args:
        path: a TOML file; paths in it are relative to its folder.
        by_folder: whether its owner names the folder only, and problems should too.
    """

    def __init__(self, path: Path, *, by_folder: bool = False) -> None:
        self.folder, self._path = path.parent, path
        self._named = ("folder", str(path.parent)) if by_folder else ("config", str(path))
        self._file = f"a folder with {path.name}" if by_folder else "a file"
        try:
            self._tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as problem:
            raise self._refused(f" ({problem.strerror})") from None
        except ValueError as problem:  # not TOML, not UTF-8, or a number of thousands of digits
            raise self._refused(f" in TOML ({problem})") from None

    def _refused(self, but: str) -> InvalidParameter:
        return InvalidParameter(*self._named, f"{self._file}{but}")

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
                alike = "".join(f" (there is {one})" for one in get_close_matches(name, found, 1))
                raise MissingEntry(f"{table}.{name}", None, f"a {kind.__name__}{alike}")
            return default
        value = found.pop(name)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            shown = "…" if name == "token" else value
            raise InvalidParameter(f"{table}.{name}", shown, f"a {kind.__name__}")
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
        """`token`, or the content of `token_file`, of a file that others may not read."""
        token = self.take(table, "token", str, None)
        file = self.path(table, "token_file", None)
        if (token is None) == (file is None):
            raise InvalidParameter(f"{table}.token", "…", "either token or token_file")
        if token is not None:
            check_secret(f"{table}.token", self._path, group=True)
        else:
            assert file is not None
            try:
                token = file.read_text(encoding="ascii").strip()
            except (OSError, UnicodeDecodeError):
                raise InvalidParameter(f"{table}.token_file", str(file), "a token file") from None
            check_secret(f"{table}.token_file", file, group=True)
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

    def issuer(self) -> IssuerAccess | None:
        """The table `[issuer]`; None when there is none."""
        if "issuer" not in self._tables:
            return None
        identity = self.hex("issuer", "identity")
        assert identity is not None
        return IssuerAccess(
            address=self.take("issuer", "address", str),
            token=self.secret("issuer"),
            identity=identity,
            authority=self.path("issuer", "authority", None),
        )

    def finish(self) -> None:
        """Refuse what nobody asked for: a misspelt limit must not be ignored."""
        odd = [
            f"{table}.{name}" if isinstance(found, dict) else table
            for table, found in self._tables.items()
            for name in (found if isinstance(found, dict) else [""])
        ]
        if odd:
            raise self._refused(f" that has no other entries than described, not {', '.join(odd)}")
