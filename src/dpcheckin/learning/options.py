"""Every option of a training run, described once.

`dpcheckin train` takes its arguments from `RunOptions`, `dpcheckin sweep` what may be varied, and
the report its table of settings. What the options come to is `simulation.runs`' business; nothing
here needs torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning import names
from dpcheckin.learning.settings import MACHINE, Settings
from dpcheckin.options import DEFAULT_DELTA, check_choices, listed, option
from dpcheckin.protocols.names import PROTOCOL_OF, PROTOCOLS

_RUN = "The run"
_run = partial(option, section=_RUN)
_privacy = partial(option, section="Privacy")
_table = partial(option, section="Your own table")
_machine = partial(option, section=MACHINE)


@dataclass(frozen=True)
class TableOptions:
    """How the columns of --data FILE.csv, FILE.parquet or a folder of such files are used."""

    target: str | None = _table(None, "Column to predict.")
    owner: str | None = _table(
        None, "Column that names each record's client; without it every record is one."
    )
    columns: str | None = _table(
        None, "Columns to learn from, separated by commas; all others if left out."
    )
    bounds: str | None = _table(
        None, "COLUMN=LOWEST:HIGHEST,… known beforehand: clipped to them and mapped to [-1, 1]."
    )
    task: str = _table("auto", "classes, numbers, or auto: by the target.", choices=names.TASKS)
    test_share: float = _table(0.2, "Share of clients held out to evaluate on.")

    def __post_init__(self) -> None:
        check_choices(self)


@dataclass(frozen=True)
class RunOptions:
    """Everything that defines a run; equal options give equal models, bit for bit."""

    data: str = option(
        "digits",
        f"{', '.join(names.DATASETS)}, or a path: .csv, .parquet, .npz, a folder of tables.",
    )
    protocol: str = option(
        "shuffled-check-in", f"{listed(tuple(PROTOCOLS))}.", choices=tuple(PROTOCOL_OF)
    )
    randomizer: str = option("privunit", "{vectors}.")

    model: str = _run("auto", choices=names.MODELS)
    features: str = _run(
        "none",
        "Fixed features of each record, computed once: they cost no privacy.",
        choices=names.FEATURES,
    )
    components: int | None = _run(None, "Numbers that features are reduced to; needs --features.")
    whitening: float = _run(
        0.0, "Divide each component by this power of its public deviation; needs --public."
    )
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
    check_in_probability: float = _run(
        1.0, "With which a client chooses a slot of a fixed window at all."
    )
    repetitions: int = _run(1, "How often a fixed or averaged window is repeated.")
    windows: Path | None = option(
        None,
        "CSV with first, last (slots) and probability of each client's own window.",
        section=_RUN,
    )
    local_steps: int = _run(
        1, "Steps each client takes on its own; above 1 it reports the difference."
    )
    local_learning_rate: float = _run(0.1, "Of the clients' own steps.")

    epsilon_budget: float | None = _privacy(None, "Stop before the round that would pass it.")
    delta: float = _privacy(DEFAULT_DELTA, "Delta of the guarantee.")
    local_epsilon: float = _privacy(2.0, "Epsilon of one report.")
    noise_multiplier: float = _privacy(1.0, "Noise over clip, Gaussian reports.")
    clip: float = _privacy(1.0, "Largest norm of a gradient.")
    per_tensor: bool = _privacy(False, "Clip each parameter tensor alike.")

    table: TableOptions = field(default_factory=TableOptions)
    settings: Settings = field(default_factory=Settings)

    reports: str = _machine(
        "sum", "sum draws only their sum, each draws every report.", choices=names.REPORTS
    )
    backend: str = _machine("local", choices=names.BACKENDS, changes_result=False)
    workers: int = _machine(2, "Worker processes.", changes_result=False)
    threads: int | None = _machine(None, "Threads of each process.", changes_result=False)

    def __post_init__(self) -> None:
        check_choices(self)
        if isinstance(self.randomizer, str):  # a program may give the randomizer itself
            from dpcheckin.randomizers import VectorRandomizer, registry

            if not issubclass(registry.kind_named(self.randomizer.split(":")[0]), VectorRandomizer):
                raise InvalidParameter("randomizer", self.randomizer, "one that takes vectors")
        for name, usual in (("components", None), ("whitening", 0.0)):
            if self.features == "none" and getattr(self, name) != usual:
                raise InvalidParameter(name, getattr(self, name), "left out without --features")
        for name in ("rounds", "repetitions"):
            if not getattr(self, name) >= 1:
                raise InvalidParameter(name, getattr(self, name), "an integer of at least 1")
        for name in ("validate", "delta"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise InvalidParameter(name, value, "strictly between 0 and 1")
