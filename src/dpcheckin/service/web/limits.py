"""Limits: how often a client may ask, how much may be under way, how many may be connected.

Nothing here knows HTTP. A limit that is reached looks the same to everybody.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from dpcheckin.service.connections import Budget

__all__ = ["Buckets", "Budget", "Limits"]


@dataclass(frozen=True)
class Limits:
    """What the operator may set; the defaults suit one machine and 10^5 clients."""

    requests_per_second: float = 5.0
    """Of one client, on average."""
    burst: int = 30
    """Requests of one client at once."""
    failures_per_second: float = 10.0
    """Requests without a valid token from one address, on average."""
    failure_burst: int = 100
    body_bytes: int = 256 << 20
    """Bodies under way at the same time, complete or not, all together."""
    model_bytes: int = 256 << 20
    """The largest model."""
    connections: int = 10_000
    connections_per_address: int = 1_000
    header_seconds: float = 10.0
    """From connecting to the end of the headers."""
    body_seconds: float = 60.0
    """From the first byte of a request to its last."""
    write_seconds: float = 60.0
    """For a reader to take the part of an answer that waits for it, 256 KB at the most."""
    keep_alive_seconds: int = 30


class Buckets:
    """Token buckets by key; the longest unused are forgotten, which only errs on the kind side.

    Args:
        rate: refill, in requests a second.
        burst: size, in requests.
        clock: seconds, monotonic.
        remembered: how many keys are kept.
    """

    def __init__(
        self, rate: float, burst: int, clock: Callable[[], float], remembered: int = 200_000
    ) -> None:
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
