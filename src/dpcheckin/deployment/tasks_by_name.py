"""From the tables of configuration files to tasks: what `analyzer serve` and `client run` train.

Analyzer, `[task]`: `data` (a dataset's name or an .npz file, of which only the test part is used),
`model`, and settings of learning. Client, `[data]`: `file`, an .npz with the owner's `inputs` and
`targets`, `model` and `classes`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from dpcheckin.deployment.torch_tasks import (
    TorchAnalyzerTask,
    TorchClientTask,
    learning_settings,
    make_module,
)
from dpcheckin.errors import InvalidParameter
from dpcheckin.learning import build_model, load_dataset


def analyzer_task(table: dict[str, Any], clip: float) -> TorchAnalyzerTask:
    """The analyzer's task.

    Args:
        table: `[task]` of the analyzer's settings.
        clip: norm to which clients clip.
    """
    torch.set_num_threads(1)
    rest = dict(table)
    data = load_dataset(str(rest.pop("data", "digits")))
    model = str(rest.pop("model", "auto"))
    settings = learning_settings(rest)
    module = make_module(model, data, settings.seed)
    return TorchAnalyzerTask(module, settings, clip, data.test_inputs, data.test_targets)


def client_task(table: dict[str, Any], folder: Path) -> TorchClientTask:
    """The client's task, with the owner's records.

    Args:
        table: `[data]` of the client's settings.
        folder: to which `file` is relative.
    """
    torch.set_num_threads(1)
    known = {"file", "model", "classes"}
    if not {"file", "classes"} <= table.keys() <= known:
        raise InvalidParameter("data", sorted(table), "file, classes and perhaps model")
    path = folder / str(table["file"])
    try:
        with np.load(path, allow_pickle=False) as held:
            inputs, targets = held["inputs"], held["targets"]
    except (OSError, KeyError, ValueError) as problem:
        raise InvalidParameter("data.file", str(path), f"inputs and targets ({problem})") from None
    shape = tuple(inputs.shape[1:])
    module = build_model(str(table.get("model", "auto")), shape, int(table["classes"]))
    return TorchClientTask(
        module, torch.from_numpy(inputs).float(), torch.from_numpy(targets).long()
    )
