"""What the numbers of a plan that speak of its crowd must be to each other.

`population` is priced, with the share `colluding` of it taken out; `minimum_present` decides which
rounds are void. The price holds for a round that is released only if at least as many clients were
there as were priced: if at most the share `colluding` of those present collude, the honest ones are
at least (1 - colluding) * minimum_present >= (1 - colluding) * population.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dpcheckin.service.wire.fields import not_allowed

LARGEST_COMPUTE_SHARE = 0.7
"""Of a round: the rest is for spreading what is sent, and for trying again."""


def check_crowd(found: Mapping[str, Any]) -> None:
    """No round is released with fewer clients than it is priced for, or without time to send.

    Args:
        found: the fields of a plan, each checked alone.
    """
    if found["minimum_present"] < found["population"]:
        raise not_allowed(
            "plan.minimum_present",
            found["minimum_present"],
            f"at least the population of {found['population']} that is priced",
        )
    for name in ("colluding", "dropout"):
        if found[name] >= 1:
            raise not_allowed(f"plan.{name}", found[name], "below 1")
    if honest_clients(found["population"], found["colluding"]) < 2:
        raise not_allowed("plan.colluding", found["colluding"], "leaving two honest clients")
    if not found["compute_seconds"] <= LARGEST_COMPUTE_SHARE * found["round_seconds"]:
        raise not_allowed(
            "plan.compute_seconds",
            found["compute_seconds"],
            f"at most {LARGEST_COMPUTE_SHARE:g} of the {found['round_seconds']:g} of a round",
        )


def honest_clients(population: int, colluding: float) -> int:
    """Clients of a crowd that do not collude; a fraction of a client counts as one that does.

    Args:
        population: of the crowd.
        colluding: share of it, from 0 to 1.

    >>> honest_clients(100, 0.125)
    87
    """
    return population - math.ceil(colluding * population - 1e-9)
