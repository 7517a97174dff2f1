"""How long the next round is, and how long the analyzer waits before it: a function of the log.

A round is void by population when too few envelopes arrive in time: clients are away, or machines
and networks are too busy. Nothing is spent on it, but every client has flipped its coin, computed
and sent, so an analyzer that only repeats itself wears its fleet out for nothing. Each such round
makes the next one twice as long, up to a limit; after a while the pauses grow too; and after so
many in a row the run ends and says why. Rounds become shorter again when a few went well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpcheckin.errors import InvalidParameter, ServiceError

VOID = "void by population"
_PATIENCE = 3  # void rounds in a row before pauses begin
_CALM = 5  # rounds that went well before they become shorter again


class TooManyVoidRounds(ServiceError):
    """So many rounds in a row were void that going on would wear clients out for nothing."""


@dataclass(frozen=True)
class Pacing:
    """What an operator allows."""

    longest: float = 8.0
    """Times the plan's `round_seconds` that a round may take."""
    most_void_rounds: int = 24
    """In a row, before the run ends; 0: it never ends for that."""
    largest_pause: float = 600.0
    """Seconds between two rounds."""

    def __post_init__(self) -> None:
        if not 1 <= self.longest < float("inf"):
            raise InvalidParameter("analyzer.longest_rounds", self.longest, "at least 1")
        if self.most_void_rounds < 0:
            raise InvalidParameter("analyzer.most_void_rounds", self.most_void_rounds, "at least 0")
        if not 0 <= self.largest_pause < float("inf"):
            raise InvalidParameter("analyzer.largest_pause", self.largest_pause, "at least 0")

    def factor(self, log: Sequence[dict[str, Any]]) -> float:
        """Times the plan's length that the next round takes.

        Args:
            log: of all rounds, oldest first.
        """
        factor, calm = 1.0, 0
        for row in log:
            if row["state"] == VOID:
                factor, calm = min(2 * factor, self.longest), 0
                continue
            calm += 1
            if calm == _CALM:
                factor, calm = max(1.0, factor / 2), 0
        return factor

    def pause(self, log: Sequence[dict[str, Any]], seconds: float) -> float:
        """Seconds to wait before the next round, beyond what the schedule says.

        Args:
            log: of all rounds, oldest first.
            seconds: that a round of the plan takes.
        """
        void = void_in_a_row(log)
        if void <= _PATIENCE:
            return 0.0
        return float(min(self.largest_pause, seconds * 2.0 ** min(void - _PATIENCE, 40)))

    def check(self, log: Sequence[dict[str, Any]]) -> None:
        """Raise `TooManyVoidRounds` at the limit.

        Args:
            log: of the rounds since the analyzer was started, oldest first.
        """
        void = void_in_a_row(log)
        if not self.most_void_rounds or void < self.most_void_rounds:
            return
        there = [row["present"] or 0 for row in log[-void:]]
        raise TooManyVoidRounds(
            f"{void:,} rounds in a row were void: {min(there):,} to {max(there):,} clients were "
            "there in time; start again when enough of them are"
        )


def void_in_a_row(log: Sequence[dict[str, Any]]) -> int:
    """Void rounds at the end of a log.

    >>> void_in_a_row([{"state": VOID}, {"state": "released"}, {"state": VOID}])
    1
    """
    return next((i for i, row in enumerate(reversed(log)) if row["state"] != VOID), len(log))
