"""The words by which a run's data, model and machinery are chosen.

They stand here, and not beside what they name, so that they can be listed without torch.
"""

from __future__ import annotations

DATASETS = ("digits", "mnist", "fashion-mnist", "cifar10", "cifar100")
MODELS = ("auto", "papers-cnn", "papers-cnn-relu", "small", "linear")
FEATURES = ("none", "scattering", "efficientnet-lite0")
REPORTS = ("sum", "each")
OPTIMIZERS = ("sgd", "adam")
SCHEDULES = ("constant", "linear", "cosine", "inverse-sqrt", "steps")
TASKS = ("auto", "classes", "numbers")
BACKENDS = ("local", "processes", "ray")
