"""What every document is: a frozen value with an id, the digest of its canonical bytes.

Reading one checks every field; an unknown or missing field is an error, so that two parties never
disagree about what they have agreed to. Which documents there are is in `documents`, `statements`
and `tokens`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from dpcheckin.service.wire.canonical import canonical, digest
from dpcheckin.service.wire.fields import Check, mapping, read_fields


class Document(ABC):
    """What the kinds of document have in common."""

    type: ClassVar[str]

    @classmethod
    @abstractmethod
    def from_object(cls, value: Any) -> Self:
        """Read a JSON value and check it; `from_object(document.to_object()) == document`.

        Args:
            value: what `canonical.parse` gave.
        """

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """Everything but the type."""

    def to_object(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {"type": self.type, **self.fields()}

    def to_bytes(self) -> bytes:
        """Canonical bytes."""
        return canonical(self.to_object())

    @property
    def id(self) -> bytes:
        """Digest of the canonical bytes."""
        return digest(self.to_bytes())


class FlatDocument(Document):
    """A document whose fields stand in JSON as they stand in the value."""

    checks: ClassVar[Mapping[str, Check]]
    optional: ClassVar[Mapping[str, Check]] = {}
    """Fields that may be missing; they are None then."""

    @classmethod
    def from_object(cls, value: Any) -> Self:
        given = given_fields(mapping(cls.type, value), cls.optional)
        found = read_fields(cls.type, value, {**cls.checks, **given})
        cls.check_together(found)
        del found["type"]
        return cls(**found)

    @classmethod
    @abstractmethod
    def check_together(cls, found: Mapping[str, Any]) -> None:
        """What no field shows alone."""

    def fields(self) -> dict[str, Any]:
        there = [name for name in self.optional if getattr(self, name) is not None]
        return {name: getattr(self, name) for name in (*self.checks, *there) if name != "type"}


def given_fields(value: Mapping[str, Any], optional: Mapping[str, Check]) -> dict[str, Check]:
    """Of the fields that may be missing, those that are there.

    Args:
        value: what was parsed.
        optional: the checks of fields that may be missing.
    """
    return {name: check for name, check in optional.items() if name in value}
