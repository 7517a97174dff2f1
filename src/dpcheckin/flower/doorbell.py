"""The ClientApp: it rings the agents of its node and says so, always in the same words.

Flower tells the server how long a ClientApp ran, how large its reply was and whether it failed, and the server ships
the ClientApp's code. So nothing of the protocol may be in it: the doorbell drops the message into the node's mailbox
and answers the same bytes at once, whether or not the client behind it will check in. Where the mailbox is comes from
the node's own configuration, never from a message: `flower-supernode --node-config 'doorbell="/path/to/box"'`, or
DPCHECKIN_DOORBELL in its environment (where `{node}` stands for the number of a simulated node).
"""

from __future__ import annotations

import os
from pathlib import Path

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from dpcheckin.errors import ServiceError
from dpcheckin.flower.mailbox import Mailbox, Ring

RECORD = "ring"
ACKNOWLEDGED = "acknowledged"
ENVIRONMENT = "DPCHECKIN_DOORBELL"


class NoAgent(ServiceError):
    """This node has no agent: its data stays where it is, and the run is told so."""


class NotARing(ServiceError):
    """A message of another kind: somebody runs an ordinary strategy on this ClientApp."""


def box_of(context: Context) -> Path:
    """The mailbox in the node's own configuration; a node without one refuses. This refusal is the same in every round,
    so it says nothing about participation."""
    named = context.node_config.get("doorbell") or os.environ.get(ENVIRONMENT)
    if not named:
        raise NoAgent(
            "this node has no agent to ring: start `dpcheckin flower agent` and give its mailbox "
            "to the node, --node-config 'doorbell=\"/path\"'. Nothing is computed without it, for "
            "a ClientApp alone cannot keep the guarantee"
        )
    number = context.node_config.get("partition-id", context.node_id)
    return Path(str(named).replace("{node}", str(number)))


def ring_in(message: Message) -> Ring:
    """The ring that a message carries."""
    found = message.content.config_records.get(RECORD)
    if found is None or not isinstance(found.get("round"), bytes):
        raise NotARing(
            "this ClientApp only answers rings of dpcheckin.flower.server: an ordinary strategy "
            "would collect reports by name, and no guarantee of shuffled check-in would hold"
        )
    return Ring(bytes(found["round"]), bytes(found["model"]))


def make_doorbell() -> ClientApp:
    """The ClientApp. An app needs nothing else: `app = make_doorbell()`."""
    app = ClientApp()
    app.train()(ring)
    return app


def ring(message: Message, context: Context) -> Message:
    """Drop the ring of the `message` into the box that the `context` names; the answer is always the same."""
    Mailbox(box_of(context)).drop(ring_in(message))
    reply = RecordDict({ACKNOWLEDGED: ConfigRecord({"rung": True})})
    return Message(reply, reply_to=message)
