"""The analyzer's secrets on disk: its identity, and the opening keys with their rounds.

A new opening key is on disk before it is announced, so that nothing can be sealed to a key that a
crash forgets. A key is destroyed when no round that is still to be opened names it: what was sealed
to it can then be read by nobody any more.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.files import check_secret, make_folder
from dpcheckin.service.identity import IDENTITY, load_identity
from dpcheckin.service.journal import replace_file, sync_folder
from dpcheckin.service.wire.documents import KeyDocument, PlanDocument
from dpcheckin.service.wire.envelope import OpeningKey, new_private_key

__all__ = ["IDENTITY", "HeldKey", "KeyRing", "load_identity"]


@dataclass(frozen=True)
class HeldKey:
    """An opening key and the first round it serves."""

    key: OpeningKey
    from_round: int
    file: Path

    def document(self, plan: PlanDocument) -> KeyDocument:
        """What is announced."""
        return KeyDocument(plan.id.hex(), plan.suite, self.key.public_key.hex(), self.from_round)


class KeyRing:
    """The opening keys of one plan, oldest first; files named after their first round.

    Args:
        folder: one file for each key.
        suite: 1 or 2.
    """

    def __init__(self, folder: Path, suite: int) -> None:
        self._folder, self._suite = folder, suite
        make_folder(folder)
        self.keys: list[HeldKey] = []
        for file in sorted(folder.glob("from-*.key")):
            try:
                raw = bytes.fromhex(file.read_text().strip())
                number = int(file.stem.removeprefix("from-"))
                self.keys.append(HeldKey(OpeningKey(suite, raw), number, file))
            except ValueError:
                raise InvalidParameter("key", str(file), f"a key of suite {suite}") from None
            check_secret("key", file)
        if not self.keys:
            self.rotate(0)

    def rotate(self, from_round: int) -> HeldKey:
        """Make the key of the rounds from this one on; again: the one that was made."""
        for held in self.keys:
            if held.from_round == from_round:
                return held
        if self.keys and from_round < self.keys[-1].from_round:
            raise InvalidParameter("from_round", from_round, "after the newest key's first round")
        raw = new_private_key(self._suite)
        file = self._folder / f"from-{from_round:010d}.key"
        replace_file(file, raw.hex().encode() + b"\n")
        held = HeldKey(OpeningKey(self._suite, raw), from_round, file)
        self.keys.append(held)
        return held

    def for_round(self, number: int) -> HeldKey:
        """The newest key that serves a round."""
        return max((k for k in self.keys if k.from_round <= number), key=lambda k: k.from_round)

    def by_id(self, key_id: bytes) -> OpeningKey | None:
        """The key of this name, None if it was destroyed or never ours."""
        return next((held.key for held in self.keys if held.key.key_id == key_id), None)

    def forget_before(self, number: int) -> int:
        """Destroy the keys that serve only rounds before this one; how many there were."""
        needed = self.for_round(number).from_round
        old = [held for held in self.keys if held.from_round < needed]
        for held in old:
            size = held.file.stat().st_size
            with open(held.file, "r+b") as file:  # overwrite first: unlink leaves the bytes behind
                file.write(os.urandom(size))
                file.flush()
                os.fsync(file.fileno())
            held.file.unlink()
        if old:
            sync_folder(self._folder)
            self.keys = [held for held in self.keys if held.from_round >= needed]
        return len(old)
