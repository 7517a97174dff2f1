"""Fixtures of the tests of the shuffler's rules: each over every store."""

from __future__ import annotations

import pytest

from dpcheckin.service.shuffler.core import Shuffler
from dpcheckin.service.shuffler.stores.base import Store
from dpcheckin.service.wire import signing
from service.shuffler_world import IDENTITY, Analyzer, Clock, attend, core_over


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def core(store: Store, clock: Clock) -> Shuffler:
    return core_over(store, clock, identity=signing.public_identity(IDENTITY))


@pytest.fixture
def analyzer() -> Analyzer:
    return Analyzer.of(population=4, minimum_batch=2, rounds=3)


@pytest.fixture
def opened(core: Shuffler, analyzer: Analyzer) -> Shuffler:
    """Round 0 is open, all four clients are there."""
    analyzer.publish(core)
    analyzer.open(core, 0)
    attend(core, 4)
    return core
