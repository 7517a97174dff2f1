"""The words by which a run's data, model, protocol and machinery are chosen.

They stand here, and not beside what they name, so that they can be listed without torch.
"""

from __future__ import annotations

from dpcheckin.protocols.names import PROTOCOLS as PROTOCOL_TABLE
from dpcheckin.protocols.names import RANDOMIZERS as RANDOMIZER_TABLE
from dpcheckin.protocols.names import spellings

DATASETS = ("digits", "mnist", "fashion-mnist", "cifar10", "cifar100")
MODELS = ("auto", "papers-cnn", "papers-cnn-relu", "small", "linear")
FEATURES = ("none", "scattering", "efficientnet-lite0")
PROTOCOLS = spellings(PROTOCOL_TABLE)
RANDOMIZERS = (
    *spellings(RANDOMIZER_TABLE, ("privunit", "hemisphere", "gaussian", "skellam")),
    "discrete-gaussian",
    "l1-bit",
    "linf-bit",
)
REPORTS = ("sum", "each")
OPTIMIZERS = ("sgd", "adam")
SCHEDULES = ("constant", "linear", "cosine", "inverse-sqrt", "steps")
TASKS = ("auto", "classes", "numbers")
BACKENDS = ("local", "processes", "ray")
