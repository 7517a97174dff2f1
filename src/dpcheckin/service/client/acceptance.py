"""Whether a plan is what an owner allows: tokens, limits, price; the first that fails is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from dpcheckin.accounting.figures import rounded_up
from dpcheckin.errors import DpCheckinError, ServiceError
from dpcheckin.randomizers import Randomizer
from dpcheckin.service.client.config import TOKENS_BIND, ClientConfig, Limits
from dpcheckin.service.pricing import Price
from dpcheckin.service.wire.documents import KeyDocument, PlanDocument, RoundDocument


class Refused(ServiceError):
    """This client does not take part, and why."""


class NotBelieved(Refused):
    """What was shown is not what the analyzer signed, or is out of date: nothing comes of it.

    Whoever stands between can show anything, so that this is no reason to stop for good.
    """


@dataclass(frozen=True)
class AcceptedPlan:
    """A plan that was found acceptable."""

    plan: PlanDocument
    price: Price
    randomizer: Randomizer
    keys: dict[bytes, KeyDocument]

    @cached_property
    def id(self) -> str:
        """The plan's, in hex."""
        return self.plan.id.hex()

    def key_of(self, found: RoundDocument) -> KeyDocument | None:
        """The opening key that a round names, if it was announced for it.

        Args:
            found: the round.
        """
        key = self.keys.get(found.key_id)
        return key if key is not None and key.from_round <= found.round else None


def report_probability(plan: PlanDocument) -> float:
    """The largest probability that a client reports in one given round."""
    share = plan.participation
    if plan.numbered_slots:
        return float(share["check_in_probability"] / share["slots"])
    return float(share["rate"])


def accepted(
    plan: PlanDocument,
    keys: Iterable[KeyDocument],
    config: ClientConfig,
    price: Callable[[PlanDocument], Price],
) -> AcceptedPlan:
    """The plan with its price and keys, if it is within what the owner allows; else `Refused`.

    Args:
        plan: as announced.
        keys: as announced; those of other plans are passed over.
        config: the owner's.
        price: how plans are priced.
    """
    if config.plan is not None and plan.id != config.plan:
        raise Refused("another plan than the one in this client's configuration")
    _check_issuer(plan, config)
    try:
        found = price(plan)
        check_limits(plan, found, config.limits)
    except Refused:
        raise
    except DpCheckinError as problem:
        raise Refused(f"the plan cannot be priced: {problem}") from None
    return AcceptedPlan(plan, found, found.plan.randomizer, keys_of(plan, keys))


def keys_of(plan: PlanDocument, keys: Iterable[KeyDocument]) -> dict[bytes, KeyDocument]:
    """The keys that belong to a plan, by their ids.

    Args:
        plan: as announced.
        keys: as announced.
    """
    own = plan.id.hex()
    return {key.key_id: key for key in keys if key.plan == own and key.suite == plan.suite}


def _check_issuer(plan: PlanDocument, config: ClientConfig) -> None:
    """Tokens are the owner's decision: no plan may do without them, or bring its own issuer."""
    wanted = None if config.issuer is None else config.issuer.identity.hex()
    if plan.issuer != wanted:
        said = "no issuer" if plan.issuer is None else f"issuer {plan.issuer[:16]}…"
        own = "none" if wanted is None else f"{wanted[:16]}…"
        raise Refused(f"the plan has {said}, this client's configuration {own}")


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
    """What needs no price: the crowd, the rounds, the time, whether everybody sends alike."""
    batch = limits.minimum_batch
    if batch is None:
        batch = 0 if plan.issuer is None else TOKENS_BIND
    if plan.minimum_batch < batch:
        raise Refused(
            f"the plan releases rounds of {plan.minimum_batch:,} reports, this client wants at "
            f"least {batch:,}"
        )
    if not plan.compute_seconds >= limits.minimum_compute_seconds:
        raise Refused(
            f"the plan leaves {plan.compute_seconds:g} seconds for computing, this client wants "
            f"at least {limits.minimum_compute_seconds:g}"
        )
    if plan.honest < limits.minimum_population:
        raise Refused(
            f"the plan is priced for {plan.honest} honest clients, this client wants at least "
            f"{limits.minimum_population:,}"
        )
    if limits.rounds is not None and plan.rounds > limits.rounds:
        raise Refused(f"the plan has {plan.rounds:,} rounds, this client allows {limits.rounds:,}")
    if limits.require_cover and not plan.cover:
        raise Refused("in this plan only reports are sent, and this client requires cover")
