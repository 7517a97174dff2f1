"""Linear and small models with NumPy alone: the same gradients, and no torch on the client."""

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from dpcheckin.deployment.numpy_tasks import HIDDEN, NumpyClientTask, is_small
from dpcheckin.deployment.tasks import training_client
from dpcheckin.errors import InvalidParameter, NumericalFailure

TESTS = Path(__file__).parent.parent
SHAPE, CLASSES = (1, 4, 3), 5


def records(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(seed)
    inputs = chance.normal(size=(7, *SHAPE)).astype(np.float32)
    return inputs, chance.integers(CLASSES, size=7)


def parameters(size: int, seed: int = 1) -> bytes:
    return np.random.default_rng(seed).normal(0, 0.3, size).astype("<f4").tobytes()


@pytest.mark.parametrize("model", ["linear", "small", "auto"])
def test_gradients_are_those_of_torch(model: str) -> None:
    torch = pytest.importorskip("torch")
    from dpcheckin.deployment.torch_tasks import TorchClientTask
    from dpcheckin.learning import build_model

    inputs, targets = records()
    own = NumpyClientTask(model, inputs, targets, CLASSES)
    module = build_model(model, SHAPE, CLASSES)
    other = TorchClientTask(module, torch.from_numpy(inputs), torch.from_numpy(targets))
    sent = parameters(own.dimension)
    np.testing.assert_allclose(own.value(sent), other.value(sent), rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize("model", ["linear", "small"])
def test_a_gradient_is_the_slope_of_the_mean_cross_entropy(model: str) -> None:
    """Against differences of the loss itself, computed another way."""
    inputs, targets = records(3)
    task = NumpyClientTask(model, inputs, targets, CLASSES)

    def loss(values: np.ndarray) -> float:
        flat = inputs.reshape(len(inputs), -1).astype(np.float64)
        if model == "small":
            first = HIDDEN * 12
            weight, bias = values[:first].reshape(HIDDEN, 12), values[first : first + HIDDEN]
            flat, values = np.tanh(flat @ weight.T + bias), values[first + HIDDEN :]
        last = CLASSES * flat.shape[1]
        logits = flat @ values[:last].reshape(CLASSES, -1).T + values[last:]
        each = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(targets)), targets]
        return float(each.mean())

    sent = parameters(task.dimension)
    at = np.frombuffer(sent, "<f4").astype(np.float64)
    slope = task.value(sent)
    for place in range(0, task.dimension, 11):
        step = np.zeros(task.dimension)
        step[place] = 1e-5
        assert slope[place] == pytest.approx((loss(at + step) - loss(at - step)) / 2e-5, rel=1e-4, abs=1e-7)


def test_what_does_not_fit_is_refused() -> None:
    inputs, targets = records()
    task = NumpyClientTask("linear", inputs, targets, CLASSES)
    assert task.dimension == 12 * CLASSES + CLASSES
    with pytest.raises(InvalidParameter, match="parameters"):
        task.value(b"1234")
    with pytest.raises(NumericalFailure):
        task.value(np.full(task.dimension, np.nan, "<f4").tobytes())
    with pytest.raises(InvalidParameter, match="records"):
        NumpyClientTask("linear", inputs[:0], targets[:0], CLASSES)
    with pytest.raises(InvalidParameter, match="targets"):
        NumpyClientTask("linear", inputs, targets + 9, CLASSES)
    with pytest.raises(InvalidParameter, match="without torch"):
        NumpyClientTask("papers-cnn", inputs, targets, CLASSES)
    assert is_small("auto", (1, 8, 8))
    assert not is_small("auto", (1, 28, 28))


def test_a_client_whose_model_is_small_loads_no_torch(tmp_path: Path) -> None:
    """A whole round, from the owner's file to the sealed report, where torch cannot be imported."""
    inputs, targets = records()
    np.savez(tmp_path / "records.npz", inputs=inputs, targets=targets)
    script = textwrap.dedent(
        """
        import sys

        class Blocked:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "torch":
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        sys.meta_path.insert(0, Blocked())
        import asyncio, pathlib
        import httpx
        from dpcheckin.deployment.tasks import training_client
        from dpcheckin.service.client.config import ClientConfig
        from dpcheckin.service.client.core import Part
        from dpcheckin.service.client.daemon import Clock, Daemon
        from dpcheckin.service.wire.canonical import digest
        from dpcheckin.service.wire.signing import public_identity
        from service.client_world import WIDE, Coin, World
        from service.plans import PRIVUNIT, plan

        folder = pathlib.Path(sys.argv[1])
        table = {"file": "records.npz", "model": "linear", "classes": 5}
        task = training_client(table, folder)
        model = bytes(4 * task.dimension)
        world = World(folder, plan(randomizer={**PRIVUNIT, "dimension": task.dimension}))
        sent = []

        def answer(request):
            path = request.url.path
            if path == "/v1/plan":
                return httpx.Response(200, content=world.page())
            if path == "/v1/round":
                body = world.round(model=digest(model).hex(), opens=0.0, closes=10.0)
                return httpx.Response(200, content=body)
            if path.startswith("/v1/model"):
                return httpx.Response(200, content=model)
            sent.append(request.content)
            return httpx.Response(202, content=b"{}")

        async def sleep(seconds):
            while daemon._working is not None and not daemon._working.done():
                await asyncio.sleep(0.01)

        config = ClientConfig("http://127.0.0.1:1", "t", public_identity(world.identity), WIDE,
                              folder / "state")

        async def main():
            global daemon
            async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http:
                daemon = Daemon(config, task, http, Clock(lambda: 1.0, sleep))
                daemon._source.uniform = Coin([0.5, 0.0]).uniform
                await daemon.once()
                daemon.close()
            assert daemon.counts.reports == 1, daemon.counts
            world.key.open(sent[0], world.plan.id, digest(model))

        asyncio.run(main())
        assert not any(name.partition(".")[0] == "torch" for name in sys.modules)
        print("reported")
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=TESTS,
        env={"PYTHONPATH": str(TESTS), "PATH": ""},
        timeout=300,
    )
    assert done.stdout.strip() == "reported", done.stderr


def test_a_larger_model_still_gets_its_torch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    inputs = np.zeros((2, 1, 28, 28), np.float32)
    np.savez(tmp_path / "r.npz", inputs=inputs, targets=np.array([0, 1]))
    task = training_client({"file": "r.npz", "model": "papers-cnn", "classes": 10}, tmp_path)
    assert type(task).__name__ == "TorchClientTask"
