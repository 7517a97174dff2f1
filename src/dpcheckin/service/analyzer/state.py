"""What an analyzer keeps besides its ledger: one file with everything it needs to go on, and the opening keys.

The checkpoint is replaced as a whole (old or new, never neither) and carries its own digest. What was *spent* is not in
it: that is the ledger's, which is never rolled back. A new opening key is on disk before it is announced, so that
nothing can be sealed to a key that a crash forgets; a key that no round will name is destroyed: what was sealed to it
can then be read by nobody any more.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import InvalidParameter, ServiceError
from dpcheckin.service.storage.files import check_secret, make_folder, replace_file, sync_folder
from dpcheckin.service.tasks import TaskState
from dpcheckin.service.wire.canonical import canonical, digest, parse
from dpcheckin.service.wire.documents import KeyDocument, PlanDocument
from dpcheckin.service.wire.envelope import OpeningKey, new_private_key
from dpcheckin.service.wire.problems import Malformed

FILE = "checkpoint"
ROUNDS = "rounds"
"""Folder of what a task keeps of every round beside the checkpoint: read at every start."""
FORMAT = 2
"""Of a checkpoint; 1, which did not say so, is read too."""
_LARGEST = 1 << 34
_PLAIN = ("plan", "round", "pending", "steps", "partial_reports")
"""Fields that stand in the file as they are."""


class CheckpointDamaged(ServiceError):
    """The checkpoint is not what was written."""


@dataclass(frozen=True)
class AnalyzerState:
    """Where the analyzer stands."""

    plan: dict[str, Any]
    task: TaskState
    round: int = 0
    """The round to announce next, or the one under way."""
    pending: dict[str, Any] | None = None
    """The signed document of the round under way."""
    steps: int = 0
    """Times the model was changed."""
    partial: NDArray[np.float64] | None = None
    partial_reports: int = 0
    log: tuple[dict[str, Any], ...] = field(default_factory=tuple)

    def to_bytes(self) -> bytes:
        """Digest and canonical bytes."""
        fields = {name: getattr(self, name) for name in _PLAIN} | {
            "format": FORMAT,
            "model": _text(self.task.model),
            "private": _text(self.task.private),
            "metrics": dict(self.task.metrics),
            "shown": dict(self.task.shown),
            "partial": None if self.partial is None else _text(self.partial.tobytes()),
            "log": list(self.log),
        }
        body = canonical(fields)
        return digest(body) + body

    @staticmethod
    def from_bytes(content: bytes) -> AnalyzerState:
        """Read a checkpoint; damage raises `CheckpointDamaged`."""
        if digest(content[32:]) != content[:32]:
            raise CheckpointDamaged("the checkpoint is not what was written")
        try:
            fields = parse(content[32:], _LARGEST)
            written = fields.get("format", 1)
            if type(written) is not int or not 1 <= written <= FORMAT:
                raise CheckpointDamaged(
                    f"the checkpoint is of format {str(written)[:20]}, known are 1 to {FORMAT}: "
                    "run the release that wrote it, or a newer one (docs/upgrading.md)"
                )
            partial = fields["partial"]
            model, private = _bytes(fields["model"]), _bytes(fields["private"])
            return AnalyzerState(
                task=TaskState(
                    model, private, fields["metrics"], fields.get("shown", {})
                ),  # version 0.1 showed nothing
                partial=None if partial is None else np.frombuffer(_bytes(partial)).copy(),
                log=tuple(fields["log"]),
                **{name: fields[name] for name in _PLAIN},
            )
        except (Malformed, KeyError, TypeError, ValueError, AttributeError):
            raise CheckpointDamaged("the checkpoint is of another version") from None

    def with_row(self, row: dict[str, Any], **changes: Any) -> AnalyzerState:
        """The state after a round, with the round's line in the log."""
        return replace(self, log=(*self.log, row), pending=None, round=self.round + 1, **changes)


def save(folder: Path, state: AnalyzerState) -> None:
    """Replace the checkpoint in a `folder` by this `state`, durably."""
    replace_file(folder / FILE, state.to_bytes())


def load(folder: Path) -> AnalyzerState | None:
    """The checkpoint, None when there is none."""
    try:
        return AnalyzerState.from_bytes((folder / FILE).read_bytes())
    except FileNotFoundError:
        return None


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


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
    """The opening keys of one plan, oldest first; each is a file of the folder, named after its first round."""

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
