"""What the owner of a client allows, read from the owner's own TOML file and nowhere else, and which plans it admits.

Where the shuffler is, whom to believe (the analyzer's identity key), and limits, none of which any message can change;
docs/deploying.md lists every entry. A plan is checked for its tokens, its limits and its price; the first that fails is
named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dpcheckin.errors import DpCheckinError, InvalidParameter, ServiceError
from dpcheckin.numerals import rounded_up
from dpcheckin.randomizers import Randomizer
from dpcheckin.service.pricing import Price
from dpcheckin.service.settings import IssuerAccess, SettingsFile, check_address
from dpcheckin.service.wire.documents import KeyDocument, PlanDocument, RoundDocument

NUMBERS = ("rate", "clip", "local_epsilon", "total_epsilon", "total_local_epsilon", "total_delta")
"""Limits that every owner has to state."""
DEFAULT_MODEL_BYTES = 256 << 20
TOKENS_BIND = 2
"""Fewest reports among which tokens hide anybody: below, a shuffler may drop all others."""
_COUNTS = {"minimum_population": 2, "minimum_batch": 0, "rounds": 1, "void_rounds": 1}


@dataclass(frozen=True)
class Limits:
    """The most that this client gives."""

    rate: float
    clip: float
    local_epsilon: float
    total_epsilon: float
    total_local_epsilon: float
    total_delta: float
    minimum_population: int = 2
    """Fewest honest clients that a plan is priced for."""
    minimum_batch: int | None = None
    """Fewest reports of a round that is released; None: `TOKENS_BIND` with an issuer, else any."""
    minimum_compute_seconds: float = 0.05
    """Least time that a plan leaves between the coin and the first that may be sent."""
    require_cover: bool = False
    """Refuse plans in which a client that stays away sends nothing."""
    rounds: int | None = None
    """Most rounds that a plan may have; None: any number."""
    void_rounds: int = 50
    """Most rounds in a row that may be void; then the client stops."""

    def __post_init__(self) -> None:
        self._check_counts()
        for name in NUMBERS:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise InvalidParameter(f"limits.{name}", value, "a number above 0")
            if not math.isfinite(value):
                raise InvalidParameter(f"limits.{name}", value, "a finite number")
        least = self.minimum_compute_seconds
        if type(least) not in (int, float) or not 0 <= least < math.inf:
            raise InvalidParameter("limits.minimum_compute_seconds", least, "0 or more seconds")
        if self.rate > 1:
            raise InvalidParameter("limits.rate", self.rate, "at most 1")
        if self.total_delta >= 1:
            raise InvalidParameter("limits.total_delta", self.total_delta, "below 1")

    def _check_counts(self) -> None:
        for name, least in _COUNTS.items():
            value = getattr(self, name)
            if value is None and name in ("rounds", "minimum_batch"):
                continue
            if type(value) is not int or value < least:
                raise InvalidParameter(f"limits.{name}", value, f"a whole number from {least} on")
        if type(self.require_cover) is not bool:
            raise InvalidParameter("limits.require_cover", self.require_cover, "true or false")


@dataclass(frozen=True)
class ClientConfig:
    """Everything in the file."""

    shuffler: str
    token: str
    identity: bytes
    limits: Limits
    state: Path
    authority: Path | None = None
    plan: bytes | None = None
    arrival: int = 0
    poll_seconds: float = 1.0
    shuffler_identity: bytes | None = None
    """Whose statements that rounds were void are believed; None: nobody's."""
    model_bytes: int = DEFAULT_MODEL_BYTES
    """The largest model that is fetched."""
    issuer: IssuerAccess | None = None
    """Who signs this client's report tokens; None: it takes part in plans without tokens only."""

    def __post_init__(self) -> None:
        if self.model_bytes < 1:
            raise InvalidParameter("agent.model_bytes", self.model_bytes, "at least 1")
        check_address(self.shuffler)
        for name, digest, allowed in (
            ("shuffler.identity", self.shuffler_identity, "32 bytes in hex"),
            ("analyzer.identity", self.identity, "32 bytes in hex"),
            ("agent.plan", self.plan, "a plan's id: 32 bytes in hex"),
        ):
            if digest is not None and len(digest) != 32:
                raise InvalidParameter(name, digest.hex(), allowed)
        if not self.poll_seconds > 0:
            raise InvalidParameter("agent.poll_seconds", self.poll_seconds, "above 0")


def read_config(path: Path) -> tuple[ClientConfig, dict[str, Any]]:
    """The configuration, and the `[data]` table, which belongs to the task. `path`: the owner's TOML file."""
    read = SettingsFile(path)
    data = read.table("data")
    identity = read.hex("analyzer", "identity")
    state = read.path("agent", "state")
    assert identity is not None and state is not None
    config = ClientConfig(
        shuffler=read.take("shuffler", "address", str),
        token=read.secret("shuffler"),
        authority=read.path("shuffler", "authority", None),
        identity=identity,
        limits=Limits(**read.given("limits", Limits)),
        state=state,
        plan=read.hex("agent", "plan", None),
        shuffler_identity=read.hex("shuffler", "identity", None),
        issuer=read.issuer(),
        **read.given("agent", ClientConfig, ("arrival", "poll_seconds", "model_bytes")),
    )
    read.finish()
    return config, data


