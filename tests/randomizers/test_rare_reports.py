"""What a sampler cannot make: reports so rare that its random numbers never come to them."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from dpcheckin import accounting
from dpcheckin.errors import DpCheckinError, InvalidParameter, Unreachable
from dpcheckin.randomizers import (
    BinaryResponse,
    DaryResponse,
    Gaussian,
    HadamardResponse,
    Laplace,
    LdpSgd,
    LInfinityBit,
    SecureSource,
    SeededSource,
    SkellamInteger,
    SubsetSelection,
    UnaryEncoding,
)
from dpcheckin.randomizers.integers import skellam_table
from dpcheckin.randomizers.registry import BUILT_IN


class _Played(SecureSource):
    """Secure chance whose words are given, the last one for ever."""

    def __init__(self, *words: int) -> None:
        self.words = [*words]

    def _words(self, count: int) -> np.ndarray:
        return np.array([self.words.pop(0) if len(self.words) > 1 else self.words[0] for _ in range(count)], np.uint64)


def _word(digits: int, zeros: int) -> int:
    return digits << 12 | (1 << zeros)


class _Fixed(SeededSource):
    """Seeded chance whose first draw is given."""

    def __init__(self, first: float) -> None:
        super().__init__(1)
        later, drawn = self.generator, [first]

        class Generator:
            def random(self, size: int) -> np.ndarray:
                return np.full(size, drawn.pop()) if drawn else later.random(size)

        self.generator = Generator()


def test_a_uniform_is_below_one_at_its_largest_draw() -> None:
    assert _Played(2**64 - 1).uniform(1)[0] == 1 - 2.0**-53
    assert _Fixed(1 - 2.0**-53).uniform(1)[0] == 1 - 2.0**-53


def test_a_uniform_is_above_zero_at_its_smallest_draw() -> None:
    assert _Played(0).uniform(1)[0] >= SecureSource.smallest / 512
    assert 0 < _Fixed(0.0).uniform(1)[0] < 2.0**-53


@pytest.mark.parametrize("p", [0.3, 1e-5, 1e-17, 3e-100, 1 - 2.0**-53])
def test_a_coin_of_secure_chance_has_exactly_the_probability_of_the_float(p: float) -> None:
    """Words whose bits say where a float of p begins: counted over all digits, uniform < p has probability p."""
    mantissa, exponent = math.frexp(p)
    zeros, words = -exponent, []
    if zeros < 12:
        words, scale = [], zeros
    else:
        words, scale = [0] * ((zeros - 12) // 64), (zeros - 12) % 64
    below = 0
    edge = int((mantissa - 0.5) * 2**53)
    for digits in (edge - 1, edge):
        if not 0 <= digits < 2**52:
            continue
        source = _Played(_word(digits, scale)) if zeros < 12 else _Played(digits << 12, *words, 1 << scale)
        drawn = source.uniform(1)[0]
        assert drawn == math.ldexp(0.5 + digits * 2.0**-53, exponent)
        below += drawn < p
    assert below == (1 if edge > 0 else 0)


def test_every_coin_lies_at_a_local_epsilon_of_45() -> None:
    """The rarest report of each is made by the rarest draw: never, if own reports came with probability 1."""
    zeros = _Played(0)  # the rarest draw; integers are 0
    value, other = np.array([1]), np.array([0])
    assert DaryResponse(45.0, 5).randomize(value, zeros) != value
    assert BinaryResponse(45.0).randomize(value, zeros) == other
    hadamard = HadamardResponse(45.0, 5)
    assert not hadamard.supports(hadamard.randomize(value, zeros), 1)[0]
    subset = SubsetSelection(45.0, 5, 1)
    assert not subset.supports(subset.randomize(value, zeros), 1)[0]
    unary = UnaryEncoding(45.0, 5)
    assert unary.supports(unary.randomize(value, zeros), 4)[0]  # a foreign bit
    bit = LInfinityBit(45.0, 2).randomize(np.array([[1.0, 1.0]]), _Bits())
    assert bit[0, 1] == -1
    hemisphere = LdpSgd(45.0, 3)
    assert not (hemisphere.randomize(np.array([[1.0, 0.0, 0.0]]), _Bits())[0, 0] >= 0.0)


class _Bits(SecureSource):
    """The coin that rounds a coordinate comes out 1; that of the answer is the rarest there is."""

    def __init__(self) -> None:
        self.first = True

    def uniform(self, size: int | tuple[int, ...]) -> np.ndarray:
        drawn = 0.5 if self.first else self.smallest
        if not self.first:
            self.__class__ = SecureSource  # from then on as it is
        self.first = False
        return np.full(size, drawn)


def test_noise_reaches_as_far_as_its_law_says() -> None:
    """Reports that only one of two inputs can make would be told apart at any epsilon, whatever the pair says."""
    laplace, gaussian = Laplace(2.0, 1), Gaussian(1.0)
    zero = np.zeros((1, 1))
    # of 2^-200: 138 scales of Laplace noise, 16 deviations of Gaussian
    rare = [0, 0, 0, 1 << 59]
    far = abs(laplace.randomize(zero, _Played(_word(2**51, 0), *rare))[0, 0])
    assert far / laplace.scale == pytest.approx(199 * math.log(2), abs=1.0)
    assert 15.5 < abs(gaussian.randomize(zero, _Played(*rare))[0, 0]) < 17


def test_skellam_integers_are_drawn_from_the_table_of_124_digits() -> None:
    """A report of +1 that -1 can never make is as rare as its pair says."""
    one = SkellamInteger(bound=1, variance=4.0, modulus=1024)
    high, low, last = skellam_table(4.0)
    cumulative = [0, *((int(h) << 62) + int(b) for h, b in zip(high, low, strict=True)), 1 << 124]
    masses = np.array([(b - a) / (1 << 124) for a, b in itertools.pairwise(cumulative)])
    for alpha in (1.0, 100.0, 1e5, 1e10, 1e20, 1e30):
        true = np.maximum(np.append(masses, [0, 0]) - alpha * np.append([0, 0], masses), 0.0).sum()
        assert true <= float(one.pair.profile(alpha)) <= true * 1.0001 + 1e-19, alpha
    drawn = one.noise(4, _Highest())
    assert drawn.tolist() == [last] * 4


class _Highest(SecureSource):
    def integers(self, high: int, size: int | tuple[int, ...]) -> np.ndarray:
        return np.full(size, high - 1)


def test_accounting_refuses_a_delta_below_what_skellam_integers_can_make() -> None:
    one = SkellamInteger(bound=1, variance=4.0, modulus=1024)
    with pytest.raises(Unreachable):
        accounting.guarantee(accounting.LocalRound(one.pair), 1e-30)
    assert accounting.guarantee(accounting.LocalRound(one.pair), 1e-15).epsilon.upper < 20


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.name)
def test_every_sampler_says_what_is_the_smallest_probability_it_can_make(kind: type) -> None:
    assert 0.0 < kind.smallest <= 2.0**-60


@pytest.mark.parametrize(
    "make",
    [
        lambda e: BinaryResponse(e),
        lambda e: DaryResponse(e, 4),
        lambda e: UnaryEncoding(e, 4),
        lambda e: LdpSgd(e),
        lambda e: Laplace(e, 1),
    ],
)
def test_an_epsilon_that_no_draw_can_keep_is_refused(make) -> None:
    with pytest.raises(InvalidParameter, match="local_epsilon"):
        make(800.0)
    make(500.0)


def test_a_bit_that_is_never_set_is_refused() -> None:
    with pytest.raises(DpCheckinError, match="truth"):
        replace(UnaryEncoding(400.0, 4), truth=1e-200)
