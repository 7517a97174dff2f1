"""Protocols: who takes part when, and what a run costs each client.

Plans are frozen descriptions; the same object accounts, simulates and is deployed. The numbers come from
`dpcheckin.accounting`, the training from `dpcheckin.learning`. Plans are loaded when they are first touched, because
the table of protocols beside them (`questions`) is needed by help texts.
"""

from typing import TYPE_CHECKING

from dpcheckin.lazy import offered

if TYPE_CHECKING:
    from dpcheckin.protocols.comparators import CentralDpSgd as CentralDpSgd
    from dpcheckin.protocols.comparators import LocalOnly as LocalOnly
    from dpcheckin.protocols.own_terms import own_guarantee as own_guarantee
    from dpcheckin.protocols.own_windows import ClientWindows as ClientWindows
    from dpcheckin.protocols.own_windows import OwnWindows as OwnWindows
    from dpcheckin.protocols.plan import Cohort as Cohort
    from dpcheckin.protocols.plan import DistributedCheckIn as DistributedCheckIn
    from dpcheckin.protocols.plan import FullShuffle as FullShuffle
    from dpcheckin.protocols.plan import Plan as Plan
    from dpcheckin.protocols.plan import Reveals as Reveals
    from dpcheckin.protocols.plan import ShuffledCheckIn as ShuffledCheckIn
    from dpcheckin.protocols.plan import SubsampledShuffle as SubsampledShuffle
    from dpcheckin.protocols.random_check_ins import RandomCheckIns as RandomCheckIns
    from dpcheckin.protocols.random_check_ins import Window as Window

__all__, __getattr__, __dir__ = offered(__name__)
