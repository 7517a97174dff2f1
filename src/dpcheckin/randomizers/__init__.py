"""Local randomizers: one client's value in, one report out.

The names below are the layer's whole interface. What a run of many reports costs is accounting's
business (`Randomizer.pair` is all it needs), who reports when is the protocols'.
"""

from dpcheckin.randomizers.additive import ClipOnly, Gaussian, Laplace
from dpcheckin.randomizers.base import (
    AnyRandomizer,
    Argument,
    CategoryRandomizer,
    Randomizer,
    SummableRandomizer,
    SummedReports,
    VectorRandomizer,
)
from dpcheckin.randomizers.caps import CapRandomizer, LdpSgd, PrivUnit
from dpcheckin.randomizers.codes import HadamardResponse, LocalHashing
from dpcheckin.randomizers.discrete_gaussian import DiscreteGaussianVector
from dpcheckin.randomizers.levels import DitheredLevels
from dpcheckin.randomizers.one_bit import L1Bit, LInfinityBit, lp_randomizer
from dpcheckin.randomizers.registry import described, randomizer, register
from dpcheckin.randomizers.response import BinaryResponse, DaryResponse, FrequencyRandomizer
from dpcheckin.randomizers.skellam import SkellamInteger, stochastic_round
from dpcheckin.randomizers.skellam_vector import IntegerVector, SkellamVector
from dpcheckin.randomizers.source import RandomSource, SecureSource, SeededSource
from dpcheckin.randomizers.subsets import SubsetSelection, UnaryEncoding
from dpcheckin.randomizers.tree import TreeResponse

__all__ = [
    "AnyRandomizer",
    "Argument",
    "BinaryResponse",
    "CapRandomizer",
    "CategoryRandomizer",
    "ClipOnly",
    "DaryResponse",
    "DiscreteGaussianVector",
    "DitheredLevels",
    "FrequencyRandomizer",
    "Gaussian",
    "HadamardResponse",
    "IntegerVector",
    "L1Bit",
    "LInfinityBit",
    "Laplace",
    "LdpSgd",
    "LocalHashing",
    "PrivUnit",
    "RandomSource",
    "Randomizer",
    "SecureSource",
    "SeededSource",
    "SkellamInteger",
    "SkellamVector",
    "SubsetSelection",
    "SummableRandomizer",
    "SummedReports",
    "TreeResponse",
    "UnaryEncoding",
    "VectorRandomizer",
    "described",
    "lp_randomizer",
    "randomizer",
    "register",
    "stochastic_round",
]
