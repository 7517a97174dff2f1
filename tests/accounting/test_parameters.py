"""What is out of range is refused in one line that names it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpcheckin.accounting import (
    CheckInRound,
    LocalRound,
    ShuffleRound,
    SubsampleRound,
    ThreeAtoms,
    any_pure,
    approximate,
    dary_response,
    from_atoms,
    from_profile,
    gaussian,
    privunit,
)
from dpcheckin.errors import InvalidParameter


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: any_pure(0.0), "local_epsilon = 0.0"),
        (lambda: any_pure(math.nan), "local_epsilon = nan"),
        (lambda: any_pure(51.0), "local_epsilon = 51.0"),
        (lambda: any_pure("2"), "local_epsilon = '2'"),
        (lambda: dary_response(1.0, 1), "symbols = 1"),
        (lambda: privunit(1.0, 1), "dimension = 1"),
        (lambda: gaussian(0.01), "noise_multiplier = 0.01"),
        (lambda: gaussian(math.inf), "noise_multiplier = inf"),
        (lambda: approximate(1.0, 0.0), "local_delta = 0.0"),
        (lambda: from_atoms([], []), "ratios"),
        (lambda: from_atoms([1.0], [0.5]), "masses"),
        (lambda: from_atoms([math.nan], [1.0]), "ratios"),
        (lambda: from_atoms([3.0], [1.0]), "ratios"),
        (lambda: from_atoms([0.0], [1.0]), "ratios"),
        (lambda: from_profile(lambda a: a), "function"),
        (lambda: from_profile(lambda a: a * np.nan), "function"),
        (lambda: from_profile(lambda a: 1 - a, local_epsilon=0.0), "local_epsilon"),
        (lambda: from_profile(lambda a: 1 - a, local_delta=1.0), "local_delta"),
        (lambda: ThreeAtoms("odd", 1.0, 0.9, 0.0), "hit"),
        (lambda: CheckInRound(0, 0.1, any_pure(1.0)), "population = 0"),
        (lambda: CheckInRound(2.5, 0.1, any_pure(1.0)), "population = 2.5"),  # type: ignore[arg-type]
        (lambda: CheckInRound(True, 0.1, any_pure(1.0)), "population = True"),
        (lambda: CheckInRound(10, 1.1, any_pure(1.0)), "rate = 1.1"),
        (lambda: CheckInRound(10, 0.1, any_pure(1.0), colluding=1.0), "colluding = 1.0"),
        (lambda: CheckInRound(10, 0.1, any_pure(1.0), colluding=0.99), "colluding = 0.99"),
        (lambda: CheckInRound(10, 0.1, any_pure(1.0), dropout=-0.1), "dropout = -0.1"),
        (lambda: CheckInRound(10, 0.1, any_pure(1.0), lowest_rate=0.2), "lowest_rate = 0.2"),
        (lambda: SubsampleRound(10, 11, any_pure(1.0)), "cohort = 11"),
        (lambda: SubsampleRound(10, 5, any_pure(1.0), colluding=0.999), "colluding"),
        (lambda: ShuffleRound(10, any_pure(1.0), colluding=0.999), "colluding"),
        (lambda: LocalRound(any_pure(1.0), 1.5), "rate = 1.5"),
    ],
)
def test_bad_parameters(make: Any, text: str) -> None:
    with pytest.raises(InvalidParameter, match=text):
        make()
