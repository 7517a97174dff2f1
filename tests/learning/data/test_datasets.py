import gzip
from pathlib import Path

import numpy as np
import pytest

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning import DatasetMissing, load_dataset
from dpcheckin.learning.data.fleet import GroupedByOwner

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
needs_shared = pytest.mark.skipif(not (SHARED / "mnist").is_dir(), reason="MNIST is not in ../shared/data")


def test_digits_are_embedded():
    data = load_dataset("digits")
    assert data.shape == (1, 8, 8) and data.classes == 10
    assert len(data.train_targets) == 1437 and len(data.test_targets) == 360


@needs_shared
def test_mnist_and_its_writers():
    """Counts, scaling and writers as documented beside the files."""
    data = load_dataset("mnist", SHARED)
    assert data.train_inputs.shape == (60_000, 1, 28, 28) and data.test_targets.shape == (10_000,)
    assert np.bincount(data.train_targets)[:3].tolist() == [5923, 6742, 5958]
    assert abs(float(data.train_inputs.mean())) < 1e-3
    fleet = GroupedByOwner(data.train_inputs, data.train_targets, data.owners)
    assert fleet.population == 539


def write_idx(path, array):
    kind = {np.dtype("u1"): 8}[array.dtype]
    head = bytes([0, 0, kind, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    path.write_bytes(gzip.compress(head + array.tobytes()))


def test_images_in_a_given_folder(tmp_path):
    """Fashion-MNIST's file names in --data-dir itself."""
    for part, count in (("train", 7), ("t10k", 3)):
        write_idx(tmp_path / f"{part}-images-idx3-ubyte.gz", np.full((count, 28, 28), 255, dtype="u1"))
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte.gz", np.arange(count, dtype="u1"))
    data = load_dataset("fashion-mnist", tmp_path)
    assert data.train_inputs.shape == (7, 1, 28, 28) and data.owners is None
    assert float(data.train_inputs[0, 0, 0, 0]) == pytest.approx((1 - 0.2860) / 0.3530, rel=1e-4)


@pytest.mark.parametrize("name", ["mnist", "cifar10"])
def test_missing_data_says_where_it_was_looked_for(name, tmp_path, monkeypatch):
    """Without files and without torchvision or network: one line that names the folder."""
    monkeypatch.setitem(__import__("sys").modules, "torchvision", None)
    with pytest.raises(DatasetMissing, match="--data-dir") as raised:
        load_dataset(name, tmp_path)
    assert str(tmp_path) in str(raised.value) and "\n" not in str(raised.value)


def test_cifar_as_one_file_of_arrays(tmp_path):
    """`cifar10.npz` is scaled as the published batches are; other arrays are refused."""
    arrays = {
        "train_inputs": np.full((4, 3, 32, 32), 255, dtype="u1"),
        "train_targets": np.arange(4),
        "test_inputs": np.zeros((2, 3, 32, 32), dtype="u1"),
        "test_targets": np.arange(2),
    }
    np.savez(tmp_path / "cifar10.npz", **arrays)
    data = load_dataset("cifar10", tmp_path)
    assert data.name == "cifar10" and data.train_inputs.shape == (4, 3, 32, 32)
    assert float(data.train_inputs[0, 0, 0, 0]) == pytest.approx((1 - 0.4734) / 0.2516, rel=1e-4)
    assert float(data.test_inputs[0, 0, 0, 0]) == pytest.approx(-0.4734 / 0.2516, rel=1e-4)
    for wrong in (arrays["train_inputs"] / 255, arrays["train_inputs"].transpose(0, 2, 3, 1)):
        np.savez(tmp_path / "cifar10.npz", **{**arrays, "train_inputs": wrong})
        with pytest.raises(InvalidParameter, match=r"data = .*cifar10\.npz"):
            load_dataset("cifar10", tmp_path)


def test_arrays_of_ones_own(tmp_path):
    arrays = {
        "train_inputs": np.zeros((4, 3)),
        "train_targets": np.array([0, 1, 0, 1]),
        "test_inputs": np.ones((2, 3)),
        "test_targets": np.array([1, 0]),
        "owners": np.array([5, 5, 6, 6]),
    }
    np.savez(tmp_path / "mine.npz", **arrays)
    data = load_dataset(str(tmp_path))
    assert data.name == "mine" and data.shape == (3,) and data.classes == 2
    np.savez(tmp_path / "mine.npz", train_inputs=np.zeros(3))
    with pytest.raises(InvalidParameter, match="train_targets"):
        load_dataset(str(tmp_path / "mine.npz"))


def test_unknown_names_are_refused():
    with pytest.raises(InvalidParameter, match="data = 'nist'"):
        load_dataset("nist")
