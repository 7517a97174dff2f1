"""The ServerApp's work: an analyzer whose rounds are announced through Flower as well.

The analyzer is the one of `dpcheckin.service`: it charges before it claims, and gets its reports, permuted, from the
shuffler. Flower adds two things: nodes are rung when a round opens, and the model travels with the ring. Without a
shuffler there is nothing to run: Flower's server sees which node sends what, so a strategy that collects reports itself
has local privacy at best, and this module refuses rather than pretend.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid

from dpcheckin.deployment.tasks import analyzer_task
from dpcheckin.errors import InvalidParameter, ServiceError
from dpcheckin.flower.doorbell import RECORD
from dpcheckin.flower.mailbox import Ring
from dpcheckin.service import tls
from dpcheckin.service.analyzer.core import Status
from dpcheckin.service.analyzer.parties import ShufflerClient
from dpcheckin.service.analyzer.server import open_analyzer
from dpcheckin.service.analyzer.settings import FILE, AnalyzerSettings, read_settings
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


LATE_SECONDS = 5.0
"""Seconds after the end of a round in which replies to its ring may still come in.

Little, because a ring whose time is over is not delivered any more: a node that was slow once gets
the ring of the present round next, and not the backlog.
"""

_NO_REPLY = (ErrorCode.NODE_UNAVAILABLE, ErrorCode.MESSAGE_UNAVAILABLE, ErrorCode.REPLY_MESSAGE_UNAVAILABLE)
"""Made by the SuperLink in the place of a reply that did not come, or came too late."""


class NoShuffler(ServiceError):
    """There is no shuffler, so there is no guarantee, so nothing is started."""


@dataclass
class RingOutcome:
    """How one ring went, as far as anybody knows: nodes asked, replies, and errors among them."""

    group: str
    nodes: int
    replies: int = 0
    errors: int = 0


class Messenger:
    """Rings all nodes of a grid: every round, the same message to every node that is there.

    Rounds close by the clock. Replies are looked at when they happen to be there and decide nothing: neither who is
    asked next, nor when a round ends.
    """

    def __init__(self, grid: Grid, now: Callable[[], float] = time.time, late_seconds: float = LATE_SECONDS) -> None:
        self._grid, self._now, self._late = grid, now, late_seconds
        self._waiting: dict[str, RingOutcome] = {}
        self.outcomes: list[RingOutcome] = []

    def ring(self, group: str, ring: Ring, closes: float) -> RingOutcome:
        """Send the `ring` to every node that is connected now; does not wait for anything. `group` is the round's name
        in Flower's log; it `closes` at these seconds since the epoch."""
        self.collect()
        nodes = list(self._grid.get_node_ids())
        left = max(1.0, closes - self._now()) + self._late
        content = RecordDict({RECORD: ConfigRecord({"round": ring.round, "model": ring.model})})
        kind = MessageType.TRAIN
        messages = [Message(content, dst_node_id=node, message_type=kind, group_id=group, ttl=left) for node in nodes]
        outcome = RingOutcome(group, len(nodes))
        self.outcomes.append(outcome)
        sent = self._grid.push_messages(messages) if messages else ()
        self._waiting = {message: outcome for message in sent if message}
        log.info("round %s: rang %d nodes", group, len(nodes))
        return outcome

    def collect(self) -> None:
        """Take in the replies that have come; what comes later than the next ring is forgotten."""
        if not self._waiting:
            return
        for reply in self._grid.pull_messages(list(self._waiting)):
            outcome = self._waiting.pop(reply.metadata.reply_to_message_id, None)
            if outcome is None or (reply.has_error() and reply.error.code in _NO_REPLY):
                continue
            outcome.replies += 1
            if reply.has_error():
                outcome.errors += 1
                if outcome.errors == 1:
                    log.warning("round %s: a node cannot ring: %s", outcome.group, reply.error.reason)


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
        """First the shuffler gets the `signed` round of this `number`, then the nodes: a ring never comes before its
        round."""
        super().put_round(number, signed)
        closes = RoundDocument.from_object(parse(signed)["document"]).closes
        self._messenger.ring(str(number), Ring(signed, self._model), closes)

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
        raise NoShuffler(f"no shuffler answers at {settings.shuffler} ({type(problem).__name__}). {_WHY}") from None
    if problem_in(answer.content) is None and answer.status_code != 200:
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
    """Run the plan of the analyzer's folder, which `run_config` names, on Flower's `grid`; the last snapshot.

    It is as on the analyzer's page, and is also written to the folder (`flower.json`). Without a `task`, and the
    `dimension` of its reports, what `[task]` in the settings names is learned (torch). Replies may come `late_seconds`
    after the end of their round.
    """
    settings = settings_for(run_config)
    check_shuffler(settings)
    if task is None:
        settings, task, dimension = analyzer_task(settings)
    if dimension is None:
        raise InvalidParameter("dimension", dimension, "the dimension of the task's reports")
    messenger, stop = Messenger(grid, late_seconds=late_seconds), threading.Event()
    shuffler = RingingClient(messenger, settings.shuffler, settings.token, settings.authority, stop)
    with open_analyzer(settings, task, dimension, shuffler, stop) as analyzer:
        analyzer.run()
        messenger.collect()
        rings = [asdict(outcome) for outcome in messenger.outcomes]
        snapshot = analyzer.board.snapshot() | {"rings": rings}
        (settings.folder / RESULT).write_text(json.dumps(snapshot, indent=1) + "\n")
        return snapshot
