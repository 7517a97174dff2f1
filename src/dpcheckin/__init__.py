"""Differential privacy for fleets whose clients decide for themselves when to check in.

This is the front door: the names most people need, each loaded from its room when it is first
touched. The rest of the package is mapped in `docs/architecture.md`.

>>> import dpcheckin as dp
>>> stated = dp.epsilon(population=10_000, rate=0.01, local_epsilon=2.0, rounds=100, delta=1e-4)
>>> print(f"{float(stated):.4f}")
0.0695
>>> one = dp.CheckInRound(population=10_000, rate=0.01, pair=dp.any_pure(2.0))
>>> print(f"{dp.guarantee([(one, 100)], delta=1e-4).epsilon.upper:.4f}")
0.0695
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dpcheckin.accounting import Adjacency as Adjacency
    from dpcheckin.accounting import Bracket as Bracket
    from dpcheckin.accounting import Brackets as Brackets
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
    from dpcheckin.accounting import TradeOff as TradeOff
    from dpcheckin.accounting import WindowRound as WindowRound
    from dpcheckin.accounting import any_pure as any_pure
    from dpcheckin.accounting import approximate as approximate
    from dpcheckin.accounting import averaged_window as averaged_window
    from dpcheckin.accounting import binary_response as binary_response
    from dpcheckin.accounting import clear_cache as clear_cache
    from dpcheckin.accounting import compose as compose
    from dpcheckin.accounting import dary_response as dary_response
    from dpcheckin.accounting import epsilon_by_rounds as epsilon_by_rounds
    from dpcheckin.accounting import from_atoms as from_atoms
    from dpcheckin.accounting import from_profile as from_profile
    from dpcheckin.accounting import gaussian as gaussian
    from dpcheckin.accounting import guarantee as guarantee
    from dpcheckin.accounting import hadamard_response as hadamard_response
    from dpcheckin.accounting import hemisphere as hemisphere
    from dpcheckin.accounting import laplace as laplace
    from dpcheckin.accounting import local_guarantee as local_guarantee
    from dpcheckin.accounting import lower_bound as lower_bound
    from dpcheckin.accounting import privunit as privunit
    from dpcheckin.accounting import subset_selection as subset_selection
    from dpcheckin.accounting import tradeoff as tradeoff
    from dpcheckin.accounting import unary_encoding as unary_encoding
    from dpcheckin.errors import DpCheckinError as DpCheckinError
    from dpcheckin.notebook import Comparison as Comparison
    from dpcheckin.notebook import PlannedRun as PlannedRun
    from dpcheckin.notebook import Sweep as Sweep
    from dpcheckin.notebook import compare as compare
    from dpcheckin.notebook import delta as delta
    from dpcheckin.notebook import epsilon as epsilon
    from dpcheckin.notebook import plan as plan
    from dpcheckin.papers.catalogue import published_bounds as published_bounds
    from dpcheckin.papers.entry import Setting as Setting
    from dpcheckin.protocols import CentralDpSgd as CentralDpSgd
    from dpcheckin.protocols import DistributedCheckIn as DistributedCheckIn
    from dpcheckin.protocols import FullShuffle as FullShuffle
    from dpcheckin.protocols import LocalOnly as LocalOnly
    from dpcheckin.protocols import RandomCheckIns as RandomCheckIns
    from dpcheckin.protocols import ShuffledCheckIn as ShuffledCheckIn
    from dpcheckin.protocols import SubsampledShuffle as SubsampledShuffle
    from dpcheckin.protocols.questions import RunQuestion as RunQuestion
    from dpcheckin.randomizers import register as register
    from dpcheckin.survey import Count as Count
    from dpcheckin.survey import Distribution as Distribution
    from dpcheckin.survey import HeavyHitters as HeavyHitters
    from dpcheckin.survey import Histogram as Histogram
    from dpcheckin.survey import Mean as Mean
    from dpcheckin.survey import Quantiles as Quantiles
    from dpcheckin.survey import Sum as Sum
    from dpcheckin.survey import Survey as Survey
    from dpcheckin.survey import VectorMean as VectorMean
    from dpcheckin.survey import Wish as Wish
    from dpcheckin.survey import plan_survey as plan_survey
    from dpcheckin.survey import simulate as simulate

_ROOMS = {
    "accounting": (
        "Adjacency Bracket Brackets CheckInRound Composition DistributedRound Guarantee Kind "
        "LocalGuarantee LocalPair LocalRound LowerBound Round SampledGaussianRound ShuffleRound "
        "SkellamRound SubsampleRound TradeOff WindowRound any_pure approximate averaged_window "
        "binary_response clear_cache compose dary_response epsilon_by_rounds from_atoms "
        "from_profile gaussian guarantee hadamard_response hemisphere laplace local_guarantee "
        "lower_bound privunit subset_selection tradeoff unary_encoding"
    ),
    "papers.entry": "Setting",
    "papers.catalogue": "published_bounds",
    "errors": "DpCheckinError",
    "notebook": "Comparison PlannedRun Sweep compare delta epsilon plan",
    "protocols": (
        "CentralDpSgd DistributedCheckIn FullShuffle LocalOnly RandomCheckIns ShuffledCheckIn "
        "SubsampledShuffle"
    ),
    "protocols.questions": "RunQuestion",
    "randomizers": "register",
    "survey": (
        "Count Distribution HeavyHitters Histogram Mean Quantiles Sum Survey VectorMean Wish "
        "plan_survey simulate"
    ),
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
