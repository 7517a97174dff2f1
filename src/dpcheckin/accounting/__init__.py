"""Privacy accounting: local pairs, the empty-seat theorem, composition, bounds.

Rooms: `engine` (numerics, imports nothing above), `pairs` and the rounds (`shuffled`, `windows`,
`sums`), `account` and what is built on it, `renyi`, and `published`, what others printed.
"""

from dpcheckin.accounting.account import Composition, compose, guarantee, local_guarantee
from dpcheckin.accounting.lower_bounds import lower_bound
from dpcheckin.accounting.pairs import (
    LocalPair,
    ThreeAtoms,
    any_pure,
    approximate,
    binary_response,
    dary_response,
    hemisphere,
    privunit,
)
from dpcheckin.accounting.profile_pairs import (
    GaussianPair,
    ProfilePair,
    from_atoms,
    from_profile,
    gaussian,
    laplace,
)
from dpcheckin.accounting.rounds import LocalRound, Round
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
    DistributedRound,
    IntegerSumRound,
    SampledGaussianRound,
    SkellamRound,
)
from dpcheckin.accounting.windows import WindowRound, averaged_window

__all__ = [
    "Adjacency",
    "Bracket",
    "CheckInRound",
    "Composition",
    "DistributedRound",
    "GaussianPair",
    "Guarantee",
    "IntegerSumRound",
    "Kind",
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
    "WindowRound",
    "any_pure",
    "approximate",
    "averaged_window",
    "binary_response",
    "compose",
    "dary_response",
    "from_atoms",
    "from_profile",
    "gaussian",
    "guarantee",
    "hemisphere",
    "laplace",
    "local_guarantee",
    "lower_bound",
    "privunit",
]
