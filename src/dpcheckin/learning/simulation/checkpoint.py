"""A run's state on disk, so that a killed run goes on as if nothing had happened.

One file, replaced atomically: parameters, their running average, optimiser state, rounds charged
and the log so far. Chance needs no state of its own: every draw is a function of the seed and the
round number. A round that was run but not yet saved is run again with the same draws, so the same
reports are made and nothing is spent twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.files import replacing

FILE = "checkpoint.pt"
_CHOSEN = "chosen"


@dataclass
class State:
    """Everything that changes during a run."""

    parameters: Tensor
    average: Tensor
    optimizer: dict[str, Any] = field(default_factory=dict)
    rounds: int = 0
    log: list[dict[str, Any]] = field(default_factory=list)


def save(folder: Path, state: State, fingerprint: str, chosen: Mapping[str, str]) -> None:
    """Write the state so that a crash leaves either the old file or the new one, never neither.

    The options in words, `chosen`, say later which of them another run has otherwise.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / FILE, "wb") as file:
        torch.save({"fingerprint": fingerprint, _CHOSEN: dict(chosen), **state.__dict__}, file)


def load(folder: Path, fingerprint: str, chosen: Mapping[str, str]) -> State | None:
    """The saved state, None when there is none; a state of another run is refused."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        saved = torch.load(path, weights_only=True)
        whose, theirs = saved.pop("fingerprint"), saved.pop(_CHOSEN, {})
    except Exception:  # torch raises what the first broken byte happens to break
        whole = f"a folder whose {FILE} can be read: it is damaged, remove it to begin anew"
        raise InvalidParameter("out", str(folder), whole) from None
    if whose != fingerprint:
        allowed = "an empty folder or one with a run of exactly these settings"
        other = [f"{name} {value}" for name, value in theirs.items() if chosen.get(name) != value]
        there = f" (the one there has {', '.join(other)})" if other else ""
        raise InvalidParameter("out", str(folder), allowed + there)
    return State(**saved)
