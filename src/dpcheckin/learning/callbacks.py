"""Who listens to a run: an event file of every round, as TensorBoard reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpcheckin.display import needed


class TensorBoard:
    """Writes the figures of every round to an event file in a folder; called with them.

    `train(model, data, on_round=TensorBoard("events"))` writes them as it goes.
    """

    def __init__(self, folder: Path | str) -> None:
        needed("tensorboard", "tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(str(folder))

    def __call__(self, row: dict[str, Any]) -> None:
        """Write the numbers of a row under its round; those of a score are there for others to read at once."""
        for name, value in row.items():
            if name != "round":
                self._writer.add_scalar(name, value, row["round"])
        if "epsilon" in row:
            self._writer.flush()
