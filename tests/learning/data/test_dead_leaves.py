"""Made-up images: a function of a seed, of the shape of the records, with edges and colours."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning import RunOptions
from dpcheckin.learning.data import made_up as module
from dpcheckin.learning.data.datasets import load_dataset
from dpcheckin.learning.data.made_up import LEAVES, dead_leaves, made_up
from dpcheckin.learning.simulation.runs import make_data, make_model


def test_a_seed_is_all_there_is_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "IMAGES", 20)
    digits = load_dataset("digits")
    other = replace(digits, train_inputs=digits.train_inputs.flip(0) * 7)
    assert torch.equal(made_up(LEAVES, digits).train_inputs, made_up(LEAVES, other).train_inputs)
    assert made_up(LEAVES, digits).shape == (1, 8, 8)
    assert not torch.equal(dead_leaves(3, seed=1), dead_leaves(3, seed=2))


def test_neighbouring_pixels_and_channels_go_together() -> None:
    """Noise would have correlations of zero; leaves are larger than a pixel, and have a colour."""
    images = dead_leaves(200, 3, 32)
    assert images.shape == (200, 3, 32, 32) and bool(torch.isfinite(images).all())
    near = torch.corrcoef(torch.stack([images[..., 1:].flatten(), images[..., :-1].flatten()]))
    far = torch.corrcoef(torch.stack([images[..., 16:].flatten(), images[..., :-16].flatten()]))
    colours = torch.corrcoef(torch.stack([images[:, 0].flatten(), images[:, 1].flatten()]))
    assert near[0, 1] > 0.85 and far[0, 1] < near[0, 1] - 0.2 and 0.5 < colours[0, 1] < 0.99


def test_they_reduce_features_and_teach_no_classes(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(module, "IMAGES", 60)
    options = RunOptions(features="scattering", components=20, public="dead-leaves", whitening=0.5)
    assert make_data(options).shape == (20,)
    with pytest.raises(InvalidParameter, match="no classes"):
        make_model(RunOptions(public="dead-leaves"), load_dataset("digits"))
    with pytest.raises(InvalidParameter, match="square images"):
        made_up(LEAVES, make_data(options))
    with pytest.raises(InvalidParameter, match="channels"):
        dead_leaves(1, channels=2)
