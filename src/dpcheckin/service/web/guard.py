"""Connections of a party's port: the guard with its limits and with the problems of the wire."""

from __future__ import annotations

import time
from collections.abc import Callable

from dpcheckin.service.connections import (
    LARGEST_HEADERS,
    WHOLE_BODY,
    Answers,
    Budget,
    GuardedProtocol,
)
from dpcheckin.service.connections import Guard as _Guard
from dpcheckin.service.web.limits import Limits
from dpcheckin.service.web.replies import raw_problem
from dpcheckin.service.wire.problems import Problem

__all__ = ["LARGEST_HEADERS", "WHOLE_BODY", "Guard", "GuardedProtocol"]


class Guard(_Guard):
    """All guarded connections of a port.

    Args:
        limits: connections, seconds and bytes.
        count: called with `timeouts_total`, `slow_readers_total` or `connections_refused_total`.
        monotonic: seconds.
        budget: shared with whoever reserves room for whole bodies; None: one of its own.
    """

    def __init__(
        self,
        limits: Limits,
        count: Callable[[str], None],
        monotonic: Callable[[], float] = time.monotonic,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(
            limits,
            Answers(raw_problem(Problem.MALFORMED), raw_problem(Problem.BUSY)),
            budget or Budget(limits.body_bytes),
            count,
            monotonic,
        )
