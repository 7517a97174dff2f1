"""Protocols: who takes part when, and what a run costs each client.

Plans are frozen descriptions; the same object accounts, simulates and is deployed. The numbers
come from `dpcheckin.accounting`, the training from `dpcheckin.learning`.
"""

from dpcheckin.protocols.comparators import CentralDpSgd, LocalOnly
from dpcheckin.protocols.distributed import DistributedCheckIn
from dpcheckin.protocols.plan import Cohort, Plan, Reveals
from dpcheckin.protocols.random_check_ins import RandomCheckIns, Window
from dpcheckin.protocols.shuffled import FullShuffle, ShuffledCheckIn, SubsampledShuffle

__all__ = [
    "CentralDpSgd",
    "Cohort",
    "DistributedCheckIn",
    "FullShuffle",
    "LocalOnly",
    "Plan",
    "RandomCheckIns",
    "Reveals",
    "ShuffledCheckIn",
    "SubsampledShuffle",
    "Window",
]
