"""The analyzer's checkpoint: everything it needs to go on after a crash, in one file.

The file is replaced as a whole (old or new, never neither) and carries its own digest. It holds the
plan, the round that is announced or under way, the model with the optimiser's state, a partial sum
when several slots make one step, and the log of the rounds. What was *spent* is not in it: that is
the ledger's, which is never rolled back.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.errors import ServiceError
from dpcheckin.service.journal import replace_file
from dpcheckin.service.tasks import TaskState
from dpcheckin.service.wire.canonical import canonical, digest, parse
from dpcheckin.service.wire.problems import Malformed

FILE = "checkpoint"
FORMAT = 2
"""Of a checkpoint; 1, which did not say so, is read too."""
_LARGEST = 1 << 34


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
        body = canonical(
            {
                "format": FORMAT,
                "plan": self.plan,
                "model": _text(self.task.model),
                "private": _text(self.task.private),
                "metrics": dict(self.task.metrics),
                "shown": dict(self.task.shown),
                "round": self.round,
                "pending": self.pending,
                "steps": self.steps,
                "partial": None if self.partial is None else _text(self.partial.tobytes()),
                "partial_reports": self.partial_reports,
                "log": list(self.log),
            }
        )
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
            return AnalyzerState(
                plan=fields["plan"],
                task=TaskState(
                    _bytes(fields["model"]),
                    _bytes(fields["private"]),
                    fields["metrics"],
                    fields.get("shown", {}),  # checkpoints of version 0.1 have none
                ),
                round=fields["round"],
                pending=fields["pending"],
                steps=fields["steps"],
                partial=None if partial is None else np.frombuffer(_bytes(partial)).copy(),
                partial_reports=fields["partial_reports"],
                log=tuple(fields["log"]),
            )
        except (Malformed, KeyError, TypeError, ValueError, AttributeError):
            raise CheckpointDamaged("the checkpoint is of another version") from None

    def with_row(self, row: dict[str, Any], **changes: Any) -> AnalyzerState:
        """The state after a round, with the round's line in the log."""
        return replace(self, log=(*self.log, row), pending=None, round=self.round + 1, **changes)


def save(folder: Path, state: AnalyzerState) -> None:
    """Replace the checkpoint durably.

    Args:
        folder: the analyzer's.
        state: what replaces the checkpoint.
    """
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
