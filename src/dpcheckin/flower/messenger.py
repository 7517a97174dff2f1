"""From the server to all nodes: every round, the same message to every node that is there.

Rounds close by the clock. Replies are looked at when they happen to be there and decide nothing:
neither who is asked next, nor when a round ends.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.common.constant import ErrorCode
from flwr.serverapp import Grid

from dpcheckin.flower.doorbell import RECORD
from dpcheckin.flower.mailbox import Ring

log = logging.getLogger("dpcheckin.flower")

LATE_SECONDS = 5.0
"""Seconds after the end of a round in which replies to its ring may still come in.

Little, because a ring whose time is over is not delivered any more: a node that was slow once gets
the ring of the present round next, and not the backlog.
"""

_NO_REPLY = (
    ErrorCode.NODE_UNAVAILABLE,
    ErrorCode.MESSAGE_UNAVAILABLE,
    ErrorCode.REPLY_MESSAGE_UNAVAILABLE,
)
"""Made by the SuperLink in the place of a reply that did not come, or came too late."""


@dataclass
class RingOutcome:
    """How one ring went, as far as anybody knows: nodes asked, replies, and errors among them."""

    group: str
    nodes: int
    replies: int = 0
    errors: int = 0


class Messenger:
    """Rings all nodes of a grid.

    Args:
        grid: Flower's.
        now: seconds since the epoch.
        late_seconds: after the end of a round in which replies may still come.
    """

    def __init__(
        self,
        grid: Grid,
        now: Callable[[], float] = time.time,
        late_seconds: float = LATE_SECONDS,
    ) -> None:
        self._grid, self._now, self._late = grid, now, late_seconds
        self._waiting: dict[str, RingOutcome] = {}
        self.outcomes: list[RingOutcome] = []

    def ring(self, group: str, ring: Ring, closes: float) -> RingOutcome:
        """Tell every node that is connected now; does not wait for anything.

        Args:
            group: name of the round in Flower's log.
            ring: what every node is sent.
            closes: seconds since the epoch: end of the round.
        """
        self.collect()
        nodes = list(self._grid.get_node_ids())
        left = max(1.0, closes - self._now()) + self._late
        record = ConfigRecord({"round": ring.round, "model": ring.model})
        messages = [
            Message(
                RecordDict({RECORD: record}),
                dst_node_id=node,
                message_type=MessageType.TRAIN,
                group_id=group,
                ttl=left,
            )
            for node in nodes
        ]
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
                    log.warning(
                        "round %s: a node cannot ring: %s", outcome.group, reply.error.reason
                    )
