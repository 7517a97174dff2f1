"""Privacy accounting: local pairs, the empty-seat theorem, composition, bounds.

Rooms: `engine` (numerics, imports nothing above), `pairs` and the rounds (`shuffled`, `windows`,
`sums`), `account` and what is built on it, `renyi`, and `published`, what others printed.
"""

from dpcheckin.accounting import lower_bounds as _lower_bounds
from dpcheckin.accounting.account import Composition, compose, guarantee, local_guarantee
from dpcheckin.accounting.account import clear_cache as _clear_statements
from dpcheckin.accounting.brackets import Brackets
from dpcheckin.accounting.cap_pairs import privunit
from dpcheckin.accounting.gaussian_pairs import GaussianPair, gaussian
from dpcheckin.accounting.laplace_pairs import LaplacePair, laplace
from dpcheckin.accounting.lower_bounds import lower_bound
from dpcheckin.accounting.pairs import (
    LocalPair,
    ThreeAtoms,
    any_pure,
    binary_response,
    dary_response,
    hemisphere,
)
from dpcheckin.accounting.profile_pairs import (
    ProfilePair,
    approximate,
    from_atoms,
    from_profile,
)
from dpcheckin.accounting.response_pairs import (
    hadamard_response,
    mixed,
    subset_selection,
    unary_encoding,
)
from dpcheckin.accounting.rounds import LocalRound, Round
from dpcheckin.accounting.rounds_sweep import epsilon_by_rounds
from dpcheckin.accounting.shuffled import CheckInRound, ShuffleRound, SubsampleRound
from dpcheckin.accounting.statements import (
    Adjacency,
    Bracket,
    Guarantee,
    Kind,
    LocalGuarantee,
    LowerBound,
)
from dpcheckin.accounting.sums import (
    DiscreteGaussianRound,
    DistributedRound,
    IntegerSumRound,
    SampledGaussianRound,
    SkellamRound,
)
from dpcheckin.accounting.tradeoff import TradeOff, tradeoff
from dpcheckin.accounting.windows import WindowRound, averaged_window

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
    "subset_selection",
    "tradeoff",
    "unary_encoding",
]


def clear_cache() -> None:
    """Forget all answers that were given; whoever measures times wants that."""
    _clear_statements()
    _lower_bounds.clear_cache()
