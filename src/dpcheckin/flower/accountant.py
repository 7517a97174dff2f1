"""Flower's `PrivacyAccountant` protocol, with rounds that Flower's own accountant does not know.

Flower describes every release as a `GaussianPrivacyEvent`: so many clients of a population, and noise.
`CheckInAccountant` says what that means here. In `check-in` and `cohort` rounds every report carries the noise and a
shuffler permutes them; in `central` rounds a trusted server adds it to the sum. Rounds in plain names (`RunQuestion`)
are taken as well, so that pure randomizers, dropouts or colluding clients can be told. Whatever was composed, its cost
is composed as loss distributions and certified; the state is the list of rounds, as plain JSON.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from flwr.serverapp import GaussianPrivacyEvent, NeighboringRelation, PrivacyConfig, PrivacySpent, SamplingMethod

from dpcheckin.accounting import Adjacency, Guarantee, Round, compose, guarantee
from dpcheckin.errors import InvalidParameter
from dpcheckin.numerals import count as whole
from dpcheckin.numerals import open_probability, positive
from dpcheckin.protocols.questions import RunQuestion

METHOD = "dpcheckin, loss distributions"
SCHEMA = 1
ROUNDS = ("check-in", "cohort", "central")
_RELATIONS = {
    Adjacency.REPLACE_ONE: NeighboringRelation.REPLACE_ONE,
    Adjacency.ADD_OR_REMOVE_RECORD: NeighboringRelation.ADD_OR_REMOVE_ONE,
}


class CheckInAccountant:
    """A privacy accountant for Flower, by Flower's `config`, whose figures are certified.

    `rounds` is what a Gaussian event stands for: check-in or cohort rounds speak about replacing one client, central
    ones about adding or removing one.

    >>> from flwr.serverapp import NeighboringRelation, PrivacyConfig, SamplingMethod
    >>> config = PrivacyConfig(
    ...     1e-5, 10_000, NeighboringRelation.REPLACE_ONE, SamplingMethod.WITHOUT_REPLACEMENT
    ... )
    >>> accountant = CheckInAccountant(config)
    >>> accountant.compose(GaussianPrivacyEvent(2.0, 100, 10_000), count=20)
    >>> accountant.num_releases, 0.017 < accountant.get_epsilon(1e-5) < 0.018
    (20, True)
    """

    def __init__(self, config: PrivacyConfig, rounds: str = "check-in") -> None:
        if rounds not in ROUNDS:
            raise InvalidParameter("rounds", rounds, "one of " + ", ".join(ROUNDS))
        self._config, self._rounds = config, rounds
        self._composed: list[tuple[RunQuestion, int]] = []

    @property
    def config(self) -> PrivacyConfig:
        """Flower's configuration."""
        return self._config

    @property
    def num_releases(self) -> int:
        """How many rounds were composed."""
        return sum(number for _, number in self._composed)

    def compose(self, event: GaussianPrivacyEvent | RunQuestion, count: int = 1) -> None:
        """Add `count` rounds like `event`, Flower's or one round in plain names, to what was spent."""
        self._composed.append((self._question(event), whole("count", count)))

    def guarantee(self, delta: float | None = None) -> Guarantee:
        """The certified statement about everything composed, with its reasons. Without `delta` it has that of the
        configuration."""
        if not self._composed:
            raise InvalidParameter("releases", 0, "at least one round composed")
        return guarantee(self._run(), self._delta(delta))

    def get_epsilon(self, delta: float) -> float:
        """Certified epsilon of everything composed."""
        delta = self._delta(delta)
        return self.guarantee(delta).epsilon.upper if self._composed else 0.0

    def get_delta(self, epsilon: float) -> float:
        """Certified delta of everything composed."""
        return compose(self._run()).delta(epsilon).upper if self._composed else 0.0

    def get_privacy_spent(self, delta: float | None = None) -> PrivacySpent:
        """The same in Flower's own type."""
        delta = self._delta(delta)
        return PrivacySpent(self.get_epsilon(delta), delta, self.num_releases, METHOD)

    def would_exceed(
        self, event: GaussianPrivacyEvent | RunQuestion, max_epsilon: float | None = None, count: int = 1
    ) -> bool:
        """Would `count` rounds like `event` spend more than `max_epsilon`, or the configuration's limit? Nothing is
        added."""
        limit = self._config.max_epsilon if max_epsilon is None else max_epsilon
        if limit is None:
            raise InvalidParameter("max_epsilon", None, "a limit, here or in PrivacyConfig")
        limit = positive("max_epsilon", limit)
        more = [*self._composed, (self._question(event), whole("count", count))]
        return guarantee(self._run(more), self._delta(None)).epsilon.upper > limit

    def state_dict(self) -> dict[str, object]:
        """All that was composed, as plain JSON."""
        return {
            "schema_version": SCHEMA,
            "backend": METHOD,
            "rounds": self._rounds,
            "config": _plain(self._config),
            "compositions": [
                {"event": dataclasses.asdict(question), "count": number} for question, number in self._composed
            ],
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on where `state_dict` was written; another configuration is refused."""
        known = self.state_dict()
        for name in ("schema_version", "backend", "rounds", "config"):
            if state.get(name) != known[name]:
                raise InvalidParameter(f"state.{name}", state.get(name), f"{known[name]!r}")
        restored = []
        try:
            for part in state["compositions"]:  # type: ignore[attr-defined]
                question = self._question(RunQuestion(**part["event"]))
                restored.append((question, whole("count", part["count"])))
        except (KeyError, TypeError) as problem:
            raise InvalidParameter("state", str(problem), "what state_dict returned") from None
        self._composed = restored

    def _delta(self, delta: float | None) -> float:
        return open_probability("delta", self._config.target_delta if delta is None else delta)

    def _question(self, event: GaussianPrivacyEvent | RunQuestion) -> RunQuestion:
        """The event as one round, if it speaks of the population and relation configured."""
        question = event if isinstance(event, RunQuestion) else self._of_gaussian(event)
        if question.population != self._config.population_size:
            raise InvalidParameter("population_size", question.population, f"{self._config.population_size:,}")
        if question.rounds != 1:
            raise InvalidParameter("rounds", question.rounds, "1: say how many with count")
        relation = _RELATIONS.get(self._round(question).adjacency)
        if relation is not self._config.neighboring_relation:
            raise InvalidParameter(
                "neighboring_relation",
                self._config.neighboring_relation.value,
                f"{'none of Flower' if relation is None else relation.value}, of which "
                f"{question.protocol} rounds speak",
            )
        return question

    def _of_gaussian(self, event: GaussianPrivacyEvent) -> RunQuestion:
        n, noise = event.population_size, event.noise_multiplier
        if self._rounds == "cohort":
            return RunQuestion("subsampled-shuffle", n, cohort=event.sample_size, noise_multiplier=noise)
        protocol = "shuffled-check-in" if self._rounds == "check-in" else "central"
        plain = self._config.sampling_method is SamplingMethod.NO_AMPLIFICATION
        rate = 1.0 if protocol == "central" and plain else event.sample_size / n
        return RunQuestion(protocol, n, rate=rate, noise_multiplier=noise)

    def _round(self, question: RunQuestion) -> Round:
        return question.round(self._config.target_delta)

    def _run(self, composed: list[tuple[RunQuestion, int]] | None = None) -> list[tuple[Round, int]]:
        return [(self._round(q), n) for q, n in (self._composed if composed is None else composed)]


def _plain(config: PrivacyConfig) -> dict[str, object]:
    plain = dataclasses.asdict(config)
    return {name: getattr(value, "value", value) for name, value in plain.items()}
