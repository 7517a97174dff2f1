"""Settings of every party, read strictly: options over environment over a TOML file over defaults.

What is unknown, missing or of the wrong type is an error that names the entry: a misspelt limit must not be ignored. A
token that others may read is not used, wherever it stands. Nothing heavy is imported: commands take their options from
the dataclasses.
"""

from __future__ import annotations

import ipaddress
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_type_hints
from urllib.parse import urlsplit

from dpcheckin.errors import InvalidParameter
from dpcheckin.options import option, read_as, scalar_of
from dpcheckin.service.storage.files import check_secret, without_password

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def check_address(address: str, name: str = "shuffler.address") -> None:
    """Refuse an `address` that is not https, given as the entry `name`: plain HTTP is for the machine itself only."""
    parts = urlsplit(address)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme != "http" or parts.hostname not in _LOOPBACK:
        raise InvalidParameter(
            name, without_password(address), "an https address (http only on the loopback interface)"
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
    """Tables of the TOML file `path`, read strictly: what is unknown or of the wrong type is an error.

    Its owner may name only its folder (`by_folder`), and so do problems then. A file that is not `required` may be
    missing.
    """

    def __init__(self, path: Path, *, by_folder: bool = False, required: bool = True) -> None:
        self.folder, self._path = path.parent, path
        self._named = ("folder", str(path.parent)) if by_folder else ("config", str(path))
        self._file = f"a folder with {path.name}" if by_folder else "a file"
        self._tables: dict[str, Any] = {}
        try:
            if required or path.is_file():
                self._tables = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as problem:
            raise self._refused(f" ({problem.strerror})") from None
        except ValueError as problem:  # not TOML, not UTF-8, or a number of thousands of digits
            raise self._refused(f" in TOML ({problem})") from None

    def _refused(self, but: str) -> InvalidParameter:
        return InvalidParameter(*self._named, f"{self._file}{but}")

    def take(self, table: str, name: str, kind: type, default: Any = ...) -> Any:
        """The entry `name` of a `table` (empty: above all tables), of type `kind`, for which an integer passes for a
        float.

        Without a `default` it must be there. Tables are used up, so that `finish` can name what was not understood.
        """
        entries = self._tables.get(table, {}) if table else self._tables
        shown = f"{table}.{name}" if table else name
        if not isinstance(entries, dict):
            raise InvalidParameter(table, entries, "a table")
        if name not in entries:
            if default is ...:
                alike = "".join(f" (there is {name_there})" for name_there in get_close_matches(name, entries, 1))
                raise MissingEntry(shown, None, f"a {kind.__name__}{alike}")
            return default
        value = entries.pop(name)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise InvalidParameter(shown, "…" if name == "token" else value, f"a {kind.__name__}")
        return value

    def given(self, table: str, kind: type, names: Collection[str] = ()) -> dict[str, Any]:
        """The entries of a `table` that are texts, numbers or flags of the dataclass `kind`; those without a default
        must be there.

        `names`: of the fields that stand in this table; none: all.
        """
        values: dict[str, Any] = {}
        for name, (scalar, required) in _scalars(kind).items():
            if not names or name in names:
                value = self.take(table, name, scalar, ... if required else None)
                values |= {} if value is None else {name: value}
        return values

    def table(self, name: str) -> dict[str, Any]:
        """A whole table, for others to understand."""
        entries = self._tables.pop(name, {})
        if not isinstance(entries, dict):
            raise InvalidParameter(name, entries, "a table")
        return entries

    def path(self, table: str, name: str, default: Any = ...) -> Path | None:
        """A path, relative to the file; `table`, `name` and `default` as in `take`."""
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
        """Bytes in hex; `table`, `name` and `default` as in `take`."""
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
            f"{table}.{name}" if isinstance(entries, dict) else table
            for table, entries in self._tables.items()
            for name in (entries if isinstance(entries, dict) else [""])
        ]
        if odd:
            raise self._refused(f" that has no other entries than described, not {', '.join(odd)}")


