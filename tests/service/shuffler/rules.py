"""What the tests of the shuffler's rules share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.wire.problems import Problem, Refusal
from service.shuffler_world import Analyzer, Clock, attend, send


def refused(problem: Problem, call: Callable[..., object], *arguments: object) -> None:
    with pytest.raises(Refusal) as caught:
        call(*arguments)
    assert caught.value.problem is problem


def closed(core: Shuffler, clock: Clock, analyzer: Analyzer, number: int, *clients: int) -> None:
    """Open a round, let these clients report, close it."""
    analyzer.open(core, number)
    attend(core, 4)
    send(core, analyzer, number, *clients)
    clock.now += 10
