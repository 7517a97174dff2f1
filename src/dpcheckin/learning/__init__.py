"""Training models over simulated fleets: data, models, per-client gradients, the simulator.

Needs torch (`pip install dpcheckin[learning]`). A run in ten lines is in `docs/training.md`. The
names below are loaded when they are first used: the command line lists the options of a run
(`learning.options`) where torch is not installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpcheckin.errors import DatasetMissing

if TYPE_CHECKING:
    from dpcheckin.learning.data.datasets import Dataset, load_dataset
    from dpcheckin.learning.data.fleet import Bootstrapped, Fleet, GroupedByOwner, OneRecordEach
    from dpcheckin.learning.data.own import client_data
    from dpcheckin.learning.gradients.engine import VmapGradients
    from dpcheckin.learning.gradients.layerwise import LayerwiseGradients, client_gradients
    from dpcheckin.learning.models import (
        build_model,
        count_parameters,
        papers_cnn,
        small_network,
    )
    from dpcheckin.learning.options import RunOptions
    from dpcheckin.learning.settings import Settings
    from dpcheckin.learning.simulation.backends import (
        Backend,
        InProcess,
        Processes,
        RayCluster,
        make_backend,
    )
    from dpcheckin.learning.simulation.client_work import ClientWork, Reports
    from dpcheckin.learning.simulation.scores import Score, accuracy
    from dpcheckin.learning.simulation.training import Outcome, Trainer
    from dpcheckin.learning.training_call import train

__all__ = [
    "Backend",
    "Bootstrapped",
    "ClientWork",
    "Dataset",
    "DatasetMissing",
    "Fleet",
    "GroupedByOwner",
    "InProcess",
    "LayerwiseGradients",
    "OneRecordEach",
    "Outcome",
    "Processes",
    "RayCluster",
    "Reports",
    "RunOptions",
    "Score",
    "Settings",
    "Trainer",
    "VmapGradients",
    "accuracy",
    "build_model",
    "client_data",
    "client_gradients",
    "count_parameters",
    "load_dataset",
    "make_backend",
    "papers_cnn",
    "small_network",
    "train",
]

_HOMES = {
    "data.datasets": ("Dataset", "load_dataset"),
    "data.own": ("client_data",),
    "data.fleet": ("Bootstrapped", "Fleet", "GroupedByOwner", "OneRecordEach"),
    "gradients.engine": ("VmapGradients",),
    "gradients.layerwise": ("LayerwiseGradients", "client_gradients"),
    "models": ("build_model", "count_parameters", "papers_cnn", "small_network"),
    "options": ("RunOptions",),
    "settings": ("Settings",),
    "simulation.backends": ("Backend", "InProcess", "Processes", "RayCluster", "make_backend"),
    "simulation.client_work": ("ClientWork", "Reports"),
    "simulation.scores": ("Score", "accuracy"),
    "simulation.training": ("Outcome", "Trainer"),
    "training_call": ("train",),
}
"""Which module each name is in; the imports above say the same to type checkers."""

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
