"""Protocols: who takes part when, and what a run costs each client.

Plans are frozen descriptions; the same object accounts, simulates and is deployed. The numbers
come from `dpcheckin.accounting`, the training from `dpcheckin.learning`. Plans are loaded when they
are first touched, because the table of names beside them is needed by help texts.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpcheckin.protocols.comparators import CentralDpSgd, LocalOnly
    from dpcheckin.protocols.distributed import DistributedCheckIn
    from dpcheckin.protocols.own_windows import ClientWindows, OwnWindows
    from dpcheckin.protocols.plan import Cohort, Plan, Reveals
    from dpcheckin.protocols.random_check_ins import RandomCheckIns, Window
    from dpcheckin.protocols.shuffled import FullShuffle, ShuffledCheckIn, SubsampledShuffle

_HOME = {
    "CentralDpSgd": "comparators",
    "ClientWindows": "own_windows",
    "Cohort": "plan",
    "DistributedCheckIn": "distributed",
    "FullShuffle": "shuffled",
    "LocalOnly": "comparators",
    "OwnWindows": "own_windows",
    "Plan": "plan",
    "RandomCheckIns": "random_check_ins",
    "Reveals": "plan",
    "ShuffledCheckIn": "shuffled",
    "SubsampledShuffle": "shuffled",
    "Window": "random_check_ins",
}
__all__ = [
    "CentralDpSgd",
    "ClientWindows",
    "Cohort",
    "DistributedCheckIn",
    "FullShuffle",
    "LocalOnly",
    "OwnWindows",
    "Plan",
    "RandomCheckIns",
    "Reveals",
    "ShuffledCheckIn",
    "SubsampledShuffle",
    "Window",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
