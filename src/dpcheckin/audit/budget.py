"""How much an audit may cost: seconds of wall clock, or pairs of runs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dpcheckin.errors import InvalidParameter

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Budget:
    """Exactly one of the two."""

    seconds: float | None = None
    pairs: int | None = None

    def __post_init__(self) -> None:
        given = self.seconds if self.pairs is None else self.pairs
        if (self.seconds is None) == (self.pairs is None) or not given or not given > 0:
            raise InvalidParameter("budget", given, "a positive time or a positive number of pairs")

    @staticmethod
    def parse(text: str) -> Budget:
        """Read a time such as 30s, 10m or 2h, or a number of pairs such as 100000.

        >>> Budget.parse("10m").seconds
        600.0
        """
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text.strip())
        if not found or (not found[2] and "." in found[1]):
            raise InvalidParameter("budget", text, "a time (30s, 10m, 2h) or a number of pairs")
        if found[2]:
            return Budget(seconds=float(found[1]) * _UNITS[found[2]])
        return Budget(pairs=int(found[1]))

    def __str__(self) -> str:
        return f"{self.pairs:,} pairs" if self.pairs is not None else f"{self.seconds:g} s"
