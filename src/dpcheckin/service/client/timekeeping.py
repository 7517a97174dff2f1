"""How an agent keeps time: whose clock it goes by, how it sleeps, and who works beside it."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from dpcheckin.randomizers import SecureSource
from dpcheckin.service.client.core import Part

log = logging.getLogger("dpcheckin.client")

LARGEST_PAUSE = 30.0
"""Seconds between two attempts to reach somebody who does not answer."""
UNKNOWN_PAUSES = (60.0, 3600.0)
"""Seconds between requests of a client whose token nobody knows: the first and the largest."""
_WRONG_CLOCK = 30.0
"""Seconds between this clock and the shuffler's from which on the shuffler's is used."""


def _in_thread(call: Callable[[], Part]) -> asyncio.Future[Part]:
    return asyncio.get_running_loop().run_in_executor(None, call)


@dataclass
class Clock:
    """Time, sleeping and working beside it, so that tests can have their own."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep
    work: Callable[[Callable[[], Part]], asyncio.Future[Part]] = _in_thread
    """The owner's computation, which may take long."""
    aside: Callable[..., Awaitable[Any]] = asyncio.to_thread
    """What waits for the disk or for a price."""


class Timekeeper:
    """The time by which rounds are kept. `clock`: this device's; `source`: of pauses that nobody can foresee."""

    def __init__(self, clock: Clock, source: SecureSource) -> None:
        self.clock, self._source, self._skew = clock, source, 0.0
        self._suspected: float | None = None

    def now(self) -> float:
        """Seconds since the epoch, by the shuffler's clock when this device's is far off."""
        return self.clock.now() + self._skew

    def compare(self, date: float | None) -> None:
        """Take note of the `date` of the shuffler's answer, if it has one; a clock that is far off is said, and made up
        for, when two answers in a row agree: one may come from anywhere."""
        if date is None:
            return
        off, before = date - self.clock.now(), self._suspected
        self._suspected = off if abs(off) > _WRONG_CLOCK else None
        if self._suspected is None:
            self._skew = 0.0
        elif before is not None and abs(off - before) <= _WRONG_CLOCK:
            self._go_by(off)

    def within(self, opens: float, closes: float) -> None:
        """A round that is shown as open and `opens` and `closes` so by the analyzer's word: it says who is right when
        only one clock, this device's or the shuffler's, shows a time in between."""
        if opens <= self.now() < closes:
            return
        if opens <= self.clock.now() < closes:
            self._skew = 0.0
        elif self._suspected is not None and opens <= self.clock.now() + self._suspected < closes:
            self._go_by(self._suspected)

    def _go_by(self, off: float) -> None:
        if abs(off - self._skew) > _WRONG_CLOCK:
            log.warning(
                "this device's clock is %d seconds %s the shuffler's, by which rounds are kept; set it right",
                round(abs(off)),
                "behind" if off > 0 else "ahead of",
            )
        self._skew = off

    async def sleep(self, seconds: float) -> None:
        """So long."""
        await self.clock.sleep(seconds)

    async def sleep_until(self, moment: float) -> None:
        """Until that time; not at all when it is over."""
        await self.clock.sleep(max(0.0, moment - self.now()))

    async def sleep_about(self, seconds: float) -> None:
        """Between half and one and a half times as long."""
        await self.clock.sleep(self.about(seconds))

    def about(self, seconds: float) -> float:
        """Between half and one and a half times as many."""
        return seconds * (0.5 + float(self._source.uniform(1)[0]))


class Backoff:
    """Pauses between attempts that fail: each twice as long as the one before, from `first` to `largest` seconds."""

    def __init__(self, time: Timekeeper, first: float, largest: float) -> None:
        self._time, self._first, self._largest = time, first, largest
        self._next, self._until = first, -math.inf

    @property
    def over(self) -> bool:
        """May be tried now."""
        return self._time.now() >= self._until

    @property
    def calm(self) -> bool:
        """Nothing failed lately."""
        return self._until == -math.inf

    def failed(self) -> float:
        """Begin a pause; about so many seconds."""
        pause = min(self._next, self._largest)
        self._until = self._time.now() + self._time.about(pause)
        self._next = 2 * pause
        return pause

    def reset(self) -> None:
        """It went well."""
        self._next, self._until = self._first, -math.inf
