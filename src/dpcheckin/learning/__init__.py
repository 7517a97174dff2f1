"""Training models over simulated fleets: data, models, per-client gradients, the simulator.

Needs torch (`pip install dpcheckin[learning]`). A run in ten lines is in `docs/training.md`. The names below
are loaded when they are first used: the command line lists the options of a run where torch is not installed.
"""

from typing import TYPE_CHECKING

from dpcheckin.lazy import offered

if TYPE_CHECKING:
    from dpcheckin.errors import DatasetMissing as DatasetMissing
    from dpcheckin.learning.callbacks import TensorBoard as TensorBoard
    from dpcheckin.learning.data.datasets import Dataset as Dataset
    from dpcheckin.learning.data.datasets import load_dataset as load_dataset
    from dpcheckin.learning.data.fleet import Bootstrapped as Bootstrapped
    from dpcheckin.learning.data.fleet import Fleet as Fleet
    from dpcheckin.learning.data.fleet import GroupedByOwner as GroupedByOwner
    from dpcheckin.learning.data.fleet import OneRecordEach as OneRecordEach
    from dpcheckin.learning.data.own import client_data as client_data
    from dpcheckin.learning.gradients.engine import VmapGradients as VmapGradients
    from dpcheckin.learning.gradients.layerwise import LayerwiseGradients as LayerwiseGradients
    from dpcheckin.learning.gradients.layerwise import client_gradients as client_gradients
    from dpcheckin.learning.models import Score as Score
    from dpcheckin.learning.models import accuracy as accuracy
    from dpcheckin.learning.models import build_model as build_model
    from dpcheckin.learning.models import count_parameters as count_parameters
    from dpcheckin.learning.models import papers_cnn as papers_cnn
    from dpcheckin.learning.models import small_network as small_network
    from dpcheckin.learning.options import RunOptions as RunOptions
    from dpcheckin.learning.options import Settings as Settings
    from dpcheckin.learning.run import train as train
    from dpcheckin.learning.simulation.backends import Backend as Backend
    from dpcheckin.learning.simulation.backends import InProcess as InProcess
    from dpcheckin.learning.simulation.backends import Processes as Processes
    from dpcheckin.learning.simulation.backends import RayCluster as RayCluster
    from dpcheckin.learning.simulation.backends import make_backend as make_backend
    from dpcheckin.learning.simulation.client_work import ClientWork as ClientWork
    from dpcheckin.learning.simulation.client_work import Reports as Reports
    from dpcheckin.learning.simulation.training import Outcome as Outcome
    from dpcheckin.learning.simulation.training import Trainer as Trainer

__all__, __getattr__, __dir__ = offered(__name__)
