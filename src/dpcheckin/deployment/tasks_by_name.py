"""From the tables of configuration files to tasks: what `analyzer serve` and `client run` train.

Analyzer, `[task]`: `data` (a dataset's name or an .npz file, of which only the test part is used),
`model`, and settings of learning. Client, `[data]`: `file`, an .npz with the owner's `inputs` and
`targets`, `model` and `classes`. Linear and small models need NumPy only; torch is loaded for the
others, and by analyzers.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcheckin.deployment.numpy_tasks import NumpyClientTask, is_small
from dpcheckin.errors import InvalidParameter

if TYPE_CHECKING:
    from dpcheckin.deployment.torch_tasks import TorchAnalyzerTask
    from dpcheckin.service.tasks import ClientTask


def analyzer_task(table: dict[str, Any], clip: float) -> TorchAnalyzerTask:
    """The analyzer's task.

    Args:
        table: `[task]` of the analyzer's settings.
        clip: norm to which clients clip.
    """
    import torch

    from dpcheckin.deployment.torch_tasks import TorchAnalyzerTask, learning_settings, make_module
    from dpcheckin.learning import load_dataset

    torch.set_num_threads(1)
    rest = dict(table)
    data = load_dataset(str(rest.pop("data", "digits")))
    model = str(rest.pop("model", "auto"))
    settings = learning_settings(rest)
    module = make_module(model, data, settings.seed)
    return TorchAnalyzerTask(module, settings, clip, data.test_inputs, data.test_targets)


def client_task(table: dict[str, Any], folder: Path) -> ClientTask:
    """The client's task, with the owner's records.

    Args:
        table: `[data]` of the client's settings.
        folder: to which `file` is relative.
    """
    known = {"file", "model", "classes"}
    if not {"file", "classes"} <= table.keys() <= known:
        raise InvalidParameter("data", sorted(table), "file, classes and perhaps model")
    path = folder / str(table["file"])
    try:
        with np.load(path, allow_pickle=False) as held:
            inputs, targets = held["inputs"], held["targets"]
    except (OSError, KeyError, ValueError) as problem:
        raise InvalidParameter("data.file", str(path), f"inputs and targets ({problem})") from None
    shape, model = tuple(inputs.shape[1:]), str(table.get("model", "auto"))
    if is_small(model, shape):
        return NumpyClientTask(model, inputs, targets, int(table["classes"]))
    import torch

    from dpcheckin.deployment.torch_tasks import TorchClientTask
    from dpcheckin.learning import build_model

    torch.set_num_threads(1)
    module = build_model(model, shape, int(table["classes"]))
    return TorchClientTask(
        module, torch.from_numpy(inputs).float(), torch.from_numpy(targets).long()
    )
