"""Features from public data: pre-train without privacy, freeze, and leave the last layer private.

The papers' CIFAR-10 runs pre-train on CIFAR-100, taken to be public, and fine-tune the last layer
privately. `public_features` does the first half for any image dataset; the second half is an
ordinary run whose model is a `FrozenFeatures`. Nothing here looks at private records.
"""

from __future__ import annotations

import torch
from torch import nn

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.data.datasets import Dataset
from dpcheckin.learning.losses import cross_entropy
from dpcheckin.learning.models import FrozenFeatures
from dpcheckin.randomizers.base import at_least

FEATURES = 64
_BATCH, _LEARNING_RATE, _MOMENTUM = 100, 0.05, 0.9


def _body(channels: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(channels, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(1024, FEATURES),
        nn.Tanh(),  # bounded features keep the head's gradients small
    )


def public_features(public: Dataset, epochs: int, seed: int) -> nn.Module:
    """A network that turns an image into `FEATURES` numbers, trained to tell the public classes.

    Args:
        public: images that need no protection.
        epochs: passes over them, 0 or more.
        seed: of first weights and order.
    """
    at_least("public_epochs", epochs, 0)
    if len(public.shape) != 3 or min(public.shape[1:]) < 8:
        raise InvalidParameter("public", public.shape, "images of at least 8×8")
    torch.manual_seed(seed)
    body = _body(public.shape[0])
    whole = nn.Sequential(body, nn.Linear(FEATURES, public.classes))
    optimizer = torch.optim.SGD(whole.parameters(), _LEARNING_RATE, _MOMENTUM)
    order = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        shuffled = torch.randperm(len(public.train_targets), generator=order)
        for batch in torch.split(shuffled, _BATCH):
            optimizer.zero_grad()
            outputs = whole(public.train_inputs[batch])
            cross_entropy(outputs, public.train_targets[batch]).mean().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return body


def private_head(public: Dataset, private: Dataset, epochs: int, seed: int) -> FrozenFeatures:
    """The model of a private run: public features, and a last layer for the private classes.

    Args:
        public: images that need no protection.
        private: the data of the private run.
        epochs: passes over the public data.
        seed: of the pre-training.
    """
    if public.shape != private.shape:
        raise InvalidParameter(
            "public", f"records of shape {public.shape}", f"the private records' {private.shape}"
        )
    return FrozenFeatures(public_features(public, epochs, seed), FEATURES, private.classes)
