"""An accountant for Opacus (1.6, extra `opacus`): rounds of check-ins, and central ones more tightly.

Opacus names its accountants and makes them without arguments, so that what a step stands for is said when the name is
registered. In `check-in` rounds every report carries the noise of its own and a shuffler permutes the reports; in
`central` rounds a trusted server adds it to the sum, which is what Opacus's own accountants mean.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from opacus.accountants import IAccountant
from opacus.accountants.registry import register_accountant

from dpcheckin.accounting import Guarantee, guarantee
from dpcheckin.errors import InvalidParameter
from dpcheckin.protocols.questions import RunQuestion

PROTOCOLS = {"check-in": "shuffled-check-in", "central": "central"}


def register(population: int, rounds: str = "central") -> str:
    """Tell Opacus of an accountant; the name is what `PrivacyEngine(accountant=…)` takes.

    Args:
        population: Clients, or records of a central run.
        rounds: What a step is: `central`, or `check-in` for rounds whose reports carry the noise.

    >>> register(60_000)
    'dpcheckin-central-60000'
    """
    if rounds not in PROTOCOLS:
        raise InvalidParameter("rounds", rounds, " or ".join(PROTOCOLS))
    name = f"dpcheckin-{rounds}-{population}"
    RunQuestion(PROTOCOLS[rounds], population, rate=0.5, noise_multiplier=2.0).plan()  # refuses what is no population

    class Accountant(CheckInAccountant):
        def __init__(self) -> None:
            super().__init__(population, rounds)

        @classmethod
        def mechanism(cls) -> str:
            return name

    register_accountant(name, Accountant, force=True)
    return name


class CheckInAccountant(IAccountant):  # type: ignore[misc]
    """Steps as Opacus counts them, with certified figures.

    `population` and `rounds` are those of `register`. Check-in rounds speak about replacing one client, central ones
    about adding or removing a record. `history` is Opacus's own: noise multiplier, sample rate, steps.
    """

    def __init__(self, population: int, rounds: str = "central") -> None:
        self.history: list[tuple[float, float, int]] = []
        self._population, self._rounds = population, rounds

    @classmethod
    def mechanism(cls) -> str:
        """The name under which Opacus keeps a state."""
        return "dpcheckin"

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Count a step with this `noise_multiplier`, in which a client takes part with chance `sample_rate`."""
        *before, last = self.history or [(noise_multiplier, sample_rate, 0)]
        if tuple(last[:2]) == (noise_multiplier, sample_rate):
            self.history = [*before, (noise_multiplier, sample_rate, last[2] + 1)]
        else:
            self.history = [*self.history, (noise_multiplier, sample_rate, 1)]

    def guarantee(self, delta: float) -> Guarantee:
        """The statement at this delta about all steps, with its reasons."""
        if not self.history:
            raise InvalidParameter("steps", 0, "at least one")
        question = PROTOCOLS[self._rounds]
        run = [
            (RunQuestion(question, self._population, rate=rate, noise_multiplier=noise).round(delta), steps)
            for noise, rate, steps in self.history
        ]
        return guarantee(run, delta)

    def get_epsilon(self, delta: float, *_: Any, **__: Any) -> float:
        """Certified epsilon at this delta of all steps; 0 before the first. What other accountants tune is ignored."""
        return self.guarantee(delta).epsilon.upper if self.history else 0.0

    def __len__(self) -> int:
        return sum(steps for _, _, steps in self.history)

    def state_dict(self, destination: MutableMapping[str, Any] | None = None) -> MutableMapping[str, Any]:
        """Opacus's state, in `destination` if given, and whose it is."""
        state: MutableMapping[str, Any] = super().state_dict(destination)
        return {**state, "population": self._population, "rounds": self._rounds}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from a `state_dict` of the same population and rounds; another one is refused."""
        for name, known in (("population", self._population), ("rounds", self._rounds)):
            if state_dict and state_dict.get(name) != known:
                raise InvalidParameter(f"state.{name}", state_dict.get(name), f"{known!r}")
        super().load_state_dict(state_dict)
