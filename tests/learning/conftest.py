"""Small runs on the embedded digits, shared by the tests of this folder."""

from dataclasses import replace

import pytest

from dpcheckin.learning.options import RunOptions, Settings


@pytest.fixture
def tiny():
    """Options of a run that takes about a second; keyword arguments change single options."""

    def make(settings=None, **changes):
        often = {"evaluate_every": 4, "checkpoint_every": 3}
        quick = {"learning_rate": 0.5, "averaging": 0.0}
        learning = Settings(**{**often, **quick, **(settings or {})})
        base = RunOptions(rounds=12, rate=0.1, local_epsilon=4.0, threads=1, settings=learning)
        return replace(base, **changes)

    return make
