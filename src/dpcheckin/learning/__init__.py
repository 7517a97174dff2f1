"""Training models over simulated fleets: data, models, per-client gradients, the simulator.

Needs torch (`pip install dpcheckin[learning]`). A run in ten lines is in `docs/training.md`.
"""

from dpcheckin.errors import DatasetMissing
from dpcheckin.learning.data.datasets import Dataset, load_dataset
from dpcheckin.learning.data.fleet import Bootstrapped, Fleet, GroupedByOwner, OneRecordEach
from dpcheckin.learning.gradients.engine import VmapGradients
from dpcheckin.learning.gradients.layerwise import LayerwiseGradients, client_gradients
from dpcheckin.learning.models import (
    build_model,
    count_parameters,
    papers_cnn,
    small_network,
)
from dpcheckin.learning.settings import Settings
from dpcheckin.learning.simulation.backends import (
    Backend,
    InProcess,
    Processes,
    RayCluster,
    make_backend,
)
from dpcheckin.learning.simulation.client_work import ClientWork, Reports
from dpcheckin.learning.simulation.training import Outcome, Trainer, accuracy

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
    "Settings",
    "Trainer",
    "VmapGradients",
    "accuracy",
    "build_model",
    "client_gradients",
    "count_parameters",
    "load_dataset",
    "make_backend",
    "papers_cnn",
    "small_network",
]
