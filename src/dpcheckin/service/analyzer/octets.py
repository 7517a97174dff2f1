"""Opened reports as rows of numbers, for tasks that count reports rather than add up estimates.

Payloads are gathered and decoded many at a time. Rows that the randomizer could not have made are
left out and counted: a hostile report weighs as much as an honest one, or nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcheckin.randomizers import Randomizer
from dpcheckin.service.wire.payloads import PAYLOAD_HEAD_BYTES

OUT_OF_RANGE = "not a report this randomizer can make"
_AT_ONCE = 1 << 16


class ReportRows:
    """Takes payloads one by one; memory is that of the rows.

    Args:
        randomizer: of the plan; says how reports are laid out and which there can be.
    """

    def __init__(self, randomizer: Randomizer) -> None:
        self._randomizer, self._format = randomizer, randomizer.report_format
        self._waiting: list[bytes] = []
        self._rows: list[NDArray[Any]] = []
        self.dropped = 0

    def take(self, payload: bytes) -> None:
        """One opened payload of the plan's kind and size."""
        self._waiting.append(payload[PAYLOAD_HEAD_BYTES:])
        if len(self._waiting) == _AT_ONCE:
            self._decode()

    def rows(self) -> NDArray[Any]:
        """The rows that can be counted, in the order of the batch."""
        self._decode()
        return np.concatenate(self._rows)

    def _decode(self) -> None:
        rows, odd = self._format.decode(self._waiting)
        good = self._randomizer.well_formed(rows)
        self._rows.append(rows[good])
        self.dropped += odd + len(good) - int(good.sum())
        self._waiting = []
