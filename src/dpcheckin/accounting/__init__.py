"""Privacy accounting: local pairs, the empty-seat theorem, composition, bounds."""

from dpcheckin.accounting.bracket import Bracket
from dpcheckin.accounting.composition import Composition, compose
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
from dpcheckin.accounting.rounds import CheckInRound, Round, ShuffleRound, SubsampleRound

__all__ = [
    "Bracket",
    "CheckInRound",
    "Composition",
    "GaussianPair",
    "LocalPair",
    "ProfilePair",
    "Round",
    "ShuffleRound",
    "SubsampleRound",
    "ThreeAtoms",
    "any_pure",
    "approximate",
    "binary_response",
    "compose",
    "dary_response",
    "from_atoms",
    "from_profile",
    "gaussian",
    "hemisphere",
    "laplace",
    "privunit",
]
