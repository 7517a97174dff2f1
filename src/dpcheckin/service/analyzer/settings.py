"""What an operator can set for an analyzer in `analyzer.toml`; docs/deploying.md lists every entry."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpcheckin.errors import InvalidParameter
from dpcheckin.service.analyzer.core import Pacing
from dpcheckin.service.analyzer.ledger import FleetBudget
from dpcheckin.service.pricing import encoding_of
from dpcheckin.service.settings import IssuerAccess, SettingsFile, check_address, check_level, check_port
from dpcheckin.service.storage.identity import IDENTITY
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
    identity_folder: Path | None = None
    """Whose identity signs; None: the folder's own. One analyzer with many plans has one."""
    rotate_every: int = 0
    pause_seconds: float = 0.0
    pacing: Pacing = field(default_factory=Pacing)
    log_level: str = "info"
    budget: FleetBudget | None = None

    def __post_init__(self) -> None:
        check_address(self.shuffler)
        check_port("analyzer.port", self.port)
        check_level(self.log_level)
        for name in self.names:
            if not isinstance(name, str):
                raise InvalidParameter("analyzer.names", name, "names of hosts")
        if self.rotate_every < 0:
            raise InvalidParameter("analyzer.rotate_every", self.rotate_every, "at least 0")
        if not self.pause_seconds >= 0:
            raise InvalidParameter("analyzer.pause_seconds", self.pause_seconds, "at least 0")

    def plan_document(self, dimension: int) -> PlanDocument:
        """The plan, for reports of this `dimension` (or so many symbols), with a fresh nonce."""
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
            "randomizer": {"clip": 1.0, "encoding": encoding_of(str(name)), **self.randomizer, "dimension": dimension},
            "task": self.task,
            "nonce": secrets.token_hex(16),
        }
        if self.issuer is not None:
            document["issuer"] = self.issuer.identity.hex()
        try:
            return PlanDocument.from_object(document)
        except Malformed as problem:
            if problem.entry is not None:  # in full, as the file has it
                name, value, allowed = problem.entry
                raise InvalidParameter(name, value, allowed) from None
            raise InvalidParameter("plan", str(problem), "a plan as docs/wire.md has it") from None


def _place(folder: Path, shared: Path | None) -> Path | None:
    restored = shared is not None and not (shared / IDENTITY).is_file() and (folder / IDENTITY).is_file()
    return None if restored else shared


def identity_place(folder: Path) -> Path:
    """Where the identity of the analyzer in a `folder` is: in the `identity_folder` of its settings, if they say one,
    but beside an analyzer that was restored on a machine without that folder."""
    read = SettingsFile(folder / FILE, by_folder=True, required=False)
    return _place(folder, read.path("analyzer", "identity_folder", None)) or folder


def read_settings(folder: Path, file: Path | None = None) -> AnalyzerSettings:
    """The settings of a folder. `folder`: the analyzer's; `file`: None: `analyzer.toml` in the folder."""
    read = SettingsFile(file or folder / FILE, by_folder=file is None)
    plan, randomizer, task = read.table("plan"), read.table("randomizer"), read.table("task")
    budget = read.path("budget", "file", None)
    settings = AnalyzerSettings(
        folder=folder,
        shuffler=read.take("shuffler", "address", str),
        token=read.secret("shuffler"),
        authority=read.path("shuffler", "authority", None),
        plan=plan,
        randomizer=randomizer,
        task=task,
        issuer=read.issuer(),
        names=tuple(read.take("analyzer", "names", list, [])),
        identity_folder=_place(folder, read.path("analyzer", "identity_folder", None)),
        pacing=Pacing(
            read.take("analyzer", "longest_rounds", float, 8.0),
            **read.given("analyzer", Pacing, ("most_void_rounds", "largest_pause")),
        ),
        budget=None if budget is None else FleetBudget(budget, **read.given("budget", FleetBudget)),
        **read.given("analyzer", AnalyzerSettings, ("host", "port", "rotate_every", "pause_seconds", "log_level")),
    )
    read.finish()
    return settings
