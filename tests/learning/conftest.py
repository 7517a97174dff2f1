"""Small runs on the embedded digits, shared by the tests of this folder."""

from dataclasses import replace

import pytest

from dpcheckin.learning.settings import Settings
from dpcheckin.learning.simulation.runs import RunOptions


@pytest.fixture
def tiny():
    """Options of a run that takes about a second; keyword arguments change single options."""

    def make(settings=None, **changes):
        learning = Settings(**{"evaluate_every": 4, "checkpoint_every": 3, **(settings or {})})
        base = RunOptions(rounds=12, rate=0.1, threads=1, settings=learning)
        return replace(base, **changes)

    return make
