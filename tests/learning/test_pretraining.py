"""Public features and a private last layer, on small data of CIFAR's shape."""

import json
import pickle

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from dpcheckin.cli import application
from dpcheckin.errors import InvalidParameter
from dpcheckin.learning import load_dataset
from dpcheckin.learning.models import FEATURES, private_head, public_features
from dpcheckin.learning.simulation.client_work import get_parameters
from dpcheckin.learning.simulation.runs import build


def striped(path, classes, seed, side=32):
    """Noisy images whose class is the direction of their stripes: features carry over."""
    draw = np.random.Generator(np.random.PCG64(seed))

    def images(count):
        labels = draw.integers(classes, size=count)
        rows, columns = np.mgrid[:side, :side]
        angle = np.pi * labels[:, None, None] / classes
        wave = np.cos(0.8 * (np.cos(angle) * rows + np.sin(angle) * columns))
        return wave[:, None] + 0.3 * draw.standard_normal((count, 3, side, side)), labels

    (x, y), (tx, ty) = images(600), images(200)
    np.savez(path, train_inputs=x, train_targets=y, test_inputs=tx, test_targets=ty)
    return str(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    return striped(folder / "public.npz", 7, 1), striped(folder / "private.npz", 5, 2)


def test_pre_training_is_repeatable_and_follows_its_seed(files):
    public = load_dataset(files[0])
    one, same, other = (get_parameters(public_features(public, 1, s)) for s in (3, 3, 4))
    assert torch.equal(one, same) and not torch.equal(one, other)


def test_only_the_last_layer_is_private_and_public_features_help(files, tiny):
    """The same private run with features from public data beats one with random features."""
    public, private = files
    found = {}
    for epochs in (0, 4):
        options = tiny(
            {"learning_rate": 1.0, "averaging": 0.5},
            data=private,
            public=public,
            public_epochs=epochs,
            local_epsilon=6.0,
            rate=0.5,
            rounds=12,
        )
        trainer = build(options)
        assert sum(p.numel() for p in trainer.work.module.parameters()) == 5 * FEATURES + 5
        found[epochs] = trainer.run().accuracy
    assert found[4] > max(found[0] + 0.1, 0.6)


def test_the_command_trains_a_private_head_and_resumes_it(files, tmp_path):
    public, private = files
    how = ["train", "--data", private, "--public", public, "--public-epochs", "1", "--threads", "1"]
    how += ["--rounds", "4", "--rate", "0.2", "--json", "--out", str(tmp_path / "run")]
    first = CliRunner().invoke(application(), [*how, "--stop-after", "2"])
    assert first.exit_code == 0, first.output
    said = json.loads(CliRunner().invoke(application(), how).stdout)
    assert said["rounds"] == 4 and said["epsilon"] > 0
    other = CliRunner().invoke(application(), [*how, "--public-epochs", "2"])
    assert isinstance(other.exception, InvalidParameter), "another body is another run"
    assert other.exception.name == "out"


def test_public_records_must_look_like_the_private_ones(files, tmp_path):
    small = load_dataset(striped(tmp_path / "small.npz", 3, 0, side=16))
    with pytest.raises(InvalidParameter, match="public"):
        private_head(small, load_dataset(files[1]), 1, 0)


def test_cifar_100_is_read_from_its_own_files(tmp_path):
    folder = tmp_path / "cifar100" / "cifar-100-python"
    folder.mkdir(parents=True)
    draw = np.random.Generator(np.random.PCG64(0))
    for name, count in (("train", 6), ("test", 2)):
        batch = {
            b"data": draw.integers(256, size=(count, 3072), dtype=np.uint8),
            b"fine_labels": [5 * i + 40 for i in range(count)],
        }
        (folder / name).write_bytes(pickle.dumps(batch))
    data = load_dataset("cifar100", tmp_path)
    assert data.shape == (3, 32, 32) and len(data.train_targets) == 6 and data.classes == 66
