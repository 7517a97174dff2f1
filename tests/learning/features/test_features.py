"""Features cost no privacy: each is a function of one record and of public data alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from dpcheckin.errors import InvalidParameter
from dpcheckin.learning import RunOptions, Settings
from dpcheckin.learning.data.datasets import Dataset, held_out, load_dataset
from dpcheckin.learning.features import extraction, transforms
from dpcheckin.learning.features.extraction import FeatureRecipe, featured
from dpcheckin.learning.features.reduction import principal_components, random_projection, telling_components, whitened
from dpcheckin.learning.features.transforms import _modulus, scattering
from dpcheckin.learning.simulation.runs import build, make_data


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def images(count: int, side: int = 16, seed: int = 0) -> torch.Tensor:
    return torch.randn(count, 1, side, side, generator=torch.Generator().manual_seed(seed))


def test_folding_a_spectrum_keeps_every_so_many_pixels() -> None:
    chance = torch.Generator().manual_seed(0)
    spectra = torch.fft.fft2(torch.randn(2, 3, 12, 12, generator=chance))
    waves = torch.randn(5, 12, 12, generator=chance)
    whole = torch.fft.ifft2(spectra[:, :, None] * waves).abs()
    for thinned in (1, 2, 4):
        kept = _modulus(spectra, waves, thinned)
        assert torch.allclose(kept, whole[..., ::thinned, ::thinned], atol=1e-5)


def test_components_of_few_long_rows_are_those_of_their_covariance() -> None:
    chance = torch.Generator().manual_seed(0)
    rows = torch.randn(12, 30, generator=chance) @ torch.randn(30, 30, generator=chance)
    found = principal_components(rows, 11)
    centred = (rows - rows.mean(0)).double()
    covariance = centred.T @ centred / 12
    axes, deviations = found.axes.double(), found.deviations.double()
    assert torch.allclose(axes.T @ axes, torch.eye(11).double(), atol=1e-5)
    assert torch.allclose(covariance @ axes, axes * deviations**2, atol=1e-3)
    assert float((deviations**2).sum()) == pytest.approx(float(covariance.trace()), rel=1e-5)
    with pytest.raises(InvalidParameter, match="from 1 to 11"):
        principal_components(rows, 12)


def test_an_image_alone_decides_its_scattering() -> None:
    """The rest of a batch, brightness and contrast make no difference."""
    batch = images(6)
    together = scattering(batch)
    alone = torch.cat([scattering(one[None]) for one in batch])
    assert torch.allclose(together, alone, atol=1e-4)
    assert torch.allclose(scattering(5 * batch - 3), together, atol=1e-3)


def test_scattering_has_all_paths_and_sees_direction() -> None:
    """1 + JL + L²J(J−1)/2 maps a channel; stripes excite the wavelets along them."""
    assert scattering(images(2, 28)).shape == (2, (1 + 16 + 64) * 49)
    rows, columns = torch.meshgrid(torch.arange(32.0), torch.arange(32.0), indexing="ij")
    wave = 0.75 * torch.pi
    stripes = torch.stack([torch.cos(wave * rows), torch.cos(wave * columns)])[:, None]
    first = scattering(stripes)[:, 64 : 64 + 8 * 64].reshape(2, 8, 64).mean(-1)
    assert first.argmax(dim=1).tolist() == [0, 4]  # of eight angles, a right angle apart


def test_scattering_hardly_moves_with_the_image() -> None:
    """A pixel's shift changes it far less than it changes the image."""
    fine = images(8, 32)
    moved = torch.roll(fine, 1, dims=3)

    def change(a: torch.Tensor, b: torch.Tensor) -> float:
        return float((a - b).norm() / a.norm())

    assert change(scattering(fine), scattering(moved)) < 0.6 * change(fine, moved)


@pytest.mark.parametrize("wrong", [torch.zeros(2, 1, 16, 12), torch.zeros(2, 1, 6, 6)])
def test_images_that_cannot_be_scattered_are_refused(wrong: torch.Tensor) -> None:
    with pytest.raises(InvalidParameter, match="images"):
        scattering(wrong)


def test_principal_components_are_those_of_the_covariance() -> None:
    draw = np.random.Generator(np.random.PCG64(1))
    rows = draw.standard_normal((500, 6)) * np.array([5.0, 3.0, 1.0, 0.5, 0.2, 0.1]) + 2
    found = principal_components(torch.tensor(rows), 2)
    *_, directions = np.linalg.svd(rows - rows.mean(0))
    for axis, direction in zip(found.axes.T.numpy(), directions[:2], strict=True):
        assert abs(float(axis @ direction)) == pytest.approx(1, abs=1e-4)
    lengths = found(torch.tensor(rows, dtype=torch.float32)).norm(dim=1)
    assert torch.allclose(lengths, torch.ones(500))
    with pytest.raises(InvalidParameter, match="components"):
        principal_components(torch.tensor(rows), 7)


