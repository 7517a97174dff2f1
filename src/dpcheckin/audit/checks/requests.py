"""From the words of the command line to a check, with the defaults of each attack.

`Request` holds what a user can say, None for what was left out. Parsing of arguments and printing
are the command's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from dpcheckin.audit.checks import plans
from dpcheckin.audit.examination import Check
from dpcheckin.errors import DpCheckinError, InvalidParameter
from dpcheckin.protocols import DistributedCheckIn
from dpcheckin.protocols.names import PROTOCOL_OF
from dpcheckin.randomizers import DaryResponse, Gaussian, Randomizer, registry

if TYPE_CHECKING:
    from dpcheckin.survey import Survey

_T = TypeVar("_T")

ATTACKS = (
    "released", "report", "training", "one-run", "service", "data-dependent-failure", "influence",
)  # fmt: skip


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
            raise InvalidParameter("fast-coins", True, f"left out with --attack {self.attack}")
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
        randomizer = self._reports(4.0)
        plan = plans.plan_named(
            self.protocol or "shuffled-check-in", randomizer, _given_or(self.population, 1000),
            _given_or(self.rate, 0.1), self._rounds(), self.slots,
        )  # fmt: skip
        delta = _given_or(self.delta, 1e-3)
        return plans.check_plan(plan, delta, self.confidence, turns=True, fast=self.fast_coins)

    def _rounds(self) -> int:
        """More than one unless told: cohorts that repeat do not show in a single round."""
        window = PROTOCOL_OF.get(self.protocol or "") == "random-check-in-fixed"
        return _given_or(self.rounds, 1 if window else 8)

    def _report(self) -> Check:
        self.refuse("--attack report", "protocol", "population", "rate", "rounds", "slots")
        randomizer = self._reports(4.0)
        return plans.check_report(randomizer, _given_or(self.delta, 1e-2), self.confidence)

    def surveys(self, question: str | None) -> list[tuple[Survey, Any]]:
        """Surveys in which clients lie, with their values.

        Args:
            question: its kind; all if left out.
        """
        from dpcheckin.audit.checks.influence_cases import attacked_surveys

        self.refuse("--attack influence", "protocol", "slots", "delta", "claim", "arrival")
        return attacked_surveys(
            question, self.randomizer, _given_or(self.population, 1000),
            _given_or(self.local_epsilon, 4.0), _given_or(self.rate, 1.0), self.rounds,
        )  # fmt: skip

    def sums_plan(self, default: DistributedCheckIn) -> DistributedCheckIn:
        """The plan of a training run; what was left out is the default's."""
        self.refuse(f"--attack {self.attack}", "protocol", "local_epsilon", "slots")
        randomizer = default.randomizer
        if self.randomizer is not None:
            named = registry.randomizer(self.randomizer)
            if not isinstance(named, Gaussian):
                raise InvalidParameter("randomizer", self.randomizer, "gaussian:SIGMA")
            randomizer = named
        return DistributedCheckIn(
            _given_or(self.population, default.population), _given_or(self.rate, default.rate),
            _given_or(self.rounds, default.rounds), randomizer,
        )  # fmt: skip

    def _training(self) -> Check:
        try:
            from dpcheckin.audit.checks.training import check_training, default_training_plan
        except ImportError as problem:
            raise DpCheckinError(f"training needs torch: {problem}") from None
        plan = self.sums_plan(default_training_plan())
        return check_training(plan, _given_or(self.delta, 1e-2), self.confidence)

    def _service(self) -> Check:
        try:
            from dpcheckin.audit.checks import service
        except ImportError as problem:
            raise DpCheckinError(f"the services need dpcheckin[service]: {problem}") from None
        self.refuse(f"--attack {self.attack}", "protocol", "slots")
        default = service.default_service()
        randomizer = self._reports(default.local_epsilon)
        if not isinstance(randomizer, DaryResponse):
            raise InvalidParameter("randomizer", self.randomizer, "binary or dary:K with services")
        system = service.Deployed(
            _given_or(self.population, default.population), _given_or(self.rate, default.rate),
            _given_or(self.rounds, default.rounds), randomizer.local_epsilon, randomizer.symbols,
            _given_or(self.delta, default.delta), _given_or(self.arrival, default.arrival),
        )  # fmt: skip
        check = service.check_service if self.attack == "service" else service.check_failure
        return check(system, self.confidence)

    def _reports(self, local_epsilon: float) -> Randomizer:
        """The randomizer, with this local epsilon where it needs one and none was given."""
        offered = {} if self.local_epsilon is not None else {"local_epsilon": local_epsilon}
        named = self.randomizer or "dary:3"
        return registry.randomizer(named, offered, local_epsilon=self.local_epsilon)

    def refuse(self, mode: str, *names: str) -> None:
        """Raise if something was given that the mode has no use for.

        Args:
            mode: as the user asked for it.
            names: of fields.
        """
        for name in names:
            value = getattr(self, name)
            if value is not None:
                raise InvalidParameter(name.replace("_", "-"), value, f"left out with {mode}")


def _given_or(given: _T | None, default: _T) -> _T:
    return default if given is None else given
