"""Differential privacy for fleets whose clients decide for themselves when to check in.

This is the front door: the names most people need, each loaded from its room when it is first touched. The rest of the
package is mapped in `docs/architecture.md`.

>>> import dpcheckin as dp
>>> stated = dp.epsilon(population=10_000, rate=0.01, local_epsilon=2.0, rounds=100, delta=1e-4)
>>> print(f"{float(stated):.4f}")
0.0695
>>> one = dp.CheckInRound(population=10_000, rate=0.01, pair=dp.any_pure(2.0))
>>> print(f"{dp.guarantee([(one, 100)], delta=1e-4).epsilon.upper:.4f}")
0.0695
"""

from typing import TYPE_CHECKING

from dpcheckin.lazy import offered

__version__ = "0.1.0"

if TYPE_CHECKING:  # for type checkers, to whom "A as A" means that A may be imported from here
    # fmt: off
    # isort: off
    from dpcheckin.accounting import (
        Adjacency as Adjacency, Bracket as Bracket, Brackets as Brackets, CheckInRound as CheckInRound,
        Composition as Composition, DistributedRound as DistributedRound, Guarantee as Guarantee, Kind as Kind,
        LocalGuarantee as LocalGuarantee, LocalPair as LocalPair, LocalRound as LocalRound, LowerBound as LowerBound,
        Round as Round, SampledGaussianRound as SampledGaussianRound, ShuffleRound as ShuffleRound,
        SkellamRound as SkellamRound, SubsampleRound as SubsampleRound, TradeOff as TradeOff,
        WindowRound as WindowRound, any_pure as any_pure, approximate as approximate,
        averaged_window as averaged_window, binary_response as binary_response, clear_cache as clear_cache,
        compose as compose, dary_response as dary_response, epsilon_by_rounds as epsilon_by_rounds,
        from_atoms as from_atoms, from_matrix as from_matrix, from_profile as from_profile, gaussian as gaussian,
        guarantee as guarantee, hadamard_response as hadamard_response, hemisphere as hemisphere, laplace as laplace,
        local_guarantee as local_guarantee, lower_bound as lower_bound, privunit as privunit,
        subset_selection as subset_selection, tradeoff as tradeoff, unary_encoding as unary_encoding,
    )
    from dpcheckin.errors import DpCheckinError as DpCheckinError
    from dpcheckin.notebook import (
        Comparison as Comparison, PlannedRun as PlannedRun, Sweep as Sweep, compare as compare, delta as delta,
        epsilon as epsilon, plan as plan,
    )
    from dpcheckin.papers.catalogue import published_bounds as published_bounds
    from dpcheckin.papers.entry import Setting as Setting
    from dpcheckin.protocols import (
        CentralDpSgd as CentralDpSgd, DistributedCheckIn as DistributedCheckIn, FullShuffle as FullShuffle,
        LocalOnly as LocalOnly, RandomCheckIns as RandomCheckIns, ShuffledCheckIn as ShuffledCheckIn,
        SubsampledShuffle as SubsampledShuffle,
    )
    from dpcheckin.protocols.questions import RunQuestion as RunQuestion
    from dpcheckin.randomizers import register as register
    from dpcheckin.survey import (
        Count as Count, Distribution as Distribution, HeavyHitters as HeavyHitters, Histogram as Histogram,
        Mean as Mean, Quantiles as Quantiles, Sum as Sum, Survey as Survey, VectorMean as VectorMean, Wish as Wish,
        plan_survey as plan_survey, plan_together as plan_together, simulate as simulate,
    )
    # isort: on
    # fmt: on

_names, __getattr__, __dir__ = offered(__name__)
__all__ = ["__version__", *_names]