def test_telling_components_are_those_in_which_things_differ_and_their_images_do_not() -> None:
    """Two numbers tell things apart; the others vary as much, but within a thing."""
    chance = torch.Generator().manual_seed(1)
    things, together = 400, 3
    meant = torch.zeros(things, 1, 6)
    meant[..., 2], meant[..., 4] = 2 * torch.randn(2, things, 1, generator=chance)
    deviations = torch.tensor([2.0, 3.0, 0.1, 2.0, 0.2, 2.0])
    rows = meant + deviations * torch.randn(things, together, 6, generator=chance)
    found = telling_components(rows.flatten(0, 1), together, 2)
    share = found.axes.square() / found.axes.square().sum(dim=0)
    assert float(share[[2, 4]].sum(dim=0).min()) > 0.99
    reached = (rows.flatten(0, 1) - found.centre) @ found.axes
    assert torch.allclose(reached.square().mean(dim=0).sqrt(), found.deviations, rtol=1e-3)
    assert torch.equal(
        found.axes, telling_components(rows.flatten(0, 1), together, 2).axes
    )  # nothing but the rows decides
    for count, size in ((7, 3), (2, 1)):
        with pytest.raises(InvalidParameter, match="components"):
            telling_components(rows.flatten(0, 1), size, count)


def test_random_projections_keep_lengths_on_average() -> None:
    projection = random_projection(400, 100, seed=3)
    assert torch.allclose(projection.axes.T @ projection.axes, torch.eye(100), atol=1e-4)
    with pytest.raises(InvalidParameter, match="components"):
        random_projection(4, 5)


def small(seed: int = 0) -> Dataset:
    data = load_dataset("digits")
    some = slice(100 * seed, 100 * seed + 100)
    return replace(
        data,
        train_inputs=data.train_inputs[some],
        train_targets=data.train_targets[some],
        test_inputs=data.test_inputs[:20],
        test_targets=data.test_targets[:20],
    )


def test_features_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    recipe = FeatureRecipe("scattering", 30, small(1))
    made = featured(small(), recipe, lines.append)
    assert any("public" in line for line in lines) and " s; kept in " in lines[-1]

    def never(self: FeatureRecipe) -> extraction.Transform:
        raise AssertionError("computed again")

    with monkeypatch.context() as patch:
        patch.setattr(FeatureRecipe, "transform", never)
        again = featured(small(), recipe, lines.append)
        assert torch.equal(made.train_inputs, again.train_inputs) and "read from" in lines[-1]
        fewer = featured(small(), replace(recipe, components=29))
        with pytest.raises(AssertionError, match="computed again"):
            featured(small(), replace(recipe, public=small(2)))
        with pytest.raises(AssertionError, match="computed again"):
            featured(small(3), recipe)
    direct = principal_components(scattering(small(1).train_inputs), 29)
    expected = direct(scattering(small().train_inputs))
    assert torch.allclose(fewer.train_inputs, expected, atol=1e-4)
    with pytest.raises(InvalidParameter, match="components"):
        featured(small(), replace(recipe, components=101))


def test_a_torn_cache_is_made_anew() -> None:
    recipe = FeatureRecipe("scattering", 10)
    made = featured(small(), recipe)
    (kept,) = extraction.cache_folder().glob("*.npz")
    kept.write_bytes(kept.read_bytes()[:100])
    assert torch.equal(featured(small(), recipe).test_inputs, made.test_inputs)


def test_private_records_do_not_choose_the_components() -> None:
    """Another client's record changes its own row and no other."""
    one, changed = small(), small()
    inputs = changed.train_inputs.clone()
    inputs[7] = inputs[8]
    changed = replace(changed, train_inputs=inputs)
    recipe = FeatureRecipe("scattering", 12, small(1))
    a, b = featured(one, recipe).train_inputs, featured(changed, recipe).train_inputs
    same = (a == b).all(dim=1)
    assert not same[7] and int(same.sum()) == 99


def test_features_serve_a_run_and_its_linear_head() -> None:
    options = RunOptions(
        features="scattering", components=40, rounds=60, rate=0.5, local_epsilon=6.0, clip=0.5,
        settings=Settings(learning_rate=4.0, averaging=0.9),
    )  # fmt: skip
    trainer = build(options)
    assert [tuple(p.shape) for p in trainer.work.module.parameters()] == [(10, 40), (10,)]
    assert trainer.run().accuracy > 0.6
    assert make_data(options).shape == (40,)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"features": "wavelets"}, "features"),
        ({"components": 5}, "components"),
        ({"features": "scattering", "components": 0}, "components"),
        ({"features": "scattering", "public": "digits"}, "components"),
        ({"whitening": 0.5}, "whitening"),
        ({"features": "scattering", "components": 5, "whitening": 0.5}, "without public data"),
        ({"features": "scattering", "components": 5, "public": "digits", "whitening": 1.5}, "whitening"),
        ({"validate": 0.0}, "validate"),
        ({"validate": 1.0}, "validate"),
        ({"validate": 1e-9}, "validate"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object], match: str) -> None:
    with pytest.raises(InvalidParameter, match=match):
        make_data(RunOptions(**wrong))  # type: ignore[arg-type]


