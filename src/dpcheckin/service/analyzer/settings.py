"""What an operator can set for an analyzer, read from `analyzer.toml` in the analyzer's folder.

[shuffler]
address = "https://shuffler.example:8440"
token_file = "analyzer.token"          # from the shuffler's folder
authority = "authority.pem"            # optional

[plan]
protocol = "shuffled-check-in"
population = 200                       # the number the guarantee is stated for
minimum_present = 210                  # fewer present: the round is void; default: population
colluding = 0.05                       # share of the population that works with the analyzer
dropout = 0.02                         # largest chance that a report is lost on the device
minimum_batch = 20
rate = 0.3                             # or slots, check_in_probability, minibatch
rounds = 40
delta = 1e-5
epsilon_budget = 8.0
round_seconds = 60.0
compute_seconds = 18.0                 # before anybody sends; default: 0.3 of a round

[randomizer]
name = "privunit"                      # and its parameters
local_epsilon = 4.0
clip = 1.0

[task]                                 # for the task: model, data, learning, or a question
data = "digits"

[budget]                               # optional: of this and all other plans of the fleet
file = "../budget.ledger"
epsilon = 10.0
delta = 1e-4

[issuer]                               # optional: reports then carry tokens
address = "https://issuer.example:8443"
token_file = "issuer.token"            # the analyzer's, from the issuer's folder
identity = "64f7…"                     # 32 bytes in hex: `dpcheckin issuer identity`
authority = "issuer-authority.pem"     # optional

[analyzer]
host = "127.0.0.1"                     # of the page
port = 8442
names = ["analyzer.example"]           # names that browsers know the page by, besides addresses
rotate_every = 20                      # rounds between opening keys; 0: never
longest_rounds = 8.0                   # times round_seconds that rounds grow to while they are void
largest_pause = 600.0                  # seconds between rounds while they are void
most_void_rounds = 24                  # in a row, before the run ends; 0: never
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.analyzer.pacing import Pacing
from dpcheckin.service.analyzer.total import Budget
from dpcheckin.service.pricing import encoding_of
from dpcheckin.service.settings_file import IssuerAccess, SettingsFile, check_address
from dpcheckin.service.wire.documents import PlanDocument
from dpcheckin.service.wire.problems import Malformed

FILE = "analyzer.toml"
_DEFAULTS = {"minimum_batch": 0, "suite": 1, "cover": True, "colluding": 0.0, "dropout": 0.0}
_COMPUTE_SHARE = 0.3  # of a round, when nothing is said


@dataclass(frozen=True)
class AnalyzerSettings:
    """Everything in the file; the plan is made when the task has said its dimension."""

    folder: Path
    shuffler: str
    token: str
    authority: Path | None
    plan: dict[str, Any]
    randomizer: dict[str, Any]
    task: dict[str, Any]
    issuer: IssuerAccess | None = None
    host: str = "127.0.0.1"
    port: int = 8442
    names: tuple[str, ...] = ()
    rotate_every: int = 0
    pause_seconds: float = 0.0
    pacing: Pacing = field(default_factory=Pacing)
    log_level: str = "info"
    budget: Budget | None = None

    def __post_init__(self) -> None:
        check_address(self.shuffler)
        if not 0 <= self.port <= 65535:
            raise InvalidParameter("analyzer.port", self.port, "a port from 0 to 65535")
        for name in self.names:
            if not isinstance(name, str):
                raise InvalidParameter("analyzer.names", name, "names of hosts")
        if self.rotate_every < 0:
            raise InvalidParameter("analyzer.rotate_every", self.rotate_every, "at least 0")
        if not self.pause_seconds >= 0:
            raise InvalidParameter("analyzer.pause_seconds", self.pause_seconds, "at least 0")
        if self.log_level not in ("debug", "info", "warning", "error"):
            raise InvalidParameter("log_level", self.log_level, "debug, info, warning or error")

    def plan_document(self, dimension: int) -> PlanDocument:
        """The plan, for reports of this dimension, with a fresh nonce.

        Args:
            dimension: coordinates of a report, or number of symbols.
        """
        name = self.randomizer.get("name")
        length = self.plan.get("round_seconds")
        share = _COMPUTE_SHARE * length if isinstance(length, int | float) else None
        document = {
            **_DEFAULTS,
            "minimum_present": self.plan.get("population"),
            "compute_seconds": share,
            **self.plan,
            "type": "plan",
            "format": 1,
            "randomizer": {
                "clip": 1.0,
                "encoding": encoding_of(str(name)),
                **self.randomizer,
                "dimension": dimension,
            },
            "task": self.task,
            "nonce": secrets.token_hex(16),
        }
        if self.issuer is not None:
            document["issuer"] = self.issuer.identity.hex()
        try:
            return PlanDocument.from_object(document)
        except Malformed as problem:
            raise InvalidParameter("plan", str(problem), "a plan as docs/wire.md has it") from None


def _budget(read: SettingsFile) -> Budget | None:
    file = read.path("budget", "file", None)
    if file is None:
        return None
    return Budget(file, read.take("budget", "epsilon", float), read.take("budget", "delta", float))


def read_settings(folder: Path, file: Path | None = None) -> AnalyzerSettings:
    """The settings of a folder.

    Args:
        folder: the analyzer's.
        file: None: `analyzer.toml` in the folder.
    """
    read = SettingsFile(file or folder / FILE, by_folder=file is None)
    plan, randomizer, task = read.table("plan"), read.table("randomizer"), read.table("task")
    found = AnalyzerSettings(
        folder=folder,
        shuffler=read.take("shuffler", "address", str),
        token=read.secret("shuffler"),
        authority=read.path("shuffler", "authority", None),
        plan=plan,
        randomizer=randomizer,
        task=task,
        issuer=read.issuer(),
        host=read.take("analyzer", "host", str, "127.0.0.1"),
        port=read.take("analyzer", "port", int, 8442),
        names=tuple(read.take("analyzer", "names", list, [])),
        rotate_every=read.take("analyzer", "rotate_every", int, 0),
        pause_seconds=read.take("analyzer", "pause_seconds", float, 0.0),
        pacing=Pacing(
            longest=read.take("analyzer", "longest_rounds", float, 8.0),
            most_void_rounds=read.take("analyzer", "most_void_rounds", int, 24),
            largest_pause=read.take("analyzer", "largest_pause", float, 600.0),
        ),
        log_level=read.take("analyzer", "log_level", str, "info"),
        budget=_budget(read),
    )
    read.finish()
    return found
