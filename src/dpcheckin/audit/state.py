"""What a check needs to go on where it stopped, kept in a file.

Written to a fresh file that then takes the old one's place, so that an interruption never leaves
half a state.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dpcheckin.audit.betting.capital import Capital
from dpcheckin.audit.betting.choice import Choice, Event
from dpcheckin.audit.betting.evidence import Counts, Stakes
from dpcheckin.errors import InvalidParameter


@dataclass
class State:
    """Everything needed to go on."""

    seed: int
    choice: Choice
    pilot_pairs: int
    next_block: int
    counts: Counts | Capital | None = None
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def save(self, path: Path, fingerprint: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"fingerprint": fingerprint, **asdict(replace(self, counts=None))}
        if self.counts is not None:
            content["counts"] = self.counts.to_json()
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(content), encoding="utf-8")
        os.replace(fresh, path)

    @staticmethod
    def load(path: Path, fingerprint: str) -> State:
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
            chosen = read["choice"]
            stakes = Stakes(*(tuple(chosen["stakes"][key]) for key in ("sizes", "shares")))
            state = State(
                int(read["seed"]),
                Choice(Event(**chosen["event"]), stakes, float(chosen["promised"])),
                int(read["pilot_pairs"]),
                int(read["next_block"]),
                _read_counts(read["counts"]),
                float(read["seconds"]),
                float(read["cpu_seconds"]),
            )
        except FileNotFoundError:
            raise InvalidParameter("resume", str(path), "a folder with a saved audit") from None
        except (KeyError, TypeError, ValueError) as problem:
            raise InvalidParameter("resume", str(problem), "a state saved by an audit") from None
        if read["fingerprint"] != fingerprint:
            raise InvalidParameter(
                "resume", str(path), "the state of an audit with the same options"
            )
        return state


def _read_counts(read: Any) -> Counts | Capital | None:
    if read is None:
        return None
    if "table" in read:
        return Counts(tuple(tuple(row) for row in read["table"]))
    return Capital.from_json(read)
