"""The closed list of ways a service says no, and the two exceptions that carry them.

Every error that leaves a server is one of `Problem`, as `application/problem+json` whose bytes depend on the kind of
problem alone: never on who asked, and never on what was stored before.
"""

from __future__ import annotations

import json
from enum import Enum
from typing import NoReturn

from dpcheckin.errors import ServiceError

PREFIX = "urn:dpcheckin:problem:"
MEDIA_TYPE = "application/problem+json"


class Problem(Enum):
    """Name on the wire, HTTP status, and the one sentence that goes with it."""

    UNAUTHORIZED = ("unauthorized", 401, "No valid credential for this request.")
    UNKNOWN_ANALYZER = ("unknown-analyzer", 403, "No analyzer's identity is known here.")
    NOT_FOUND = ("not-found", 404, "There is nothing here.")
    NO_ROUND = ("no-round", 404, "No round is open.")
    MALFORMED = ("malformed", 400, "The request does not follow the format.")
    TOO_LARGE = ("too-large", 413, "The body is larger than anything this plan allows.")
    WRONG_SIZE = ("wrong-size", 400, "The body does not have the size this plan prescribes.")
    DUPLICATE = ("duplicate", 409, "An envelope for this round has been taken already.")
    ROUND_CLOSED = ("round-closed", 410, "The round is closed.")
    ROUND_OPEN = ("round-open", 409, "A round is still open.")
    CONFLICT = ("conflict", 409, "This contradicts what has been fixed before.")
    NOT_CLAIMED = ("not-claimed", 409, "The batch has not been claimed, or is gone.")
    OLDER_COPY = ("older-copy", 409, "You have taken part in more rounds than you say.")
    PLAN_EXHAUSTED = ("plan-exhausted", 409, "All rounds of the plan have been used.")
    TOO_MANY = ("too-many-requests", 429, "You ask too often; try again later.")
    BUSY = ("busy", 503, "Too much at once; try again later.")
    STORAGE = ("storage", 507, "Nothing can be stored at the moment; nothing was acknowledged.")

    def __init__(self, slug: str, status: int, title: str) -> None:
        self.slug = slug
        self.status = status
        self.title = title

    @property
    def urn(self) -> str:
        """The `type` member.

        >>> Problem.ROUND_CLOSED.urn
        'urn:dpcheckin:problem:round-closed'
        """
        return PREFIX + self.slug

    def body(self) -> bytes:
        """The same bytes every time."""
        fields = {"status": self.status, "title": self.title, "type": self.urn}
        return json.dumps(fields, separators=(",", ":")).encode()


TRANSIENT = (Problem.TOO_MANY, Problem.BUSY, Problem.STORAGE)
"""What may be over when the same request is sent again."""

_BY_URN = {problem.urn: problem for problem in Problem}


class Malformed(ServiceError):
    """Bytes that are not what the format says; the message is for the log, not for the sender. `entry`: name, value and
    what is allowed, of the one that is wrong."""

    entry: tuple[str, object, str] | None = None


class Refusal(ServiceError):
    """A request turned down for one of the known reasons."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.problem.slug}: {self.problem.title}"


def refuse(problem: Problem) -> NoReturn:
    """Raise the refusal."""
    raise Refusal(problem)


def problem_in(body: bytes) -> Problem | None:
    """The problem a response speaks of, None if it is not one of ours.

    >>> problem_in(Problem.BUSY.body()) is Problem.BUSY
    True
    >>> problem_in(b"<html>") is None
    True
    """
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        return None
    urn = fields.get("type") if isinstance(fields, dict) else None
    return _BY_URN.get(urn) if isinstance(urn, str) else None