def test_whitening_gives_public_rows_equal_variance() -> None:
    """Power 1 makes all directions alike, power 0 changes nothing, every row keeps length one."""
    draw = np.random.Generator(np.random.PCG64(2))
    rows = torch.tensor(draw.standard_normal((4000, 5)) * np.array([9.0, 5.0, 2.0, 1.0, 0.5]))
    found = principal_components(rows, 4)
    assert found.deviations.tolist() == pytest.approx([9, 5, 2, 1], rel=0.06)
    before = found(rows.float())
    assert whitened(before, found.deviations, 0.0) is before
    alike = whitened(before, found.deviations, 1.0)
    assert torch.allclose(alike.norm(dim=1), torch.ones(4000))
    assert alike.square().mean(0).tolist() == pytest.approx([0.25] * 4, rel=0.1)
    half = whitened(before, found.deviations, 0.5).square().mean(0)
    assert before.square().mean(0)[0] > half[0] > 0.25 > half[3] > before.square().mean(0)[3]


def test_whitening_is_read_from_the_same_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = FeatureRecipe("scattering", 30, small(1))
    plain = featured(small(), recipe)
    (kept,) = extraction.cache_folder().glob("*.npz")
    monkeypatch.setattr(FeatureRecipe, "transform", None)
    white = featured(small(), replace(recipe, whitening=0.7))
    with np.load(kept) as arrays:
        expected = plain.test_inputs / torch.from_numpy(arrays["deviations"])[:30] ** 0.7
    assert torch.allclose(white.test_inputs, torch.nn.functional.normalize(expected, dim=1), atol=1e-6)


def test_costly_features_are_kept_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other numbers of components do not compute them again."""
    calls: list[int] = []

    def transform(self: FeatureRecipe) -> extraction.Transform:
        calls.append(1)
        return lambda images: scattering(images)

    monkeypatch.setattr(FeatureRecipe, "transform", transform)
    ten = featured(small(), FeatureRecipe("efficientnet-lite0", 10))
    twenty = featured(small(), FeatureRecipe("efficientnet-lite0", 20))
    assert ten.shape == (10,) and twenty.shape == (20,) and len(calls) == 1
    assert torch.allclose(twenty.train_inputs.norm(dim=1), torch.ones(100))
    public = FeatureRecipe("efficientnet-lite0", 20, small(1), whitening=1.0)
    assert featured(small(), public).shape == (20,) and len(calls) == 2


def test_held_out_records_are_training_records_nobody_trains_on() -> None:
    data = load_dataset("digits")
    data = replace(data, owners=np.arange(len(data.train_targets)))
    parts = held_out(data, 0.25)
    assert len(parts.test_targets) == 359 and len(parts.train_targets) == 1078
    everybody = {tuple(row.tolist()) for row in data.train_inputs.flatten(1)}
    trained = {tuple(row.tolist()) for row in parts.train_inputs.flatten(1)}
    watched = {tuple(row.tolist()) for row in parts.test_inputs.flatten(1)}
    assert trained | watched == everybody
    assert parts.owners is not None
    assert torch.equal(data.train_inputs[torch.from_numpy(parts.owners)], parts.train_inputs)
    again = held_out(data, 0.25)
    assert torch.equal(again.test_inputs, parts.test_inputs)
    options = RunOptions(validate=0.25)
    assert len(make_data(options).test_targets) == 359


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_a_networks_features_do_not_depend_on_contrast(kind: torch.dtype) -> None:
    """One row an image in full precision, whatever the network computes with."""

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Conv2d(3, 5, 3)

        def extract_features(self, images: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.layer(images)
            return found

    assert transforms.working_type() in (torch.float32, torch.bfloat16)
    torch.manual_seed(0)
    network, pictures = Network().to(kind), images(3)
    rows = transforms.imagenet_features(network, pictures)
    assert rows.shape == (3, 5) and rows.dtype is torch.float32
    again = transforms.imagenet_features(network, 7 * pictures + 2)
    assert torch.allclose(rows, again, atol=1e-5 if kind is torch.float32 else 2e-2)
    with pytest.raises(InvalidParameter, match="one or three channels"):
        transforms.imagenet_features(network, torch.zeros(2, 2, 4, 4))
