"""Differential privacy for fleets whose clients decide for themselves when to check in.

This is the front door: the names most people need, each loaded from its room when it is first
touched. The rest of the package is mapped in `docs/architecture.md`.

>>> import dpcheckin as dp
>>> one = dp.CheckInRound(population=10_000, rate=0.01, pair=dp.any_pure(2.0))
>>> print(f"{dp.guarantee([(one, 100)], delta=1e-4).epsilon.upper:.4f}")
0.0735
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dpcheckin.accounting import Adjacency as Adjacency
    from dpcheckin.accounting import Bracket as Bracket
    from dpcheckin.accounting import CheckInRound as CheckInRound
    from dpcheckin.accounting import Composition as Composition
    from dpcheckin.accounting import DistributedRound as DistributedRound
    from dpcheckin.accounting import Guarantee as Guarantee
    from dpcheckin.accounting import Kind as Kind
    from dpcheckin.accounting import LocalGuarantee as LocalGuarantee
    from dpcheckin.accounting import LocalPair as LocalPair
    from dpcheckin.accounting import LocalRound as LocalRound
    from dpcheckin.accounting import LowerBound as LowerBound
    from dpcheckin.accounting import Round as Round
    from dpcheckin.accounting import SampledGaussianRound as SampledGaussianRound
    from dpcheckin.accounting import ShuffleRound as ShuffleRound
    from dpcheckin.accounting import SkellamRound as SkellamRound
    from dpcheckin.accounting import SubsampleRound as SubsampleRound
    from dpcheckin.accounting import WindowRound as WindowRound
    from dpcheckin.accounting import any_pure as any_pure
    from dpcheckin.accounting import approximate as approximate
    from dpcheckin.accounting import averaged_window as averaged_window
    from dpcheckin.accounting import binary_response as binary_response
    from dpcheckin.accounting import compose as compose
    from dpcheckin.accounting import dary_response as dary_response
    from dpcheckin.accounting import from_atoms as from_atoms
    from dpcheckin.accounting import from_profile as from_profile
    from dpcheckin.accounting import gaussian as gaussian
    from dpcheckin.accounting import guarantee as guarantee
    from dpcheckin.accounting import hemisphere as hemisphere
    from dpcheckin.accounting import laplace as laplace
    from dpcheckin.accounting import local_guarantee as local_guarantee
    from dpcheckin.accounting import lower_bound as lower_bound
    from dpcheckin.accounting import privunit as privunit
    from dpcheckin.accounting.published import Setting as Setting
    from dpcheckin.accounting.published import published_bounds as published_bounds
    from dpcheckin.errors import DpCheckinError as DpCheckinError
    from dpcheckin.protocols import CentralDpSgd as CentralDpSgd
    from dpcheckin.protocols import DistributedCheckIn as DistributedCheckIn
    from dpcheckin.protocols import FullShuffle as FullShuffle
    from dpcheckin.protocols import LocalOnly as LocalOnly
    from dpcheckin.protocols import RandomCheckIns as RandomCheckIns
    from dpcheckin.protocols import ShuffledCheckIn as ShuffledCheckIn
    from dpcheckin.protocols import SubsampledShuffle as SubsampledShuffle
    from dpcheckin.protocols.questions import RunQuestion as RunQuestion

_ROOMS = {
    "accounting": (
        "Adjacency Bracket CheckInRound Composition DistributedRound Guarantee Kind LocalGuarantee "
        "LocalPair LocalRound LowerBound Round SampledGaussianRound ShuffleRound SkellamRound "
        "SubsampleRound WindowRound any_pure approximate averaged_window binary_response compose "
        "dary_response from_atoms from_profile gaussian guarantee hemisphere laplace "
        "local_guarantee lower_bound privunit"
    ),
    "accounting.published": "Setting published_bounds",
    "errors": "DpCheckinError",
    "protocols": (
        "CentralDpSgd DistributedCheckIn FullShuffle LocalOnly RandomCheckIns ShuffledCheckIn "
        "SubsampledShuffle"
    ),
    "protocols.questions": "RunQuestion",
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}
__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
