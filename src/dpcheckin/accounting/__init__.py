"""Privacy accounting: local pairs, the empty-seat theorem, composition, bounds.

Rooms: `engine` (numerics, imports nothing above), `pairs`, `rounds`, and `composition` with the gate through which
figures leave.
"""

from dpcheckin.accounting.composition import lower_bounds as _lower_bounds
from dpcheckin.accounting.composition.account import Composition, compose, epsilon_by_rounds
from dpcheckin.accounting.composition.guarantees import clear_cache as _clear_statements
from dpcheckin.accounting.composition.guarantees import guarantee, local_guarantee
from dpcheckin.accounting.composition.lower_bounds import lower_bound
from dpcheckin.accounting.composition.tradeoff import TradeOff, tradeoff
from dpcheckin.accounting.figures import Bracket, Brackets, Kind
from dpcheckin.accounting.pairs.cap import privunit
from dpcheckin.accounting.pairs.gaussian import GaussianPair, gaussian
from dpcheckin.accounting.pairs.laplace import LaplacePair, laplace
from dpcheckin.accounting.pairs.local import LocalPair, ThreeAtoms, any_pure
from dpcheckin.accounting.pairs.profile import ProfilePair, approximate, from_atoms, from_profile
from dpcheckin.accounting.pairs.response import (
    binary_response,
    dary_response,
    hadamard_response,
    hemisphere,
    mixed,
    subset_selection,
    unary_encoding,
)
from dpcheckin.accounting.rounds.base import LocalRound, Round
from dpcheckin.accounting.rounds.sharded import sharded
from dpcheckin.accounting.rounds.shuffled import CheckInRound, ShuffleRound, SubsampleRound
from dpcheckin.accounting.rounds.sums import (
    DiscreteGaussianRound,
    DistributedRound,
    IntegerSumRound,
    SampledGaussianRound,
    SkellamRound,
)
from dpcheckin.accounting.rounds.windows import WindowRound, averaged_window
from dpcheckin.accounting.statements import Adjacency, Guarantee, LocalGuarantee, LowerBound

__all__ = [
    "Adjacency",
    "Bracket",
    "Brackets",
    "CheckInRound",
    "Composition",
    "DiscreteGaussianRound",
    "DistributedRound",
    "GaussianPair",
    "Guarantee",
    "IntegerSumRound",
    "Kind",
    "LaplacePair",
    "LocalGuarantee",
    "LocalPair",
    "LocalRound",
    "LowerBound",
    "ProfilePair",
    "Round",
    "SampledGaussianRound",
    "ShuffleRound",
    "SkellamRound",
    "SubsampleRound",
    "ThreeAtoms",
    "TradeOff",
    "WindowRound",
    "any_pure",
    "approximate",
    "averaged_window",
    "binary_response",
    "clear_cache",
    "compose",
    "dary_response",
    "epsilon_by_rounds",
    "from_atoms",
    "from_profile",
    "gaussian",
    "guarantee",
    "hadamard_response",
    "hemisphere",
    "laplace",
    "local_guarantee",
    "lower_bound",
    "mixed",
    "privunit",
    "sharded",
    "subset_selection",
    "tradeoff",
    "unary_encoding",
]


def clear_cache() -> None:
    """Forget all answers that were given; whoever measures times wants that."""
    _clear_statements()
    _lower_bounds.clear_cache()
