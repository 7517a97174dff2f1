"""The words by which a run's data, model, protocol and machinery are chosen.

They stand here, and not beside what they name, so that they can be listed without torch.
"""

from __future__ import annotations

DATASETS = ("digits", "mnist", "fashion-mnist", "cifar10", "cifar100")
MODELS = ("auto", "papers-cnn", "papers-cnn-relu", "small", "linear")
PROTOCOLS = (
    "shuffled-check-in",
    "subsampled-shuffle",
    "full-shuffle",
    "random-check-ins-fixed",
    "random-check-ins-averaged",
    "random-check-ins-sliding",
    "distributed-check-in",
    "local-only",
    "central",
)
RANDOMIZERS = ("privunit", "ldp-sgd", "gaussian")
REPORTS = ("sum", "each")
OPTIMIZERS = ("sgd", "adam")
SCHEDULES = ("constant", "linear", "cosine", "steps")
BACKENDS = ("local", "processes", "ray")
