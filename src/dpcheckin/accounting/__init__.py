"""Privacy accounting: local pairs, the empty-seat theorem, composition, bounds."""

from dpcheckin.accounting.bracket import Bracket
from dpcheckin.accounting.composition import Composition, compose
from dpcheckin.accounting.guarantee import Guarantee, LocalGuarantee, guarantee, local_guarantee
from dpcheckin.accounting.kinds import Kind
from dpcheckin.accounting.local_pairs import (
    GaussianPair,
    LocalPair,
    ProfilePair,
    ThreeAtoms,
    any_pure,
    approximate,
    binary_response,
    dary_response,
    from_atoms,
    from_profile,
    gaussian,
    hemisphere,
    laplace,
    privunit,
)
from dpcheckin.accounting.lower_bounds import lower_bound
from dpcheckin.accounting.rounds import (
    CheckInRound,
    LocalRound,
    Round,
    ShuffleRound,
    SubsampleRound,
)
from dpcheckin.accounting.window import WindowRound

__all__ = [
    "Bracket",
    "CheckInRound",
    "Composition",
    "GaussianPair",
    "Guarantee",
    "Kind",
    "LocalGuarantee",
    "LocalPair",
    "LocalRound",
    "ProfilePair",
    "Round",
    "ShuffleRound",
    "SubsampleRound",
    "ThreeAtoms",
    "WindowRound",
    "any_pure",
    "approximate",
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
