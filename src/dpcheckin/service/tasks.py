"""What is learned or asked, as the services see it: bytes of a model, values, sums, reports.

The services know neither models nor data. A client is given a `ClientTask`, which holds the owner's data and turns a
model into one value; an analyzer is given an `AnalyzerTask`, which turns a sum of estimates into the next model, or a
`CountingTask`, which counts the reports themselves. `dpcheckin.deployment` has the ones that train models and those
that ask questions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpcheckin.service.wire.documents import PlanDocument


class ClientTask(Protocol):
    """The owner's data, and what is computed from it."""

    def value(self, model: bytes) -> NDArray[Any]:
        """A vector of the plan's dimension (not yet clipped) or one symbol, from the bytes of the `model` that the
        round names.
        """


@dataclass(frozen=True)
class TaskState:
    """Everything that learning needs from one round to the next."""

    model: bytes
    """What clients are sent."""
    private: bytes = b""
    """What only the analyzer keeps, such as the state of an optimiser."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Figures for the page and the log, such as the accuracy on public test data."""
    shown: Mapping[str, Any] = field(default_factory=dict)
    """What else the page draws, as plain JSON, such as an estimate with its intervals."""


class AnalyzerTask(Protocol):
    """How a model is made better; all of it is post-processing."""

    def start(self) -> TaskState:
        """The first model."""

    def step(self, state: TaskState, total: NDArray[np.float64], reports: int, index: int, steps: int) -> TaskState:
        """The `state` after step `index` (from 0) of at most `steps`: a sum of so many `reports`.

        `total` is the sum of the clients' estimates, in the units of their (clipped) values.
        """


@runtime_checkable
class CountingTask(Protocol):
    """What is made of reports as they are; the model that clients are sent is the next question."""

    def start(self) -> TaskState:
        """The first question."""

    def count(self, state: TaskState, rows: NDArray[Any], index: int, present: int, dropped: int) -> TaskState:
        """The `state` after one more round with reports, number `index` from 0; counting the same round again changes
        nothing.

        `rows` are the reports that can be counted, perhaps none, `dropped` is how many cannot, `present` how many
        clients were there.
        """


Task = AnalyzerTask | CountingTask


@runtime_checkable
class JoiningTask(Protocol):
    """A client's task that wants to hear of every plan its client joins."""

    def join(self, plan: PlanDocument) -> int | None:
        """Raise `ServiceError` if the owner has nothing to say; the most rounds, None: any number.

        Neither may depend on the owner's data.
        """
