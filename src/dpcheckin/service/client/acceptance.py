"""Whether a plan is within what an owner allows; the first limit that it passes is named."""

from __future__ import annotations

from collections.abc import Callable

from dpcheckin.accounting.statements import rounded_up
from dpcheckin.errors import ServiceError
from dpcheckin.service.client.config import Limits
from dpcheckin.service.pricing import Price
from dpcheckin.service.wire.documents import PlanDocument


class Refused(ServiceError):
    """This client does not take part, and why."""


def report_probability(plan: PlanDocument) -> float:
    """The largest probability that a client reports in one given round."""
    share = plan.participation
    if plan.numbered_slots:
        return float(share["check_in_probability"] / share["slots"])
    return float(share["rate"])


def check_limits(plan: PlanDocument, price: Price, limits: Limits) -> None:
    """Raise `Refused` with the first limit that a plan passes.

    Args:
        plan: as announced.
        price: of that plan.
        limits: the owner's.
    """
    _check_kind(plan, limits)
    measured: tuple[tuple[str, Callable[[], float], float], ...] = (
        ("rate", lambda: report_probability(plan), limits.rate),
        ("clip", lambda: float(plan.randomizer["clip"]), limits.clip),
        ("delta", lambda: plan.delta, limits.total_delta),
        ("epsilon of one report", lambda: price.reports_epsilon(1), limits.local_epsilon),
        # last, as it takes seconds: a plan that is refused anyway costs its client nothing
        (
            "epsilon of the whole plan",
            lambda: price.spent(price.allowed_rounds).epsilon,
            limits.total_epsilon,
        ),
    )
    for what, measure, limit in measured:
        value = measure()
        if not value <= limit:
            raise Refused(f"the plan's {what} is {rounded_up(value)}, this client allows {limit:g}")
    if price.allowed_rounds < 1:
        raise Refused("the plan's own budget does not pay for a single round")


def _check_kind(plan: PlanDocument, limits: Limits) -> None:
    """What needs no price: the crowd, the number of rounds, whether everybody sends alike."""
    if plan.honest < limits.minimum_population:
        raise Refused(
            f"the plan is priced for {plan.honest} honest clients, this client wants at least "
            f"{limits.minimum_population}"
        )
    if limits.rounds is not None and plan.rounds > limits.rounds:
        raise Refused(f"the plan has {plan.rounds} rounds, this client allows {limits.rounds}")
    if limits.require_cover and not plan.cover:
        raise Refused("in this plan only reports are sent, and this client requires cover")
