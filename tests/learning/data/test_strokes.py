"""Made-up drawings: a function of a seed, in the middle of the image, several images of each."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning import RunOptions
from dpcheckin.learning.data import made_up as module
from dpcheckin.learning.data.datasets import load_dataset
from dpcheckin.learning.data.made_up import STROKES, made_up, strokes
from dpcheckin.learning.simulation.runs import make_data, make_model


def test_a_seed_is_all_there_is_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DRAWINGS", 10)
    digits = load_dataset("digits")
    other = replace(digits, train_inputs=digits.train_inputs.flip(0) * 7)
    assert torch.equal(made_up(STROKES, digits).train_inputs, made_up(STROKES, other).train_inputs)
    assert made_up(STROKES, digits).shape == (1, 8, 8)
    assert not torch.equal(strokes(3, seed=1), strokes(3, seed=2))


def test_images_of_a_drawing_are_alike_and_lie_in_the_middle() -> None:
    images = strokes(100, times=3)
    assert images.shape == (300, 1, 28, 28)
    assert float(images.min()) == 0 and float(images.max()) == 1
    ink = images.flatten(1)
    assert 0.03 < float(ink.mean()) < 0.3 and bool((ink.sum(1) > 5).all())
    grid = torch.arange(28.0)
    down = (images[:, 0].sum(2) @ grid) / ink.sum(1)
    assert abs(float(down.mean()) - 13.5) < 0.6
    unit = torch.nn.functional.normalize(ink, dim=1).view(100, 3, -1)
    same = (unit[:, 0] * unit[:, 1]).sum(1).mean()
    others = (unit[1:, 0] * unit[:-1, 1]).sum(1).mean()
    assert same > others + 0.1


def test_they_reduce_features_and_teach_no_classes(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(module, "DRAWINGS", 40)
    options = RunOptions(features="scattering", components=20, public="strokes")
    found = make_data(options)
    assert found.shape == (20,)
    lengths = found.train_inputs.norm(dim=1)
    assert torch.allclose(lengths, torch.ones_like(lengths), atol=1e-5)
    with pytest.raises(InvalidParameter, match="no classes"):
        make_model(RunOptions(public="strokes"), load_dataset("digits"))
    with pytest.raises(InvalidParameter, match="square images"):
        made_up(STROKES, found)
    with pytest.raises(InvalidParameter, match="at least 1"):
        strokes(0)
