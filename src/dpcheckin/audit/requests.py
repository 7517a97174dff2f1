"""From the words of the command line to a check, with the defaults of each attack.

`Request` holds what a user can say, None for what was left out. Parsing of arguments and printing are the command's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dpcheckin.audit import plans
from dpcheckin.audit.examination import Check
from dpcheckin.errors import DpCheckinError, InvalidParameter, Superfluous
from dpcheckin.protocols import DistributedCheckIn
from dpcheckin.protocols.questions import PROTOCOL_OF
from dpcheckin.randomizers import DaryResponse, Gaussian, Randomizer, registry

if TYPE_CHECKING:
    from dpcheckin.survey import Survey

ATTACKS = ("released", "report", "training", "one-run", "service", "data-dependent-failure", "influence")


@dataclass(frozen=True)
class Request:
    """What is asked of an audit."""

    attack: str = "released"
    protocol: str | None = None
    randomizer: str | None = None
    population: int | None = None
    rate: float | None = None
    local_epsilon: float | None = None
    rounds: int | None = None
    slots: int | None = None
    delta: float | None = None
    confidence: float = plans.DEFAULT_CONFIDENCE
    claim: str | None = None
    arrival: str | None = None
    fast_coins: bool = False

    def check(self) -> Check:
        """The check that carries the request out."""
        if self.attack not in ("service", "data-dependent-failure"):
            self.refuse(f"--attack {self.attack}", "arrival")
        if self.attack != "released" and self.fast_coins:
            raise Superfluous("fast-coins", True, f"leave it out with --attack {self.attack}")
        makers = {
            "released": self._released,
            "report": self._report,
            "training": self._training,
            "service": self._service,
            "data-dependent-failure": self._service,
        }
        if self.attack not in makers:
            raise InvalidParameter("attack", self.attack, ", ".join(ATTACKS))
        return makers[self.attack]()

    def _released(self) -> Check:
        # more than one round unless told: cohorts that repeat do not show in a single round
        window = PROTOCOL_OF.get(self.protocol or "") == "random-check-in-fixed"
        usual: dict[str, Any] = {
            "protocol": "shuffled-check-in",
            "population": 1000,
            "rate": 0.1,
            "rounds": 1 if window else 8,
        }
        asked = usual | self._given("protocol", "population", "rate", "rounds", "slots")
        plan = plans.plan_named(randomizer=self._reports(4.0), **asked)
        return plans.check_plan(plan, self._delta(1e-3), self.confidence, turns=True, fast=self.fast_coins)

    def _report(self) -> Check:
        self.refuse("--attack report", "protocol", "population", "rate", "rounds", "slots")
        return plans.check_report(self._reports(4.0), self._delta(1e-2), self.confidence)

    def surveys(self, question: str | None) -> list[tuple[Survey, Any]]:
        """Surveys in which clients lie, with their values; of one kind of question, or of all."""
        from dpcheckin.audit.influence import attacked_surveys

        self.refuse("--attack influence", "protocol", "slots", "delta", "claim", "arrival")
        asked = self._given("population", "local_epsilon", "rate", "rounds")
        return attacked_surveys(question, self.randomizer, **asked)

    def sums_plan(self, default: DistributedCheckIn) -> DistributedCheckIn:
        """The plan of a training run; what was left out is the default's."""
        self.refuse(f"--attack {self.attack}", "protocol", "local_epsilon", "slots")
        asked = self._given("population", "rate", "rounds")
        if self.randomizer is not None:
            asked["randomizer"] = registry.randomizer(self.randomizer)
            if not isinstance(asked["randomizer"], Gaussian):
                raise InvalidParameter("randomizer", self.randomizer, "gaussian:SIGMA")
        return replace(default, **asked)

    def _training(self) -> Check:
        try:
            from dpcheckin.audit.training import check_training, default_training_plan
        except ImportError as problem:
            raise DpCheckinError(f"training needs torch: {problem}") from None
        return check_training(self.sums_plan(default_training_plan()), self._delta(1e-2), self.confidence)

    def _service(self) -> Check:
        try:
            from dpcheckin.audit import service
        except ImportError as problem:
            raise DpCheckinError(f"the services need dpcheckin[service]: {problem}") from None
        self.refuse(f"--attack {self.attack}", "protocol", "slots")
        default = service.default_service()
        randomizer = self._reports(default.local_epsilon)
        if not isinstance(randomizer, DaryResponse):
            raise InvalidParameter("randomizer", self.randomizer, "binary or dary:K with services")
        asked = self._given("population", "rate", "rounds", "delta", "arrival")
        asked |= {"local_epsilon": randomizer.local_epsilon, "symbols": randomizer.symbols}
        check = service.check_service if self.attack == "service" else service.check_failure
        return check(replace(default, **asked), self.confidence)

    def _given(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def _delta(self, usual: float) -> float:
        return usual if self.delta is None else self.delta

    def _reports(self, local_epsilon: float) -> Randomizer:
        """The randomizer, with this local epsilon where it needs one and none was given."""
        offered = {} if self.local_epsilon is not None else {"local_epsilon": local_epsilon}
        named = self.randomizer or "dary:3"
        return registry.randomizer(named, offered, local_epsilon=self.local_epsilon)

    def refuse(self, mode: str, *names: str) -> None:
        """Raise if a field of these names was given that the mode, as the user asked for it, has no use for."""
        for name, value in self._given(*names).items():
            raise Superfluous(name.replace("_", "-"), value, f"leave it out with {mode}")
