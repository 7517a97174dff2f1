"""How limits are kept: how often a client may ask, and how much may be under way. Nothing here knows HTTP."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable


class Budget:
    """Bytes that may be under way, `largest` all together."""

    def __init__(self, largest: int) -> None:
        self._left = largest

    def take(self, size: int) -> bool:
        """Reserve; False if there is not enough left."""
        if size > self._left:
            return False
        self._left -= size
        return True

    def give_back(self, size: int) -> None:
        """After the answer."""
        self._left += size


class Buckets:
    """Token buckets by key, of `burst` requests and refilled at a `rate` of requests a second by a monotonic `clock`.

    The longest unused of more than `remembered` are forgotten, which only errs on the kind side.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float], remembered: int = 200_000) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        self._remembered = remembered
        self._level: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def take(self, key: bytes) -> bool:
        """Is one more allowed now?"""
        now = self._clock()
        level, since = self._level.pop(key, (self._burst, now))
        level = min(self._burst, level + max(0.0, now - since) * self._rate)
        allowed = level >= 1.0
        self._level[key] = (level - 1.0 if allowed else level, now)
        if len(self._level) > self._remembered:
            self._level.popitem(last=False)
        return allowed
