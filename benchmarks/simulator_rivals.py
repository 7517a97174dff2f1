"""Clients per second of Opacus, pfl and Flower's simulation on the papers' CNN, one record each.

    python -m venv bench && bench/bin/pip install torch==2.13.0 opacus pfl "flwr[simulation]"
    bench/bin/python benchmarks/simulator_rivals.py [--threads 2] [--only opacus,pfl,flower]

Needs none of dpcheckin, so that the packages can live in an environment of their own. Each does
what `simulator_speed.py` does for our simulator: one gradient step per client at the same model,
clipped and summed. Opacus is not a federated simulator; its per-example gradients with clipping
are the same arithmetic. Packages that are not installed are reported as such.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
THREADS = 2
CLOCK = time.perf_counter


def cnn() -> nn.Sequential:
    """The papers' CNN (26,010 parameters), as in dpcheckin.learning.models."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.Tanh(),
        nn.Linear(32, 10),
    )


def images(count: int) -> tuple[Tensor, Tensor]:
    """Random images of MNIST's shape."""
    torch.manual_seed(0)
    return torch.randn(count, 1, 28, 28), torch.randint(0, 10, (count,))


def best_of(run: Callable[[], None], clients: int, seconds: float) -> float:
    """Best clients per second over repeated runs (the machine may be shared)."""
    run()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = CLOCK()
        run()
        best = min(best, CLOCK() - start)
    return clients / best


def opacus(seconds: float) -> float:
    """Per-example gradients, clipped, noised and summed, batches of 200."""
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer

    module = GradSampleModule(cnn())
    plain = torch.optim.SGD(module.parameters(), lr=1e-6)
    optimizer = DPOptimizer(plain, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=200)
    inputs, targets = images(2000)

    def run() -> None:
        for start in range(0, 2000, 200):
            optimizer.zero_grad()
            outputs = module(inputs[start : start + 200])
            functional.cross_entropy(outputs, targets[start : start + 200]).backward()
            optimizer.step()

    return best_of(run, 2000, seconds)


class PflModel(nn.Module):
    """The CNN with the loss and metrics pfl asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.net = cnn()

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits."""
        return self.net(inputs)

    def loss(self, inputs: Tensor, targets: Tensor, eval: bool = False) -> Tensor:
        """Cross-entropy, as pfl names it."""
        return functional.cross_entropy(self(torch.as_tensor(inputs)), torch.as_tensor(targets))

    def metrics(self, inputs: Tensor, targets: Tensor, eval: bool = False) -> dict[str, float]:
        """Nothing is measured while timing."""
        return {}


def pfl(seconds: float) -> float:
    """Federated averaging with one local step, cohorts of 500 users with one record."""
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam.base import NNEvalHyperParams, NNTrainHyperParams
    from pfl.internal.ops import pytorch_ops  # noqa: F401  selects the framework
    from pfl.model.pytorch import PyTorchModel
    from pfl.privacy.gaussian_mechanism import GaussianMechanism
    from pfl.privacy.privacy_mechanism import CentrallyAppliedPrivacyMechanism

    cohort = 500
    inputs, targets = images(cohort)
    users = get_user_sampler("minimize_reuse", list(range(cohort)))

    def one(user: int) -> Dataset:
        return Dataset(raw_data=[inputs[user : user + 1], targets[user : user + 1]])

    data = FederatedDataset(one, users)
    model = PflModel()
    wrapped = PyTorchModel(
        model, local_optimizer_create=torch.optim.SGD, central_optimizer=torch.optim.SGD(model.parameters(), 1e-6)
    )
    privacy = CentrallyAppliedPrivacyMechanism(GaussianMechanism(1.0, 1.0))
    backend = SimulatedBackend(training_data=data, val_data=data, postprocessors=[privacy])

    def run() -> None:
        FederatedAveraging().run(
            algorithm_params=NNAlgorithmParams(
                central_num_iterations=1, evaluation_frequency=1000, train_cohort_size=cohort, val_cohort_size=0
            ),
            backend=backend,
            model=wrapped,
            model_train_params=NNTrainHyperParams(local_num_epochs=1, local_learning_rate=1.0, local_batch_size=1),
            model_eval_params=NNEvalHyperParams(local_batch_size=1),
            callbacks=[],
        )

    return best_of(run, cohort, seconds)


def flower(seconds: float) -> float:
    """Flower's simulation runtime: one ClientApp call per client, 200 clients a round."""
    from flwr.client import ClientApp, NumPyClient
    from flwr.common import ndarrays_to_parameters
    from flwr.server import ServerApp, ServerAppComponents, ServerConfig
    from flwr.server.strategy import FedAvg
    from flwr.simulation import run_simulation

    clients, rounds = 200, 3
    inputs, targets = images(clients)
    marks: list[float] = []

    class Client(NumPyClient):
        def __init__(self, number: int) -> None:
            self.number = number

        def fit(self, parameters: list[np.ndarray], config: dict[str, object]) -> tuple:  # type: ignore[type-arg]
            torch.set_num_threads(1)
            module = cnn()
            for p, value in zip(module.parameters(), parameters, strict=True):
                p.data = torch.tensor(value)
            i = self.number % clients
            functional.cross_entropy(module(inputs[i : i + 1]), targets[i : i + 1]).backward()
            grads = [p.grad for p in module.parameters() if p.grad is not None]
            norm = torch.sqrt(sum((g * g).sum() for g in grads)).clamp(min=1.0)
            step = [(p.detach() - g / norm).numpy() for p, g in zip(module.parameters(), grads, strict=True)]
            return step, 1, {}

    class Timed(FedAvg):
        def configure_fit(self, *args: object, **named: object) -> object:
            marks.append(time.perf_counter())
            return super().configure_fit(*args, **named)

        def aggregate_fit(self, *args: object, **named: object) -> object:
            result = super().aggregate_fit(*args, **named)
            marks.append(time.perf_counter())
            return result

    def server(context: object) -> ServerAppComponents:
        start = [p.detach().numpy() for p in cnn().parameters()]
        strategy = Timed(
            fraction_fit=1.0,
            fraction_evaluate=0.0,
            min_fit_clients=clients,
            min_available_clients=clients,
            initial_parameters=ndarrays_to_parameters(start),
        )
        return ServerAppComponents(strategy=strategy, config=ServerConfig(num_rounds=rounds))

    run_simulation(
        server_app=ServerApp(server_fn=server),
        client_app=ClientApp(client_fn=lambda c: Client(int(c.node_config["partition-id"])).to_client()),
        num_supernodes=clients,
        backend_config={"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": THREADS}},
    )
    times = [b - a for a, b in zip(marks[::2], marks[1::2], strict=True)]
    return clients / min(times)


def main() -> None:
    """Time whatever is installed and print a table."""
    global THREADS, CLOCK
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--only", default="opacus,pfl,flower")
    parser.add_argument("--json", default=None)
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="one thread, clients per second of CPU time: comparable on a busy machine",
    )
    options = parser.parse_args()
    if options.cpu_time:
        CLOCK, options.threads = time.process_time, 1
    THREADS = options.threads
    torch.set_num_threads(options.threads)
    results: dict[str, int | str] = {}
    for name in options.only.split(","):
        try:
            results[name] = round({"opacus": opacus, "pfl": pfl, "flower": flower}[name](options.seconds))
        except ImportError as problem:
            results[name] = f"not installed ({problem})"
        print(f"{name:10s} {results[name]} clients/s", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"threads": options.threads, "clients_per_second": results}, file, indent=1)


if __name__ == "__main__":
    main()
