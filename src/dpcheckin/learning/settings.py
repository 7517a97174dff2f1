"""How the analyzer learns: optimiser, learning rate, averaging, and when to look.

All of it is post-processing of the reports and costs no privacy. The schedule is a function of the
round number alone, so a resumed run takes up where it stopped. torch is imported only when an
optimiser is made: the settings are also what the command line lists.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.names import OPTIMIZERS, SCHEDULES
from dpcheckin.options import check_choices, option

if TYPE_CHECKING:
    import torch

MACHINE = "The machine"
"""Section of the options that say how, not what, is computed."""

_learning = partial(option, section="Learning")
_machine = partial(option, section=MACHINE)


@dataclass(frozen=True)
class Settings:
    """Settings of one training run.

    `learning_rate` multiplies the mean estimate divided by the clipping norm, so that it means
    the same step whatever the clip (when most gradients are clipped, the usual case). The running
    average of the parameters, with decay `averaging`, is evaluated and returned (0: the last
    parameters themselves). `weight_decay` forgets the noise of early rounds. A `radius` is what the
    papers' theorems about convex losses ask for.
    """

    optimizer: str = _learning("sgd", choices=OPTIMIZERS)
    learning_rate: float = _learning(0.3, "In units of the clip.")
    momentum: float = _learning(0.0)
    schedule: str = _learning(
        "linear",
        "constant; linear or cosine, over the rounds; inverse-sqrt: 1/√i at round i.",
        choices=SCHEDULES,
    )
    warmup: int = _learning(
        0, "Rounds over which the learning rate rises to its full value.", on_command_line=False
    )
    steps: tuple[tuple[int, float], ...] = _learning(
        (),
        "Rounds from which the schedule 'steps' multiplies the learning rate, with the factors.",
        on_command_line=False,
    )
    averaging: float = _learning(0.97, "Decay of the averaged model.")
    weight_decay: float = _learning(0.0, "Pull of the parameters to zero.")
    radius: float | None = _learning(
        None, "Project the parameters onto a ball around zero after each step."
    )
    seed: int = _learning(0)
    evaluate_every: int | None = _learning(
        None, "Rounds between log lines (default: twenty lines in a run, or one every ten rounds)."
    )
    checkpoint_every: int = _machine(50, "Rounds between checkpoints.")

    def __post_init__(self) -> None:
        check_choices(self)
        for name in ("learning_rate", "radius"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InvalidParameter(name, value, "a finite number above 0")
        for name in ("momentum", "averaging"):
            if not 0 <= getattr(self, name) < 1:
                raise InvalidParameter(name, getattr(self, name), "in [0, 1)")
        if not 0 <= self.weight_decay < math.inf:
            raise InvalidParameter("weight_decay", self.weight_decay, "a number of at least 0")
        for name in ("evaluate_every", "checkpoint_every"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InvalidParameter(name, getattr(self, name), "at least 1")
        if not 0 <= self.seed < 2**63:
            raise InvalidParameter("seed", self.seed, "an integer from 0 to 2**63 - 1")

    def rounds_between_scores(self, rounds: int) -> int:
        """After how many rounds of so many a model is evaluated and logged.

        >>> [Settings().rounds_between_scores(rounds) for rounds in (7, 20, 60, 400)]
        [1, 1, 3, 10]
        """
        if self.evaluate_every is not None:
            return self.evaluate_every
        return min(max(rounds // 20, 1), 10)

    def rate_at(self, round_index: int, rounds: int) -> float:
        """Learning rate of a round (counted from 0) out of `rounds`."""
        done = round_index / rounds
        reached = [1.0, *(factor for start, factor in self.steps if start <= round_index)]
        factor = {
            "constant": 1.0,
            "linear": 1 - done,
            "cosine": 0.5 + 0.5 * math.cos(math.pi * done),
            "inverse-sqrt": 1 / math.sqrt(round_index + 1),
            "steps": reached[-1],
        }[self.schedule]
        return self.learning_rate * factor * min(1.0, (round_index + 1) / max(self.warmup, 1))

    def make_optimizer(self, module: torch.nn.Module) -> torch.optim.Optimizer:
        """The analyzer's optimiser over the module's parameters."""
        import torch

        parameters, decay = list(module.parameters()), self.weight_decay
        if self.optimizer == "adam":
            betas = (self.momentum or 0.9, 0.999)
            return torch.optim.Adam(parameters, self.learning_rate, betas, weight_decay=decay)
        return torch.optim.SGD(parameters, self.learning_rate, self.momentum, weight_decay=decay)

    def to_json(self) -> dict[str, Any]:
        """Plain data for logs and checkpoints."""
        return {**asdict(self), "steps": [list(step) for step in self.steps]}
