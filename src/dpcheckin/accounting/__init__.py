"""Privacy accounting: local pairs, the empty-seat theorem, composition, bounds.

Rooms: `engine` (numerics, imports nothing above), `pairs`, `rounds`, and `composition` with the gate through which
figures leave. Names are loaded when they are first touched: who makes reports need not wait for what prices them.
"""

from typing import TYPE_CHECKING

from dpcheckin.lazy import offered

if TYPE_CHECKING:  # for type checkers, to whom "A as A" means that A may be imported from here
    # fmt: off
    # isort: off
    from dpcheckin.accounting.composition.account import (
        Composition as Composition, compose as compose, epsilon_by_rounds as epsilon_by_rounds,
    )
    from dpcheckin.accounting.composition.guarantees import guarantee as guarantee, local_guarantee as local_guarantee
    from dpcheckin.accounting.composition.lower_bounds import lower_bound as lower_bound
    from dpcheckin.accounting.composition.tradeoff import TradeOff as TradeOff, tradeoff as tradeoff
    from dpcheckin.accounting.statements import Bracket as Bracket
    from dpcheckin.accounting.figures import Brackets as Brackets
    from dpcheckin.numerals import Kind as Kind
    from dpcheckin.accounting.pairs.cap import privunit as privunit
    from dpcheckin.accounting.pairs.gaussian import GaussianPair as GaussianPair, gaussian as gaussian
    from dpcheckin.accounting.pairs.laplace import LaplacePair as LaplacePair, laplace as laplace
    from dpcheckin.accounting.pairs.local import LocalPair as LocalPair, ThreeAtoms as ThreeAtoms, any_pure as any_pure
    from dpcheckin.accounting.pairs.matrix import from_atoms as from_atoms, from_matrix as from_matrix
    from dpcheckin.accounting.pairs.profile import (
        ProfilePair as ProfilePair, approximate as approximate, from_profile as from_profile,
    )
    from dpcheckin.accounting.pairs.response import (
        binary_response as binary_response, dary_response as dary_response,
        hadamard_response as hadamard_response, hemisphere as hemisphere, mixed as mixed,
        subset_selection as subset_selection, unary_encoding as unary_encoding,
    )
    from dpcheckin.accounting.rounds.base import LocalRound as LocalRound, Round as Round
    from dpcheckin.accounting.rounds.personal import PersonalRound as PersonalRound, own_share as own_share
    from dpcheckin.accounting.rounds.sharded import sharded as sharded
    from dpcheckin.accounting.rounds.shuffled import (
        CheckInRound as CheckInRound, ShuffledRound as ShuffledRound, ShuffleRound as ShuffleRound,
        SubsampleRound as SubsampleRound,
    )
    from dpcheckin.accounting.rounds.sums import (
        DiscreteGaussianRound as DiscreteGaussianRound, DistributedRound as DistributedRound,
        IntegerSumRound as IntegerSumRound, SampledGaussianRound as SampledGaussianRound,
        SkellamRound as SkellamRound,
    )
    from dpcheckin.accounting.rounds.windows import WindowRound as WindowRound, averaged_window as averaged_window
    from dpcheckin.accounting.statements import (
        Adjacency as Adjacency, Guarantee as Guarantee, LocalGuarantee as LocalGuarantee,
        LowerBound as LowerBound,
    )
    # isort: on
    # fmt: on

_names, __getattr__, __dir__ = offered(__name__)
__all__ = ["clear_cache", *_names]


def clear_cache() -> None:
    """Forget all answers that were given; whoever measures times wants that."""
    from dpcheckin.accounting.composition import guarantees, lower_bounds

    guarantees.clear_cache()
    lower_bounds.clear_cache()
