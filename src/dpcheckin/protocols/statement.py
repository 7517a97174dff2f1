"""Guarantees of protocols whose figures do not come from the shuffling theorem."""

from __future__ import annotations

from dpcheckin.accounting import Bracket, Guarantee, Kind, LocalPair, local_guarantee
from dpcheckin.accounting.rounds import SHUFFLER_COLLUDES


def stated(
    epsilon: Bracket,
    delta: float,
    *,
    basis: tuple[str, ...],
    assumptions: tuple[str, ...],
    reports: tuple[LocalPair, float, int] | None = None,
    when: str = SHUFFLER_COLLUDES,
    adjacency: str = "replace one client",
) -> Guarantee:
    """A guarantee with its reasons.

    `reports` is (local pair, participation, rounds): what is left of it when nobody in between is
    honest, which is the case `when`, is stated along with the guarantee.
    """
    return Guarantee(
        kind=Kind.GUARANTEE,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        basis=basis,
        assumptions=assumptions,
        local=None if reports is None else local_guarantee([reports], delta, when),
    )
