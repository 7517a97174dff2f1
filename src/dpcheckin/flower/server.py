"""The ServerApp's work: an analyzer whose rounds are announced through Flower as well.

The analyzer is the one of `dpcheckin.service`: it charges before it claims, and gets its reports,
permuted, from the shuffler. Flower adds two things: nodes are rung when a round opens, and the
model travels with the ring. Without a shuffler there is nothing to run: Flower's server sees which
node sends what, so a strategy that collects reports itself has local privacy at best, and this
module refuses rather than pretend.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
from flwr.serverapp import Grid

from dpcheckin.deployment.tasks import analyzer_task
from dpcheckin.errors import InvalidParameter, ServiceError
from dpcheckin.flower.mailbox import Ring
from dpcheckin.flower.messenger import LATE_SECONDS, Messenger
from dpcheckin.service import tls
from dpcheckin.service.analyzer.core import Status
from dpcheckin.service.analyzer.daemon import Analyzer, Schedule
from dpcheckin.service.analyzer.issuer_client import issuer_client
from dpcheckin.service.analyzer.settings import FILE, AnalyzerSettings, read_settings
from dpcheckin.service.analyzer.shuffler_client import ShufflerClient
from dpcheckin.service.identity import load_identity
from dpcheckin.service.tasks import Task
from dpcheckin.service.wire.canonical import parse
from dpcheckin.service.wire.credentials import bearer_header
from dpcheckin.service.wire.documents import RoundDocument
from dpcheckin.service.wire.problems import problem_in

log = logging.getLogger("dpcheckin.flower")

FOLDER = "analyzer-folder"
RESULT = "flower.json"
_WHY = (
    "Flower's server learns which node sends what, so without a shuffler nothing is left of the "
    "guarantee but the local one"
)


class NoShuffler(ServiceError):
    """There is no shuffler, so there is no guarantee, so nothing is started."""


class RingingClient(ShufflerClient):
    """The shuffler as the analyzer sees it; opening a round also rings the nodes."""

    def __init__(self, messenger: Messenger, *where: Any) -> None:
        super().__init__(*where)
        self._messenger = messenger
        self._model = b""

    def put_model(self, model: bytes) -> None:
        super().put_model(model)
        self._model = model

    def put_round(self, number: int, signed: bytes) -> None:
        """First the shuffler, then the nodes: a ring never comes before its round."""
        super().put_round(number, signed)
        found = RoundDocument.from_object(parse(signed)["document"])
        self._messenger.ring(str(number), Ring(signed, self._model), found.closes)

    def status(self, number: int) -> Status | None:
        """Asked when a round is over, which is also the time to look for replies."""
        self._messenger.collect()
        return super().status(number)


def settings_for(run_config: Mapping[str, Any]) -> AnalyzerSettings:
    """The analyzer's settings, from the folder that the run's configuration names."""
    named = run_config.get(FOLDER)
    if not named:
        raise NoShuffler(
            f"{FOLDER} is not set: it names the folder whose {FILE} says where the shuffler is. "
            f"{_WHY}. Start one (`dpcheckin shuffler serve`) and run again with "
            f"--run-config '{FOLDER}=\"/path\"'"
        )
    folder = Path(str(named)).expanduser()
    if not (folder / FILE).is_file():
        raise NoShuffler(f"{folder / FILE} is missing: it says where the shuffler is. {_WHY}")
    return read_settings(folder)


def check_shuffler(settings: AnalyzerSettings) -> None:
    """Raise `NoShuffler` unless a shuffler that knows this analyzer answers, before any message."""
    verify = tls.verification(settings.shuffler, settings.authority)
    headers = bearer_header(settings.token)
    try:
        with httpx.Client(verify=verify, timeout=10.0, trust_env=False) as http:
            # a round that cannot exist: only a shuffler answers in this form
            answer = http.get(f"{settings.shuffler}/v1/rounds/{2**32 - 1}", headers=headers)
    except httpx.TransportError as problem:
        raise NoShuffler(
            f"no shuffler answers at {settings.shuffler} ({type(problem).__name__}). {_WHY}"
        ) from None
    found = problem_in(answer.content)
    if found is None and answer.status_code != 200:
        raise NoShuffler(f"what answers at {settings.shuffler} is no shuffler. {_WHY}")
    if answer.status_code in (401, 403):
        raise NoShuffler(f"the shuffler at {settings.shuffler} does not know this analyzer's token")


def check_in(
    grid: Grid,
    run_config: Mapping[str, Any],
    task: Task | None = None,
    dimension: int | None = None,
    late_seconds: float = LATE_SECONDS,
) -> dict[str, Any]:
    """Run the plan of the analyzer's folder to its end; the last snapshot, as on its page.

    It is also written to the folder (`flower.json`). Without `task` the one that `[task]` in the
    settings names is trained (torch). Replies may come `late_seconds` after the end of a round.

    Args:
        grid: Flower's.
        run_config: names the analyzer's folder.
        task: what is learned; None: what the settings name.
        dimension: of the task's reports; needed with `task`.
        late_seconds: after the end of a round in which replies may still come.
    """
    settings = settings_for(run_config)
    check_shuffler(settings)
    if task is None:
        settings, task, dimension = analyzer_task(settings)
    if dimension is None:
        raise InvalidParameter("dimension", dimension, "the dimension of the task's reports")
    messenger = Messenger(grid, late_seconds=late_seconds)
    shuffler = RingingClient(messenger, settings.shuffler, settings.token, settings.authority)
    issuer = issuer_client(settings.issuer)
    analyzer = Analyzer(
        settings.folder,
        settings.plan_document(dimension),
        load_identity(settings.folder),
        task,
        shuffler,
        Schedule(settings.rotate_every, settings.pause_seconds, pacing=settings.pacing),
        issuer=issuer,
        budget=settings.budget,
    )
    try:
        analyzer.run()
        messenger.collect()
        found = analyzer.board.snapshot() | {"rings": [asdict(one) for one in messenger.outcomes]}
        (settings.folder / RESULT).write_text(json.dumps(found, indent=1) + "\n")
        return found
    finally:
        analyzer.close()
        shuffler.close()
        if issuer is not None:
            issuer.close()
