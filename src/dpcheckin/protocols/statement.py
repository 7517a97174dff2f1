"""Guarantees of protocols whose figures do not come from the shuffling theorem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpcheckin.accounting import Bracket, LocalPair

if TYPE_CHECKING:
    from dpcheckin.accounting import Guarantee


def stated(
    epsilon: Bracket,
    delta: float,
    *,
    basis: tuple[str, ...],
    assumptions: tuple[str, ...],
    local: LocalPair | None,
    rounds: int,
    adjacency: str = "replace one client",
) -> Guarantee:
    """A guarantee with its reasons."""
    from dpcheckin.accounting import Guarantee, Kind

    return Guarantee(
        kind=Kind.GUARANTEE,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        basis=basis,
        assumptions=assumptions,
        local=local,
    )