class Refused(ServiceError):
    """This client does not take part, and why."""


class Declined(Refused):
    """This client takes no part in the plan that is offered; it waits for another one."""


class NotBelieved(Refused):
    """What was shown is not what the analyzer signed, or is out of date: nothing comes of it. Whoever stands between
    can show anything, so that this is no reason to stop for good."""


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

    def key_of(self, announced: RoundDocument) -> KeyDocument | None:
        """The opening key that a round names, if it was announced for it."""
        key = self.keys.get(announced.key_id)
        return key if key is not None and key.from_round <= announced.round else None


def accepted(
    plan: PlanDocument, keys: Iterable[KeyDocument], config: ClientConfig, price: Callable[[PlanDocument], Price]
) -> AcceptedPlan:
    """The `plan` with its `price` and those of the announced `keys` that are its own, if the owner's `config` allows
    it; else `Declined`."""
    if config.plan is not None and plan.id != config.plan:
        raise Declined("another plan than the one in this client's configuration")
    _check_issuer(plan, config)
    try:
        priced = price(plan)
        check_limits(plan, priced, config.limits)
    except Declined:
        raise
    except (DpCheckinError, ArithmeticError, MemoryError) as problem:
        raise Declined(f"the plan cannot be priced: {problem}") from None
    return AcceptedPlan(plan, priced, priced.plan.randomizer, keys_of(plan, keys))


def keys_of(plan: PlanDocument, keys: Iterable[KeyDocument]) -> dict[bytes, KeyDocument]:
    """Of the announced `keys` those that belong to a `plan`, by their ids."""
    own = plan.id.hex()
    return {key.key_id: key for key in keys if key.plan == own and key.suite == plan.suite}


def _check_issuer(plan: PlanDocument, config: ClientConfig) -> None:
    """Tokens are the owner's decision: no plan may do without them, or bring its own issuer."""
    wanted = None if config.issuer is None else config.issuer.identity.hex()
    if plan.issuer != wanted:
        said = "no issuer" if plan.issuer is None else f"issuer {plan.issuer[:16]}…"
        own = "none" if wanted is None else f"{wanted[:16]}…"
        raise Declined(f"the plan has {said}, this client's configuration {own}")


def check_limits(plan: PlanDocument, price: Price, limits: Limits) -> None:
    """Raise `Declined` with the first of the owner's `limits` that a `plan` of this `price` passes."""
    _check_kind(plan, limits)
    measured: tuple[tuple[str, Callable[[], float], float], ...] = (
        ("rate", lambda: plan.report_probability, limits.rate),
        ("clip", lambda: float(plan.randomizer["clip"]), limits.clip),
        ("delta", lambda: plan.delta, limits.total_delta),
        ("epsilon of one report", lambda: price.reports_epsilon(1), limits.local_epsilon),
        # last, as it takes seconds: a plan that is refused anyway costs its client nothing
        ("epsilon of the whole plan", lambda: price.spent(price.allowed_rounds).epsilon, limits.total_epsilon),
    )
    for what, measure, limit in measured:
        value = measure()
        if not value <= limit:
            raise Declined(f"the plan's {what} is {rounded_up(value)}, this client allows {limit:g}")
    if price.allowed_rounds < 1:
        raise Declined("the plan's own budget does not pay for a single round")


def _check_kind(plan: PlanDocument, limits: Limits) -> None:
    """What needs no price: the crowd, the rounds, the time, whether everybody sends alike."""
    least_batch, least_seconds, crowd = limits.minimum_batch, limits.minimum_compute_seconds, limits.minimum_population
    if least_batch is None:
        least_batch = 0 if plan.issuer is None else TOKENS_BIND
    if plan.minimum_batch < least_batch:
        offered = f"releases rounds of {plan.minimum_batch:,} reports"
        raise Declined(f"the plan {offered}, this client wants at least {least_batch:,}")
    if not plan.compute_seconds >= least_seconds:
        offered = f"leaves {plan.compute_seconds:g} seconds for computing"
        raise Declined(f"the plan {offered}, this client wants at least {least_seconds:g}")
    if plan.honest < crowd:
        offered = f"is priced for {plan.honest} honest clients"
        raise Declined(f"the plan {offered}, this client wants at least {crowd:,}")
    if limits.rounds is not None and plan.rounds > limits.rounds:
        raise Declined(f"the plan has {plan.rounds:,} rounds, this client allows {limits.rounds:,}")
    if limits.require_cover and not plan.cover:
        raise Declined("in this plan only reports are sent, and this client requires cover")
