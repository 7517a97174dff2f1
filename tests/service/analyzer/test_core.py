"""States of rounds, as the shuffler answers."""

from typing import Any

import pytest

from dpcheckin.service.analyzer.core import Status
from dpcheckin.service.wire.problems import Malformed


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        {"state": "ajar"},
        {"state": "void"},
        {"state": "void", "reason": "weather"},
        {"state": "closed", "present": -1},
        {"state": "closed", "reports": True},
        {"state": "closed", "reports": "3"},
    ],
    ids=str,
)
def test_an_odd_status_is_an_error_and_not_a_guess(said: Any) -> None:
    with pytest.raises(Malformed):
        Status.from_object(said)
