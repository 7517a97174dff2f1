"""Every option of a training run, described once.

`dpcheckin train` takes its arguments from `RunOptions`, `dpcheckin sweep` what may be varied, and
the report its table of settings. What the options come to is `simulation.runs`' business; nothing
here needs torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning import names
from dpcheckin.learning.settings import MACHINE, Settings
from dpcheckin.options import DEFAULT_DELTA, check_choices, listed, option
from dpcheckin.protocols.names import PROTOCOL_OF, PROTOCOLS

_RUN, _PRIVACY, _TABLE = "The run", "Privacy", "Your own table"


@dataclass(frozen=True)
class TableOptions:
    """How the columns of --data FILE.csv, FILE.parquet or a folder of such files are used."""

    target: str | None = option(None, "Column to predict.", section=_TABLE)
    owner: str | None = option(
        None,
        "Column that names each record's client; without it every record is one.",
        section=_TABLE,
    )
    columns: str | None = option(
        None, "Columns to learn from, separated by commas; all others if left out.", section=_TABLE
    )
    bounds: str | None = option(
        None,
        "COLUMN=LOWEST:HIGHEST,… known beforehand: clipped to them and mapped to [-1, 1].",
        section=_TABLE,
    )
    task: str = option(
        "auto", "classes, numbers, or auto: by the target.", section=_TABLE, choices=names.TASKS
    )
    test_share: float = option(0.2, "Share of clients held out to evaluate on.", section=_TABLE)

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

    model: str = option("auto", section=_RUN, choices=names.MODELS)
    features: str = option(
        "none",
        "Fixed features of each record, computed once: they cost no privacy.",
        section=_RUN,
        choices=names.FEATURES,
    )
    components: int | None = option(
        None, "Numbers that features are reduced to; needs --features.", section=_RUN
    )
    whitening: float = option(
        0.0,
        "Divide each component by this power of its public deviation; needs --public.",
        section=_RUN,
    )
    public: str | None = option(
        None,
        "Public data, as --data, or 'dead-leaves' or 'strokes', images made up: its components "
        "reduce --features; without --features, pre-train on it. Only the last layer is trained "
        "privately.",
        section=_RUN,
    )
    public_epochs: int = option(5, "Passes over the public data.", section=_RUN)
    data_dir: Path | None = option(None, "Where dataset files are.", section=_RUN)
    validate: float | None = option(
        None,
        "Share of the training records to evaluate on instead of the test records; nobody "
        "trains on them. For choosing settings.",
        section=_RUN,
    )
    population: int | None = option(None, "Clients, each with a bootstrapped record.", section=_RUN)
    by_owner: bool = option(False, "One client per owner of records (user-level).", section=_RUN)
    rounds: int = option(400, "Most rounds to run.", section=_RUN)
    rate: float = option(0.2, "Check-in rate of a round.", section=_RUN)
    lowest_rate: float | None = option(
        None, "Clients' rates lie between this and --rate.", section=_RUN
    )
    dropout: float = option(0.0, "Share of check-ins that get lost.", section=_RUN)
    slots: int | None = option(None, "Slots of a random check-ins window.", section=_RUN)
    minibatch: int = option(1, "Slots per step of a random check-ins window.", section=_RUN)
    check_in_probability: float = option(
        1.0, "With which a client chooses a slot of a fixed window at all.", section=_RUN
    )
    repetitions: int = option(1, "How often a fixed or averaged window is repeated.", section=_RUN)
    windows: Path | None = option(
        None,
        "CSV with first, last (slots) and probability of each client's own window.",
        section=_RUN,
    )
    local_steps: int = option(
        1, "Steps each client takes on its own; above 1 it reports the difference.", section=_RUN
    )
    local_learning_rate: float = option(0.1, "Of the clients' own steps.", section=_RUN)

    epsilon_budget: float | None = option(
        None, "Stop before the round that would pass it.", section=_PRIVACY
    )
    delta: float = option(DEFAULT_DELTA, "Delta of the guarantee.", section=_PRIVACY)
    local_epsilon: float = option(2.0, "Epsilon of one report.", section=_PRIVACY)
    noise_multiplier: float = option(1.0, "Noise over clip, Gaussian reports.", section=_PRIVACY)
    clip: float = option(1.0, "Largest norm of a gradient.", section=_PRIVACY)
    per_tensor: bool = option(False, "Clip each parameter tensor alike.", section=_PRIVACY)

    table: TableOptions = field(default_factory=TableOptions)
    settings: Settings = field(default_factory=Settings)

    reports: str = option(
        "sum",
        "sum draws only their sum, each draws every report.",
        section=MACHINE,
        choices=names.REPORTS,
    )
    backend: str = option("local", section=MACHINE, choices=names.BACKENDS, changes_result=False)
    workers: int = option(2, "Worker processes.", section=MACHINE, changes_result=False)
    threads: int | None = option(
        None, "Threads of each process.", section=MACHINE, changes_result=False
    )

    def __post_init__(self) -> None:
        check_choices(self)
        if isinstance(self.randomizer, str):  # a program may give the randomizer itself
            from dpcheckin.randomizers import VectorRandomizer, registry

            if not issubclass(registry.kind_named(self.randomizer.split(":")[0]), VectorRandomizer):
                raise InvalidParameter("randomizer", self.randomizer, "one that takes vectors")
        if self.components is not None and self.features == "none":
            raise InvalidParameter("components", self.components, "left out without --features")
        if self.whitening and self.features == "none":
            raise InvalidParameter("whitening", self.whitening, "left out without --features")
        if self.validate is not None and not 0 < self.validate < 1:
            raise InvalidParameter("validate", self.validate, "strictly between 0 and 1")
        if not 0 < self.delta < 1:
            raise InvalidParameter("delta", self.delta, "strictly between 0 and 1")
