"""The shuffler's connections: the guard with the shuffler's limits, problems and counters."""

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
from dpcheckin.service.shuffler.http.limits import Limits
from dpcheckin.service.shuffler.http.metrics import Metrics
from dpcheckin.service.shuffler.http.replies import raw_problem
from dpcheckin.service.wire.problems import Problem

__all__ = ["LARGEST_HEADERS", "WHOLE_BODY", "Guard", "GuardedProtocol"]


class Guard(_Guard):
    """All guarded connections of a shuffler's port.

    Args:
        limits: connections, seconds and bytes.
        metrics: where drops are counted.
        monotonic: seconds.
        budget: shared with whoever reserves room for whole bodies; None: one of its own.
    """

    def __init__(
        self,
        limits: Limits,
        metrics: Metrics,
        monotonic: Callable[[], float] = time.monotonic,
        budget: Budget | None = None,
    ) -> None:
        self.metrics = metrics
        super().__init__(
            limits,
            Answers(raw_problem(Problem.MALFORMED), raw_problem(Problem.BUSY)),
            budget or Budget(limits.body_bytes),
            metrics.add,
            monotonic,
        )
