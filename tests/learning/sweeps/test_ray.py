"""On a local Ray cluster of two workers: the same bits as without Ray.

One cluster serves all tests of this file, as starting it takes longer than they do.
"""

from pathlib import Path

import pytest
import torch

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning.simulation.backends import connect_ray
from dpcheckin.learning.simulation.client_work import get_parameters
from dpcheckin.learning.simulation.runs import build
from dpcheckin.learning.sweeps.grid import MARK, Sweep, in_this_process, make_runner, run_sweep, shared_folder

pytest.importorskip("ray", reason="the ray package is not installed (extra: flower)")


@pytest.fixture(scope="module")
def cluster():
    with connect_ray(2) as ray:
        assert ray.cluster_resources()["CPU"] == 2
        yield ray


def test_the_simulator_on_ray_gives_the_local_model(cluster, tiny):
    """Every round's cohort is spread over both workers: the model is equal bit for bit."""
    options = {"rate": 0.8, "rounds": 3}
    local = get_parameters(build(tiny(**options)).run().module)
    trainer = build(tiny(**options, backend="ray", workers=2))
    try:
        spread = get_parameters(trainer.run().module)
    finally:
        trainer.backend.close()
    assert torch.equal(local, spread)
    assert cluster.is_initialized(), "a cluster that others started is left alone"


def test_a_sweep_on_ray_gives_the_local_results(cluster, tiny, tmp_path):
    """Digests of the trained parameters, logs and epsilons are equal, run by run."""
    grid = Sweep(tiny(rounds=4), {"local_epsilon": (2.0, 6.0)}, seeds=(0, 1))
    said = [
        [{k: v for k, v in r.items() if k != "seconds"} for r in run_sweep(grid, tmp_path / name, runner)]
        for name, runner in (("here", in_this_process), ("ray", make_runner("ray", 2)))
    ]
    assert said[0] == said[1] and len({r["model"] for r in said[0]}) == 4


def test_prices_on_ray_are_the_local_ones(cluster, tiny, tmp_path):
    grid = Sweep(tiny(randomizer="ldp-sgd"), {"population": (10**4, 10**8)}, train=False)
    here = run_sweep(grid, tmp_path / "here", in_this_process)
    assert run_sweep(grid, tmp_path / "ray", make_runner("ray", 2)) == here


def test_checkpoints_are_kept_only_on_a_disk_that_is_shared(tmp_path):
    (tmp_path / MARK).write_text("one sweep")
    assert shared_folder(tmp_path, "one sweep") == tmp_path
    assert shared_folder(tmp_path, "another sweep") is None
    assert shared_folder(Path("/nowhere"), "one sweep") is None


def test_a_cluster_without_workers_is_refused():
    with pytest.raises(InvalidParameter, match="workers"), connect_ray(0):
        pass