def _scalars(kind: type) -> dict[str, tuple[type, bool]]:
    """Type of each field that one entry can give, and whether it has to be given."""
    hints = get_type_hints(kind)
    found = {
        one.name: (scalar_of(hints[one.name]), one.default is MISSING and one.default_factory is MISSING)
        for one in fields(kind)
    }
    return {name: (scalar, must) for name, (scalar, must) in found.items() if scalar in (bool, int, float, str)}


def from_environment(kind: type, prefix: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """The fields of the dataclass `kind` that variables of the `environment` give: a `prefix`, then the field in
    capitals.
    """
    texts = {name: environment.get(prefix + name.upper()) for name in _scalars(kind)}
    hints = get_type_hints(kind)
    return {name: read_as(name, scalar_of(hints[name]), text) for name, text in texts.items() if text is not None}


def is_loopback(host: str) -> bool:
    """Does only this machine reach it?"""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Limits:
    """What the operator may set; the defaults suit one machine and 10^5 clients."""

    requests_per_second: float = 5.0
    """Of one client, on average."""
    burst: int = 30
    """Requests of one client at once."""
    failures_per_second: float = 10.0
    """Requests without a valid token from one address, on average."""
    failure_burst: int = 100
    body_bytes: int = 256 << 20
    """Bodies under way at the same time, complete or not, all together."""
    model_bytes: int = 256 << 20
    """The largest model."""
    connections: int = 10_000
    connections_per_address: int = 1_000
    header_seconds: float = 10.0
    """From connecting to the end of the headers."""
    body_seconds: float = 60.0
    """From the first byte of a request to its last."""
    write_seconds: float = 60.0
    """For a reader to take the part of an answer that waits for it, 256 KB at the most."""
    keep_alive_seconds: int = 30

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if not value > 0:
                raise InvalidParameter(one.name, value, "a number above 0")


@dataclass(frozen=True)
class ServedSettings:
    """What shuffler and issuer let an operator set alike: two ports, TLS, the analyzer whose documents they take.

    Everything but TLS (or `dev`) has a default that works on one machine.
    """

    folder: Path
    host: str = option("127.0.0.1", "Address for clients and analyzer.")
    port: int = option(8440, "Port for clients and analyzer; 0: any.")
    admin_host: str = option("127.0.0.1", "Address for health and metrics.")
    admin_port: int = option(8441, "Port for health and metrics; 0: any.")
    tls_certificate: str = option("", "PEM file.")
    tls_key: str = option("", "PEM file.")
    dev: bool = option(False, "Plain HTTP, on loopback only.")
    analyzer_identity: str = option("", "Analyzer's public identity in hex; without it, plans are refused.")
    origins: str = option("", "Web pages that may ask: origins, separated by commas; without it, none.")
    log_level: str = option("info", "debug, info, warning or error.")

    def __post_init__(self) -> None:
        check_port("port", self.port)
        check_port("admin_port", self.admin_port)
        check_level(self.log_level)
        if self.analyzer_identity and not re.fullmatch(r"[0-9a-f]{64}", self.analyzer_identity):
            raise InvalidParameter("analyzer_identity", self.analyzer_identity, "32 bytes in lower-case hex")
        if self.dev and not is_loopback(self.host):
            raise InvalidParameter("host", self.host, "a loopback address with --dev")
        if not self.dev and not (self.tls_certificate and self.tls_key):
            raise InvalidParameter(
                "tls_certificate",
                self.tls_certificate or None,
                "a certificate, and tls_key (or --dev: plain HTTP on loopback)",
            )

    @property
    def identity(self) -> bytes | None:
        """The analyzer's identity as bytes."""
        return bytes.fromhex(self.analyzer_identity) if self.analyzer_identity else None

    @property
    def trusts_any_analyzer(self) -> bool:
        """Whether documents are taken without an identity to check them against."""
        return self.dev


def check_port(name: str, port: int) -> None:
    """Refuse a `port` that there is not, given as the entry `name`."""
    if not 0 <= port <= 65535:
        raise InvalidParameter(name, port, "a port from 0 to 65535")


def check_level(level: str) -> None:
    """Refuse a level of the log that there is not."""
    if level not in ("debug", "info", "warning", "error"):
        raise InvalidParameter("log_level", level, "debug, info, warning or error")
