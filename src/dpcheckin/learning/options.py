"""Every option of a training run, and the words it may be given, described once.

`dpcheckin train` takes its arguments from `RunOptions`, `dpcheckin sweep` what may be varied, and the report its table
of settings. What the options come to is `simulation.runs`' business; nothing here needs torch before an optimiser is
made.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcheckin.errors import InvalidParameter, Superfluous
from dpcheckin.options import DEFAULT_DELTA, check_choices, check_values, listed, option
from dpcheckin.protocols.questions import PROTOCOL_OF, PROTOCOLS

if TYPE_CHECKING:
    import torch

DATASETS = ("digits", "mnist", "fashion-mnist", "cifar10", "cifar100")
MODELS = ("auto", "papers-cnn", "papers-cnn-relu", "small", "linear")
FEATURES = ("none", "scattering", "efficientnet-lite0")
REPORTS = ("sum", "each")
OPTIMIZERS = ("sgd", "adam")
SCHEDULES = ("constant", "linear", "cosine", "inverse-sqrt", "steps")
TASKS = ("auto", "classes", "numbers")
BACKENDS = ("local", "processes", "ray")

MACHINE = "The machine"
"""Section of the options that say how, not what, is computed."""

_RUN = "The run"
_run = partial(option, section=_RUN)
_privacy = partial(option, section="Privacy")
_table = partial(option, section="Your own table")
_learning = partial(option, section="Learning")
_machine = partial(option, section=MACHINE)


@dataclass(frozen=True)
class Settings:
    """How the analyzer learns; all of it is post-processing of the reports and costs no privacy.

    The schedule is a function of the round number alone, so a resumed run takes up where it stopped. `learning_rate`
    multiplies the mean estimate divided by the clipping norm, so that it means the same step whatever the clip (when
    most gradients are clipped, the usual case). The running average of the parameters, with decay `averaging`, is
    evaluated and returned (0: the last parameters themselves). `weight_decay` forgets the noise of early rounds. A
    `radius` is what the papers' theorems about convex losses ask for.
    """

    optimizer: str = _learning("sgd", choices=OPTIMIZERS)
    learning_rate: float = _learning(0.3, "In units of the clip.")
    momentum: float = _learning(0.0)
    schedule: str = _learning(
        "linear", "constant; linear or cosine, over the rounds; inverse-sqrt: 1/√i at round i.", choices=SCHEDULES
    )
    warmup: int = _learning(0, "Rounds over which the learning rate rises to its full value.", on_command_line=False)
    steps: tuple[tuple[int, float], ...] = _learning(
        (),
        "Rounds from which the schedule 'steps' multiplies the learning rate, with the factors.",
        on_command_line=False,
    )
    averaging: float = _learning(0.97, "Decay of the averaged model.")
    weight_decay: float = _learning(0.0, "Pull of the parameters to zero.")
    radius: float | None = _learning(None, "Project the parameters onto a ball around zero after each step.")
    seed: int = _learning(0)
    evaluate_every: int | None = _learning(
        None, "Rounds between log lines (default: twenty lines in a run, or one every ten rounds)."
    )
    checkpoint_every: int = _machine(50, "Rounds between checkpoints.")

    def __post_init__(self) -> None:
        check_choices(self)
        check_values(self, ("learning_rate", "radius"), lambda x: 0 < x < math.inf, "a finite number above 0")
        check_values(self, ("momentum", "averaging"), lambda x: 0 <= x < 1, "in [0, 1)")
        check_values(self, ("weight_decay",), lambda x: 0 <= x < math.inf, "a number of at least 0")
        check_values(self, ("evaluate_every", "checkpoint_every"), lambda x: x >= 1, "at least 1")
        check_values(self, ("seed",), lambda x: 0 <= x < 2**63, "an integer from 0 to 2**63 - 1")

    def rounds_between_scores(self, rounds: int) -> int:
        """After how many rounds of so many a model is evaluated and logged.

        >>> [Settings().rounds_between_scores(rounds) for rounds in (7, 20, 60, 400)]
        [1, 1, 3, 10]
        """
        if self.evaluate_every is not None:
            return self.evaluate_every
        return min(max(rounds // 20, 1), 10)

    def rate_at(self, round_index: int, rounds: int) -> float:
        """Learning rate of a round (round_index, from 0) out of so many rounds."""
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


@dataclass(frozen=True)
class TableOptions:
    """How the columns of --data FILE.csv, FILE.parquet or a folder of such files are used."""

    target: str | None = _table(None, "Column to predict.")
    owner: str | None = _table(None, "Column that names each record's client; without it every record is one.")
    columns: str | None = _table(None, "Columns to learn from, separated by commas; all others if left out.")
    bounds: str | None = _table(
        None, "COLUMN=LOWEST:HIGHEST,… known beforehand: clipped to them and mapped to [-1, 1]."
    )
    task: str = _table("auto", "classes, numbers, or auto: by the target.", choices=TASKS)
    test_share: float = _table(0.2, "Share of clients held out to evaluate on.")

    def __post_init__(self) -> None:
        check_choices(self)


@dataclass(frozen=True)
class RunOptions:
    """Everything that defines a run; equal options give equal models, bit for bit."""

    data: str = option("digits", f"{', '.join(DATASETS)}, or a path: .csv, .parquet, .npz, a folder of tables.")
    protocol: str = option("shuffled-check-in", f"{listed(tuple(PROTOCOLS))}.", choices=tuple(PROTOCOL_OF))
    randomizer: str = option("privunit", "{vectors}.")

    model: str = _run("auto", choices=MODELS)
    features: str = _run(
        "none", "Fixed features of each record, computed once: they cost no privacy.", choices=FEATURES
    )
    components: int | None = _run(None, "Numbers that features are reduced to; needs --features.")
    whitening: float = _run(0.0, "Divide each component by this power of its public deviation; needs --public.")
    public: str | None = _run(
        None,
        "Public data, as --data, or 'dead-leaves' or 'strokes', images made up: its components "
        "reduce --features; without --features, pre-train on it. Only the last layer is trained "
        "privately.",
    )
    public_epochs: int = _run(5, "Passes over the public data.")
    data_dir: Path | None = option(None, "Where dataset files are.", section=_RUN)
    validate: float | None = _run(
        None,
        "Share of the training records to evaluate on instead of the test records; nobody "
        "trains on them. For choosing settings.",
    )
    population: int | None = _run(None, "Clients, each with a bootstrapped record.")
    by_owner: bool = _run(False, "One client per owner of records (user-level).")
    rounds: int = _run(400, "Most rounds to run.")
    rate: float = _run(0.2, "Check-in rate of a round.")
    lowest_rate: float | None = _run(None, "Clients' rates lie between this and --rate.")
    dropout: float = _run(0.0, "Share of check-ins that get lost.")
    slots: int | None = _run(None, "Slots of a random check-ins window.")
    minibatch: int = _run(1, "Slots per step of a random check-ins window.")
    check_in_probability: float = _run(1.0, "With which a client chooses a slot of a fixed window at all.")
    repetitions: int = _run(1, "How often a fixed or averaged window is repeated.")
    windows: Path | None = option(
        None, "CSV with first, last (slots) and probability of each client's own window.", section=_RUN
    )
    local_steps: int = _run(1, "Steps each client takes on its own; above 1 it reports the difference.")
    local_learning_rate: float = _run(0.1, "Of the clients' own steps.")

    epsilon: float | None = _privacy(None, "Target for all rounds: solves the noise of a report.")
    epsilon_budget: float | None = _privacy(None, "Stop before the round that would pass it: solves the rounds.")
    delta: float = _privacy(DEFAULT_DELTA, "Delta of the guarantee.")
    local_epsilon: float = _privacy(2.0, "Epsilon of one report.")
    noise_multiplier: float = _privacy(1.0, "Noise over clip, Gaussian reports.")
    clip: float = _privacy(1.0, "Largest norm of a gradient.")
    per_tensor: bool = _privacy(False, "Clip each parameter tensor alike.")

    baseline: bool = option(
        False,
        "Train the model without privacy too, and under central DP-SGD at the same epsilon.",
        section=_RUN,
        changes_result=False,
    )

    table: TableOptions = field(default_factory=TableOptions)
    settings: Settings = field(default_factory=Settings)

    reports: str = _machine("sum", "sum draws only their sum, each draws every report.", choices=REPORTS)
    backend: str = _machine("local", choices=BACKENDS, changes_result=False)
    workers: int = _machine(2, "Worker processes.", changes_result=False)
    threads: int = _machine(
        1, "Threads of each process; more help large models on a machine that nobody else uses.", changes_result=False
    )
    device: str = _machine(
        "cpu", "Where gradients and features are computed: cpu, cuda, cuda:1 or mps.", changes_result=False
    )

    def __post_init__(self) -> None:
        check_choices(self)
        if isinstance(self.randomizer, str):  # a program may give the randomizer itself
            from dpcheckin.randomizers import VectorRandomizer, registry

            if not issubclass(registry.kind_named(self.randomizer.split(":")[0]), VectorRandomizer):
                raise InvalidParameter("randomizer", self.randomizer, "one that takes vectors")
        for name, usual in (("components", None), ("whitening", 0.0)):
            if self.features == "none" and getattr(self, name) != usual:
                raise Superfluous(name, getattr(self, name), "leave it out without --features")
        check_values(self, ("rounds", "repetitions", "threads"), lambda x: x >= 1, "an integer of at least 1")
        check_values(self, ("validate", "delta"), lambda x: 0 < x < 1, "strictly between 0 and 1")
