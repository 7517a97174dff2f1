"""Settings of a linear head tried in seconds, on training records alone.

    python benchmarks/head_trials.py mnist --signal 6e6 [--components 600] [--whitening 0.3 0.6]
        [--steps-total 1600 3200] [--clip 0.5] [--steps 1200] [--batch 2000]
    python benchmarks/head_trials.py cifar10.npz --features efficientnet-lite0 --signal 1e7 [...]

A private run of thousands of rounds is stood in for by `--steps` steps over `--batch` of the
training records each, with as much noise in all as the run has: variance clip²/signal in the mean
of the whole run, where signal is check-ins over the variance of a report (`dpcheckin advise` gives
its share of the central one). A random sixth of the training records is left out, and the figure is
the accuracy on it. It is no result, has no epsilon, and never sees a test record: it says which
settings are worth a run. `--steps-total` is the sum of all learning rates of the run in units of
the clip: half of learning rate × rounds under the linear schedule. `--averaging` is per step of the
trial: a run of more rounds has to forget as much slower.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import torch
from torch import Tensor

from dpcheckin.learning import RunOptions
from dpcheckin.learning.simulation.runs import make_data

PUBLIC = {"mnist": "fashion-mnist", "fashion-mnist": "mnist"}
HELD_OUT = 1 / 6


def trial(
    rows: Tensor, classes: Tensor, watched: Tensor, expected: Tensor, *,
    signal: float, clip: float, total: float, steps: int, batch: int, averaging: float, decay: float,
) -> float:  # fmt: skip
    """Accuracy on `watched` after noisy steps with a learning rate that falls to zero."""
    chance = torch.Generator().manual_seed(0)
    count, width = rows.shape
    places = torch.arange(batch)
    weight, bias = torch.zeros(10, width), torch.zeros(10)
    mean_weight, mean_bias = weight.clone(), bias.clone()
    deviation = clip * (steps / signal) ** 0.5
    for step in range(steps):
        first = int(torch.randint(count - batch + 1, (), generator=chance))
        some = rows[first : first + batch]  # neighbours in memory: records come in no order
        residuals = torch.softmax(weight @ some.T + bias[:, None], 0)
        residuals[classes[first : first + batch], places] -= 1
        norms = (2 * residuals.square().sum(0)).sqrt()  # rows of length one, and a bias
        residuals *= clip / norms.clamp(min=clip) / batch
        rate = 2 * (1 - step / steps) * total / steps / clip
        noise = torch.randn(10, width + 1, generator=chance) * deviation
        weight, bias = (1 - rate * clip * decay) * weight, (1 - rate * clip * decay) * bias
        weight -= rate * (residuals @ some + noise[:, :-1])
        bias -= rate * (residuals.sum(1) + noise[:, -1])
        mean_weight = averaging * mean_weight + (1 - averaging) * weight
        mean_bias = averaging * mean_bias + (1 - averaging) * bias
    found = (watched @ mean_weight.T + mean_bias).argmax(1)
    return float((found == expected).double().mean())


def main() -> None:
    """Print one line for every whitening and sum of learning rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="as dpcheckin train takes it")
    parser.add_argument("--features", default="scattering")
    parser.add_argument("--public", default=None)
    parser.add_argument("--signal", type=float, required=True)
    parser.add_argument("--components", type=int, nargs="+", default=[600])
    parser.add_argument("--whitening", type=float, nargs="+", default=[0.3, 0.6])
    parser.add_argument("--steps-total", type=float, nargs="+", default=[1600.0, 3200.0])
    parser.add_argument("--clip", type=float, nargs="+", default=[0.5])
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--batch", type=int, default=2000)
    parser.add_argument("--averaging", type=float, default=0.99)
    parser.add_argument("--weight-decay", type=float, default=0.0)
    parser.add_argument("--data-dir", type=Path, default=None)
    asked = parser.parse_args()
    public = asked.public or PUBLIC.get(asked.data, "dead-leaves")
    for components, whitening in itertools.product(asked.components, asked.whitening):
        data = make_data(
            RunOptions(
                data=asked.data, features=asked.features, components=components,
                public=public, whitening=whitening, data_dir=asked.data_dir, validate=HELD_OUT,
            )
        )  # fmt: skip
        parts = [data.train_inputs, data.train_targets, data.test_inputs, data.test_targets]
        for clip, total in itertools.product(asked.clip, asked.steps_total):
            reached = trial(
                *parts, signal=asked.signal, clip=clip, total=total, steps=asked.steps,
                batch=asked.batch, averaging=asked.averaging, decay=asked.weight_decay,
            )  # fmt: skip
            print(
                f"{components} components, whitening {whitening:g}, clip {clip:g}, sum of rates "
                f"{total:g}: {100 * reached:.2f}%",
                flush=True,
            )


if __name__ == "__main__":
    main()
