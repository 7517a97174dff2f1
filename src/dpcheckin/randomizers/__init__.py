"""Local randomizers: one client's value in, one report out.

The names below are the layer's whole interface. What a run of many reports costs is accounting's business
(`Randomizer.pair` is all it needs), who reports when is the protocols'.
"""

from dpcheckin.randomizers.additive import ClipOnly as ClipOnly
from dpcheckin.randomizers.additive import Gaussian as Gaussian
from dpcheckin.randomizers.additive import Laplace as Laplace
from dpcheckin.randomizers.base import Argument as Argument
from dpcheckin.randomizers.base import CategoryRandomizer as CategoryRandomizer
from dpcheckin.randomizers.base import Randomizer as Randomizer
from dpcheckin.randomizers.base import SummableRandomizer as SummableRandomizer
from dpcheckin.randomizers.base import SummedReports as SummedReports
from dpcheckin.randomizers.base import VectorRandomizer as VectorRandomizer
from dpcheckin.randomizers.caps import CapRandomizer as CapRandomizer
from dpcheckin.randomizers.caps import LdpSgd as LdpSgd
from dpcheckin.randomizers.caps import PrivUnit as PrivUnit
from dpcheckin.randomizers.integer_vectors import DiscreteGaussianVector as DiscreteGaussianVector
from dpcheckin.randomizers.integer_vectors import IntegerVector as IntegerVector
from dpcheckin.randomizers.integer_vectors import SkellamVector as SkellamVector
from dpcheckin.randomizers.integers import SkellamInteger as SkellamInteger
from dpcheckin.randomizers.integers import stochastic_round as stochastic_round
from dpcheckin.randomizers.one_bit import L1Bit as L1Bit
from dpcheckin.randomizers.one_bit import LInfinityBit as LInfinityBit
from dpcheckin.randomizers.one_bit import lp_randomizer as lp_randomizer
from dpcheckin.randomizers.registry import AnyRandomizer as AnyRandomizer
from dpcheckin.randomizers.registry import described as described
from dpcheckin.randomizers.registry import randomizer as randomizer
from dpcheckin.randomizers.registry import register as register
from dpcheckin.randomizers.response import BinaryResponse as BinaryResponse
from dpcheckin.randomizers.response import DaryResponse as DaryResponse
from dpcheckin.randomizers.response import FrequencyRandomizer as FrequencyRandomizer
from dpcheckin.randomizers.response import HadamardResponse as HadamardResponse
from dpcheckin.randomizers.source import RandomSource as RandomSource
from dpcheckin.randomizers.source import SecureSource as SecureSource
from dpcheckin.randomizers.source import SeededSource as SeededSource
from dpcheckin.randomizers.subsets import SubsetSelection as SubsetSelection
from dpcheckin.randomizers.subsets import UnaryEncoding as UnaryEncoding
from dpcheckin.randomizers.two_parts import DitheredLevels as DitheredLevels
from dpcheckin.randomizers.two_parts import LocalHashing as LocalHashing
from dpcheckin.randomizers.two_parts import TreeResponse as TreeResponse
