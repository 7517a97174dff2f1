"""How much an audit may cost: seconds of wall clock or of processors, or pairs of runs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpcheckin.errors import InvalidParameter

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Budget:
    """Exactly one of the three; processor time is that of all workers together.

    Args:
        seconds: of wall clock.
        pairs: pairs of runs.
        cpu_seconds: of all processes together.
    """

    seconds: float | None = None
    pairs: int | None = None
    cpu_seconds: float | None = None

    def __post_init__(self) -> None:
        given = [x for x in (self.seconds, self.pairs, self.cpu_seconds) if x is not None]
        if len(given) != 1 or not given[0] > 0:
            raise InvalidParameter("budget", given, "a positive time or a positive number of pairs")

    @staticmethod
    def parse(text: str) -> Budget:
        """Read a time such as 30s, 10m, 2h or 20m-cpu, or a number of pairs such as 100000.

        >>> Budget.parse("10m").seconds, Budget.parse("20m-cpu").cpu_seconds
        (600.0, 1200.0)
        """
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(?:([smhd])(-cpu)?)?", text.strip())
        if not found or (not found[2] and "." in found[1]):
            allowed = "a time (30s, 10m, 2h, 20m-cpu) or a number of pairs"
            raise InvalidParameter("budget", text, allowed)
        if found[2]:
            seconds = float(found[1]) * _UNITS[found[2]]
            return Budget(cpu_seconds=seconds) if found[3] else Budget(seconds=seconds)
        return Budget(pairs=int(found[1]))

    def __str__(self) -> str:
        if self.pairs is not None:
            return f"{self.pairs:,} pairs"
        if self.cpu_seconds is not None:
            return f"{self.cpu_seconds:,g} s of processor time"
        return f"{self.seconds:,g} s"
